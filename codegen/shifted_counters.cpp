#include "codegen/shifted_counters.hpp"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>

namespace slope::codegen {

llvm::PreservedAnalyses ShiftedCountersPass::run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                                                 llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater&) {
  llvm::BasicBlock* header = loop.getHeader();
  llvm::BasicBlock* latch = loop.getLoopLatch();
  if (!latch) return llvm::PreservedAnalyses::all();
  bool changed = false;
  for (llvm::PHINode& follower : llvm::make_early_inc_range(header->phis())) {
    if (!follower.getType()->isIntegerTy()) continue;
    auto* leader = llvm::dyn_cast<llvm::PHINode>(follower.getIncomingValueForBlock(latch));
    if (!leader || leader == &follower || leader->getParent() != header) continue;
    const auto* counted = llvm::dyn_cast<llvm::SCEVAddRecExpr>(results.SE.getSCEV(leader));
    if (!counted || counted->getLoop() != &loop || !counted->isAffine()) continue;
    const auto* shift =
        llvm::dyn_cast<llvm::SCEVConstant>(results.SE.getMinusSCEV(results.SE.getSCEV(&follower), counted));
    if (!shift) continue;
    llvm::IRBuilder<> builder(header, header->getFirstInsertionPt());
    llvm::Value* same = builder.CreateAdd(leader, builder.getInt(shift->getAPInt()));
    results.SE.forgetValue(&follower);
    follower.replaceAllUsesWith(same);
    follower.eraseFromParent();
    changed = true;
  }
  return changed ? llvm::getLoopPassPreservedAnalyses() : llvm::PreservedAnalyses::all();
}

}  // namespace slope::codegen
