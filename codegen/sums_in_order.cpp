#include "codegen/sums_in_order.hpp"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

constexpr int most_additions = tuning::summed_in_order;

// Whether `value` is `phi` and what is added to it, in an order that must stay.
bool adds_in_order(const llvm::Value* value, const llvm::PHINode* phi, int& left) {
  if (value == phi) return left < most_additions;
  const auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(value);
  if (!sum || left-- <= 0 || sum->hasAllowReassoc()) return false;
  if (sum->getOpcode() != llvm::Instruction::FAdd && sum->getOpcode() != llvm::Instruction::FSub) return false;
  return adds_in_order(sum->getOperand(0), phi, left) ||
         (sum->getOpcode() == llvm::Instruction::FAdd && adds_in_order(sum->getOperand(1), phi, left));
}

bool sums_in_order(const llvm::Loop& loop) {
  const llvm::BasicBlock* latch = loop.getLoopLatch();
  if (!latch) return false;
  for (const llvm::PHINode& phi : loop.getHeader()->phis()) {
    int left = most_additions;
    if (phi.getType()->isFloatingPointTy() && adds_in_order(phi.getIncomingValueForBlock(latch), &phi, left))
      return true;
  }
  return false;
}

// Of InjectTLIMappings, which comes before.
bool calls_vector_function(const llvm::Loop& loop) {
  for (const llvm::BasicBlock* block : loop.blocks())
    for (const llvm::Instruction& inst : *block)
      if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&inst);
          call && call->hasFnAttr("vector-function-abi-variant"))
        return true;
  return false;
}

}  // namespace

void allow_sums_in_order() {
  static const bool allowed = [] {
    constexpr const char* name = "force-ordered-reductions";
    auto& options = llvm::cl::getRegisteredOptions();
    auto found = options.find(name);
    return found != options.end() && !found->second->addOccurrence(1, name, "true");
  }();
  (void)allowed;
}

llvm::PreservedAnalyses SumsInOrderPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  for (llvm::Loop* loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
    if (loop->isInnermost() && sums_in_order(*loop) && !calls_vector_function(*loop))
      llvm::addStringMetadataToLoop(loop, "llvm.loop.vectorize.enable", 0);
  return llvm::PreservedAnalyses::all();
}

}  // namespace slope::codegen
