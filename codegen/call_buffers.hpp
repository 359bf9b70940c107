// Where arguments and results of calls through the runtime are put: one buffer of each kind in a function's frame, as
// large as its largest call needs. One is enough, because a buffer is read only during the call, or right after it.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/layout.hpp"

namespace slope::codegen {

class CallBuffers {
 public:
  CallBuffers(Layout& layout, llvm::Function* function) : layout_(layout), function_(function) {}
  // `count` words of a type and a payload each.
  llvm::Value* arguments(std::size_t count);
  llvm::Value* result();

 private:
  llvm::AllocaInst* make(const char* name);

  Layout& layout_;
  llvm::Function* function_;
  llvm::AllocaInst* arguments_ = nullptr;
  std::size_t argument_count_ = 0;
  llvm::AllocaInst* result_ = nullptr;
};

}  // namespace slope::codegen
