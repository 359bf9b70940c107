#include "codegen/leaps.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/DepthFirstIterator.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

using llvm::BasicBlock;

// Adds `value` to the heads that it is live at: it walks from each use against the edges to the definition.
class LiveAtHeads {
 public:
  explicit LiveAtHeads(std::vector<LoopHead>& heads) : heads_(heads) {
    for (std::size_t i = 0; i < heads.size(); ++i) by_block_[heads[i].header] = i;
  }

  void add(llvm::Value& value, BasicBlock* definition) {
    seen_.clear();
    for (const llvm::Use& use : value.uses()) {
      auto* user = llvm::cast<llvm::Instruction>(use.getUser());
      if (auto* phi = llvm::dyn_cast<llvm::PHINode>(user))
        reach(phi->getIncomingBlock(use), definition);
      else
        reach(user->getParent(), definition);
    }
    while (!work_.empty()) {
      BasicBlock* block = work_.pop_back_val();
      if (auto head = by_block_.find(block); head != by_block_.end()) hand_over(heads_[head->second], value, 0);
      for (BasicBlock* before : llvm::predecessors(block)) reach(before, definition);
    }
  }

 private:
  // It is needed in the block, from its start unless it is defined there.
  void reach(BasicBlock* block, BasicBlock* definition) {
    if (block != definition && seen_.insert(block).second) work_.push_back(block);
  }

  // What it is computed from was computed no later than it, so there is no newer one.
  void hand_over(LoopHead& head, llvm::Value& value, int depth) {
    if (llvm::isa<llvm::Constant>(value) || !given_.insert({&head, &value}).second) return;
    auto* inst = llvm::dyn_cast<llvm::Instruction>(&value);
    if (!inst || depth > tuning::leap_recomputed || !is_cheap(*inst)) {
      if (&value != head.live.front()) head.live.push_back(&value);
      return;
    }
    for (llvm::Value* operand : inst->operands()) hand_over(head, *operand, depth + 1);
    head.computed.push_back(inst);
  }
  static bool is_cheap(const llvm::Instruction& inst) {
    const auto is_word = [](const llvm::Value* value) { return value->getType()->isIntOrPtrTy(); };
    if (!is_word(&inst) || !llvm::all_of(inst.operands(), is_word) || inst.isIntDivRem()) return false;
    return llvm::isa<llvm::BinaryOperator, llvm::ICmpInst, llvm::SelectInst, llvm::CastInst, llvm::GetElementPtrInst>(
        inst);
  }

  std::vector<LoopHead>& heads_;
  llvm::DenseMap<BasicBlock*, std::size_t> by_block_;
  llvm::DenseSet<std::pair<const LoopHead*, const llvm::Value*>> given_;
  llvm::SmallPtrSet<BasicBlock*, 32> seen_;
  llvm::SmallVector<BasicBlock*, 32> work_;
};

}  // namespace

std::vector<LoopHead> find_loop_heads(llvm::Function& function) {
  const llvm::DominatorTree dominators(function);
  const llvm::LoopInfo loops(dominators);
  std::vector<LoopHead> heads;
  if (loops.empty()) return heads;
  llvm::DenseMap<const llvm::Loop*, unsigned> index_of;
  for (BasicBlock& block : function) {
    const llvm::Loop* loop = loops.getLoopFor(&block);
    if (!loop || loop->getHeader() != &block) continue;
    index_of[loop] = static_cast<unsigned>(heads.size());
    LoopHead& head = heads.emplace_back();
    head.header = &block;
    for (BasicBlock& other : function)
      if (loop->contains(&other) && llvm::is_contained(llvm::successors(&other), &block))
        head.latches.push_back(&other);
    head.live.push_back(function.getArg(0));
    for (llvm::PHINode& phi : block.phis()) head.live.push_back(&phi);
  }
  for (LoopHead& head : heads) {
    const llvm::Loop* loop = loops.getLoopFor(head.header);
    while (const llvm::Loop* outer = loop->getParentLoop()) loop = outer;
    head.outermost = index_of[loop];
  }
  LiveAtHeads live(heads);
  for (llvm::Argument& argument : function.args())
    if (argument.getArgNo() > 0) live.add(argument, nullptr);
  for (llvm::Instruction& inst : llvm::instructions(function))
    if (!inst.getType()->isVoidTy() && dominators.isReachableFromEntry(inst.getParent()))
      live.add(inst, inst.getParent());
  return heads;
}

void simplify_for_leaps(llvm::Function& function) {
  std::vector<llvm::AllocaInst*> variables;
  for (llvm::Instruction& inst : function.getEntryBlock())
    if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&inst); variable && llvm::isAllocaPromotable(variable))
      variables.push_back(variable);
  if (!variables.empty()) {
    llvm::DominatorTree dominators(function);
    llvm::PromoteMemToReg(variables, dominators);
  }
  llvm::FunctionAnalysisManager analyses;
  analyses.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  analyses.registerPass([] { return llvm::TargetLibraryAnalysis(); });
  analyses.registerPass([] { return llvm::TargetIRAnalysis(); });
  analyses.registerPass([] { return llvm::AssumptionAnalysis(); });
  analyses.registerPass([] { return llvm::DominatorTreeAnalysis(); });
  llvm::EarlyCSEPass(/*UseMemorySSA=*/false).run(function, analyses);
}

namespace {

// Of the same body, with the live values for parameters; `arguments` are in their order.
llvm::Function* with_live_values(llvm::Function& old, const LoopHead& head) {
  const llvm::DataLayout& layout = old.getParent()->getDataLayout();
  llvm::SmallVector<llvm::Type*, 16> types;
  for (const llvm::Value* value : head.live) types.push_back(value->getType());
  llvm::Function* made = llvm::Function::Create(llvm::FunctionType::get(old.getReturnType(), types, false),
                                                llvm::Function::ExternalLinkage, "", old.getParent());
  const llvm::AttributeList attributes = old.getAttributes();
  llvm::LLVMContext& context = old.getContext();
  made->setAttributes(llvm::AttributeList::get(context, attributes.getFnAttrs(), attributes.getRetAttrs(), {}));
  made->setDSOLocal(true);
  for (std::size_t i = 0; i < head.live.size(); ++i) {
    const auto number = static_cast<unsigned>(i);
    if (auto* argument = llvm::dyn_cast<llvm::Argument>(head.live[i])) {
      made->addParamAttrs(number, llvm::AttrBuilder(context, attributes.getParamAttrs(argument->getArgNo())));
      continue;
    }
    if (!head.live[i]->getType()->isPointerTy() || llvm::isa<llvm::PHINode>(head.live[i])) continue;
    // What was known of the memory behind it.
    bool may_be_null = false, may_be_freed = false;
    const std::uint64_t bytes = head.live[i]->getPointerDereferenceableBytes(layout, may_be_null, may_be_freed);
    if (!bytes || may_be_null || may_be_freed) continue;
    made->addParamAttr(number, llvm::Attribute::NonNull);
    made->addParamAttr(number, llvm::Attribute::getWithDereferenceableBytes(context, bytes));
    made->addParamAttr(number, llvm::Attribute::getWithAlignment(context, head.live[i]->getPointerAlignment(layout)));
  }
  made->splice(made->begin(), &old);
  return made;
}

// The loop once more, left to the same places. Returns its header, whose phis have no value from outside yet.
BasicBlock* copy_loop(const LoopHead& head, llvm::Function& function) {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  llvm::Loop* loop = loops.getLoopFor(head.header);
  llvm::formLCSSA(*loop, dominators, &loops, nullptr);
  llvm::ValueToValueMapTy copies;
  llvm::SmallVector<BasicBlock*, 16> made;
  for (BasicBlock* block : loop->blocks()) {
    made.push_back(llvm::CloneBasicBlock(block, copies, ".rest", &function));
    copies[block] = made.back();
  }
  llvm::remapInstructionsInBlocks(made, copies);
  llvm::SmallVector<BasicBlock*, 8> exits;
  loop->getUniqueExitBlocks(exits);
  for (BasicBlock* exit : exits) {
    for (llvm::PHINode& phi : exit->phis()) {
      for (unsigned i = 0, count = phi.getNumIncomingValues(); i < count; ++i) {
        BasicBlock* from = phi.getIncomingBlock(i);
        if (!loop->contains(from)) continue;
        llvm::Value* value = phi.getIncomingValue(i);
        if (llvm::Value* copy = copies.lookup(value)) value = copy;
        phi.addIncoming(value, llvm::cast<BasicBlock>(&*copies[from]));
      }
    }
  }
  auto* header = llvm::cast<BasicBlock>(&*copies[head.header]);
  for (llvm::PHINode& phi : header->phis())
    for (unsigned i = phi.getNumIncomingValues(); i-- > 0;)
      if (!llvm::is_contained(made, phi.getIncomingBlock(i))) phi.removeIncomingValue(i, /*DeletePHIIfEmpty=*/false);
  return header;
}

// A value that is given at the entry, and may be computed anew later.
void give_at_entry(llvm::Instruction& value, llvm::Value& given, BasicBlock& entry) {
  BasicBlock* definition = value.getParent();
  llvm::SSAUpdater updater;
  updater.Initialize(value.getType(), "");
  updater.AddAvailableValue(&entry, &given);
  updater.AddAvailableValue(definition, &value);
  llvm::SmallVector<llvm::Use*, 16> uses;
  for (llvm::Use& use : value.uses()) uses.push_back(&use);
  for (llvm::Use* use : uses) {
    auto* user = llvm::cast<llvm::Instruction>(use->getUser());
    if (user->getParent() == definition && !llvm::isa<llvm::PHINode>(user)) continue;
    updater.RewriteUse(*use);
  }
}

}  // namespace

bool continue_at_loop(llvm::Module& module, unsigned index) {
  llvm::Function* old = module.getFunction("f");
  if (!old || old->isDeclaration()) return false;
  for (llvm::Function& function : llvm::make_early_inc_range(module))  // wrappers
    if (&function != old && !function.isDeclaration()) function.eraseFromParent();
  const std::vector<LoopHead> heads = find_loop_heads(*old);
  if (index >= heads.size()) return false;
  if (!old->use_empty()) {  // it calls itself
    llvm::Function* self =
        llvm::Function::Create(old->getFunctionType(), llvm::Function::ExternalLinkage, self_name, module);
    self->copyAttributesFrom(old);
    old->replaceAllUsesWith(self);
  }
  const LoopHead& head = heads[index];
  llvm::Function* made = with_live_values(*old, head);
  BasicBlock* header = head.outermost == index ? head.header : copy_loop(head, *made);
  BasicBlock* entry = BasicBlock::Create(module.getContext(), "entry", made, &made->front());
  llvm::BranchInst::Create(header, entry);
  unsigned next = 1;
  for (llvm::PHINode& phi : header->phis()) phi.addIncoming(made->getArg(next++), entry);

  llvm::df_iterator_default_set<BasicBlock*, 32> reached;
  for (BasicBlock* block : llvm::depth_first_ext(entry, reached)) static_cast<void>(block);
  llvm::ValueToValueMapTy given;
  for (unsigned i = 0; i < head.live.size(); ++i)
    if (i == 0 || i >= next) given[head.live[i]] = made->getArg(i);  // the others are the header's phis
  llvm::IRBuilder<> b(entry->getTerminator());
  llvm::SmallVector<llvm::Instruction*, 16> values;
  for (llvm::Instruction* inst : head.computed) {
    llvm::Instruction* again = b.Insert(inst->clone());
    llvm::RemapInstruction(again, given, llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
    given[inst] = again;
    values.push_back(inst);
  }
  for (llvm::Value* value : head.live)
    if (auto* inst = llvm::dyn_cast<llvm::Instruction>(value); inst && given.count(inst)) values.push_back(inst);
  for (unsigned i = 0; i < head.live.size(); ++i)
    if (llvm::isa<llvm::Argument>(head.live[i])) head.live[i]->replaceAllUsesWith(made->getArg(i));
  llvm::erase_if(values, [&](llvm::Instruction* inst) {
    if (reached.contains(inst->getParent())) return false;
    inst->replaceAllUsesWith(given[inst]);
    return true;
  });
  for (llvm::Argument& argument : old->args())
    if (!argument.use_empty()) argument.replaceAllUsesWith(llvm::PoisonValue::get(argument.getType()));
  llvm::SmallVector<BasicBlock*, 16> unreached;
  for (BasicBlock& block : *made)
    if (!reached.contains(&block)) unreached.push_back(&block);
  // A phi with one value left stays: it may be what is given.
  llvm::DeleteDeadBlocks(unreached, nullptr, /*KeepOneInputPHIs=*/true);
  for (llvm::Instruction* inst : values) give_at_entry(*inst, *given[inst], *entry);
  made->takeName(old);
  old->eraseFromParent();
  return true;
}

}  // namespace slope::codegen
