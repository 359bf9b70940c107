// call f(x::Union{A,B}) → if x isa A; invoke f(::A) else invoke f(::B), results joined in a block parameter.
//
//   head:  …            t = isa(x, A); branch t, arm A, test B
//   arm:   x' = refine(x)::A; r = invoke f(x'); jump rest(r)
//   rest:  (r) what came after the call, with its terminator
//
// The last choice needs no test, because the choices are all there are. A call of an argument whose abstract type has a
// few methods for definite types is split in the same way, and its last choice is the call itself.
#include <algorithm>

#include "lang/infer/rewrite.hpp"

namespace slope::infer {

namespace {

using ir::Op;
using ir::Operand;

class Splitter {
 public:
  Splitter(ir::Function& function, Runtime& runtime, std::uint32_t call, const UnionSplit& split)
      : fn_(function), runtime_(runtime), call_(function.insts[call]), id_(call), split_(split) {}

  Operand run() {
    ir::BlockId head = call_.block;
    handler_ = fn_.blocks[head].handler;
    ir::BlockId rest = cut(head);
    const Type* type = nullptr;
    for (const LinkedCall& choice : split_.choices)
      if (choice.type && choice.type->kind != TypeKind::bottom)
        type = type ? type_merge(runtime_.types, type, choice.type) : choice.type;
    if (!type) type = split_.type;
    std::uint32_t result = add(rest, Op::parameter, {}, type);
    fn_.blocks[rest].insts.pop_back();
    fn_.blocks[rest].parameters.push_back(result);

    ir::BlockId test = head;
    for (std::size_t k = 0; k < split_.choices.size(); ++k) {
      const LinkedCall& choice = split_.choices[k];
      ir::BlockId next = k + 1 < split_.choices.size() ? new_block() : ir::no_block;
      ir::BlockId arm = next == ir::no_block ? test : guard(test, next, choice);
      make_arm(arm, choice, rest);
      test = next;
    }
    Operand value = Operand::inst(result);
    if (type == split_.type) return value;
    std::uint32_t refine = add(rest, Op::refine, {value}, split_.type);
    std::vector<std::uint32_t>& insts = fn_.blocks[rest].insts;
    std::rotate(insts.begin(), insts.end() - 1, insts.end());
    return Operand::inst(refine);
  }

 private:
  ir::BlockId new_block() {
    fn_.blocks.emplace_back().handler = handler_;
    return static_cast<ir::BlockId>(fn_.blocks.size() - 1);
  }

  std::uint32_t add(ir::BlockId b, Op op, std::vector<Operand> operands, const Type* type, std::uintptr_t aux = 0) {
    ir::Inst inst;
    inst.op = op;
    inst.operands = std::move(operands);
    inst.type = type;
    inst.aux = aux;
    inst.span = call_.span;
    inst.scope = call_.scope;
    inst.block = b;
    std::uint32_t id = static_cast<std::uint32_t>(fn_.insts.size());
    fn_.insts.push_back(std::move(inst));
    if (ir::is_terminator(op))
      fn_.blocks[b].terminator = id;
    else
      fn_.blocks[b].insts.push_back(id);
    return id;
  }

  // What comes after the call moves to a block of its own.
  ir::BlockId cut(ir::BlockId head) {
    ir::BlockId rest = new_block();
    ir::Block& from = fn_.blocks[head];
    ir::Block& to = fn_.blocks[rest];
    auto at = std::find(from.insts.begin(), from.insts.end(), id_);
    to.insts.assign(at + 1, from.insts.end());
    from.insts.erase(at, from.insts.end());
    to.terminator = from.terminator;
    to.edges = std::move(from.edges);
    from.terminator = ~0u;
    from.edges.clear();
    for (std::uint32_t id : to.insts) fn_.insts[id].block = rest;
    if (to.terminator != ~0u) fn_.insts[to.terminator].block = rest;
    return rest;
  }

  // Tests of every split argument, one after the other; the block in which all hold.
  ir::BlockId guard(ir::BlockId test, ir::BlockId otherwise, const LinkedCall& choice) {
    for (std::size_t i : split_.arguments) {
      Operand type = fn_.constant(runtime_.from_type(choice.types[i]));
      std::uint32_t condition = add(test, Op::isa, {call_.operands[i], type}, runtime_.types.builtin().boolean);
      add(test, Op::branch, {Operand::inst(condition)}, nullptr);
      ir::BlockId holds = new_block();
      fn_.blocks[test].edges = {ir::Edge{holds, {}}, ir::Edge{otherwise, {}}};
      test = holds;
    }
    return test;
  }

  void make_arm(ir::BlockId b, const LinkedCall& choice, ir::BlockId rest) {
    std::vector<Operand> operands = call_.operands;
    for (std::size_t i : split_.arguments)
      if (operands[i].is_inst() && !choice.is_dynamic)
        operands[i] = Operand::inst(add(b, Op::refine, {operands[i]}, choice.types[i]));
    const Type* bottom = runtime_.types.builtin().bottom;
    if (choice.constant.defined()) {
      add(b, Op::jump, {}, nullptr);
      fn_.blocks[b].edges = {ir::Edge{rest, {fn_.constant(choice.constant)}}};
      return;
    }
    std::uint32_t made;
    if (choice.native) {
      operands.erase(operands.begin());
      made = add(b, Op::native, std::move(operands), choice.type, reinterpret_cast<std::uintptr_t>(choice.native));
    } else if (choice.target) {
      made = add(b, Op::invoke, std::move(operands), choice.type, reinterpret_cast<std::uintptr_t>(choice.target));
    } else {
      made = add(b, Op::call, std::move(operands), choice.is_dynamic ? choice.type : bottom);
    }
    fn_.insts[made].flags |= proved_flags(fn_.insts[made].op, choice.effects);
    if (!choice.type || choice.type == bottom) {
      add(b, Op::unreachable, {}, nullptr);
      return;
    }
    add(b, Op::jump, {}, nullptr);
    fn_.blocks[b].edges = {ir::Edge{rest, {Operand::inst(made)}}};
  }

  ir::Function& fn_;
  Runtime& runtime_;
  const ir::Inst call_;
  std::uint32_t id_;
  const UnionSplit& split_;
  ir::BlockId handler_ = ir::no_block;
};

}  // namespace

void split_union_call(ir::Function& function, Runtime& runtime, std::uint32_t call, const UnionSplit& split,
                      std::vector<ir::Operand>& replacement) {
  if (replacement.size() < function.insts.size()) replacement.resize(function.insts.size());
  Operand value = Splitter(function, runtime, call, split).run();
  replacement[call] = value;
}

}  // namespace slope::infer
