// A reverse loop counts its row down in its header and works on the row before: two counters that are one apart. When
// the loop is cut into strips (counted_loops.hpp) each becomes a value of the strip, and that they belong together can
// no longer be seen: the indices of the loop are no functions of its counter any more, and it is not vectorised. So one
// of them is replaced by the other and the constant between them before.
//
//   %q = phi [%a - 1, before], [%q1, loop]        %q = phi [%a - 1, before], [%q1, loop]
//   %p = phi [%a, before], [%q, loop]        →    %p = add %q, 1
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

namespace slope::codegen {

struct ShiftedCountersPass : llvm::PassInfoMixin<ShiftedCountersPass> {
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace slope::codegen
