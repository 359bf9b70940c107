// Innermost loops whose number of turns is known before they start.
//
// Versions: a bounds check in such a loop compares an index that grows by the same step every turn with a length that
// stays. When first and last index are in bounds, all are. That is asked once, before the loop; then a copy without the
// checks runs. Otherwise the loop as it was written runs, and the error comes in its own turn, after the effects of
// the turns before.
//
// Strips: every back edge asks whether the user wants to stop, by a call of `slope.poll`. In these loops the question
// would keep LLVM from vectorising: they are cut into strips of some thousand turns, and the question stands between
// two strips.
//
// Where the engine counts fuel, the polls do: one in the loop for each turn; one before a strip, or before a loop that
// takes few turns, for all of these turns at once.
//
// slope.poll(context, trace site, tape serial, catch depth, turns) stands for a load of the context's flag and, when it
// is set, for leaving the function; and for taking the turns off the context's fuel, unless they are 0. It is told to
// LLVM as a function that touches only memory of its own, so that it stays in its loop and is in nobody's way.
// lower_polls puts load and branch there in the end.
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
