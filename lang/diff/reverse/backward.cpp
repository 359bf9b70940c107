// The reverse step of each operation. When it runs, memory is as it was right after the primal operation: everything
// the primal did later has been undone.
#include "lang/diff/operations.hpp"
#include "lang/diff/partials.hpp"
#include "lang/diff/reverse/reverse.hpp"
#include "lang/ir/passes/cotangents.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

bool Reverse::backward_inst(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  r_.set_span(inst.span);
  r_.set_scope(inst.scope);
  bool done = backward_step(id);
  restore_written_arrays(id);  // its own step finds them as it left them
  restore_changed_memory(id);
  return done;
}

// Memory is as it was before it was put back, as long as the sweep is in what that ended.
void Reverse::backward_put_back(std::uint32_t id) {
  const Operand found = call_library(r_, KnownName::exchange_later, {values_.in_reverse(extra_of_[id])}, builtin_.any);
  const auto keeping = keeping_of_.find(id);
  if (keeping == keeping_of_.end()) return;
  auto [slot, fresh] = found_slot_of_.try_emplace(keeping->second, -1);
  if (fresh) {
    slot->second = new_slot(r_, runtime_.symbol("#found"), builtin_.any);
    clear_at_start(r_, static_cast<std::uintptr_t>(slot->second));
  }
  r_.emit(Op::slot_set, {found}, nullptr, static_cast<std::uintptr_t>(slot->second));
}

// Long because it is a table: one case for each operation; what takes more than some lines has a function of its own.
bool Reverse::backward_step(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  if (extra_of_[id] != no_value && puts_back_memory(*primal_, inst, runtime_)) {
    backward_put_back(id);
    return true;
  }
  if (extra_of_[id] != no_value && exchanges_memory(*primal_, inst, runtime_)) {
    call_library(r_, KnownName::exchange_before, {values_.in_reverse(extra_of_[id])}, builtin_.any);
    return true;
  }
  if (const auto found = found_slot_of_.find(id); found != found_slot_of_.end()) {
    const Operand there = r_.emit(Op::slot_get, {}, builtin_.any, static_cast<std::uintptr_t>(found->second));
    call_library(r_, KnownName::put_back_later, {there}, nullptr);
    // Of a `try` that catches nothing the next time.
    r_.emit(Op::slot_set, {r_.constant(runtime_.nothing())}, nullptr, static_cast<std::uintptr_t>(found->second));
    return true;
  }
  if (extra_of_[id] != no_value && inst.op == Op::invoke) return backward_call(id);
  if (is_dynamic_call(*primal_, inst, runtime_)) return backward_dynamic(id);
  switch (inst.op) {
    case Op::array_set:
    case Op::array_init:
    case Op::set_field_at:
    case Op::cell_set:
      backward_store(id);
      return true;
    case Op::array_resize:
    case Op::array_resize_front:
      backward_resize(id);
      return true;
    case Op::tape_open:
      r_.emit(Op::tape_close, {values_.primal_in_reverse(Operand::inst(id))});
      return true;
    case Op::tape_store:
    case Op::tape_load:
      backward_tape(id);
      return true;
    case Op::native:
      if (extra_of_[id] == no_value) return true;
      call_library(r_, KnownName::restore_element,
                   {values_.primal_in_reverse(inst.operands[0]), values_.primal_in_reverse(inst.operands[1]),
                    values_.in_reverse(extra_of_[id])},
                   nullptr);
      return true;
    case Op::array_new:
      // A pullback that is called again must find the shadow as the first call did.
      if (sweeps_.split() && activity_.varied[id] && values_.has_shadow(id))
        call_library(r_, KnownName::clear_shadow, {values_.shadow_in_reverse(Operand::inst(id))}, nullptr);
      return true;
    default:
      break;
  }
  if (!activity_.varied[id] || !tangents_.has_cotangent(inst.type)) {
    if (activity_.varied[id]) backward_new_object(id);
    return true;
  }
  switch (inst.op) {
    case Op::undef:  // only passes where it is not looked at
      adjoints_.take(id);
      return true;
    case Op::array_get:
    case Op::cell_get:
      backward_load(id);
      return true;
    case Op::field_at:
      if (as_data(type_of(inst.operands[0]))->is_mutable)
        backward_load(id);
      else
        backward_field(id);
      return true;
    case Op::tuple:
    case Op::make_struct:
    case Op::make_closure:
      backward_aggregate(id);
      return true;
    case Op::get_field:
      backward_indexed_field(id);
      return true;
    case Op::refine:
    case Op::type_assert:
      adjoints_.add_as(inst.operands[0], inst.type, adjoints_.take(id));
      return true;
    case Op::select:
      backward_select(id);
      return true;
    case Op::invoke:
      return backward_call(id);
    default:
      break;
  }
  if (!tangents_.is_float(inst.type))
    return refuse(inst, "`" + std::string(ir::op_info(inst.op).name) + "` of a composite value");
  backward_float(inst, id);
  return true;
}

// A field of a tuple, or of an object that does not change.
void Reverse::backward_field(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  const DataType* object = as_data(type_of(inst.operands[0]));
  if (!object->is_concrete) {  // a tuple whose type is known in part
    std::vector<Operand> part = convert_leaves(r_, inst.type, adjoints_.take(id), builtin_.any);
    if (none(part)) return;
    Operand index = int_constant(r_, static_cast<std::int64_t>(inst.aux) + 1);
    Operand count = int_constant(r_, static_cast<std::int64_t>(object->fields.size()));
    adjoints_.add_as(inst.operands[0], builtin_.any,
                     {call_library(r_, KnownName::tangent_with_part, {part[0], index, count}, tangents_.dynamic())});
    return;
  }
  std::vector<Operand> leaves =
      convert_leaves(r_, inst.type, adjoints_.take(id), tangents_.numbers_of_field(object, inst.aux));
  std::size_t first = 0;
  for (std::size_t i = 0; i < inst.aux; ++i) first += leaf_count(tangents_.numbers_of_field(object, i));
  for (std::size_t i = 0; i < leaves.size(); ++i) adjoints_.add(inst.operands[0], first + i, leaves[i]);
}

// t[i] of a tuple: every element but the i-th gets zero.
void Reverse::backward_indexed_field(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  std::vector<Operand> leaves = adjoints_.take(id);
  if (none(leaves)) return;
  Operand index = values_.primal_in_reverse(inst.operands[1]);
  const auto& described = tangents_.leaves(inst.type);
  std::size_t count = as_data(type_of(inst.operands[0]))->fields.size();
  for (std::size_t k = 0; k < count; ++k) {
    Operand here = r_.emit(Op::eq_int, {index, int_constant(r_, static_cast<std::int64_t>(k) + 1)}, builtin_.boolean);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!leaves[i].valid()) continue;
      Operand part = r_.emit(Op::select, {here, leaves[i], zero(r_, described[i].type)}, described[i].type);
      adjoints_.add(inst.operands[0], k * leaves.size() + i, part);
    }
  }
}

void Reverse::backward_select(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  std::vector<Operand> leaves = adjoints_.take(id);
  if (none(leaves)) return;
  Operand condition = values_.primal_in_reverse(inst.operands[0]);
  const auto& described = tangents_.leaves(inst.type);
  for (std::size_t side = 1; side < 3; ++side) {
    if (!varied(inst.operands[side])) continue;
    std::vector<Operand> chosen(leaves.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!leaves[i].valid()) continue;
      const Type* type = described[i].type;
      const Operand nothing = zero(r_, type);
      const Operand first = side == 1 ? leaves[i] : nothing, second = side == 1 ? nothing : leaves[i];
      chosen[i] = r_.emit(Op::select, {condition, first, second}, type, ir::select_of_cotangent);
    }
    adjoints_.add_as(inst.operands[side], inst.type, chosen);
  }
}

void Reverse::backward_tape(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const TapeLayout& layout = *tape_layout_of(inst.aux);
  const TapeLayout* extended = tangents_.with_tangents(&layout, 1);
  const Type* type = layout.columns[tape_column_of(inst.aux)];
  std::uintptr_t column = tangent_columns(layout, tape_column_of(inst.aux));
  const auto& described_leaves = tangents_.leaves(type);
  std::vector<Operand> given;
  if (inst.op == Op::tape_load) {
    if (!activity_.varied[id]) return;
    given = convert_leaves(r_, inst.type, adjoints_.take(id), type);
    if (none(given)) return;
  }
  if (described_leaves.empty()) return;
  Operand tape = values_.primal_in_reverse(inst.operands[0]);
  Operand row = values_.primal_in_reverse(inst.operands[1]);
  std::vector<Operand> kept(described_leaves.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Type* leaf = described_leaves[i].type;
    if (inst.op == Op::tape_load && !given[i].valid()) continue;
    kept[i] = r_.emit(Op::tape_load, {tape, row}, leaf, tape_aux(extended, column + i));
    Operand left = inst.op == Op::tape_load ? add_leaves(r_, kept[i], given[i], leaf) : zero(r_, leaf);
    r_.emit(Op::tape_store, {tape, row, left}, nullptr, tape_aux(extended, column + i));
  }
  if (inst.op == Op::tape_store) adjoints_.add_as(inst.operands[2], type, kept);
}

// The numbers of a tuple, a struct or a closure go to what it was made of.
void Reverse::backward_aggregate(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  std::vector<Operand> leaves = adjoints_.take(id);
  if (none(leaves)) return;
  std::size_t first = inst.op == Op::make_struct ? 1 : 0;
  const DataType* made = as_data(inst.type);
  std::size_t next = 0;
  for (std::size_t i = first; i < inst.operands.size(); ++i) {
    if (!is_concrete(inst.type)) {
      if (!varied(inst.operands[i]) || !tangents_.has_cotangent(type_of(inst.operands[i]))) continue;
      Operand at = int_constant(r_, static_cast<std::int64_t>(i - first) + 1);
      adjoints_.add_as(inst.operands[i], builtin_.any,
                       {call_library(r_, KnownName::part_of_tangent, {leaves[0], at}, tangents_.dynamic())});
      continue;
    }
    const Type* declared = tangents_.numbers_of_field(made, i - first);
    std::size_t count = leaf_count(declared);
    adjoints_.add_as(inst.operands[i], declared,
                     {leaves.begin() + static_cast<std::ptrdiff_t>(next),
                      leaves.begin() + static_cast<std::ptrdiff_t>(next + count)});
    next += count;
  }
}

// A mutable object's numbers: what they were made of gets what accumulated in the shadow.
void Reverse::backward_new_object(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const DataType* made = as_data(inst.type);
  bool object = inst.op == Op::make_struct && made && made->is_mutable;
  if (!object && inst.op != Op::cell_new) return;
  for (std::size_t i = object ? 1 : 0; i < inst.operands.size(); ++i) {
    Place place;
    place.field = object ? i - 1 : 0;
    place.declared = object ? made->fields[place.field].type : builtin_.any;
    place.tangent = as_data(tangents_.shadow(inst.type))->fields[place.field].type;
    if (!varied(inst.operands[i]) || !tangents_.has_cotangent(place.declared)) continue;
    Operand tangent = load_tangent(r_, place, values_.shadow_in_reverse(Operand::inst(id)), Operand());
    std::vector<Operand> leaves;
    unpack(r_, place.declared, cotangent_part(r_, place, tangent), leaves);
    adjoints_.add_as(inst.operands[i], place.declared, leaves);
  }
}

void Reverse::backward_float(const ir::Inst& inst, std::uint32_t id) {
  std::vector<Operand> leaves = adjoints_.take(id);
  if (!leaves[0].valid()) return;
  Partials partials;
  partials.active = [&](std::size_t i) { return varied(inst.operands[i]); };
  partials.value = [&](std::size_t i) { return values_.primal_in_reverse(inst.operands[i]); };
  partials.result = [&] { return values_.primal_in_reverse(Operand::inst(id)); };
  partials.add = [&](std::size_t i, Operand x) { adjoints_.add(inst.operands[i], 0, x); };
  partials.may_be_infinite = [&](std::size_t i) { return may_be_infinite(*primal_, inst.operands[i]); };
  if (inst.op == Op::fptrunc || inst.op == Op::fpext) {
    const Type* from = type_of(inst.operands[1]);
    Op back = inst.op == Op::fptrunc ? Op::fpext : Op::fptrunc;
    Operand y = leaves[0];
    if (from != inst.type) y = r_.emit(back, {r_.constant(runtime_.from_type(from)), y}, from);
    adjoints_.add(inst.operands[1], 0, y);
    return;
  }
  if (const std::optional<KnownName> function = elementary_function(inst.op))
    return backward_partials(id, library_function(*function, r_), 0, leaves[0]);
  if (!emit_partials(r_, runtime_, inst, leaves[0], partials))
    refuse(inst, "`" + std::string(ir::op_info(inst.op).name) + "` has no derivative");
}

bool Reverse::backward_call(std::uint32_t id) {
  switch (activity_.rules[id]) {
    case RuleKind::scalar:
      backward_scalar_rule(id);
      return true;
    case RuleKind::reverse:
    case RuleKind::built:
      return backward_rrule(id);
    case RuleKind::stateful:
      return backward_stateful(id);
    default:
      return backward_halves(id);
  }
}

bool Reverse::backward_halves(std::uint32_t id) {
  if (extra_of_[id] == no_value) return true;
  const ir::Inst inst = primal_->insts[id];
  const Environment::Halves& halves = halves_of_[id];
  std::vector<Packed> arguments = packed_arguments(inst);
  Operand cotangent = r_.constant(runtime_.nothing());
  if (tangents_.has_cotangent(halves.result_type)) {
    std::vector<Operand> leaves(leaf_count(halves.result_type));
    if (tangents_.has_cotangent(inst.type) && activity_.varied[id])
      leaves = convert_leaves(r_, inst.type, adjoints_.take(id), halves.result_type);
    cotangent = pack(r_, halves.result_type, leaves);
  }
  std::vector<const Type*> types;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    types.push_back(halves.active[i] ? tangents_.cotangent(arguments[i].type) : builtin_.nothing);
  std::vector<Operand> operands{r_.constant(halves.reverse_callee), values_.in_reverse(extra_of_[id]), cotangent};
  if (halves.stack)
    operands.push_back(keeps_on_own_stack(halves) ? loops_.stack_in_reverse : values_.in_reverse(stack_of_[id]));
  Operand result =
      r_.emit(Op::invoke, operands, runtime_.types.tuple(types), reinterpret_cast<std::uintptr_t>(halves.reverse));
  if (stack_of_.contains(id)) r_.emit(Op::tape_close, {operands.back()});
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!halves.active[i] || !tangents_.has_cotangent(arguments[i].type)) continue;
    std::vector<Operand> leaves;
    unpack(r_, arguments[i].type, r_.emit(Op::field_at, {result}, types[i], i), leaves);
    if (!arguments[i].is_tuple) {
      adjoints_.add_as(arguments[i].operands[0], arguments[i].type, leaves);
      continue;
    }
    std::size_t next = 0;
    for (Operand o : arguments[i].operands) {
      std::size_t count = leaf_count(type_of(o));
      for (std::size_t k = 0; k < count; ++k) adjoints_.add(o, k, leaves[next + k]);
      next += count;
    }
  }
  return true;
}

}  // namespace slope::diff
