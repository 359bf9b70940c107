// Values whose types are known only at run time, and calls of functions that are.
//
// The shadow and the cotangent of such a value are each in a DynamicTangent (tangent.hpp), a box. The box is opened
// where the value is used with a known type (a test, a call's argument, an element of a Vector{Float64}). A box is made
// where a typed value is used without one.
//
// A call: Core.dynamic_forward finds the target as dispatch does, derives it for the actual types, and runs the forward
// half. Core.dynamic_reverse runs the reverse half (lang/derive/dynamic.cpp). Rules are found in the same way. Reading
// and writing a field of a value of unknown type is such a call, of the builtin.
#include "lang/diff/operations.hpp"
#include "lang/diff/reverse/reverse.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

Operand Reverse::shadow_as(Operand primal, const Type* seen_as) {
  const Type* wanted = tangents_.shadow(seen_as);
  if (!wanted || wanted == builtin_.nothing) return nothing(f_);
  return as_shadow(f_, shadow(primal), tangents_.shadow(type_of(primal)), wanted);
}

namespace {

// Operands as a call has them: get_field and set_field are calls of the builtin.
std::vector<Operand> without_callee(const ir::Inst& inst) {
  std::size_t first = inst.op == Op::call ? 1 : 0;
  return {inst.operands.begin() + static_cast<std::ptrdiff_t>(first), inst.operands.end()};
}

}  // namespace

bool Reverse::forward_dynamic(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  std::vector<Operand> arguments = without_callee(inst);
  // From dynamic_call_bits on operands share a bit: all have shadows when one carries something.
  bool rest_carries = false;
  for (std::size_t i = dynamic_call_bits - 1; i < arguments.size(); ++i) rest_carries |= varied(arguments[i]);
  Operand callee =
      inst.op == Op::call ? values_.forward(inst.operands[0]) : f_.constant(implied_callee(inst, runtime_));
  std::uint64_t active = 0;
  std::vector<Operand> shadows;
  std::vector<Operand> values;
  auto note = [&](std::size_t i, Operand o) {
    bool carries = varied(o) || (i >= dynamic_call_bits && rest_carries);
    if (carries) active |= dynamic_call_bit(i);
    if (activity_.tells(o)) active |= dynamic_text_bit(i);
    shadows.push_back(carries && tangents_.has_shadow(type_of(o)) ? shadow(o) : f_.constant(runtime_.nothing()));
  };
  if (inst.op == Op::call)
    note(0, inst.operands[0]);
  else
    shadows.push_back(f_.constant(runtime_.nothing()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    values.push_back(values_.forward(arguments[i]));
    note(i + 1, arguments[i]);
  }
  Operand result =
      f_.emit(Op::call,
              {library_function(KnownName::dynamic_forward, f_), callee, f_.emit(Op::tuple, values, nullptr),
               f_.emit(Op::tuple, shadows, nullptr), int_constant(f_, static_cast<std::int64_t>(active)),
               f_.constant(runtime_.from_string(described(inst)))},
              nullptr);
  Binding* made = library_binding(runtime_, KnownName::dynamic_call_type);
  const Type* type = made->value.as_type;
  result = f_.emit(Op::type_assert, {result, f_.constant(made->value)}, type);
  Operand value = f_.emit(Op::field_at, {result}, builtin_.any, 0);
  if (inst.type != builtin_.any)
    value = f_.emit(Op::type_assert, {value, f_.constant(runtime_.from_type(inst.type))}, inst.type);
  values_.set_value(id, value, inst.type);
  if (activity_.varied[id] && tangents_.has_shadow(inst.type)) {
    Operand boxed_shadow = f_.emit(Op::field_at, {result}, tangents_.dynamic(), 1);
    set_shadow(id, as_shadow(f_, boxed_shadow, tangents_.dynamic(), tangents_.shadow(inst.type)));
  }
  extra_of_[id] = values_.remember(f_.emit(Op::field_at, {result}, builtin_.any, 2), builtin_.any);
  return true;
}

bool Reverse::backward_dynamic(std::uint32_t id) {
  if (extra_of_[id] == no_value) return true;
  const ir::Inst inst = primal_->insts[id];
  Operand cotangent = r_.constant(zero_leaf(tangents_.dynamic()));
  if (activity_.varied[id] && tangents_.has_cotangent(inst.type)) {
    std::vector<Operand> leaves = convert_leaves(r_, inst.type, adjoints_.take(id), builtin_.any);
    if (leaves[0].valid()) cotangent = leaves[0];
  }
  Operand result = r_.emit(
      Op::call, {library_function(KnownName::dynamic_reverse, r_), values_.in_reverse(extra_of_[id]), cotangent},
      nullptr);
  std::vector<Operand> arguments = without_callee(inst);
  auto give = [&](std::size_t i, Operand o) {
    if (!varied(o) || !tangents_.has_cotangent(type_of(o))) return;
    Operand part = call_library(r_, KnownName::part_of_tangent,
                                {result, int_constant(r_, static_cast<std::int64_t>(i) + 1)}, tangents_.dynamic());
    adjoints_.add_as(o, builtin_.any, {part});
  };
  if (inst.op == Op::call) give(0, inst.operands[0]);
  for (std::size_t i = 0; i < arguments.size(); ++i) give(i + 1, arguments[i]);
  return true;
}

}  // namespace slope::diff
