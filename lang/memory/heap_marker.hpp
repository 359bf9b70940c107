// Marking: what is reachable from the roots. The marker lives as long as one collection does, which may be many slices.
//
// Objects whose contents are still to be traced are on an explicit stack, so that a list of a million links needs no
// native stack; an array of many references is traced from its end in pieces.
//
// Each word of the native stack is tested as an address: of a cell (anywhere inside it), of a large object, of an
// array's memory. A word that is none of these costs two comparisons. The contents of objects are traced precisely, by
// type.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "lang/memory/heap_impl.hpp"
#include "lang/memory/on_heap.hpp"

namespace slope {

struct Heap::Marker final : Tracer, Survivors {
  explicit Marker(Heap& h) : heap(h), impl(*h.impl_) {}

  void value(Value v) override {
    if (may_be_on_heap(v)) object(v.object);
  }

  // `o` is the start of an object, or of an immortal box outside the heap.
  void object(Object* o) override {
    if (!o) return;
    if (Block* block = impl.space.find(o)) {
      mark_cell(block, block->cell_at(o), o);
    } else if (Region* region = impl.region_of(o)) {
      mark_region(*region);
    }
  }

  __attribute__((no_sanitize("address"))) void conservative(const void* begin, const void* end) override {
    auto from = (reinterpret_cast<std::uintptr_t>(begin) + 7) & ~std::uintptr_t{7};
    auto to = reinterpret_cast<std::uintptr_t>(end) & ~std::uintptr_t{7};
    for (; from < to; from += 8) word(*reinterpret_cast<void* const volatile*>(from));
  }

  void word(const void* address) {
    if (Block* block = impl.space.find(address)) {
      std::uint32_t cell = block->cell_at(address);
      if (cell >= block->fresh) return;
      Object* o = block->object(cell);
      if (o->type) mark_cell(block, cell, o);
    } else if (Region* region = impl.region_of(address)) {
      mark_region(*region);
    }
  }

  void mark_cell(Block* block, std::uint32_t cell, Object* o) {
    if (!block->mark(cell)) return;
    live_bytes += block->cell_size;
    reached(o);  // its own memory is not looked at before drain has asked for it
  }

  void mark_region(Region& region) {
    if (!region.is_object) {
      object(region.object);  // into an array's memory: keeps the array, and with it the memory
    } else if (region.epoch != impl.epoch) {
      region.epoch = impl.epoch;
      live_bytes += region.end - reinterpret_cast<std::uintptr_t>(region.object);
      reached(region.object);
    }
  }

  void reached(Object* o) {
    pending.push_back(o);
    if (parents) parents->emplace(o, tracing);
  }

  // What is about to be traced is mostly not in the cache: it is asked for some objects ahead. True when nothing is left;
  // false when `is_enough` says so.
  template <class Enough>
  bool drain(Enough is_enough) {
    constexpr std::size_t ahead = 16;
    Object* coming[ahead];
    std::size_t first = 0, count = 0;
    for (;;) {
      while (count < ahead && !pending.empty()) {
        Object* o = pending.back();
        pending.pop_back();
        __builtin_prefetch(o);
        coming[(first + count++) % ahead] = o;
      }
      if (count == 0) {
        if (partial.empty()) return true;
        trace_piece();
        if (is_enough()) return false;
        continue;
      }
      Object* o = coming[first];
      first = (first + 1) % ahead;
      --count;
      trace(o);
      if (is_enough()) {
        for (; count > 0; --count) pending.push_back(coming[(first + count - 1) % ahead]);
        return pending.empty() && partial.empty();
      }
    }
  }
  void drain() {
    drain([] { return false; });
  }

  void trace(Object* o) {
    tracing = o;
    switch (o->type->object_kind) {
      case DataType::ObjectKind::fields:
        trace_fields(o);
        break;
      case DataType::ObjectKind::array:
        trace_array(static_cast<ArrayObject*>(o));
        break;
      case DataType::ObjectKind::cell:
        value(static_cast<CellObject*>(o)->value);
        break;
      case DataType::ObjectKind::coroutine:
        coroutines.push_back(static_cast<CoroutineObject*>(o));
        trace_coroutine(static_cast<CoroutineObject*>(o));
        break;
      default:
        break;
    }
    tracing = nullptr;
  }

  void trace_fields(Object* o) {
    const TraceMap& map = heap.types_.trace_map(o->type);
    for (std::uint32_t offset : map.references) object(*reinterpret_cast<Object**>(o->payload() + offset));
    for (std::uint32_t offset : map.values) value(*reinterpret_cast<Value*>(o->payload() + offset));
  }

  void trace_coroutine(CoroutineObject* o) {
    value(o->task);
    value(o->entry);
    if (heap.suspended_) heap.suspended_->trace(*this, o);
  }

  void trace_array(ArrayObject* array) {
    Object* owner = owner_of(array);
    if (owner) object(owner);
    // One that shares memory may hold elements that its owner has given up since (ResizeKind).
    const bool holds_elements = (array->flags & array_owns_memory) || (owner && !(array->flags & array_borrowed));
    if (!holds_elements) return;
    if (array->flags & array_external) count_memory(array);
    const Type* element = array_element_type(array);
    const Storage storage = storage_of(element);
    if (storage != Storage::dynamic && (storage != Storage::reference || !may_be_on_heap(as_data(element)))) return;
    if (array->length <= piece) return trace_elements(array, 0, array->length);
    partial.push_back({array, array->length});
  }

  void count_memory(ArrayObject* array) {
    auto begin = reinterpret_cast<std::uintptr_t>(memory_of(array) - buffer_margin);
    Region& region = impl.regions.at(begin);
    if (region.epoch == impl.epoch) return;
    region.epoch = impl.epoch;
    live_bytes += region.end - begin;
  }

  void trace_elements(ArrayObject* array, std::int64_t from, std::int64_t to) {
    if (storage_of(array_element_type(array)) == Storage::dynamic) {
      auto* values = reinterpret_cast<Value*>(array->data);
      for (std::int64_t i = from; i < to; ++i) value(values[i]);
    } else {
      auto* objects = reinterpret_cast<Object**>(array->data);
      for (std::int64_t i = from; i < to; ++i) object(objects[i]);
    }
  }

  // From the end: what is taken away in front moves elements only to where the tracing will come.
  void trace_piece() {
    Partial& at = partial.back();
    tracing = at.array;
    const std::int64_t to = std::min(at.left, at.array->length);
    const std::int64_t from = std::max<std::int64_t>(0, to - piece);
    trace_elements(at.array, from, to);
    at.left = from;
    if (from == 0) partial.pop_back();
    tracing = nullptr;
  }

  // Elements came in front.
  void moved_back(const ArrayObject* array, std::int64_t added) {
    for (Partial& at : partial)
      if (at.array == array) at.left += added;
  }

  bool alive(const Object* o) const override {
    if (Block* block = impl.space.find(o)) return block->is_marked(block->cell_at(o));
    Region* region = impl.region_of(o);
    return region && region->epoch == impl.epoch;
  }

  struct Partial {
    ArrayObject* array;
    std::int64_t left;  // the elements that are still to be traced are the first so many
  };
  static constexpr std::int64_t piece = 512;

  Heap& heap;
  Impl& impl;
  std::vector<Object*> pending;
  std::vector<Partial> partial;
  std::vector<CoroutineObject*> coroutines;  // that were traced: their stacks may have changed since
  std::size_t live_bytes = 0;
  std::size_t stack_bytes = 0;
  Object* tracing = nullptr;
  std::unordered_map<Object*, Object*>* parents = nullptr;  // of the checking mode
};

}  // namespace slope
