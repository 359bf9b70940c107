// Appends instructions to a Function at a cursor. What is emitted after a terminator goes to a fresh block that nothing
// reaches, so that lowering need not check for a terminator after each `return`.
#pragma once

#include <initializer_list>

#include "lang/ir/ir.hpp"

namespace slope::ir {

class Builder {
 public:
  explicit Builder(Function& function);
  Function& function() { return function_; }

  BlockId new_block();
  Operand add_parameter(BlockId block, const Type* type = nullptr);
  void set_block(BlockId block) { block_ = block; }
  BlockId block() const { return block_; }
  bool terminated() const { return function_.blocks[block_].terminator != ~0u; }
  void set_span(Span span) { span_ = span; }
  Span span() const { return span_; }
  void set_scope(std::uint32_t scope) { scope_ = scope; }
  void set_handler(BlockId handler) { handler_ = handler; }  // for blocks made from now on
  BlockId handler() const { return handler_; }

  Operand emit(Op op, std::span<const Operand> operands, const Type* type = nullptr, std::uintptr_t aux = 0);
  Operand emit(Op op, std::initializer_list<Operand> operands, const Type* type = nullptr, std::uintptr_t aux = 0) {
    return emit(op, std::span<const Operand>(operands.begin(), operands.size()), type, aux);
  }
  Operand constant(Value v) { return function_.constant(v); }

  void jump(BlockId target, std::vector<Operand> arguments = {});
  void branch(Operand condition, BlockId if_true, BlockId if_false, std::vector<Operand> true_arguments = {},
              std::vector<Operand> false_arguments = {});
  void switch_int(Operand value, std::vector<Edge> edges);
  void ret(Operand value);
  void raise(Operand exception);
  void unreachable();

 private:
  std::uint32_t append(Op op, std::vector<Operand> operands, const Type* type, std::uintptr_t aux);
  void terminate(Op op, std::vector<Operand> operands, std::vector<Edge> edges);
  Function& function_;
  BlockId block_ = no_block;
  BlockId handler_ = no_block;
  Span span_;
  std::uint32_t scope_ = 0;
};

}  // namespace slope::ir
