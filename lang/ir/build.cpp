#include "lang/ir/build.hpp"

#include <utility>

namespace slope::ir {

Builder::Builder(Function& function) : function_(function) {
  if (function.scopes.empty()) function.scopes.push_back({function.method, ~0u, {}});
}

BlockId Builder::new_block() {
  function_.blocks.emplace_back();
  function_.blocks.back().handler = handler_;
  return static_cast<BlockId>(function_.blocks.size() - 1);
}

Operand Builder::add_parameter(BlockId block, const Type* type) {
  std::uint32_t id = static_cast<std::uint32_t>(function_.insts.size());
  Inst inst;
  inst.op = Op::parameter;
  inst.type = type;
  inst.span = span_;
  inst.scope = scope_;
  inst.block = block;
  function_.insts.push_back(std::move(inst));
  function_.blocks[block].parameters.push_back(id);
  return Operand::inst(id);
}

std::uint32_t Builder::append(Op op, std::vector<Operand> operands, const Type* type, std::uintptr_t aux) {
  if (terminated()) block_ = new_block();  // code that nothing reaches
  Inst inst;
  inst.op = op;
  inst.type = type;
  inst.operands = std::move(operands);
  inst.aux = aux;
  inst.span = span_;
  inst.scope = scope_;
  inst.block = block_;
  function_.insts.push_back(std::move(inst));
  return static_cast<std::uint32_t>(function_.insts.size() - 1);
}

Operand Builder::emit(Op op, std::span<const Operand> operands, const Type* type, std::uintptr_t aux) {
  std::uint32_t id = append(op, {operands.begin(), operands.end()}, type, aux);
  function_.blocks[block_].insts.push_back(id);
  return Operand::inst(id);
}

void Builder::terminate(Op op, std::vector<Operand> operands, std::vector<Edge> edges) {
  std::uint32_t id = append(op, std::move(operands), nullptr, 0);
  function_.blocks[block_].terminator = id;
  function_.blocks[block_].edges = std::move(edges);
}

void Builder::jump(BlockId target, std::vector<Operand> arguments) {
  std::vector<Edge> edges;
  edges.push_back({target, std::move(arguments)});
  terminate(Op::jump, {}, std::move(edges));
}

void Builder::branch(Operand condition, BlockId if_true, BlockId if_false, std::vector<Operand> true_arguments,
                     std::vector<Operand> false_arguments) {
  std::vector<Edge> edges;
  edges.push_back({if_true, std::move(true_arguments)});
  edges.push_back({if_false, std::move(false_arguments)});
  terminate(Op::branch, {condition}, std::move(edges));
}

void Builder::switch_int(Operand value, std::vector<Edge> edges) {
  terminate(Op::switch_int, {value}, std::move(edges));
}

void Builder::ret(Operand value) { terminate(Op::ret, {value}, {}); }

void Builder::raise(Operand exception) { terminate(Op::throw_, {exception}, {}); }

void Builder::unreachable() { terminate(Op::unreachable, {}, {}); }

}  // namespace slope::ir
