// Elements of an array that follow one another are changed in one turn of a loop, and again in the next turn:
//
//   s[i] += a; s[i+1] += b          (the reverse loop of one that reads x[i] and x[i+1])
//
// Each turn waits for what the turn before stored, so that the loop is not vectorised. Here the elements that later
// turns touch again are kept in registers: a turn loads the newest one, and stores the one that no later turn changes.
// Each element goes through memory once, and the registers are recurrences of LLVM's vectoriser.
//
// The accesses of one array with constant distances, in turns, are a window. An access's age is the number of turns
// since an access of the window could first have touched its element.
//
//   before the loop   w1 = load(age 1), …, wk = load(age k)
//   a turn            w0 = load(age 0); loads and stores of age a read and write wa; store(wm) of the oldest stored, m
//   to the next turn  w1 = w0, …, wk = w(k-1)
//   after the loop    elements of ages below m are stored
//
// What each element goes through stays in order, so that results are the same to the last bit. Nothing else in the loop
// may touch the window's memory: that is proved by alias analysis, or else the loop is copied behind a test.
#pragma once

#include <llvm/IR/PassManager.h>

namespace slope::codegen {

struct NeighboursPass : llvm::PassInfoMixin<NeighboursPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace slope::codegen
