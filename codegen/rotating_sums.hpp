// A reduction in several running sums, as the library writes it (stdlib/collections/reduce.slope): the oldest sum takes
// the item and becomes the newest.
//
//   (s1, s2, …, s8) = (s2, …, s8, s1 + f(x))
//
// One copy of `f` is inferred, differentiated and interpreted. Here the loop is unrolled by the number of the sums. Then
// no value moves any more, and each sum depends on itself alone, so that the pass after this one (SLP) puts them into
// vectors. What is added to what stays as it was written.
#pragma once

#include <llvm/IR/PassManager.h>

namespace slope::codegen {

struct RotatingSumsPass : llvm::PassInfoMixin<RotatingSumsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace slope::codegen
