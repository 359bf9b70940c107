// A sum in order, s += f(x), may be vectorised as it is: f is computed in vectors, and the numbers are added one by
// one. LLVM does that for x86 only when an option says so (allow_sums_in_order; the library's LLVM is ours alone). It
// pays where f calls a function that has a vector form: ten nanoseconds a call become one. Elsewhere the additions
// wait for each other anyhow, and taking the vectors apart costs more than vectors save (a sum of squares: 1.7
// times), so that this pass keeps the vectoriser away from those loops.
#pragma once

#include <llvm/IR/PassManager.h>

namespace slope::codegen {

void allow_sums_in_order();  // once for the process

struct SumsInOrderPass : llvm::PassInfoMixin<SumsInOrderPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace slope::codegen
