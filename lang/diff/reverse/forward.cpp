// The augmented forward step: the primal operation as it is, and beside it the shadow of memory, the call of a rule in
// place of the primal call, and old values of what is overwritten.
#include <utility>

#include "lang/diff/operations.hpp"
#include "lang/diff/reverse/reverse.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

Operand Reverse::shadow(Operand primal) {
  const Type* type = type_of(primal);
  if (!tangents_.has_shadow(type)) return f_.constant(runtime_.nothing());
  if (varied(primal) && values_.has_shadow(primal.index())) return values_.forward_shadow(primal);
  const Type* wanted = tangents_.shadow(type);
  if (is_undefined(*primal_, primal, runtime_)) return undefined(f_, wanted);
  return call_library(f_,
                      wanted == tangents_.dynamic() ? KnownName::constant_dynamic_shadow : KnownName::constant_shadow,
                      {values_.forward(primal)}, wanted);
}

void Reverse::set_shadow(std::uint32_t id, Operand shadow) {
  values_.set_shadow(id, shadow, tangents_.shadow(primal_->insts[id].type));
}

Operand Reverse::zero_shadow_of(Operand made, const Type* shadow_type) {
  const KnownName make = shadow_type == tangents_.dynamic() ? KnownName::zero_dynamic_shadow : KnownName::zero_shadow;
  return call_library(f_, make, {made}, shadow_type);
}

Operand Reverse::clone_inst(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  std::vector<Operand> operands;
  for (Operand o : inst.operands) operands.push_back(values_.forward(o));
  Operand result = f_.emit(inst.op, operands, inst.type, inst.aux);
  f_.function().inst(result).flags = inst.flags;
  values_.set_copy(id, result, inst.type);
  return result;
}

// Whether an operation that runs as it is may call functions that are found when it runs: what those store into must be
// known before (lang/derive/kept_memory.hpp).
bool Reverse::finds_calls(const ir::Inst& inst) {
  if (inst.op == Op::native) return inst.aux_as<const NativeInfo>()->effects == effect_all;
  if (inst.op == Op::call || inst.op == Op::call_splat) {
    const Operand callee = inst.operands[0];
    return !callee.is_constant() || primal_->constant_value(callee).type != builtin_.builtin_function;
  }
  if (inst.op != Op::invoke) return false;
  Specialization& target = *inst.aux_as<Specialization>();
  if (target.current && !(target.current->effects & effect_writes)) return false;
  return env_.memory().of(target).calls_unknown;
}

void Reverse::watch_calls(bool on) {
  f_.emit(Op::call, {library_function(KnownName::watch_calls, f_), f_.constant(runtime_.from_bool(on))}, nullptr);
}

// An operation that runs as it is.
void Reverse::clone_watched(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const bool watched = finds_calls(inst);
  if (watched) watch_calls(true);
  clone_inst(id);
  // An exception leaves it on.
  if ((watched && (!inst.type || inst.type->kind != TypeKind::bottom)) || inst.op == Op::caught) watch_calls(false);
}

bool Reverse::forward_inst(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  f_.set_span(inst.span);
  f_.set_scope(inst.scope);
  if (!activity_.returns[sweeps_.current_forward]) {
    clone_watched(id);  // what it stores before it raises is put back, too
    return true;
  }
  if (puts_back_memory(*primal_, inst, runtime_)) {
    forward_put_back(id);
    return true;
  }
  if (exchanges_memory(*primal_, inst, runtime_)) {
    extra_of_[id] = values_.remember(clone_inst(id), builtin_.any);  // what was there
    return true;
  }
  keep_written_arrays(id);
  keep_changed_memory(id);
  const Operand watched = std::exchange(watched_, Operand());
  if (!forward_operation(id)) return false;
  if (watched.valid()) keep_watched_changes(id, watched);
  return true;
}

// Long because it is a table: the effect of each operation, then the shadow of what it makes.
bool Reverse::forward_operation(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  if (calls_derivative(id)) return forward_call(id);
  if (is_dynamic_call(*primal_, inst, runtime_)) {
    bool any = activity_.varied[id];
    for (Operand o : inst.operands) any |= varied(o) || (inst.op == Op::call && activity_.tells(o));
    if (any) return forward_dynamic(id);
  }
  if (!forward_effect(id)) return false;
  if (ir::group_of(inst.op) == ir::OpGroup::tapes) return forward_tape(id);
  clone_watched(id);
  if (!activity_.varied[id] || !tangents_.has_shadow(inst.type)) return true;
  return forward_shadow(id);
}

// What was there until then: the reverse sweep of what came before looks at it. Where that comes to the beginning, it
// puts back what it found (backward_step).
void Reverse::forward_put_back(std::uint32_t id) {
  const Operand level = primal_->insts[id].operands.back();
  Operand begun = level;
  while (begun.is_inst() && (primal_->inst(begun).op == Op::type_assert || primal_->inst(begun).op == Op::refine))
    begun = primal_->inst(begun).operands[0];
  if (begun.is_inst()) keeping_of_[id] = begun.index();
  const Operand taken = call_library(f_, KnownName::exchange_memory, {values_.forward(level)}, builtin_.any);
  extra_of_[id] = values_.remember(taken, builtin_.any);
  values_.set_copy(id, f_.constant(runtime_.nothing()), builtin_.nothing);
}

bool Reverse::calls_derivative(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  if (inst.op != Op::invoke) return false;
  const RuleKind rule = activity_.rules[id];
  const bool is_call = classify(inst, rule) == Treatment::call;
  if (is_call && activity_.varied[id]) return true;
  if (rule == RuleKind::stateful) {  // it may overwrite what carries a derivative, whatever it returns
    for (Operand o : inst.operands)
      if (varied(o)) return true;
  } else if (is_call && rule == RuleKind::none) {
    // The result carries nothing, but the call may move derivatives between its arguments.
    for (Operand o : inst.operands)
      if (varied(o) && tangents_.has_shadow(type_of(o))) return true;
    return takes_record(*primal_, inst, runtime_);
  }
  return false;
}

// Before the operation itself: what it overwrites is kept, and its effect on shadows.
bool Reverse::forward_effect(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  switch (inst.op) {
    case Op::array_set:
    case Op::array_init:
    case Op::set_field_at:
    case Op::cell_set:
      return forward_store(id);
    case Op::array_resize:
    case Op::array_resize_front:
      forward_resize(id);
      return true;
    case Op::native:
      if (forgets_element(inst) && varied(inst.operands[0])) {
        std::vector<Operand> place{values_.forward(inst.operands[0]), values_.forward(inst.operands[1])};
        extra_of_[id] = values_.remember(call_library(f_, KnownName::saved_element, place, builtin_.any), builtin_.any);
      }
      return true;
    default:
      return true;
  }
}

// The shadow of what it made.
bool Reverse::forward_shadow(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  const Type* shadow_type = tangents_.shadow(inst.type);
  switch (inst.op) {
    case Op::array_new: {
      std::vector<Operand> operands{f_.constant(runtime_.from_type(shadow_type))};
      for (std::size_t i = 1; i < inst.operands.size(); ++i) operands.push_back(values_.forward(inst.operands[i]));
      set_shadow(id, call_library(f_, KnownName::new_zero_array, operands, shadow_type));
      return true;
    }
    case Op::array_share: {
      std::vector<Operand> operands{shadow(inst.operands[0])};
      for (std::size_t i = 1; i < inst.operands.size(); ++i) operands.push_back(values_.forward(inst.operands[i]));
      set_shadow(id, f_.emit(Op::array_share, operands, shadow_type));
      return true;
    }
    case Op::undef:  // written through, where it is not this
      set_shadow(id, undefined(f_, shadow_type));
      return true;
    case Op::native: {
      if (!makes_shadows(inst)) break;
      set_shadow(id, zero_shadow_of(values_.forward(Operand::inst(id)), shadow_type));
      return true;
    }
    case Op::array_get:
    case Op::field_at:
    case Op::cell_get:
      return forward_load(id);
    case Op::cell_new: {
      Operand content = inst.operands.empty() ? f_.constant(zero_leaf(tangents_.dynamic()))
                                              : shadow_as(inst.operands[0], builtin_.any);
      Operand both =
          f_.emit(Op::tuple, {content, f_.constant(zero_leaf(tangents_.dynamic()))}, tangents_.element(builtin_.any));
      set_shadow(id,
                 f_.emit(Op::make_struct,
                         {f_.constant(runtime_.from_type(shadow_type)), both, f_.constant(runtime_.from_bool(false))},
                         shadow_type));
      return true;
    }
    case Op::tuple:
    case Op::make_struct:
    case Op::make_closure:
      return forward_aggregate(id);
    case Op::get_field:
      if (tangents_.has_cotangent(inst.type)) return refuse(inst, "a tuple element that holds both numbers and arrays");
      set_shadow(id,
                 f_.emit(Op::get_field, {shadow(inst.operands[0]), values_.forward(inst.operands[1])}, shadow_type));
      return true;
    case Op::refine:
    case Op::type_assert:
      set_shadow(id, shadow_as(inst.operands[0], inst.type));
      return true;
    case Op::select:
      set_shadow(id, f_.emit(Op::select,
                             {values_.forward(inst.operands[0]), shadow_as(inst.operands[1], inst.type),
                              shadow_as(inst.operands[2], inst.type)},
                             shadow_type));
      return true;
    case Op::invoke: {  // made by a function whose results carry nothing, then stored into
      set_shadow(id, zero_shadow_of(values_.forward(Operand::inst(id)), shadow_type));
      return true;
    }
    default:
      break;
  }
  return refuse(inst, "memory made by `" + std::string(ir::op_info(inst.op).name) + "` carries a derivative");
}

// The tape of a derivative that is differentiated again: like memory, with a shadow in columns of its own
// (TangentTypes::with_tangents). It stays open until the reverse sweep passes the place where it was opened.
bool Reverse::forward_tape(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  if (inst.op == Op::tape_close) return true;
  ir::Operand made = clone_inst(id);
  auto set_aux = [&](std::uintptr_t aux) { f_.function().inst(made).aux = aux; };
  if (inst.op == Op::tape_open) {
    set_aux(reinterpret_cast<std::uintptr_t>(tangents_.with_tangents(inst.aux_as<const TapeLayout>(), 1)));
    return true;
  }
  if (inst.op == Op::tape_reserve) return true;
  const TapeLayout& layout = *tape_layout_of(inst.aux);
  const TapeLayout* extended = tangents_.with_tangents(&layout, 1);
  std::uintptr_t own_column = tape_column_of(inst.aux);
  const Type* type = layout.columns[own_column];
  std::uintptr_t column = tangent_columns(layout, own_column);
  const auto& leaves = tangents_.leaves(type);
  set_aux(tape_aux(extended, own_column));
  std::vector<Operand> place{values_.forward(inst.operands[0]), values_.forward(inst.operands[1])};
  if (inst.op == Op::tape_store) {
    for (std::size_t i = 0; i < leaves.size(); ++i)
      f_.emit(Op::tape_store, {place[0], place[1], zero(f_, leaves[i].type)}, nullptr, tape_aux(extended, column + i));
    if (tangents_.has_shadow(type))
      f_.emit(Op::tape_store, {place[0], place[1], shadow_as(inst.operands[2], type)}, nullptr,
              tape_aux(extended, column + leaves.size()));
  } else if (tangents_.has_shadow(type)) {
    Operand kept = f_.emit(Op::tape_load, place, tangents_.shadow(type), tape_aux(extended, column + leaves.size()));
    set_shadow(id, as_shadow(f_, kept, tangents_.shadow(type), tangents_.shadow(inst.type)));
  }
  return true;
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
    set_shadow(id, call_library(f_, KnownName::joined_shadows, parts, shadow_type));
    return true;
  }
  std::vector<Operand> fields;
  for (std::size_t i = first; i < inst.operands.size(); ++i) {
    const Type* declared = made->fields[i - first].type;
    Operand part = shadow_as(inst.operands[i], declared);
    if (made->is_mutable) {  // numbers in mutable memory accumulate in the shadow itself
      Place place;
      place.declared = declared;
      place.tangent = as_data(shadow_type)->fields[i - first].type;
      part = place.tangent == builtin_.nothing ? f_.constant(runtime_.nothing())
                                               : whole_tangent(f_, place, part, Operand());
    } else {
      part = as_shadow(f_, part, tangents_.shadow(declared), as_data(shadow_type)->params[i - first]);
    }
    fields.push_back(part);
  }
  if (made->is_mutable) {
    set_shadow(id, mutable_shadow(f_, made, fields));
  } else {
    add_unassigned(f_, made, fields);
    set_shadow(id, f_.emit(Op::tuple, fields, shadow_type));
  }
  return true;
}

bool Reverse::forward_call(std::uint32_t id) {
  switch (activity_.rules[id]) {
    case RuleKind::scalar:
      if (activity_.varied[id] && !tangents_.is_float(primal_->insts[id].type))
        return refuse(primal_->insts[id], "a scalar rule for a call whose result is not a float");
      clone_inst(id);
      return true;
    case RuleKind::reverse:
    case RuleKind::built:
      return forward_rrule(id);
    case RuleKind::stateful:
      return forward_stateful(id);
    default:
      break;
  }
  return forward_halves(id);
}

// The callee's own derivative in two halves; what its reverse half needs travels in a record.
bool Reverse::forward_halves(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  std::vector<Packed> arguments = packed_arguments(inst);
  if (!has_parts_of(arguments))
    return refuse(inst, "an argument of this call is a type, or has a type that is known only at run time");
  Specialization& callee = *inst.aux_as<Specialization>();
  const std::vector<char> asked = active_operands(activity_, arguments);
  Environment::Halves halves = env_.stacked_halves(callee, asked, refusal_);
  if (!halves.forward && refusal_.reason.empty()) halves = env_.halves(callee, asked, refusal_);
  if (!halves.forward) {
    if (refusal_.reason.empty()) return refuse(inst, "the function called here cannot be differentiated");
    return false;
  }
  std::vector<Operand> operands{f_.constant(halves.forward_callee)};
  for (const Packed& argument : arguments) {
    std::vector<Operand> parts;
    for (Operand o : argument.operands) parts.push_back(values_.forward(o));
    operands.push_back(argument.is_tuple ? f_.emit(Op::tuple, parts, argument.type) : parts[0]);
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!halves.active[i] || !tangents_.has_shadow(arguments[i].type)) continue;
    std::vector<Operand> parts;
    const DataType* rest = arguments[i].is_tuple ? as_data(tangents_.shadow(arguments[i].type)) : nullptr;
    for (std::size_t k = 0; k < arguments[i].operands.size(); ++k) {
      Operand o = arguments[i].operands[k];
      parts.push_back(rest ? as_shadow(f_, shadow(o), tangents_.shadow(type_of(o)), rest->params[k])
                           : shadow_as(o, arguments[i].type));
    }
    operands.push_back(rest ? f_.emit(Op::tuple, parts, rest) : parts[0]);
  }
  const Type* result_shadow = tangents_.shadow(halves.result_type);
  const Type* parts[] = {halves.result_type, result_shadow, halves.stack ? builtin_.int64 : builtin_.any};
  const bool own_stack = keeps_on_own_stack(halves);
  if (own_stack) {
    operands.insert(operands.end(), {loops_.stack_in_forward, loops_.free_row()});
  } else if (halves.stack) {
    const Operand none = int_constant(f_, 0);
    operands.push_back(
        f_.emit(Op::tape_open, {none}, builtin_.tape, reinterpret_cast<std::uintptr_t>(halves.stack.get())));
    stack_of_[id] = values_.remember(operands.back(), builtin_.tape);
    operands.push_back(none);
  }
  Operand result =
      f_.emit(Op::invoke, operands, runtime_.types.tuple(parts), reinterpret_cast<std::uintptr_t>(halves.forward));
  values_.set_value(id, f_.emit(Op::field_at, {result}, parts[0], 0), inst.type);
  if (tangents_.has_shadow(inst.type) && activity_.varied[id])
    set_shadow(id, as_shadow(f_, f_.emit(Op::field_at, {result}, parts[1], 1), parts[1], tangents_.shadow(inst.type)));
  Operand record = f_.emit(Op::field_at, {result}, parts[2], 2);
  if (own_stack) loops_.set_free_row(record);
  if (halves.stack) record = f_.emit(Op::sub_int, {record, int_constant(f_, 1)}, builtin_.int64);
  extra_of_[id] = values_.remember(record, parts[2]);
  halves_of_[id] = halves;
  // A half that ends has no source to be made from again: whoever calls it ends with it.
  edges_.push_back({Edge::Kind::callee, nullptr, nullptr, halves.forward});
  edges_.push_back({Edge::Kind::callee, nullptr, nullptr, halves.reverse});
  return true;
}

}  // namespace slope::diff
