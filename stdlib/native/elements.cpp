// Elements of arrays: whether they are assigned, and many of them stored at once.
#include <algorithm>
#include <cstring>
#include <limits>

#include "lang/runtime/loans.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

bool element_at(Call& call, ArrayObject*& a, char*& where) {
  std::int64_t i = 0;
  if (!call.array(0, a) || !call.integer(1, i)) return false;
  if (i < 1 || i > a->length) return call.ctx.bounds_error(call[0], call[1]);
  where = a->data + (i - 1) * a->element_size;
  return true;
}

bool holds_references(const ArrayObject* a) {
  const Storage storage = storage_of(array_element_type(a));
  return storage == Storage::reference || storage == Storage::dynamic;
}

// Whether an element is there: the one at an index, or all from one to another.
bool array_assigned(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "isassigned", args, count, result);
  ArrayObject* a = nullptr;
  char* where = nullptr;
  if (!element_at(call, a, where)) return false;
  if (!holds_references(a)) return call.give_bool(true);
  std::int64_t last = args[1].bits;
  if (count > 2 && !call.integer(2, last)) return false;
  if (last > a->length) return ctx.bounds_error(args[0], args[2]);
  for (const char* end = a->data + last * a->element_size; where < end; where += a->element_size) {
    void* first;
    std::memcpy(&first, where, sizeof first);
    if (!first) return call.give_bool(false);
  }
  return call.give_bool(true);
}

// Unassigns an element, so that the collector may have what it referred to.
bool array_forget(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "array_forget", args, count, result);
  ArrayObject* a = nullptr;
  char* where = nullptr;
  if (!element_at(call, a, where)) return false;
  std::memset(where, 0, a->element_size);
  return call.give_nothing();
}

// Where the elements go, 1-based: `count` places from `first` on, `step` apart, or those that `places` lists.
struct Places {
  std::int64_t first = 1;
  std::int64_t step = 1;
  std::int64_t count = 0;
  const std::int64_t* places = nullptr;

  std::int64_t operator[](std::int64_t k) const { return places ? places[k] : first + k * step; }
  // All of them.
  bool are_within(std::int64_t length, std::int64_t& outside) const {
    const auto is_outside = [&](std::int64_t place) {
      outside = place;
      return place < 1 || place > length;
    };
    if (count == 0) return true;
    if (!places) {
      std::int64_t way = 0, last = 0;
      if (__builtin_mul_overflow(step, count - 1, &way) || __builtin_add_overflow(first, way, &last))
        return !is_outside(std::numeric_limits<std::int64_t>::max());
      return !is_outside(first) && !is_outside(last);
    }
    for (std::int64_t k = 0; k < count; ++k)
      if (is_outside(places[k])) return false;
    return true;
  }
};

bool places_of(Call& call, const ArrayObject* items, Places& to) {
  if (call.count() == 3) {
    ArrayObject* places = nullptr;
    if (!call.array_of(2, call.builtin.int64, 1, places)) return false;
    to.places = reinterpret_cast<const std::int64_t*>(places->data);
    to.count = places->length;
  } else if (!call.arity(5) || !call.integer(2, to.first) || !call.integer(3, to.step) || !call.integer(4, to.count)) {
    return false;
  }
  return (to.count >= 0 && to.count <= items->length) ||
         call.ctx.argument_error("array_put: there are fewer items than places");
}

template <class Element>
void put_each(char* into, const char* items, const Places& to) {
  for (std::int64_t k = 0; k < to.count; ++k)
    std::memcpy(into + (to[k] - 1) * std::int64_t{sizeof(Element)}, items + k * std::int64_t{sizeof(Element)},
                sizeof(Element));
}

void put_all(const ArrayObject* into, const ArrayObject* items, const Places& to) {
  const std::size_t size = into->element_size;
  if (!to.places && to.step == 1) {
    if (to.count == 0) return;
    std::memmove(into->data + (to.first - 1) * static_cast<std::int64_t>(size), items->data,
                 static_cast<std::size_t>(to.count) * size);
  } else if (size == 8) {
    put_each<std::uint64_t>(into->data, items->data, to);
  } else if (size == 1) {
    put_each<std::uint8_t>(into->data, items->data, to);
  } else {
    for (std::int64_t k = 0; k < to.count; ++k)
      std::memcpy(into->data + (to[k] - 1) * static_cast<std::int64_t>(size),
                  items->data + k * static_cast<std::int64_t>(size), size);
  }
}

// Arrays that the host lent may not be kept by what outlives the call.
bool may_put(Call& call, const ArrayObject* into, const ArrayObject* items, std::int64_t count) {
  if (!call.ctx.loans || !holds_references(into)) return true;
  for (std::int64_t k = 0; k < count; ++k) {
    const Value v = load_stored(*call.ctx.heap, items->data + k * items->element_size, array_element_type(items));
    if (v.defined() && !call.ctx.loans->may_store(v, into, {})) return false;
  }
  return true;
}

// How often each of the items is stored, one after another.
struct Runs {
  const std::int64_t* counts = nullptr;
  std::int64_t runs = 0;
  std::int64_t first = 1;  // place of the first element, 1-based
  std::int64_t total = 0;

  // Adds them up. False: some are negative, or they are more than any array has.
  bool add_up() {
    for (std::int64_t k = 0; k < runs; ++k)
      if (counts[k] < 0 || __builtin_add_overflow(total, counts[k], &total)) return false;
    return true;
  }
};

template <class Element>
void put_runs_of(char* into, const char* items, const Runs& runs) {
  auto* to = reinterpret_cast<Element*>(into);
  for (std::int64_t k = 0; k < runs.runs; ++k) {
    Element item;
    std::memcpy(&item, items + k * std::int64_t{sizeof(Element)}, sizeof item);
    to = std::fill_n(to, runs.counts[k], item);
  }
}

void put_all_runs(const ArrayObject* into, const ArrayObject* items, const Runs& runs) {
  const auto size = static_cast<std::int64_t>(into->element_size);
  if (runs.total == 0) return;
  char* to = into->data + (runs.first - 1) * size;
  if (size == 8) return put_runs_of<std::uint64_t>(to, items->data, runs);
  if (size == 4) return put_runs_of<std::uint32_t>(to, items->data, runs);
  if (size == 1) return put_runs_of<std::uint8_t>(to, items->data, runs);
  for (std::int64_t k = 0; k < runs.runs; ++k)
    for (std::int64_t j = 0; j < runs.counts[k]; ++j, to += size)
      std::memcpy(to, items->data + k * size, static_cast<std::size_t>(size));
}

bool put_runs(Call& call, ArrayObject* into, const ArrayObject* items) {
  ArrayObject* counts = nullptr;
  Runs runs;
  if (!call.array_of(2, call.builtin.int64, 1, counts) || !call.integer(3, runs.first)) return false;
  runs.counts = reinterpret_cast<const std::int64_t*>(counts->data);
  runs.runs = counts->length;
  if (runs.runs > items->length || !runs.add_up())
    return call.ctx.argument_error("array_put: a count for each item, none below zero");
  if (runs.total > 0 && (runs.first < 1 || runs.first > into->length || runs.total > into->length - runs.first + 1))
    return call.ctx.bounds_error(call[0], call.runtime.from_int(runs.first < 1 ? runs.first : into->length + 1));
  if (!may_put(call, into, items, runs.runs) || !takes_turns(call.ctx, runs.total)) return false;
  put_all_runs(into, items, runs);
  if (holds_references(into)) call.ctx.heap->rewrote(into);
  return call.give_nothing();
}

// array_put(a, items, first, step, n): stores the first n elements of another array of this element type, which may be
// unassigned, at first, first + step, …; array_put(a, items, places::Vector{Int}): at the places;
// array_put(a, items, counts::Vector{Int}, first): items[k] counts[k] times, one after another. All are stored, or,
// where there is an error or a limit is met, none. So data that an operation puts in another order can't be lost half
// way. The two arrays are not one memory, unless step is 1.
bool array_put(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "array_put", args, count, result);
  ArrayObject* into = nullptr;
  ArrayObject* items = nullptr;
  Places to;
  if (!call.array(0, into) || !call.array(1, items)) return false;
  if (array_element_type(into) != array_element_type(items))
    return call.mismatch(call.runtime.types.array_of(array_element_type(into), array_ndims(items)), args[1]);
  if (count == 4) return put_runs(call, into, items);
  if (!places_of(call, items, to)) return false;
  std::int64_t outside = 0;
  if (!to.are_within(into->length, outside)) return ctx.bounds_error(args[0], call.runtime.from_int(outside));
  if (!may_put(call, into, items, to.count) || !takes_turns(ctx, to.count)) return false;
  put_all(into, items, to);
  if (holds_references(into)) ctx.heap->rewrote(into);
  return call.give_nothing();
}

const NativeInfo element_natives[] = {
    {"array_assigned", array_assigned, effect_throws | effect_reads, returns_bool},
    {"array_forget", array_forget, effect_throws | effect_writes, returns_nothing},
    {"array_put", array_put, effect_throws | effect_reads | effect_writes, returns_nothing, false, false, true},
};

}  // namespace

void define_element_natives(Runtime& runtime) { define_all(runtime, element_natives); }

}  // namespace slope::stdlib
