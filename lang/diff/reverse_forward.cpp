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
  return call_base(*f_, "zero_shadow", {forward(primal)}, tangents_.shadow(type));
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

// Old contents come back in the reverse sweep, so that rules and callers may keep references to what the primal
// overwrote. Not needed for memory that this function made and that nothing outside its own loads and stores ever sees.
bool Reverse::must_restore(const ir::Inst& store) const {
  if (store.op == Op::array_init) return false;
  Operand object = store.operands[0];
  if (!object.is_inst() || primal_->inst(object).op != Op::array_new) return true;
  for (const ir::Block& block : primal_->blocks) {
    for (std::uint32_t id : block.insts) {
      const ir::Inst& inst = primal_->insts[id];
      bool plain = inst.op == Op::array_get || inst.op == Op::array_length || inst.op == Op::array_size ||
                   ((inst.op == Op::array_set || inst.op == Op::array_init) && inst.operands[1] != object);
      if (plain) continue;
      for (Operand o : inst.operands)
        if (o == object) return true;
    }
    for (const ir::Edge& edge : block.edges)
      for (Operand o : edge.arguments)
        if (o == object) return true;
  }
  return false;
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
  switch (inst.op) {
    case Op::array_set:
    case Op::array_init: {
      if (!varied(inst.operands[0])) break;
      const DataType* array = as_data(type_of(inst.operands[0]));
      if (must_restore(inst)) {
        Operand old = f_->emit(Op::array_get, {forward(inst.operands[0]), forward(inst.operands[2])}, array->params[0]);
        extra_of_[id] = remember(old, array->params[0]);
      }
      if (tangents_.has_shadow(array->params[0]))
        f_->emit(inst.op, {shadow(inst.operands[0]), shadow(inst.operands[1]), forward(inst.operands[2])});
      break;
    }
    case Op::set_field_at: {
      if (!varied(inst.operands[0])) break;
      const Field& field = as_data(type_of(inst.operands[0]))->fields[inst.aux];
      Operand old = f_->emit(Op::field_at, {forward(inst.operands[0])}, field.type, inst.aux);
      extra_of_[id] = remember(old, field.type);
      if (tangents_.has_shadow(field.type)) {
        if (tangents_.has_cotangent(field.type))
          return refuse(inst, "a field that holds both numbers and arrays is assigned");
        f_->emit(Op::set_field_at, {shadow(inst.operands[0]), shadow(inst.operands[1])}, nullptr, inst.aux);
      }
      break;
    }
    case Op::array_resize: {
      if (!varied(inst.operands[0])) break;
      Operand length = f_->emit(Op::array_length, {forward(inst.operands[0])}, builtin_.int64);
      // What a shrinking array loses is kept: a vector of the elements beyond the new length.
      const DataType* array = as_data(type_of(inst.operands[0]));
      Operand tail = call_base(*f_, "saved_tail", {forward(inst.operands[0]), forward(inst.operands[1])}, array);
      f_->emit(Op::array_resize, {shadow(inst.operands[0]), forward(inst.operands[1])}, builtin_.nothing);
      extra_of_[id] = remember(length, builtin_.int64);
      shadow_of_[id] = remember(tail, array);  // the op has no shadow of its own: the place is free
      break;
    }
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
      if (tangents_.has_cotangent(inst.type)) return refuse(inst, "array elements that hold both numbers and arrays");
      set_shadow(id, f_->emit(Op::array_get, {shadow(inst.operands[0]), forward(inst.operands[1])}, shadow_type));
      return true;
    case Op::field_at: {
      const DataType* object = as_data(type_of(inst.operands[0]));
      if (object->is_mutable && tangents_.has_cotangent(inst.type))
        return refuse(inst, "a field of a mutable struct that holds both numbers and arrays");
      set_shadow(id, f_->emit(Op::field_at, {shadow(inst.operands[0])}, shadow_type, inst.aux));
      return true;
    }
    case Op::tuple:
    case Op::make_struct:
    case Op::make_closure: {
      std::vector<Operand> fields;
      for (std::size_t i = inst.op == Op::make_struct ? 1 : 0; i < inst.operands.size(); ++i) {
        Operand s = shadow(inst.operands[i]);
        const DataType* made = as_data(inst.type);
        if (made->is_mutable && tangents_.has_cotangent(type_of(inst.operands[i]))) {
          // Numbers in mutable memory accumulate in the shadow itself.
          if (tangents_.has_shadow(type_of(inst.operands[i])))
            return refuse(inst, "a field that holds both numbers and arrays");
          s = call_base(*f_, "zero_cotangent", {forward(inst.operands[i])},
                        tangents_.cotangent(type_of(inst.operands[i])));
        }
        fields.push_back(s);
      }
      if (as_data(inst.type)->is_mutable) {
        if (fields.size() < as_data(inst.type)->fields.size())
          return refuse(inst, "an incompletely initialised object carries a derivative");
        fields.insert(fields.begin(), f_->constant(runtime_.from_type(shadow_type)));
        set_shadow(id, f_->emit(Op::make_struct, fields, shadow_type));
      } else {
        set_shadow(id, f_->emit(Op::tuple, fields, shadow_type));
      }
      return true;
    }
    case Op::get_field:
      if (tangents_.has_cotangent(inst.type)) return refuse(inst, "a tuple element that holds both numbers and arrays");
      set_shadow(id, f_->emit(Op::get_field, {shadow(inst.operands[0]), forward(inst.operands[1])}, shadow_type));
      return true;
    case Op::refine:
    case Op::type_assert:
      set_shadow(id, shadow(inst.operands[0]));
      return true;
    case Op::select:
      set_shadow(id,
                 f_->emit(Op::select, {forward(inst.operands[0]), shadow(inst.operands[1]), shadow(inst.operands[2])},
                          shadow_type));
      return true;
    default:
      return refuse(inst, "memory made by `" + std::string(ir::op_info(inst.op).name) + "` carries a derivative");
  }
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
      if (tangents_.has_shadow(inst.type))
        set_shadow(id, call_base(*f_, "zero_shadow", {value}, tangents_.shadow(inst.type)));
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
    for (Operand o : arguments[i].operands) parts.push_back(shadow(o));
    operands.push_back(arguments[i].is_tuple ? f_->emit(Op::tuple, parts, tangents_.shadow(arguments[i].type))
                                             : parts[0]);
  }
  const Type* shadow_of_result = tangents_.shadow(inst.type) ? tangents_.shadow(inst.type) : builtin_.nothing;
  const Type* parts[] = {inst.type, shadow_of_result, builtin_.any};
  Operand result =
      f_->emit(Op::invoke, operands, runtime_.types.tuple(parts), reinterpret_cast<std::uintptr_t>(halves.forward));
  value_of_[id] = remember(f_->emit(Op::field_at, {result}, parts[0], 0), inst.type);
  if (tangents_.has_shadow(inst.type) && activity_.varied[id])
    set_shadow(id, f_->emit(Op::field_at, {result}, parts[1], 1));
  extra_of_[id] = remember(f_->emit(Op::field_at, {result}, parts[2], 2), builtin_.any);
  halves_of_[id] = halves;
  return true;
}

}  // namespace slope::diff
