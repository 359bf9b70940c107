// Copies of memory as values: a vector of pairs, an object and a copy of it; of a global its address and a Box. An object
// and itself: the call left it as it was, but the reverse half, which undoes some stores and not others, may not.
#include <algorithm>
#include <cstring>

#include "lang/derive/derivatives.hpp"
#include "lang/derive/kept_memory.hpp"
#include "lang/diff/tangent.hpp"

namespace slope::derive {

// An array gets the length that it had.
bool KeptMemory::make_room(const Entry& entry) {
  auto* array = static_cast<ArrayObject*>(entry.what);
  if (array->length != entry.length) {
    // Memory that others see too has room for what it held before; of what was made by hand that is not known.
    const bool is_own =
        (array->flags & (array_borrowed | array_shared)) == 0 && (array->flags & array_owns_memory) != 0;
    if (array_ndims(array) != 1 || (!is_own && entry.length > capacity_of(array))) return false;
    if (!ctx_.heap->resize_vector(array, entry.length)) return false;
  }
  return true;
}

bool KeptMemory::each_part(const Entry& entry, const Object* copy, const VisitPart& visit) {
  if (entry.kind != Entry::Kind::array) return visit(std::size_t{0}, copy->payload(), entry.bytes);
  if (is_object(copy, DataType::ObjectKind::cell)) return ArrayCopies::each_part(copy, visit);
  return visit(std::size_t{0}, static_cast<const ArrayObject*>(copy)->data, entry.bytes);
}

std::vector<char> KeptMemory::content_of(const Entry& entry, const Object* copy) {
  std::vector<char> content;
  content.reserve(entry.bytes);
  each_part(entry, copy, [&](std::size_t, const char* part, std::size_t bytes) {
    content.insert(content.end(), part, part + bytes);
    return true;
  });
  return content;
}

bool KeptMemory::restore(const Entry& entry, const Object* copy) {
  if (entry.kind != Entry::Kind::array) return restore(entry, copy->payload());
  if (!is_object(copy, DataType::ObjectKind::cell)) return restore(entry, static_cast<const ArrayObject*>(copy)->data);
  if (!make_room(entry)) return false;
  auto* array = static_cast<ArrayObject*>(entry.what);
  ArrayCopies::each_part(copy, [&](std::size_t offset, const char* part, std::size_t bytes) {
    if (std::memcmp(array->data + offset, part, bytes) != 0) std::memcpy(array->data + offset, part, bytes);
    return true;
  });
  ctx_.heap->rewrote(array);
  array_copies_.holds(array, const_cast<Object*>(copy));
  return true;
}

// An object with content such as an entry's. Null: no memory for it.
Object* KeptMemory::copy_of(const Entry& entry, const char* content) {
  Heap& heap = *ctx_.heap;
  auto* object = static_cast<Object*>(entry.what);
  Object* copy = nullptr;
  if (entry.kind == Entry::Kind::array) {
    auto* array = static_cast<ArrayObject*>(object);
    if (entry.bytes >= ArrayCopies::least_bytes) return array_copies_.copy(heap, array, content, entry.length);
    std::vector<std::int64_t> shape(dims_of(array), dims_of(array) + array_ndims(array));
    if (shape.size() == 1) shape[0] = entry.length;
    copy = heap.allocate_array(array->type, shape);
  } else if (entry.kind == Entry::Kind::fields) {
    copy = heap.allocate(object->type, entry.bytes);
  } else {
    copy = heap.allocate_cell();
  }
  if (!copy) return nullptr;
  char* to = entry.kind == Entry::Kind::array ? static_cast<ArrayObject*>(copy)->data : copy->payload();
  if (entry.bytes) std::memcpy(to, content, entry.bytes);
  return copy;
}

KeptMemory::Entry KeptMemory::as_it_is(Entry entry) {
  if (entry.kind != Entry::Kind::array) return entry;
  const auto* array = static_cast<const ArrayObject*>(entry.what);
  entry.length = array->length;
  entry.bytes = static_cast<std::size_t>(array->length) * array->element_size;
  return entry;
}

bool KeptMemory::copy_entries(std::size_t depth, Copies copies, bool also_left, Value& result,
                              const std::unordered_set<const Object*>* without) {
  const std::size_t first = levels_[depth - 1].entries;
  const bool present = copies == Copies::present || levels_[depth - 1].looks;
  enum class What : std::uint8_t { copy, itself, nothing };
  std::vector<What> kept;
  for (std::size_t i = first; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const bool is_left = !also_left && leaves(levels_[depth - 1], entry);
    const bool is_as_before = copies != Copies::all && (!is_left || present) && is_unchanged(entry);
    const bool is_without =
        without && entry.kind != Entry::Kind::global && without->contains(static_cast<const Object*>(entry.what));
    const bool is_nothing = is_without ? true
                            : is_left  ? !present || is_as_before
                                       : is_as_before && entry.kind == Entry::Kind::global;
    kept.push_back(is_nothing ? What::nothing : is_as_before ? What::itself : What::copy);
  }
  const auto left = std::count(kept.begin(), kept.end(), What::nothing);
  if (kept.size() == static_cast<std::size_t>(left)) return true;
  Rooted roots(*ctx_.heap);
  ArrayObject* pairs = make_pairs(kept.size() - static_cast<std::size_t>(left), roots);
  if (!pairs) return false;
  std::size_t made = 0;
  for (std::size_t i = first; i < entries_.size(); ++i) {
    const What what = kept[i - first];
    if (what == What::nothing) continue;
    if (what == What::itself) {
      set_itself(pairs, made++, entries_[i]);
      continue;
    }
    const Entry entry = present ? as_it_is(entries_[i]) : entries_[i];
    const char* content =
        present ? present_content(entry) : (entry.has_references ? references_ : bits_).data() + entry.offset;
    if (!set_pair(pairs, made++, entry, content)) return false;
  }
  result = roots.values[0];
  return true;
}

ArrayObject* KeptMemory::make_pairs(std::size_t count, Rooted& roots) {
  const std::int64_t dims[] = {static_cast<std::int64_t>(2 * count)};
  ArrayObject* pairs = ctx_.heap->allocate_array(runtime_.types.array_of(runtime_.types.builtin().any, 1), dims);
  if (pairs) roots.values.push_back(Value(pairs->type, static_cast<const void*>(pairs)));
  return pairs;
}

bool KeptMemory::set_pair(ArrayObject* pairs, std::size_t i, const Entry& entry, const char* content) {
  Object* copy = copy_of(entry, content);
  if (!copy) return false;
  Value what(runtime_.types.builtin().int64, static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(entry.what)));
  if (entry.kind != Entry::Kind::global) {
    auto* object = static_cast<Object*>(entry.what);
    what = Value(object->type, static_cast<const void*>(object));
  }
  auto* places = reinterpret_cast<Value*>(pairs->data) + 2 * i;
  places[0] = what;
  places[1] = Value(copy->type, static_cast<const void*>(copy));
  ctx_.heap->rewrote(pairs);
  return true;
}

void KeptMemory::set_itself(ArrayObject* pairs, std::size_t i, const Entry& entry) {
  auto* object = static_cast<Object*>(entry.what);
  auto* places = reinterpret_cast<Value*>(pairs->data) + 2 * i;
  places[0] = places[1] = Value(object->type, static_cast<const void*>(object));
  ctx_.heap->rewrote(pairs);
}

// What one pair says: the object, as it was when the copy was made.
KeptMemory::Entry KeptMemory::entry_of(const Value* pair, const BuiltinTypes& builtin) {
  const Value what = pair[0];
  Entry entry{Entry::Kind::cell, what.pointer, 0, sizeof(Value), 0, false};
  if (what.type == builtin.int64) {
    entry.kind = Entry::Kind::global;
  } else if (is_object(what.object, DataType::ObjectKind::fields)) {
    entry.kind = Entry::Kind::fields;
    entry.bytes = what.object->type->size;
  } else if (is_object(what.object, DataType::ObjectKind::array)) {
    const auto* array = static_cast<const ArrayObject*>(what.object);
    const Object* copy = pair[1].object;
    entry.kind = Entry::Kind::array;
    entry.length = is_object(copy, DataType::ObjectKind::cell) ? ArrayCopies::length(copy)
                                                               : static_cast<const ArrayObject*>(copy)->length;
    entry.bytes = static_cast<std::size_t>(entry.length) * array->element_size;
  }
  return entry;
}

// An object and a copy of it, or the address of a global that some function assigns and a cell.
bool KeptMemory::is_taken(Value what, Value copy) const {
  if (!what.defined() || !copy.defined() || !is_reference(copy)) return false;
  if (what.type == runtime_.types.builtin().int64) {
    if (copy.type != runtime_.types.builtin().cell || !derivatives_of(ctx_).stores.assigns(what.pointer)) return false;
    const auto* binding = static_cast<const Binding*>(what.pointer);
    const Value content = static_cast<const CellObject*>(copy.object)->value;
    return !binding->is_constant && content.defined() &&
           (!binding->declared || is_instance(runtime_.types, content, binding->declared));
  }
  if (!is_reference(what)) return false;
  const bool in_parts =
      copy.type == runtime_.types.builtin().cell && is_object(what.object, DataType::ObjectKind::array);
  if (in_parts ? !array_copies_.is_copy_of(static_cast<const ArrayObject*>(what.object), copy) : what.type != copy.type)
    return false;
  if (is_object(what.object, DataType::ObjectKind::cell)) return true;
  if (is_object(what.object, DataType::ObjectKind::fields)) return as_data(what.type)->is_mutable;
  if (!is_object(what.object, DataType::ObjectKind::array)) return false;
  const auto* array = static_cast<const ArrayObject*>(what.object);
  const std::int64_t length =
      in_parts ? ArrayCopies::length(copy.object) : static_cast<const ArrayObject*>(copy.object)->length;
  return array_ndims(array) == 1 || array->length == length;
}

// A vector of pairs (copy_entries), or nothing.
bool KeptMemory::expect_taken(Value taken) {
  const DataType* type = as_data(taken.type);
  if (!type || type->object_kind != DataType::ObjectKind::array) return true;
  const auto* pairs = static_cast<const ArrayObject*>(taken.object);
  bool fits = array_element_type(pairs) == runtime_.types.builtin().any && pairs->length % 2 == 0;
  for (std::int64_t i = 0; fits && i < pairs->length; i += 2) {
    const auto* both = reinterpret_cast<const Value*>(pairs->data) + i;
    fits = is_taken(both[0], both[1]);
  }
  return fits || ctx_.argument_error("put_back_later takes what take_away_memory gave");
}

bool KeptMemory::put_back_later(Value taken) {
  if (!expect_taken(taken)) return false;
  if (as_data(taken.type)->object_kind != DataType::ObjectKind::array) return true;
  const auto* pairs = static_cast<const ArrayObject*>(taken.object);
  bool ok = true;
  for (std::int64_t i = pairs->length - 2; i >= 0; i -= 2) {
    const auto* pair = reinterpret_cast<const Value*>(pairs->data) + i;
    if (is_itself(pair)) continue;
    ok &= restore(entry_of(pair, runtime_.types.builtin()), pair[1].object);
  }
  return ok || ctx_.out_of_memory();
}

bool KeptMemory::exchange_later(Value taken, Value& result) {
  result = runtime_.nothing();
  if (!expect_taken(taken)) return false;
  if (as_data(taken.type)->object_kind != DataType::ObjectKind::array) return true;
  Rooted roots(*ctx_.heap);
  roots.values.push_back(taken);
  const auto* pairs = static_cast<const ArrayObject*>(taken.object);
  ArrayObject* present = make_pairs(static_cast<std::size_t>(pairs->length / 2), roots);
  if (!present) return ctx_.out_of_memory();
  for (std::int64_t i = 0; i < pairs->length; i += 2) {
    const auto* pair = reinterpret_cast<const Value*>(pairs->data) + i;
    const Entry entry = as_it_is(entry_of(pair, runtime_.types.builtin()));
    if (!set_pair(present, static_cast<std::size_t>(i / 2), entry, present_content(entry))) return ctx_.out_of_memory();
  }
  result = roots.values[1];
  return put_back_later(taken);
}

bool KeptMemory::keep_unchanged(Value taken, Value& result) {
  result = runtime_.nothing();
  if (!expect_taken(taken)) return false;
  if (as_data(taken.type)->object_kind != DataType::ObjectKind::array) return true;
  const auto* pairs = static_cast<const ArrayObject*>(taken.object);
  const auto pair = [&](std::int64_t i) { return reinterpret_cast<const Value*>(pairs->data) + i; };
  std::size_t count = 0;
  for (std::int64_t i = 0; i < pairs->length; i += 2) count += is_itself(pair(i));
  if (count == 0) return true;
  Rooted roots(*ctx_.heap);
  roots.values.push_back(taken);
  ArrayObject* present = make_pairs(count, roots);
  if (!present) return ctx_.out_of_memory();
  std::size_t made = 0;
  for (std::int64_t i = 0; i < pairs->length; i += 2) {
    if (!is_itself(pair(i))) continue;
    const Entry entry = as_it_is(entry_of(pair(i), runtime_.types.builtin()));
    if (!set_pair(present, made++, entry, present_content(entry))) return ctx_.out_of_memory();
  }
  result = roots.values[1];
  return true;
}

bool KeptMemory::took_only_numbers(Value taken) {
  if (as_data(taken.type)->object_kind != DataType::ObjectKind::array || !expect_taken(taken)) return true;
  diff::TangentTypes& tangents = diff::tangent_types(runtime_);
  const auto* pairs = static_cast<const ArrayObject*>(taken.object);
  for (std::int64_t i = 0; i < pairs->length; i += 2) {
    const auto* pair = reinterpret_cast<const Value*>(pairs->data) + i;
    const Entry entry = entry_of(pair, runtime_.types.builtin());
    if (entry.kind == Entry::Kind::global || is_itself(pair)) continue;
    const auto* object = static_cast<const Object*>(entry.what);
    if (!holds_only_numbers(tangents, object->type)) return false;
    if (entry.kind == Entry::Kind::array && tangents.differentiable(object->type) &&
        static_cast<const ArrayObject*>(entry.what)->length != entry.length)
      return false;
  }
  return true;
}

// Whether the object holds what its copy does.
bool KeptMemory::holds_content_of(const Value* pair) const {
  const Entry entry = entry_of(pair, runtime_.types.builtin());
  const Entry present = as_it_is(entry);
  if (present.bytes != entry.bytes || present.length != entry.length) return false;
  const char* now = present_content(entry);
  return each_part(entry, pair[1].object, [&](std::size_t offset, const char* part, std::size_t bytes) {
    return bytes == 0 || std::memcmp(now + offset, part, bytes) == 0;
  });
}

bool KeptMemory::is_as_kept(Value kept) {
  if (as_data(kept.type)->object_kind != DataType::ObjectKind::array || !expect_taken(kept)) return true;
  const auto* pairs = static_cast<const ArrayObject*>(kept.object);
  for (std::int64_t i = 0; i < pairs->length; i += 2)
    if (!holds_content_of(reinterpret_cast<const Value*>(pairs->data) + i)) return false;
  return true;
}

bool KeptMemory::holds_numbers_of(Value kept) {
  if (as_data(kept.type)->object_kind != DataType::ObjectKind::array || !expect_taken(kept)) return true;
  diff::TangentTypes& tangents = diff::tangent_types(runtime_);
  const auto* pairs = static_cast<const ArrayObject*>(kept.object);
  for (std::int64_t i = 0; i < pairs->length; i += 2) {
    const auto* pair = reinterpret_cast<const Value*>(pairs->data) + i;
    if (pair[0].type != runtime_.types.builtin().int64 && tangents.differentiable(pair[0].type) &&
        !holds_content_of(pair))
      return false;
  }
  return true;
}

bool KeptMemory::open_for(Value taken, std::int64_t& level) {
  if (!expect_taken(taken)) return false;
  level = open(true);
  if (as_data(taken.type)->object_kind == DataType::ObjectKind::array) {
    const auto* pairs = static_cast<const ArrayObject*>(taken.object);
    for (std::int64_t i = 0; i < pairs->length; i += 2) {
      const auto* pair = reinterpret_cast<const Value*>(pairs->data) + i;
      Entry entry = entry_of(pair, runtime_.types.builtin());
      entry.has_references = true;  // or not: what is looked at conservatively may be numbers
      copy(entry, content_of(entry, pair[1].object).data());
    }
  }
  top().begun = true;
  return true;
}

}  // namespace slope::derive
