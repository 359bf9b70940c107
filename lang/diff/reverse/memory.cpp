// Loads and stores: the tangents of memory, and old contents, which the reverse sweep restores.
//
// For one place a shadow holds (TangentTypes::element of the declared type) a cotangent, a shadow, or a tuple of both.
// A store writes the value's shadow there, with a zero cotangent. In the reverse sweep, the cotangent that has
// accumulated there since is that of the stored value; then what the shadow held before is restored.
#include "lang/diff/operations.hpp"
#include "lang/diff/reverse/reverse.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

// What lies in a place may be no object at all yet: of references the old content is asked for with care.
bool Reverse::may_be_unassigned(const Place& place) const {
  const DataType* d = as_data(place.declared);
  return !d || !d->is_isbits;
}

namespace {

// The shadow of a captured variable is an object with a field.
template <class Place>
Place in_shadow(Place place) {
  place.is_cell = false;
  return place;
}

}  // namespace

// What a place holds, kept for `put_back`.
ValueIndex Reverse::old_content(const Place& place, Operand object, Operand index, const Type* type) {
  if (place.is_cell)
    return values_.remember(call_library(f_, KnownName::saved_content, {object}, builtin_.any), builtin_.any);
  if (may_be_unassigned(place)) {
    Operand where = index.valid() ? index : int_constant(f_, static_cast<std::int64_t>(place.field) + 1);
    return values_.remember(call_library(f_, index.valid() ? KnownName::saved_element : KnownName::saved_field,
                                         {object, where}, builtin_.any),
                            builtin_.any);
  }
  Operand old = index.valid() ? f_.emit(Op::array_get, {object, index}, type)
                              : f_.emit(Op::field_at, {object}, type, place.field);
  return values_.remember(old, type);
}

void Reverse::put_back(const Place& place, Operand object, Operand index, Operand old) {
  if (place.is_cell) {
    call_library(r_, KnownName::restore_content, {object, old}, nullptr);
  } else if (may_be_unassigned(place)) {
    Operand where = index.valid() ? index : int_constant(r_, static_cast<std::int64_t>(place.field) + 1);
    call_library(r_, index.valid() ? KnownName::restore_element : KnownName::restore_field, {object, where, old},
                 nullptr);
  } else if (index.valid()) {
    r_.emit(Op::array_set, {object, old, index});
  } else {
    r_.emit(Op::set_field_at, {object, old}, nullptr, place.field);
  }
}

bool Reverse::forward_store(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  bool carries = varied(inst.operands[0]);
  if (!carries && (inst.op == Op::cell_set || !is_concrete(type_of(inst.operands[0])))) return true;
  Place place = place_of(inst);
  bool restored = overwritten_.must_restore(id);
  bool has_shadow = carries && holds_tangent(place) && tangents_.has_shadow(place.declared);
  if (!restored && !has_shadow) return true;
  Operand memory = values_.forward(place.memory);
  Operand index = place.index.valid() ? values_.forward(place.index) : Operand();
  if (restored) extra_of_[id] = old_content(place, memory, index, place.declared);
  if (!has_shadow) return true;
  Operand shadow_memory = shadow(place.memory);
  if (restored) old_shadow_of_[id] = old_content(in_shadow(place), shadow_memory, index, place.tangent);
  Operand tangent = whole_tangent(f_, place, shadow_as(inst.operands[1], place.declared), Operand());
  store_tangent(f_, place, shadow_memory, index, tangent);
  return true;
}

void Reverse::backward_store(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  bool carries = varied(inst.operands[0]);
  if (!carries && extra_of_[id] == no_value) return;
  Place place = place_of(inst);
  carries = carries && holds_tangent(place);
  Operand index = place.index.valid() ? values_.primal_in_reverse(place.index) : Operand();
  auto old_shadow = old_shadow_of_.find(id);
  if (carries && tangents_.has_cotangent(place.declared)) {
    Operand shadow_memory = values_.shadow_in_reverse(place.memory);
    Operand tangent;
    bool both = tangents_.has_shadow(place.declared);
    if (varied(inst.operands[1]) || both) tangent = load_tangent(r_, place, shadow_memory, index);
    if (varied(inst.operands[1])) {
      std::vector<Operand> leaves;
      unpack(r_, place.declared, cotangent_part(r_, place, tangent), leaves);
      adjoints_.add_as(inst.operands[1], place.declared, leaves);
    }
    if (old_shadow == old_shadow_of_.end()) {
      Operand kept = both ? shadow_part(r_, place, tangent) : Operand();
      store_tangent(r_, place, shadow_memory, index, whole_tangent(r_, place, kept, Operand()));
    }
  }
  if (old_shadow != old_shadow_of_.end())
    put_back(in_shadow(place), values_.shadow_in_reverse(place.memory), index, values_.in_reverse(old_shadow->second));
  if (extra_of_[id] != no_value)
    put_back(place, values_.primal_in_reverse(place.memory), index, values_.in_reverse(extra_of_[id]));
}

// Arrays without derivatives that a call or a builtin overwrites, as a whole.
void Reverse::keep_written_arrays(std::uint32_t id) {
  std::vector<Operand> arrays = overwritten_.arrays_to_restore(id);
  if (arrays.empty()) return;
  for (Operand o : arrays) {
    Operand copy = call_library(f_, KnownName::saved_array, {values_.forward(o)}, type_of(o));
    written_arrays_[id].push_back({o, values_.remember(copy, type_of(o))});
  }
}

// What a call may change of other memory is found when it runs (KeptMemory::keep_before). One bit an operand, the callee
// first, says that its own reverse step puts back what carries a derivative there. An operator calls its first operand
// with the second, a tuple.
void Reverse::keep_changed_memory(std::uint32_t id) {
  if (!overwritten_.changes_recalled(id)) return;
  const ir::Inst& inst = primal_->insts[id];
  constexpr std::size_t most_bits = 62;
  std::int64_t active = 0;
  std::vector<Operand> arguments(1);
  const bool operates = is_operator(inst);
  for (std::size_t i = 0; i < (operates ? 2 : inst.operands.size()); ++i) {
    if (i < most_bits && varied(inst.operands[i])) active |= std::int64_t{1} << i;
    arguments.push_back(values_.forward(inst.operands[i]));
  }
  const bool splats = inst.op == Op::call_splat || operates;
  arguments[0] = f_.constant(runtime_.from_int(splats ? 0 : active));
  if (overwritten_.finds_changes(id)) {
    watched_ =
        call_library(f_, splats ? KnownName::watch_changes_splat : KnownName::watch_changes, arguments, builtin_.any);
    return;
  }
  const Operand kept =
      call_library(f_, splats ? KnownName::memory_before_splat : KnownName::memory_before, arguments, builtin_.any);
  changed_memory_[id] = values_.remember(kept, builtin_.any);
}

void Reverse::keep_watched_changes(std::uint32_t id, Operand watched) {
  const Operand kept = call_library(f_, KnownName::changes_since, {watched}, builtin_.any);
  changed_memory_[id] = values_.remember(kept, builtin_.any);
}

void Reverse::restore_changed_memory(std::uint32_t id) {
  if (auto kept = changed_memory_.find(id); kept != changed_memory_.end())
    call_library(r_, KnownName::exchange_before, {values_.in_reverse(kept->second)}, builtin_.any);
}

void Reverse::restore_written_arrays(std::uint32_t id) {
  auto kept = written_arrays_.find(id);
  if (kept == written_arrays_.end()) return;
  for (const auto& [array, copy] : kept->second) {
    const Operand memory = values_.primal_in_reverse(array);
    const Operand content = values_.in_reverse(copy);
    const Type* type = type_of(array);
    if (type == runtime_.types.array_of(as_data(type)->params[0], 1)) resize_back(memory, content);
    call_library(r_, KnownName::restore_array, {memory, content}, nullptr);
  }
}

// To the length of what was kept of it, when the call has changed that.
void Reverse::resize_back(Operand memory, Operand content) {
  const Operand length = r_.emit(Op::array_length, {content}, builtin_.int64);
  const Operand now = r_.emit(Op::array_length, {memory}, builtin_.int64);
  const ir::BlockId other = r_.new_block();
  const ir::BlockId rest = r_.new_block();
  r_.branch(r_.emit(Op::eq_int, {length, now}, builtin_.boolean), rest, other);
  r_.set_block(other);
  r_.emit(Op::array_resize, {memory, length}, builtin_.nothing, ir::undo_resize);
  r_.jump(rest);
  r_.set_block(rest);
}

// The shadow of what is loaded.
bool Reverse::forward_load(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const Type* object = type_of(inst.operands[0]);
  const Type* wanted = tangents_.shadow(inst.type);
  if (inst.op == Op::field_at && !is_concrete(object)) {  // of a tuple whose type is known in part
    Operand index = int_constant(f_, static_cast<std::int64_t>(inst.aux) + 1);
    Operand part = call_library(f_, KnownName::part_of_tangent, {shadow(inst.operands[0]), index}, tangents_.dynamic());
    set_shadow(id, as_shadow(f_, part, tangents_.dynamic(), wanted));
    return true;
  }
  if (inst.op == Op::field_at && !as_data(object)->is_mutable) {
    const Type* held = as_data(tangents_.shadow(object))->params[inst.aux];
    set_shadow(id, as_shadow(f_, f_.emit(Op::field_at, {shadow(inst.operands[0])}, held, inst.aux), held, wanted));
    return true;
  }
  Place place = place_of(inst);
  Operand index = place.index.valid() ? values_.forward(place.index) : Operand();
  Operand tangent = load_tangent(f_, place, shadow(place.memory), index);
  set_shadow(id, as_shadow(f_, shadow_part(f_, place, tangent), tangents_.shadow(place.declared), wanted));
  return true;
}

// Adds the loaded value's cotangent to what the shadow holds.
void Reverse::backward_load(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  std::vector<Operand> leaves = adjoints_.take(id);
  if (none(leaves) || !varied(inst.operands[0])) return;
  Place place = place_of(inst);
  leaves = convert_leaves(r_, inst.type, leaves, place.declared);
  Operand memory = values_.shadow_in_reverse(place.memory);
  Operand index = place.index.valid() ? values_.primal_in_reverse(place.index) : Operand();
  Operand tangent = load_tangent(r_, place, memory, index);
  std::vector<Operand> sum;
  unpack(r_, place.declared, cotangent_part(r_, place, tangent), sum);
  const auto& described = tangents_.leaves(place.declared);
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (leaves[i].valid()) sum[i] = add_leaves(r_, sum[i], leaves[i], described[i].type);
  Operand packed = pack(r_, place.declared, sum);
  Operand kept = tangents_.has_shadow(place.declared) ? shadow_part(r_, place, tangent) : Operand();
  store_tangent(r_, place, memory, index, whole_tangent(r_, place, kept, packed));
}

// The functions of the library that keep what a resize cuts off, fill what it adds to a shadow, and undo it.
struct Reverse::EndFunctions {
  KnownName saved, put_back, zero;
};

Reverse::EndFunctions Reverse::end_functions(Op resize) {
  if (resize == Op::array_resize_front) return {KnownName::saved_head, KnownName::put_back_head, KnownName::zero_head};
  return {KnownName::saved_tail, KnownName::put_back_tail, KnownName::zero_tail};
}

// What a shrinking array loses is kept, and of its shadow too where that holds more than numbers.
void Reverse::forward_resize(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  bool carries = varied(inst.operands[0]);
  const bool typed = is_concrete(type_of(inst.operands[0]));
  if (!carries && (!typed || !overwritten_.is_held(inst.operands[0], id))) return;
  const DataType* array = as_data(type_of(inst.operands[0]));
  Operand memory = values_.forward(inst.operands[0]);
  Operand length = values_.forward(inst.operands[1]);
  extra_of_[id] = values_.remember(f_.emit(Op::array_length, {memory}, builtin_.int64), builtin_.int64);
  const EndFunctions end = end_functions(inst.op);
  if (overwritten_.must_restore(id))
    cut_off_of_[id] = values_.remember(call_library(f_, end.saved, {memory, length}, array), array);
  if (!carries) return;
  Operand shadow_memory = shadow(inst.operands[0]);
  if (tangents_.has_shadow(array->params[0])) {
    const Type* type = tangents_.shadow(array);
    old_shadow_of_[id] = values_.remember(call_library(f_, end.saved, {shadow_memory, length}, type), type);
  }
  f_.emit(inst.op, {shadow_memory, length}, builtin_.nothing, inst.aux);
  if (has_boxed_cotangents(array)) call_library(f_, end.zero, {shadow_memory, values_[extra_of_[id]].forward}, nullptr);
}

// Are the places of its shadow boxes, which memory that has grown lacks?
bool Reverse::has_boxed_cotangents(const DataType* array) {
  const Type* element = array->params[0];
  return !tangents_.has_shadow(element) && tangents_.is_dynamic(element);
}

void Reverse::backward_resize(std::uint32_t id) {
  if (extra_of_[id] == no_value) return;
  const ir::Inst inst = primal_->insts[id];
  Operand length = values_.in_reverse(extra_of_[id]);
  const EndFunctions end = end_functions(inst.op);
  // The kind says that others may share the memory by now: they came after what is undone.
  auto undo = [&](Operand memory, Operand cut_off) {
    r_.emit(inst.op, {memory, length}, builtin_.nothing, ir::undo_resize);
    if (cut_off.valid()) call_library(r_, end.put_back, {memory, cut_off}, nullptr);
  };
  auto content_of = [&](const std::unordered_map<std::uint32_t, ValueIndex>& kept) {
    auto found = kept.find(id);
    return found == kept.end() ? Operand() : values_.in_reverse(found->second);
  };
  undo(values_.primal_in_reverse(inst.operands[0]), content_of(cut_off_of_));
  if (!varied(inst.operands[0])) return;
  Operand shadow_memory = values_.shadow_in_reverse(inst.operands[0]);
  const bool boxes = has_boxed_cotangents(as_data(type_of(inst.operands[0])));
  Operand shorter = boxes ? r_.emit(Op::array_length, {shadow_memory}, builtin_.int64) : Operand();
  undo(shadow_memory, content_of(old_shadow_of_));
  if (boxes) call_library(r_, end.zero, {shadow_memory, shorter}, nullptr);
}

}  // namespace slope::diff
