// Forward mode: tapes of derivatives that are differentiated again, calls by rules, of known targets, of targets that
// are found when they run.
#include "lang/diff/forward/forward.hpp"
#include "lang/diff/operations.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

// A derivative's tape has columns for tangents: for each direction, for each column of its own the leaves, then the
// shadow.
bool Forward::tape(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  clone(id);
  ir::Inst& made = out_->inst(value_[id]);
  if (inst.op == Op::tape_open) {
    made.aux =
        reinterpret_cast<std::uintptr_t>(tangents_.with_tangents(inst.aux_as<const TapeLayout>(), directions_.size()));
    return true;
  }
  if (inst.op != Op::tape_store && inst.op != Op::tape_load) return true;
  const TapeLayout& layout = *tape_layout_of(inst.aux);
  const TapeLayout* extended = tangents_.with_tangents(&layout, directions_.size());
  std::size_t own_column = tape_column_of(inst.aux);
  const Type* type = layout.columns[own_column];
  made.aux = tape_aux(extended, own_column);
  Operand tape = value(inst.operands[0]);
  Operand row = value(inst.operands[1]);
  const auto& described_leaves = tangents_.leaves(type);
  for (std::size_t k = 0; k < directions_.size(); ++k) {
    d_ = &directions_[k];
    std::uintptr_t column = tangent_columns(layout, own_column, k);
    auto aux = [&](std::size_t i) { return tape_aux(extended, column + i); };
    if (inst.op == Op::tape_store) {
      Operand stored = inst.operands[2];
      std::vector<Operand> own = leaves_as(stored, type);
      for (std::size_t i = 0; i < described_leaves.size(); ++i)
        b_->emit(Op::tape_store, {tape, row, or_zero(*b_, own[i], described_leaves[i].type)}, nullptr, aux(i));
      if (tangents_.has_shadow(type))
        b_->emit(Op::tape_store, {tape, row, shadow_as(stored, type)}, nullptr, aux(described_leaves.size()));
      continue;
    }
    std::vector<Operand> found;
    for (std::size_t i = 0; i < described_leaves.size(); ++i)
      found.push_back(b_->emit(Op::tape_load, {tape, row}, described_leaves[i].type, aux(i)));
    d_->leaves[id] = convert_leaves(*b_, type, found, inst.type);
    if (tangents_.has_shadow(type))
      d_->shadow[id] =
          as_shadow(*b_, b_->emit(Op::tape_load, {tape, row}, tangents_.shadow(type), aux(described_leaves.size())),
                    tangents_.shadow(type), tangents_.shadow(inst.type));
  }
  d_ = &directions_[0];
  return true;
}

bool Forward::call(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  if (activity_.rules[id] != RuleKind::scalar) return callee_tangent(id);
  if (activity_.varied[id] && !tangents_.is_float(inst.type))
    return refuse(inst, "a scalar rule for a call whose result is not a float");
  clone(id);
  std::vector<Operand> arguments;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) arguments.push_back(value(inst.operands[i]));
  const Operand partials = scalar_partials(*b_, value(inst.operands[0]), value_[id], arguments);
  std::vector<Operand> sums(directions_.size());
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    if (!varied(inst.operands[i])) continue;
    const Operand number = scalar_partial(*b_, partials, i - 1, inst.type);
    std::size_t k = 0;
    for_each_direction([&] {
      Operand tangent = leaves(inst.operands[i])[0];
      Operand& sum = sums[k++];
      if (tangent.valid() && type_of(inst.operands[i]) != inst.type)  // Float32 beside Float64
        tangent = call_library(*b_, KnownName::as_cotangent, {type_constant(*b_, inst.type), tangent}, inst.type);
      if (tangent.valid()) sum = add_leaves(*b_, sum, times_partial(*b_, inst, tangent, number), inst.type);
    });
  }
  if (!activity_.varied[id]) return true;
  for (std::size_t k = 0; k < directions_.size(); ++k) directions_[k].leaves[id] = {sums[k]};
  return true;
}

// A call whose target is found when it runs: Core.dynamic_tangent (lang/derive/dynamic.cpp).
bool Forward::dynamic_call(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  if (directions_.size() > 1) return refuse(inst, "a call whose target is not known, in several directions at once");
  bool is_call = inst.op == Op::call;
  Operand none_here = nothing(*b_);
  Operand callee = is_call ? value(inst.operands[0]) : b_->constant(implied_callee(inst, runtime_));
  std::vector<Operand> values;
  std::vector<Operand> shadows;
  std::vector<Operand> tangents;
  std::uint64_t active = 0;
  if (!is_call) {
    shadows.push_back(none_here);
    tangents.push_back(none_here);
  }
  // From dynamic_call_bits on operands share a bit: all have shadows when one carries something.
  bool rest_carries = false;
  for (std::size_t i = dynamic_call_bits - shadows.size(); i < inst.operands.size(); ++i)
    rest_carries |= varied(inst.operands[i]);
  for (std::size_t i = 0; i < inst.operands.size(); ++i) {
    Operand o = inst.operands[i];
    bool carries = varied(o) || (shadows.size() >= dynamic_call_bits && rest_carries);
    if (carries) active |= dynamic_call_bit(shadows.size());
    if (activity_.tells(o)) active |= dynamic_text_bit(shadows.size());
    shadows.push_back(carries && tangents_.has_shadow(type_of(o)) ? shadow(o) : none_here);
    Operand leaf = varied(o) && tangents_.has_cotangent(type_of(o)) ? leaves_as(o, builtin_.any)[0] : Operand();
    tangents.push_back(leaf.valid() ? leaf : none_here);
    if (!is_call || i > 0) values.push_back(value(o));
  }
  Operand result =
      b_->emit(Op::call,
               {library_function(KnownName::dynamic_tangent, *b_), callee, b_->emit(Op::tuple, values, nullptr),
                b_->emit(Op::tuple, shadows, nullptr), int_constant(*b_, static_cast<std::int64_t>(active)),
                b_->constant(runtime_.from_string(described(inst))), b_->emit(Op::tuple, tangents, nullptr)},
               nullptr);
  value_[id] = result;
  if (inst.type == builtin_.bottom) return true;
  Binding* made = library_binding(runtime_, KnownName::dynamic_call_type);
  result = b_->emit(Op::type_assert, {result, b_->constant(made->value)}, made->value.as_type);
  Operand found = b_->emit(Op::field_at, {result}, builtin_.any, 0);
  if (inst.type != builtin_.any) found = b_->emit(Op::type_assert, {found, type_constant(*b_, inst.type)}, inst.type);
  value_[id] = found;
  if (!activity_.varied[id]) return true;
  if (tangents_.has_shadow(inst.type))
    d_->shadow[id] = as_shadow(*b_, b_->emit(Op::field_at, {result}, tangents_.dynamic(), 1), tangents_.dynamic(),
                               tangents_.shadow(inst.type));
  if (tangents_.has_cotangent(inst.type)) {
    Operand tangent = b_->emit(Op::field_at, {result}, builtin_.any, 2);
    tangent = b_->emit(Op::type_assert, {tangent, type_constant(*b_, tangents_.dynamic())}, tangents_.dynamic());
    d_->leaves[id] = convert_leaves(*b_, builtin_.any, {tangent}, inst.type);
  }
  return true;
}

// The callee's own forward derivative.
bool Forward::callee_tangent(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  std::vector<Packed> arguments = packed_arguments(inst);
  if (!has_parts_of(arguments))
    return refuse(inst, "an argument of this call is a type, or has a type that is known only at run time");
  std::vector<char> active;
  for (const Packed& argument : arguments) {
    bool any = false;
    for (Operand o : argument.operands) any |= varied(o);
    active.push_back(any);
  }
  Environment::Tangent callee = env_.tangent(*inst.aux_as<Specialization>(), active, directions_.size(), refusal_);
  if (!callee.target) {
    if (refusal_.reason.empty()) return refuse(inst, "the function called here cannot be differentiated");
    return false;
  }
  edges_.push_back({Edge::Kind::callee, nullptr, nullptr, callee.target});
  std::vector<Operand> operands{b_->constant(callee.callee)};
  for (const Packed& argument : arguments) {
    std::vector<Operand> parts;
    for (Operand o : argument.operands) parts.push_back(value(o));
    operands.push_back(argument.is_tuple ? b_->emit(Op::tuple, parts, argument.type) : parts[0]);
  }
  for_each_direction([&] {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Packed& argument = arguments[i];
      if (!callee.active[i] || !tangents_.has_shadow(argument.type)) continue;
      std::vector<Operand> parts;
      const DataType* rest = argument.is_tuple ? as_data(tangents_.shadow(argument.type)) : nullptr;
      for (std::size_t k = 0; k < argument.operands.size(); ++k) {
        Operand o = argument.operands[k];
        parts.push_back(rest ? as_shadow(*b_, shadow(o), tangents_.shadow(type_of(o)), rest->params[k])
                             : shadow_as(o, argument.type));
      }
      operands.push_back(rest ? b_->emit(Op::tuple, parts, rest) : parts[0]);
    }
  });
  for_each_direction([&] {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!callee.active[i] || !tangents_.has_cotangent(arguments[i].type)) continue;
      std::vector<Operand> all;
      for (Operand o : arguments[i].operands)
        for (Operand leaf : arguments[i].is_tuple ? leaves(o) : leaves_as(o, arguments[i].type)) all.push_back(leaf);
      operands.push_back(pack(*b_, arguments[i].type, all));
    }
  });
  const DataType* parts = as_data(result_type(callee.result_type));
  Operand result = b_->emit(Op::invoke, operands, parts, reinterpret_cast<std::uintptr_t>(callee.target));
  value_[id] = b_->emit(Op::field_at, {result}, parts->params[0], 0);
  if (!activity_.varied[id] || inst.type == builtin_.bottom) return true;
  std::size_t next = 1;
  for_each_direction([&] {
    std::size_t at = next;
    next += 2;
    if (tangents_.has_shadow(inst.type))
      d_->shadow[id] = as_shadow(*b_, b_->emit(Op::field_at, {result}, parts->params[at], at), parts->params[at],
                                 tangents_.shadow(inst.type));
    if (!tangents_.has_cotangent(callee.result_type)) return;
    std::vector<Operand> found;
    unpack(*b_, callee.result_type, b_->emit(Op::field_at, {result}, parts->params[at + 1], at + 1), found);
    d_->leaves[id] = convert_leaves(*b_, callee.result_type, found, inst.type);
  });
  return true;
}

}  // namespace slope::diff
