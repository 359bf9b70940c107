#include "codegen/known_memory.hpp"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/Loads.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/MemoryLocation.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <algorithm>

namespace slope::codegen {

namespace {

constexpr const char* mark_name = "slope.known";
constexpr std::uint64_t most_comparisons = 20'000;  // of a load with a store, in one loop
constexpr std::size_t most_merges = 32;             // that lead to one address

std::uint64_t marked(const llvm::Instruction& instruction) {
  const llvm::MDNode* mark = instruction.getMetadata(mark_name);
  return mark ? llvm::mdconst::extract<llvm::ConstantInt>(mark->getOperand(0))->getZExtValue() : 0;
}

class KnownMemory {
 public:
  KnownMemory(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : layout_(function.getParent()->getDataLayout()),
        aliases_(analyses.getResult<llvm::AAManager>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        assumptions_(analyses.getResult<llvm::AssumptionAnalysis>(function)),
        library_(analyses.getResult<llvm::TargetLibraryAnalysis>(function)) {}

  bool run(llvm::Loop& loop) {
    llvm::BasicBlock* preheader = loop.getLoopPreheader();
    if (!preheader) return false;
    llvm::SmallVector<llvm::LoadInst*, 16> loads;
    llvm::SmallVector<llvm::Instruction*, 16> writes;
    for (llvm::BasicBlock* block : loop.blocks()) {
      for (llvm::Instruction& inst : *block) {
        if (inst.mayWriteToMemory()) writes.push_back(&inst);
        auto* load = llvm::dyn_cast<llvm::LoadInst>(&inst);
        if (load && load->isSimple() && is_fixed(*load, loop)) loads.push_back(load);
      }
    }
    if (loads.size() * writes.size() > most_comparisons) return false;
    bool changed = false;
    for (llvm::LoadInst* load : loads) {
      const llvm::MemoryLocation read = llvm::MemoryLocation::get(load);
      const bool written = std::any_of(writes.begin(), writes.end(), [&](llvm::Instruction* write) {
        return llvm::isModSet(aliases_.getModRefInfo(write, read));
      });
      if (written || !may_be_read(*load, *preheader->getTerminator())) continue;
      hoist(*load, loop, *preheader->getTerminator());
      changed = true;
    }
    return changed;
  }

 private:
  // At a fixed distance from what the loop does not change, by additions alone.
  bool is_fixed(const llvm::LoadInst& load, const llvm::Loop& loop) const {
    const llvm::Value* address = load.getPointerOperand();
    while (!loop.isLoopInvariant(address)) {
      auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(address);
      if (!step || !step->hasAllConstantIndices()) return false;
      address = step->getPointerOperand();
    }
    return true;
  }

  std::pair<const llvm::Value*, std::int64_t> base_of(const llvm::LoadInst& load) const {
    llvm::APInt offset(layout_.getIndexTypeSizeInBits(load.getPointerOperandType()), 0);
    const llvm::Value* base = load.getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true);
    return {base, offset.getSExtValue()};
  }

  bool may_be_read(const llvm::LoadInst& load, const llvm::Instruction& at) {
    const auto [base, offset] = base_of(load);
    const std::uint64_t size = layout_.getTypeStoreSize(load.getType()).getFixedValue();
    if (offset < 0 || offset % 8 != 0 || load.getAlign() > llvm::Align(8)) return false;
    llvm::SmallPtrSet<const llvm::Value*, 8> merges;
    return is_known(base, static_cast<std::uint64_t>(offset) + size, at, merges);
  }

  // Of a cycle of merges: what comes into it from outside is.
  bool is_known(const llvm::Value* base, std::uint64_t bytes, const llvm::Instruction& at,
                llvm::SmallPtrSetImpl<const llvm::Value*>& merges) {
    if (auto* inst = llvm::dyn_cast<llvm::Instruction>(base); inst && marked(*inst) >= bytes) return true;
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(base)) {
      if (merges.contains(phi)) return true;
      if (merges.size() == most_merges) return false;
      merges.insert(phi);
      for (unsigned i = 0, n = phi->getNumIncomingValues(); i < n; ++i)
        if (!is_known(phi->getIncomingValue(i), bytes, *phi->getIncomingBlock(i)->getTerminator(), merges))
          return false;
      return true;
    }
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(base))
      return is_known(select->getTrueValue(), bytes, at, merges) &&
             is_known(select->getFalseValue(), bytes, at, merges);
    const llvm::APInt size(layout_.getIndexTypeSizeInBits(base->getType()), bytes);
    return llvm::isDereferenceableAndAlignedPointer(base, llvm::Align(8), size, layout_, &at, &assumptions_,
                                                    &dominators_, &library_);
  }

  static void hoist(llvm::LoadInst& load, const llvm::Loop& loop, llvm::Instruction& end) {
    llvm::SmallVector<llvm::Instruction*, 4> address;  // what computes it in the loop
    for (llvm::Value* v = load.getPointerOperand(); !loop.isLoopInvariant(v);) {
      auto* step = llvm::cast<llvm::GetElementPtrInst>(v);
      address.push_back(step);
      v = step->getPointerOperand();
    }
    while (!address.empty()) address.pop_back_val()->moveBefore(&end);
    load.dropUnknownNonDebugMetadata({llvm::LLVMContext::MD_tbaa});  // what else is known is known where it was
    load.moveBefore(&end);
  }

  const llvm::DataLayout& layout_;
  llvm::AAResults& aliases_;
  llvm::DominatorTree& dominators_;
  llvm::AssumptionCache& assumptions_;
  llvm::TargetLibraryInfo& library_;
};

}  // namespace

void mark_known(llvm::Instruction& instruction, std::uint64_t bytes) {
  llvm::LLVMContext& context = instruction.getContext();
  auto* number = llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), bytes);
  instruction.setMetadata(mark_name, llvm::MDNode::get(context, {llvm::ConstantAsMetadata::get(number)}));
}

llvm::PreservedAnalyses KnownMemoryPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  if (loops.empty()) return llvm::PreservedAnalyses::all();
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& assumptions = analyses.getResult<llvm::AssumptionAnalysis>(function);
  bool changed = false;
  for (llvm::Loop* loop : llvm::to_vector(loops.getTopLevelLoops()))
    changed |= llvm::simplifyLoop(loop, &dominators, &loops, nullptr, &assumptions, nullptr, false);
  KnownMemory known(function, analyses);
  const auto outer_first = loops.getLoopsInPreorder();
  for (llvm::Loop* loop : llvm::reverse(outer_first)) changed |= known.run(*loop);
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace slope::codegen
