// The augmented forward step: the primal operation as it is, and beside it the shadow of memory, the call of a rule in
// place of the primal call, and old values of what is overwritten.
#include "lang/diff/operations.hpp"
#include "lang/diff/reverse.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

Operand Reverse::forward(Operand primal) {
  if (primal.is_constant()) return copy_constant(primal, *forward_out_);
  return values_[value_of_[primal.index()]].forward;
}

Operand Reverse::base_function(const char* name, ir::Builder& at) {
  Binding* binding = runtime_.base->find(runtime_.symbol(name));
  return at.constant(binding ? binding->value : runtime_.nothing());
}

Operand Reverse::call_base(ir::Builder& at, const char* name, std::vector<Operand> args, const Type* type) {
  args.insert(args.begin(), base_function(name, at));
  Operand result = at.emit(Op::call, args, nullptr);
  if (!type) return result;
  return at.emit(Op::type_assert, {result, at.constant(runtime_.from_type(type))}, type);
}

Operand Reverse::shadow(Operand primal) {
  const Type* type = type_of(primal);
  if (!tangents_.has_shadow(type)) return f_->constant(runtime_.nothing());
  if (varied(primal) && shadow_of_[primal.index()] != no_value) return values_[shadow_of_[primal.index()]].forward;
  const Type* wanted = tangents_.shadow(type);
  if (is_undefined(*primal_, primal))
    return wanted == tangents_.dynamic() ? f_->constant(zero_leaf(wanted)) : f_->emit(Op::undef, {}, wanted);
  return call_base(*f_, wanted == tangents_.dynamic() ? "constant_dynamic_shadow" : "constant_shadow",
                   {forward(primal)}, wanted);
}

void Reverse::set_shadow(std::uint32_t id, Operand shadow) {
  shadow_of_[id] = remember(shadow, tangents_.shadow(primal_->insts[id].type));
}

Operand Reverse::clone_inst(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  std::vector<Operand> operands;
  for (Operand o : inst.operands) operands.push_back(forward(o));
  Operand result = f_->emit(inst.op, operands, inst.type, inst.aux);
  forward_out_->inst(result).flags = inst.flags;
  value_of_[id] = remember(result, inst.type, id);
  return result;
}

bool Reverse::forward_inst(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  f_->set_span(inst.span);
  f_->set_scope(inst.scope);
  if (!activity_.returns[current_forward_]) {
    clone_inst(id);
    return true;
  }
  if (inst.op == Op::invoke && classify(inst, activity_.rules[id]) == Treatment::call && activity_.varied[id])
    return forward_call(id);
  if (inst.op == Op::invoke && classify(inst, activity_.rules[id]) == Treatment::call) {
    // The result carries nothing, but the call may move derivatives between its arguments.
    for (Operand o : inst.operands)
      if (varied(o) && tangents_.has_shadow(type_of(o)) && activity_.rules[id] == RuleKind::none)
        return forward_call(id);
  }
  if (is_dynamic_call(*primal_, inst, runtime_)) {
    bool any = activity_.varied[id];
    for (Operand o : inst.operands) any |= varied(o);
    if (any) return forward_dynamic(id);
  }
  switch (inst.op) {
    case Op::array_set:
    case Op::array_init:
    case Op::set_field_at:
    case Op::cell_set:
      if (varied(inst.operands[0]) && !forward_store(id)) return false;
      break;
    case Op::array_resize:
      if (varied(inst.operands[0])) forward_resize(id);
      break;
    case Op::native:
      if (forgets_element(inst) && varied(inst.operands[0])) {
        std::vector<Operand> place{forward(inst.operands[0]), forward(inst.operands[1])};
        extra_of_[id] = remember(call_base(*f_, "saved_element", place, builtin_.any), builtin_.any);
      }
      break;
    default:
      break;
  }

  clone_inst(id);
  if (!activity_.varied[id] || !tangents_.has_shadow(inst.type)) return true;
  const Type* shadow_type = tangents_.shadow(inst.type);
  switch (inst.op) {
    case Op::array_new: {
      std::vector<Operand> operands{f_->constant(runtime_.from_type(shadow_type))};
      for (std::size_t i = 1; i < inst.operands.size(); ++i) operands.push_back(forward(inst.operands[i]));
      set_shadow(id, call_base(*f_, "new_zero_array", operands, shadow_type));
      return true;
    }
    case Op::array_share: {
      std::vector<Operand> operands{shadow(inst.operands[0])};
      for (std::size_t i = 1; i < inst.operands.size(); ++i) operands.push_back(forward(inst.operands[i]));
      set_shadow(id, f_->emit(Op::array_share, operands, shadow_type));
      return true;
    }
    case Op::array_get:
    case Op::field_at:
    case Op::cell_get:
      return forward_load(id);
    case Op::cell_new: {
      Operand content = inst.operands.empty() ? f_->constant(zero_leaf(tangents_.dynamic()))
                                              : shadow_as(inst.operands[0], builtin_.any);
      Operand both =
          f_->emit(Op::tuple, {content, f_->constant(zero_leaf(tangents_.dynamic()))}, tangents_.element(builtin_.any));
      set_shadow(
          id, f_->emit(Op::make_struct,
                       {f_->constant(runtime_.from_type(shadow_type)), both, f_->constant(runtime_.from_bool(false))},
                       shadow_type));
      return true;
    }
    case Op::tuple:
    case Op::make_struct:
    case Op::make_closure:
      return forward_aggregate(id);
    case Op::get_field:
      if (tangents_.has_cotangent(inst.type)) return refuse(inst, "a tuple element that holds both numbers and arrays");
      set_shadow(id, f_->emit(Op::get_field, {shadow(inst.operands[0]), forward(inst.operands[1])}, shadow_type));
      return true;
    case Op::refine:
    case Op::type_assert:
      set_shadow(id, shadow_as(inst.operands[0], inst.type));
      return true;
    case Op::select:
      set_shadow(id, f_->emit(Op::select,
                              {forward(inst.operands[0]), shadow_as(inst.operands[1], inst.type),
                               shadow_as(inst.operands[2], inst.type)},
                              shadow_type));
      return true;
    default:
      return refuse(inst, "memory made by `" + std::string(ir::op_info(inst.op).name) + "` carries a derivative");
  }
}

bool Reverse::forward_aggregate(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const Type* shadow_type = tangents_.shadow(inst.type);
  const DataType* made = as_data(inst.type);
  std::size_t first = inst.op == Op::make_struct ? 1 : 0;
  if (!is_concrete(inst.type)) {  // what it is shows when its parts are there
    if (inst.op == Op::make_struct && (!made || made->is_mutable))
      return refuse(inst, "an object whose type is not inferred (" + to_string(inst.type) + ") carries a derivative");
    std::vector<Operand> parts;
    for (std::size_t i = first; i < inst.operands.size(); ++i)
      parts.push_back(shadow_as(inst.operands[i], builtin_.any));
    set_shadow(id, call_base(*f_, "joined_shadows", parts, shadow_type));
    return true;
  }
  if (made->is_mutable && inst.operands.size() - first < made->fields.size())
    return refuse(inst, "an incompletely initialised object carries a derivative");
  std::vector<Operand> fields;
  for (std::size_t i = first; i < inst.operands.size(); ++i) {
    const Type* declared = made->fields[i - first].type;
    Operand part = shadow_as(inst.operands[i], declared);
    if (made->is_mutable) {  // numbers in mutable memory accumulate in the shadow itself
      Place place;
      place.declared = declared;
      place.tangent = as_data(shadow_type)->fields[i - first].type;
      part = place.tangent == builtin_.nothing ? f_->constant(runtime_.nothing())
                                               : whole_tangent(*f_, place, part, Operand());
    } else {
      part = as_shadow(*f_, part, tangents_.shadow(declared), as_data(shadow_type)->params[i - first]);
    }
    fields.push_back(part);
  }
  if (made->is_mutable) {
    fields.insert(fields.begin(), f_->constant(runtime_.from_type(shadow_type)));
    fields.push_back(f_->constant(runtime_.from_bool(false)));
    set_shadow(id, f_->emit(Op::make_struct, fields, shadow_type));
  } else {
    set_shadow(id, f_->emit(Op::tuple, fields, shadow_type));
  }
  return true;
}

bool Reverse::forward_call(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  Specialization& callee = *inst.aux_as<Specialization>();
  switch (activity_.rules[id]) {
    case RuleKind::scalar:
      clone_inst(id);
      return true;
    case RuleKind::reverse: {
      std::vector<Operand> operands{base_function("rrule", *f_)};
      std::vector<const Type*> types{forward_out_->type_of(operands[0], runtime_.types)};
      for (std::size_t i = 0; i < inst.operands.size(); ++i) {
        operands.push_back(forward(inst.operands[i]));
        types.push_back(callee.types->params[i]);
      }
      const Type* pair = env_.return_type(runtime_.types.tuple(types));
      const DataType* pair_data = as_data(pair);
      if (!pair_data || !pair_data->is_tuple || pair_data->params.size() != 2)
        return refuse(inst, "the rrule for " + std::string(callee.method->name->name) +
                                " does not return (value, pullback): its result is " + to_string(pair));
      Operand result = f_->emit(Op::call, operands, pair);
      Operand value = f_->emit(Op::field_at, {result}, pair_data->params[0], 0);
      if (pair_data->params[0] != inst.type)
        value = f_->emit(Op::type_assert, {value, f_->constant(runtime_.from_type(inst.type))}, inst.type);
      Operand pullback = f_->emit(Op::field_at, {result}, pair_data->params[1], 1);
      value_of_[id] = remember(value, inst.type);
      extra_of_[id] = remember(pullback, pair_data->params[1]);
      if (tangents_.has_shadow(inst.type)) {
        const Type* wanted = tangents_.shadow(inst.type);
        const char* make = wanted == tangents_.dynamic() ? "zero_dynamic_shadow" : "zero_shadow";
        set_shadow(id, call_base(*f_, make, {value}, wanted));
      }
      return true;
    }
    default:
      break;
  }
  return forward_halves(id);
}

// The arguments as the callee's IR has them: a trailing vararg is one tuple.
std::vector<Reverse::Packed> Reverse::packed_arguments(const ir::Inst& inst) {
  const Method& method = *inst.aux_as<Specialization>()->method;
  std::vector<Packed> result;
  std::size_t fixed = method.is_vararg ? method.arg_count : inst.operands.size();
  for (std::size_t i = 0; i < fixed; ++i) result.push_back({{inst.operands[i]}, type_of(inst.operands[i]), false});
  if (method.is_vararg) {
    Packed rest;
    rest.is_tuple = true;
    std::vector<const Type*> types;
    for (std::size_t i = fixed; i < inst.operands.size(); ++i) {
      rest.operands.push_back(inst.operands[i]);
      types.push_back(type_of(inst.operands[i]));
    }
    rest.type = runtime_.types.tuple(types);
    result.push_back(std::move(rest));
  }
  return result;
}

// The callee's own derivative in two halves; what its reverse half needs travels in a record.
bool Reverse::forward_halves(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  std::vector<Packed> arguments = packed_arguments(inst);
  std::vector<char> active;
  for (const Packed& argument : arguments) {
    bool any = false;
    for (Operand o : argument.operands) any |= varied(o);
    active.push_back(any);
  }
  Environment::Halves halves = env_.halves(*inst.aux_as<Specialization>(), active, refusal_);
  if (!halves.forward) {
    if (refusal_.reason.empty()) return refuse(inst, "the function called here cannot be differentiated");
    return false;
  }
  std::vector<Operand> operands{f_->constant(halves.forward_callee)};
  for (const Packed& argument : arguments) {
    std::vector<Operand> parts;
    for (Operand o : argument.operands) parts.push_back(forward(o));
    operands.push_back(argument.is_tuple ? f_->emit(Op::tuple, parts, argument.type) : parts[0]);
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!halves.active[i] || !tangents_.has_shadow(arguments[i].type)) continue;
    std::vector<Operand> parts;
    const DataType* rest = arguments[i].is_tuple ? as_data(tangents_.shadow(arguments[i].type)) : nullptr;
    for (std::size_t k = 0; k < arguments[i].operands.size(); ++k) {
      Operand o = arguments[i].operands[k];
      parts.push_back(rest ? as_shadow(*f_, shadow(o), tangents_.shadow(type_of(o)), rest->params[k]) : shadow(o));
    }
    operands.push_back(rest ? f_->emit(Op::tuple, parts, rest) : parts[0]);
  }
  const Type* result_shadow = tangents_.shadow(halves.result_type);
  const Type* parts[] = {halves.result_type, result_shadow, builtin_.any};
  Operand result =
      f_->emit(Op::invoke, operands, runtime_.types.tuple(parts), reinterpret_cast<std::uintptr_t>(halves.forward));
  value_of_[id] = remember(f_->emit(Op::field_at, {result}, parts[0], 0), inst.type);
  if (tangents_.has_shadow(inst.type) && activity_.varied[id])
    set_shadow(id,
               as_shadow(*f_, f_->emit(Op::field_at, {result}, parts[1], 1), parts[1], tangents_.shadow(inst.type)));
  extra_of_[id] = remember(f_->emit(Op::field_at, {result}, parts[2], 2), builtin_.any);
  halves_of_[id] = halves;
  // A half that ends has no source to be made from again: whoever calls it ends with it.
  edges.push_back({Edge::Kind::callee, nullptr, nullptr, halves.forward});
  edges.push_back({Edge::Kind::callee, nullptr, nullptr, halves.reverse});
  return true;
}

}  // namespace slope::diff
