// Innermost loops whose number of iterations is known before they start.
//
// Versions. A bounds check in such a loop compares an index that grows by the same step in every iteration with a
// length that does not change. When the first and the last index are in bounds, all are. The code tests this once,
// before the loop, and then runs a copy without the checks. Otherwise it runs the loop as it was written, so that the
// error comes in its own iteration, after the effects of the iterations before.
//
// Strips. Every back edge checks whether the user wants to stop, by a call of `slope.poll`. In these loops the check
// would keep LLVM from vectorising. So they are cut into strips of some thousand iterations, with the check between two
// strips.
//
// Fuel. Where the engine counts fuel, the polls subtract it: one poll in the loop for each iteration, or one poll for
// many iterations at once, before a strip or before a loop that has few.
//
// slope.poll(context, trace site, tape serial, catch depth, turns) represents a load of the context's flag and, when it
// is set, an exit from the function. Unless `turns` is 0 it also subtracts them from the context's fuel. LLVM sees a
// function that touches only memory of its own, so that the call stays in its loop and blocks no other optimisation. At
// the end lower_polls replaces it by the load and the branch.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

namespace slope::codegen {

inline constexpr const char* poll_name = "slope.poll";
llvm::Function* poll_function(llvm::Module& module);
void lower_polls(llvm::Module& module);
// Takes so much off the context's fuel; true when it was not enough.
llvm::Value* burn_fuel(llvm::IRBuilderBase& b, llvm::Value* context, llvm::Value* amount);

struct CountedLoopsPass : llvm::PassInfoMixin<CountedLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

// Loops that take few turns need not ask. Before unrolling.
struct ShortLoopsPass : llvm::PassInfoMixin<ShortLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater);
};

}  // namespace slope::codegen
