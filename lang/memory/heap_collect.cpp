// Collection: mark, then free what is unmarked.
//
//   1. Finish the lazy sweeps of the last collection, so that every unmarked cell reads as free.
//   2. Mark. Roots are the registered tracers, and the native stack with the registers. Objects whose contents are
//      still to be traced are on an explicit stack, so that a list of a million links needs no native stack.
//   3. Free the memory of dead arrays and dead large objects at once. Return blocks without a live cell to the pool.
//      Sweep the other blocks later, when their size class needs cells.
//
// Each word of the native stack is tested as an address: of a cell (anywhere inside it), of a large object, of an
// array's memory. A word that is none of these costs two comparisons. The contents of objects are traced precisely, by
// type.
#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "lang/memory/heap_impl.hpp"
#include "lang/support/thread_stack.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

namespace {

bool holds_pointer(const DataType* type) {
  return (type->storage == Storage::reference || type->storage == Storage::aggregate) &&
         type->object_kind != DataType::ObjectKind::immortal;
}

}  // namespace

struct Heap::Marker final : Tracer, Survivors {
  explicit Marker(Heap& h) : heap(h), impl(*h.impl_) {
    if (impl.regions.empty()) return;
    region_low = impl.regions.begin()->first;
    region_span = impl.regions.rbegin()->second.end - region_low;
  }

  void value(Value v) override {
    if (v.type && v.pointer && holds_pointer(as_data(v.type))) object(v.object);
  }

  // `o` is the start of an object, or of an immortal box outside the heap.
  void object(Object* o) override {
    if (!o) return;
    if (Block* block = impl.space.find(o)) {
      mark_cell(block, block->cell_at(o), o);
    } else if (in_regions(o)) {
      if (Region* region = impl.region_of(o)) mark_region(*region);
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
    } else if (in_regions(address)) {
      if (Region* region = impl.region_of(address)) mark_region(*region);
    }
  }

  bool in_regions(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - region_low < region_span;
  }

  void mark_cell(Block* block, std::uint32_t cell, Object* o) {
    if (!block->mark(cell)) return;
    live_bytes += block->cell_size;
    pending.push_back(o);  // its own memory is not looked at before drain has asked for it
  }

  void mark_region(Region& region) {
    if (!region.is_object) {
      object(region.object);  // into an array's memory: keeps the array, and with it the memory
    } else if (!region.marked) {
      region.marked = true;
      live_bytes += region.end - reinterpret_cast<std::uintptr_t>(region.object);
      if (has_contents(region.object)) pending.push_back(region.object);
    }
  }

  bool has_contents(Object* o) {
    switch (o->type->object_kind) {
      case DataType::ObjectKind::fields: {
        const TraceMap& map = heap.types_.trace_map(o->type);
        return !map.references.empty() || !map.values.empty();
      }
      case DataType::ObjectKind::array:
      case DataType::ObjectKind::cell:
      case DataType::ObjectKind::coroutine:
        return true;
      default:
        return false;
    }
  }

  // What is about to be traced is mostly not in the cache: it is asked for some objects ahead.
  void drain() {
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
      if (count == 0) return;
      Object* o = coming[first];
      first = (first + 1) % ahead;
      --count;
      trace(o);
    }
  }

  void trace(Object* o) {
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
        value(static_cast<CoroutineObject*>(o)->task);
        value(static_cast<CoroutineObject*>(o)->entry);
        if (heap.suspended_) heap.suspended_->trace(*this, static_cast<CoroutineObject*>(o));
        break;
      default:
        break;
    }
  }

  void trace_fields(Object* o) {
    const TraceMap& map = heap.types_.trace_map(o->type);
    for (std::uint32_t offset : map.references) object(*reinterpret_cast<Object**>(o->payload() + offset));
    for (std::uint32_t offset : map.values) value(*reinterpret_cast<Value*>(o->payload() + offset));
  }

  void trace_array(ArrayObject* array) {
    if (array->owner) object(array->owner);
    // One that shares memory may hold elements that its owner has given up since (ResizeKind).
    const bool holds_elements =
        (array->flags & array_owns_memory) || (array->owner && !(array->flags & array_borrowed));
    if (!holds_elements) return;
    if (array->flags & array_external) {
      auto begin = reinterpret_cast<std::uintptr_t>(memory_of(array) - buffer_margin);
      live_bytes += impl.regions.at(begin).end - begin;
    }
    const Type* element = array_element_type(array);
    Storage storage = storage_of(element);
    if (storage == Storage::dynamic) {
      auto* values = reinterpret_cast<Value*>(array->data);
      for (std::int64_t i = 0; i < array->length; ++i) value(values[i]);
    } else if (storage == Storage::reference && holds_pointer(as_data(element))) {
      auto* objects = reinterpret_cast<Object**>(array->data);
      for (std::int64_t i = 0; i < array->length; ++i) object(objects[i]);
    }
  }

  bool alive(const Object* o) const override {
    if (Block* block = impl.space.find(o)) return block->is_marked(block->cell_at(o));
    Region* region = impl.region_of(o);
    return region && region->marked;
  }

  bool is_marked(const Object* o) const {
    Block* block = impl.space.find(o);
    return block && block->is_marked(block->cell_at(o));
  }

  Heap& heap;
  Impl& impl;
  std::vector<Object*> pending;
  std::size_t live_bytes = 0;
  std::size_t stack_bytes = 0;
  std::uintptr_t region_low = 0;
  std::uintptr_t region_span = 0;
};

// The stack from here up to the base that the engine was entered at, or to the end of the thread's stack when that base
// is unknown or below us. A stack that is not the thread's own (a fiber's) has the base as its only limit.
__attribute__((noinline)) Heap::StackExtent Heap::stack_extent() {
  const void* here = __builtin_frame_address(0);
  const auto [low, high] = thread_stack();
  const void* top = stack_base_;
  const bool own_stack = here < high && here > low;
  if (own_stack && (top <= here || top > high)) top = high;
  return {here, std::max(here, top)};
}

void Heap::scan_stack(Marker& marker) {
  const auto [from, to] = stack_extent();
  marker.stack_bytes = static_cast<std::size_t>(static_cast<const char*>(to) - static_cast<const char*>(from));
  marker.conservative(from, to);
}

__attribute__((noinline)) void Heap::collect() {
  if (paused_ > 0) return;
  if (impl_->collecting) return;
  __builtin_unwind_init();  // registers that the callers expect to be kept go to this frame, which scan_stack sees
  impl_->collecting = true;
  settle_front();
  auto start = std::chrono::steady_clock::now();
  for (Impl::SizeClassState& state : impl_->state) {
    for (Block* block : state.blocks) {
      if (block->needs_sweep) block->sweep(nullptr);
      block->clear_marks();
    }
  }
  for (auto& [begin, region] : impl_->regions) region.marked = false;

  Marker marker(*this);
  scan_stack(marker);
  marker.drain();
  for (auto& [key, tracer] : impl_->roots) {
    tracer(marker);
    marker.drain();
  }
  if (suspended_) {
    suspended_->after_marking(marker, marker);
    marker.drain();
  }
  for (auto& [key, tracer] : impl_->weak) tracer(marker);
  sweep(marker);

  statistics_.live_bytes = marker.live_bytes;
  // In proportion to what this collection had to look at: live objects, and a deep stack.
  std::size_t growth = std::max(marker.live_bytes, least_growth + 8 * marker.stack_bytes);
  impl_->trigger = collects_ ? std::min(limit_here(), marker.live_bytes + growth) : limit_;
  allocated_since_collection_ = 0;
  grant_room();
  ++statistics_.collections;
  auto spent = std::chrono::steady_clock::now() - start;
  statistics_.collection_nanoseconds +=
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
  impl_->collecting = false;
}

// What was not used since the last collection goes back to the system: a program that turns from large arrays to small
// objects should not hold memory for both. What was used stays, for it will be used again.
void Heap::Impl::return_memory(std::size_t blocks_before, std::size_t region_bytes_before) {
  space.trim(blocks_before);
  constexpr std::size_t worth_the_call = tuning::heap_worth_returning;
  if (region_peak < worth_the_call || region_bytes_before > region_peak / 2) return;
  malloc_trim(0);
  region_peak = region_bytes;
}

void Heap::sweep(Marker& marker) {
  std::size_t blocks_before = impl_->space.blocks_in_use(), region_bytes_before = impl_->region_bytes;
  impl_->free_spare();
  std::erase_if(impl_->external, [&](ArrayObject* array) {
    if (marker.is_marked(array)) return false;
    impl_->free_region(reinterpret_cast<std::uintptr_t>(memory_of(array) - buffer_margin));
    return true;
  });
  for (auto it = impl_->regions.begin(); it != impl_->regions.end();) {
    if (it->second.is_object && !it->second.marked) {
      impl_->region_bytes -= it->second.end - it->first;
      std::free(it->second.raw);
      it = impl_->regions.erase(it);
    } else {
      ++it;
    }
  }
  std::fill(std::begin(front.free), std::end(front.free), nullptr);
  for (Impl::SizeClassState& state : impl_->state) {
    state.carving = nullptr;
    state.next_to_sweep = 0;
    std::erase_if(state.blocks, [&](Block* block) {
      if (block->marked == 0) {
        impl_->space.release(block);
        return true;
      }
      block->needs_sweep = block->marked < block->cell_count;
      return false;
    });
  }
  impl_->return_memory(blocks_before, region_bytes_before);
}

}  // namespace slope
