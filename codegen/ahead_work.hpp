// How much memory a function takes that is made ahead of time, as a function of its integers: sizes of arrays, numbers.
#pragma once

#include <llvm/IR/Function.h>

namespace slope::codegen {

// Makes the function `symbol` beside `entry`: of the entry's integer arguments but the last, it returns how many bytes of
// memory are surely enough. Each place that takes memory counts as often as its loops may turn at most, whatever the
// branches say. Null, and nothing is made: that depends on more than these arguments. After LLVM's passes.
llvm::Function* make_work_size(llvm::Function& entry, const llvm::Function& take, llvm::StringRef symbol);

}  // namespace slope::codegen
