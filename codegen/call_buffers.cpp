#include "codegen/call_buffers.hpp"

namespace slope::codegen {

// At the start of the entry block, wherever code is being emitted.
llvm::AllocaInst* CallBuffers::make(const char* name) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> b(&entry, entry.begin());
  return b.CreateAlloca(layout_.value, llvm::ConstantInt::get(layout_.i64, 1), name);
}

llvm::Value* CallBuffers::arguments(std::size_t count) {
  if (!arguments_) arguments_ = make("arguments");
  if (count > argument_count_) {
    argument_count_ = count;
    arguments_->setOperand(0, llvm::ConstantInt::get(layout_.i64, count));
  }
  return arguments_;
}

llvm::Value* CallBuffers::result() {
  if (!result_) result_ = make("result");
  return result_;
}

}  // namespace slope::codegen
