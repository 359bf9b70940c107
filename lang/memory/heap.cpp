// Allocation. Small objects come from the free list of their size class; large ones, and the memory of arrays that does
// not fit into the array's own cell, from malloc, registered by address.
//
// A small array lies in one cell: header, then the elements from 64 bytes on (from the next multiple of 64 where the
// header is longer). When it grows out of the cell its elements move to memory of their own.
//
// A class's free list is what died between others that live. Of a block that is empty, a new one or one in which nothing
// survived, cells are taken one after the other, and nothing is read or written ahead of them.
//
// Bytes are counted as cells and regions, at once. `front.room` says how many may be taken before the next collection or
// the limit, so one comparison on the way of every allocation serves both; a heap that is stressed or watched grants no
// room and so hears of every object. What has gone from the room since is counted when somebody asks (settle_front).
// Machine code takes cells from the front in the same way (codegen/allocation.cpp).
#include "lang/memory/heap.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>

#include "lang/memory/clear.hpp"
#include "lang/memory/heap_marker.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

Heap::Heap(TypeTable& types, const MemoryCount* outside)
    : impl_(std::make_unique<Impl>()), types_(types), outside_(outside) {
  impl_->state.resize(impl_->classes.count());
  assert(impl_->classes.count() <= AllocationFront::most_classes);
  impl_->trigger = least_growth;
  const auto is_on = [](const char* name) {
    const char* text = std::getenv(name);
    return text && *text && *text != '0';
  };
  stress_ = is_on("SLOPE_GC_STRESS");
  impl_->checks = is_on("SLOPE_GC_CHECK");
  plan_attention();
}

Heap::~Heap() {
  for (auto& [begin, region] : impl_->regions) std::free(region.raw);
  impl_->free_spare();
  impl_->return_unwanted(~std::size_t{0});
}

Region* Heap::Impl::region_of(const void* address) {
  std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(address);
  if (bits - region_low >= region_span) return nullptr;
  auto it = regions.upper_bound(bits);
  if (it == regions.begin()) return nullptr;
  --it;
  return bits < it->second.end ? &it->second : nullptr;
}

void Heap::Impl::add_region(std::uintptr_t begin, const Region& region) {
  regions.emplace(begin, region);
  if (region_span == 0) region_low = begin;
  const std::uintptr_t end = std::max(region.end, region_low + region_span);
  region_low = std::min(region_low, begin);
  region_span = end - region_low;
  region_bytes += region.end - begin;
  region_peak = std::max(region_peak, region_bytes);
}

void Heap::Impl::free_region(std::uintptr_t begin) {
  auto it = regions.find(begin);
  const std::size_t bytes = it->second.end - begin;
  region_bytes -= bytes;
  if (bytes >= least_spare) {
    spare.emplace(bytes, it->second.raw);
    spare_bytes += bytes;
  } else {
    std::free(it->second.raw);
  }
  regions.erase(it);
}

void* Heap::Impl::take_spare(std::size_t& bytes) {
  const auto it = spare.lower_bound(bytes);
  if (it == spare.end() || it->first > bytes + bytes / 4) return nullptr;
  bytes = it->first;
  void* raw = it->second;
  spare_bytes -= bytes;
  spare.erase(it);
  return raw;
}

void Heap::Impl::free_spare() {
  for (auto& [bytes, raw] : spare) std::free(raw);
  spare.clear();
  spare_bytes = 0;
}

void Heap::set_limit(std::size_t bytes) {
  limit_ = bytes;
  impl_->trigger = std::min(impl_->trigger, limit_);
  plan_attention();
}

bool Heap::enable_collections(bool on) {
  settle_front();
  if (on && !collects_) impl_->trigger = std::min(limit_, statistics_.live_bytes + least_growth);
  if (!on) impl_->trigger = limit_;
  const bool before = std::exchange(collects_, on);
  plan_attention();
  return before;
}

void Heap::settle_front() {
  const auto taken = static_cast<std::uint64_t>(granted_ - front.room);
  statistics_.live_bytes += taken;
  statistics_.allocated_bytes += taken;
  allocated_since_collection_ += taken;
  granted_ = front.room;
}

void Heap::grant_room() {
  settle_front();
  const bool asks_each_time = stress_ || is_watched_ || statistics_.live_bytes >= impl_->attention;
  front.room = granted_ = asks_each_time ? 0 : static_cast<std::int64_t>(impl_->attention - statistics_.live_bytes);
}

HeapStatistics Heap::statistics() const {
  HeapStatistics result = statistics_;
  const auto taken = static_cast<std::uint64_t>(granted_ - front.room);
  result.live_bytes += taken;
  result.allocated_bytes += taken;
  result.allocations = front.allocations;
  return result;
}

Heap::CellKind Heap::cell_kind(std::size_t bytes, bool aligned) const {
  const SizeClasses& classes = impl_->classes;
  const std::uint8_t size_class = aligned ? classes.for_array_bytes(bytes) : classes.for_bytes(bytes);
  return {size_class, classes.size(size_class)};
}

bool Heap::reserve_bytes(std::size_t bytes) {
  settle_front();
  if (stress_ || statistics_.live_bytes + bytes > impl_->attention) {
    attend(bytes);
    // A whole collection before the limit is one: those in slices keep what died while they marked.
    if (statistics_.live_bytes + bytes > limit_here()) collect_at_once();
    if (statistics_.live_bytes + bytes > impl_->trigger && statistics_.live_bytes + bytes <= limit_here())
      impl_->trigger = std::min(limit_here(), std::max(impl_->trigger, statistics_.live_bytes + bytes));
    plan_attention();
  }
  // While nothing may be collected the compiler works, or a definition of the library is made that will be there for
  // good: neither may fail because a script has filled the heap, perhaps with what is garbage by now. They need little.
  constexpr std::size_t for_the_engine = tuning::engine_reserve;
  const std::size_t here = limit_here();
  const std::size_t limit = paused_ != 0 ? std::max(here, here + for_the_engine) : here;  // of all there is
  return bytes <= limit && statistics_.live_bytes <= limit - bytes;
}

void Heap::count_bytes(std::size_t bytes) {
  front.room -= static_cast<std::int64_t>(bytes);
  grant_room();
}

// So that a cell of the class can be taken: collects when due, and finds free cells. False: over the limit.
bool Heap::prepare_cell(std::uint8_t size_class, std::size_t bytes) {
  settle_front();
  if ((stress_ || statistics_.live_bytes + bytes > impl_->attention) && !reserve_bytes(bytes)) return false;
  const auto has_cell = [&] {
    const FreshCells& fresh = front.fresh[size_class];
    return front.free[size_class] || fresh.at != fresh.end || refill(size_class);
  };
  if (!has_cell()) {
    collect();  // the system has no more memory
    if (!has_cell()) return false;
  }
  grant_room();
  return true;
}

Object* Heap::take_cell(std::uint8_t size_class, std::size_t bytes) {
  if (FreeCell* cell = front.free[size_class]) {
    front.free[size_class] = cell->next;
    return reinterpret_cast<Object*>(cell);
  }
  FreshCells& fresh = front.fresh[size_class];
  if (fresh.at == fresh.end) return nullptr;
  return reinterpret_cast<Object*>(std::exchange(fresh.at, fresh.at + bytes));
}

Object* Heap::allocate_cell_of_class(const DataType* type, std::uint8_t size_class, std::size_t zeroed_bytes) {
  std::size_t bytes = impl_->classes.size(size_class);
  Object* object = front.room < static_cast<std::int64_t>(bytes) ? nullptr : take_cell(size_class, bytes);
  if (!object) [[unlikely]] {
    if (!prepare_cell(size_class, bytes)) return nullptr;
    object = take_cell(size_class, bytes);
  }
  front.room -= static_cast<std::int64_t>(bytes);  // below zero where no room is granted; counted all the same
  ++front.allocations;
  object->type = type;
  // A word or two, mostly: a call costs more than the stores.
  const std::size_t cleared = zeroed_bytes - sizeof(Object);
  if (cleared <= 4 * sizeof(std::uint64_t) && cleared % sizeof(std::uint64_t) == 0) {
    auto* word = reinterpret_cast<std::uint64_t*>(object->payload());
    for (auto* const end = word + cleared / sizeof(std::uint64_t); word != end; ++word) *word = 0;
  } else {
    std::memset(object->payload(), 0, cleared);
  }
  if (is_watched_) note_allocation(object, bytes);
  return object;
}

void Heap::note_allocation(Object* object, std::size_t bytes) {
  if (record_) record_->objects.insert(object);
  if (on_allocation_) on_allocation_(as_data(object->type), bytes);
}

bool Heap::is_collecting() const { return impl_->collecting; }

bool Heap::refill(std::uint8_t size_class) {
  Impl::SizeClassState& state = impl_->state[size_class];
  for (;;) {
    if (!state.swept.empty()) {
      front.free[size_class] = std::exchange(state.swept.back()->free, nullptr);
      state.swept.pop_back();
      return true;
    }
    if (state.is_swept()) break;
    sweep_next(size_class);
  }
  FreshCells& fresh = front.fresh[size_class];
  if (state.carving) {
    state.carving->note_fresh(fresh.at);
    if (!fresh.at) fresh = {state.carving->fresh_begin(), state.carving->cells_end()};  // a block that was swept
    if (fresh.at != fresh.end) return true;
  }
  state.carving = impl_->space.take(size_class, impl_->classes.size(size_class));
  fresh = {};
  if (!state.carving) return false;
  state.blocks.push_back(state.carving);
  state.next_to_sweep = state.blocks.size();
  fresh = {state.carving->fresh_begin(), state.carving->cells_end()};
  return true;
}

void Heap::note_fresh() const {
  for (std::size_t i = 0; i < impl_->state.size(); ++i)
    if (Block* block = impl_->state[i].carving) block->note_fresh(front.fresh[i].at);
}

Object* Heap::allocate_large(const DataType* type, std::size_t bytes, std::size_t zeroed_bytes) {
  bytes = (bytes + 63) / 64 * 64;
  if (!reserve_bytes(bytes)) return nullptr;
  void* raw = std::aligned_alloc(64, bytes);
  if (!raw) return nullptr;
  clear_memory(raw, zeroed_bytes);
  auto* object = static_cast<Object*>(raw);
  object->type = type;
  std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(raw);
  impl_->add_region(begin, Region{begin + bytes, object, raw, true, impl_->epoch - (front.marking ? 1 : 0)});
  count_bytes(bytes);
  ++front.allocations;
  if (is_watched_) note_allocation(object, bytes);
  return object;
}

Object* Heap::allocate_object(const DataType* type, std::size_t bytes, std::size_t zeroed_bytes) {
  if (bytes <= largest_cell) return allocate_cell_of_class(type, impl_->classes.for_bytes(bytes), zeroed_bytes);
  return bytes <= limit_ ? allocate_large(type, bytes, zeroed_bytes) : nullptr;
}

Object* Heap::allocate(const DataType* type, std::size_t payload_bytes) {
  std::size_t bytes = sizeof(Object) + payload_bytes;
  return bytes >= payload_bytes ? allocate_object(type, bytes, bytes) : nullptr;
}

// --- arrays ---

bool Heap::starts_zeroed(const BuiltinTypes& types, const Type* element) {
  switch (storage_of(element)) {
    case Storage::singleton:
      return false;
    case Storage::bits:
      return element == types.boolean;
    default:
      return true;
  }
}

std::size_t Heap::array_header_bytes(std::size_t ndims) {
  return (sizeof(ArrayObject) + (1 + ndims) * sizeof(std::int64_t) + 63) / 64 * 64;
}

Heap::VectorCell Heap::small_vector(std::uint64_t length, std::uint32_t element_size) const {
  std::uint64_t bytes = 0;
  if (element_size == 0 || __builtin_mul_overflow(length, element_size, &bytes) || bytes >= most_compact_bytes)
    return {};
  // An empty vector is mostly made to be filled: room for a few elements costs less than moving out of the cell.
  if (bytes == 0) bytes = most_compact_bytes;
  // What moves out of the cell finds its capacity and front there.
  constexpr std::size_t header = sizeof(ArrayObject), least = header + 2 * sizeof(std::int64_t);
  const CellKind kind = cell_kind(std::max(header + bytes, least));
  const std::uint64_t room = std::min<std::uint64_t>((kind.bytes - header) / element_size, compact_mask);
  return {kind, array_owns_memory | array_compact | static_cast<std::uint32_t>(room) << compact_capacity_shift};
}

namespace {

bool length_of(std::span<const std::int64_t> dims, std::int64_t& length) {
  length = 1;
  for (std::int64_t n : dims)
    if (n < 0 || __builtin_mul_overflow(length, n, &length)) return false;
  return true;
}

}  // namespace

char* Heap::allocate_array_memory(ArrayObject* array, std::size_t bytes) {
  std::size_t total = (bytes + 63) / 64 * 64 + 2 * buffer_margin;
  if (bytes > limit_ || !reserve_bytes(total)) return nullptr;
  if (total >= least_spare) sweep_for_memory(total);
  auto* raw = static_cast<char*>(impl_->take_spare(total));
  if (!raw) {
    if (statistics_.live_bytes + impl_->spare_bytes + total > limit_) impl_->free_spare();
    raw = static_cast<char*>(std::aligned_alloc(64, total));
  }
  if (!raw) {
    collect();  // its memory may be what is missing
    impl_->free_spare();
    raw = static_cast<char*>(std::aligned_alloc(64, total));
    if (!raw) return nullptr;
  }
  std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(raw);
  impl_->add_region(begin, Region{begin + total, array, raw, false, impl_->epoch - 1});
  if (front.marking) impl_->regions_since_marking.emplace_back(array, begin);
  if (Block* block = impl_->space.find(array)) block->has_external = true;
  count_bytes(total);
  if (on_allocation_) on_allocation_(as_data(array->type), total);
  return raw + buffer_margin;
}

void Heap::free_array_memory(std::uintptr_t begin) {
  settle_front();
  const Region& region = impl_->regions.at(begin);
  statistics_.live_bytes -= region.end - begin;
  if (front.marking && region.epoch == impl_->epoch) impl_->marker->live_bytes -= region.end - begin;
  impl_->free_region(begin);
  grant_room();
}

ArrayObject* Heap::allocate_array_header(const DataType* array_type, std::span<const std::int64_t> dims,
                                         std::size_t inline_bytes) {
  std::size_t bytes = array_header_bytes(dims.size()) + inline_bytes;
  if (bytes > largest_cell) return nullptr;  // of a thousand dimensions
  bool zeroed = starts_zeroed(types_.builtin(), array_type->params[0]);
  auto* array = static_cast<ArrayObject*>(allocate_cell_of_class(array_type, impl_->classes.for_array_bytes(bytes),
                                                                 zeroed ? bytes : array_header_bytes(dims.size())));
  if (!array) return nullptr;
  array->element_size = stored_size(array_type->params[0]);
  std::copy(dims.begin(), dims.end(), dims_of(array));
  return array;
}

ArrayObject* Heap::allocate_small_vector(const DataType* array_type, std::int64_t length, const VectorCell& cell) {
  const bool zeroed = starts_zeroed(types_.builtin(), array_type->params[0]);
  auto* vector = static_cast<ArrayObject*>(
      allocate_cell_of_class(array_type, cell.kind.size_class, zeroed ? cell.kind.bytes : sizeof(ArrayObject)));
  if (!vector) return nullptr;
  vector->data = reinterpret_cast<char*>(vector->words);
  vector->length = length;
  vector->flags = cell.flags;
  vector->element_size = stored_size(array_type->params[0]);
  return vector;
}

ArrayObject* Heap::allocate_array(const DataType* array_type, std::span<const std::int64_t> dims) {
  std::int64_t length = 0, bytes = 0;
  std::uint32_t element_size = stored_size(array_type->params[0]);
  if (!length_of(dims, length) || __builtin_mul_overflow(length, std::int64_t{element_size}, &bytes)) return nullptr;
  const bool is_vector = dims.size() == 1;
  if (is_vector)
    if (const VectorCell cell = small_vector(static_cast<std::uint64_t>(length), element_size); cell.flags)
      return allocate_small_vector(array_type, length, cell);
  std::size_t header = array_header_bytes(dims.size());
  bool is_inline = header + static_cast<std::size_t>(bytes) <= largest_cell;
  std::size_t inline_bytes = is_inline ? static_cast<std::size_t>(bytes) : 0;
  ArrayObject* array = allocate_array_header(array_type, dims, inline_bytes);
  if (!array) return nullptr;
  array->length = length;
  array->flags = array_owns_memory;
  if (is_inline) {
    array->data = reinterpret_cast<char*>(array) + header;
    const std::size_t cell = impl_->classes.size(impl_->classes.for_array_bytes(header + inline_bytes));
    if (is_vector)
      set_room(array,
               element_size == 0 ? std::int64_t{1} << 62 : static_cast<std::int64_t>((cell - header) / element_size),
               0);
    return array;
  }
  if (is_vector) set_room(array, length, 0);
  array->length = 0;  // until it has its memory: a collection may see it
  char* data = allocate_array_memory(array, static_cast<std::size_t>(bytes));
  if (!data) return nullptr;
  if (starts_zeroed(types_.builtin(), array_type->params[0])) clear_memory(data, static_cast<std::size_t>(bytes));
  array->data = data;
  array->length = length;
  array->flags |= array_external;
  return array;
}

ArrayObject* Heap::share_array(const DataType* array_type, ArrayObject* owner, std::span<const std::int64_t> dims) {
  std::int64_t length = 0;
  if (!length_of(dims, length)) return nullptr;
  ArrayObject* array = allocate_array_header(array_type, dims, 0);
  if (!array) return nullptr;
  array->data = owner->data;
  array->length = length;
  array->flags = array_shared | (owner->flags & array_borrowed);
  if (owner->flags & array_borrowed) {
    // The arrays over borrowed memory form a ring, so that all can be found when the host takes it back.
    set_owner(array, owner_of(owner) ? owner_of(owner) : owner);
    set_owner(owner, array);
    rewrote(owner);
    owner->flags |= array_shared;
    return array;
  }
  Object* first = owner_of(owner) ? owner_of(owner) : owner;
  set_owner(array, first);
  owner->flags |= array_shared;
  static_cast<ArrayObject*>(first)->flags |= array_shared;
  return array;
}

ArrayObject* Heap::borrow_array(const DataType* array_type, void* data, std::span<const std::int64_t> dims) {
  std::int64_t length = 0;
  if (!length_of(dims, length)) return nullptr;
  ArrayObject* array = allocate_array_header(array_type, dims, 0);
  if (!array) return nullptr;
  array->data = static_cast<char*>(data);
  array->length = length;
  array->flags = array_borrowed;
  return array;
}

// Room for `before` more elements in front of the first, or for `after` more behind the last: by moving the elements
// within their memory when much of that is free, else by more memory.
//
// Amortised constant time for an element added at either end, also of a vector that grows and shrinks at both in turn:
// of what is free afterwards, at least half as much as there are elements, most lies at the side that grows; where the
// other side had room it keeps a quarter. So the next move comes after a number of changes in proportion to the length.
bool Heap::make_room(ArrayObject* array, std::int64_t before, std::int64_t after) {
  const std::int64_t element_size = array->element_size;
  char* const held_in = memory_of(array);
  const std::int64_t held = front_of(array) + capacity_of(array);
  std::int64_t needed = 0;
  if (__builtin_add_overflow(array->length, before + after, &needed)) return false;
  const std::int64_t room_of_other_side = before > 0 ? capacity_of(array) - array->length : front_of(array);
  auto place = [&](char* memory, std::int64_t total) {
    const std::int64_t free = total - needed;
    const std::int64_t kept = std::min(room_of_other_side, free / 4);
    const std::int64_t front = before > 0 ? free - kept + before : kept;
    char* data = memory + front * element_size;
    std::memmove(data, array->data, static_cast<std::size_t>(array->length * element_size));
    array->data = data;
    if (memory != held_in) array->flags &= ~array_compact;  // only now: the capacity lies where elements were
    set_room(array, total - front, front);
  };
  // Others look into the memory when a change is undone: it stays.
  const bool must_stay = (array->flags & array_shared) != 0;
  if (held - needed >= needed / 2 || (must_stay && held >= needed)) {
    place(held_in, held);
    return true;
  }
  std::int64_t growth = std::max<std::int64_t>(held, 8);
  if (growth * element_size > (64 << 20)) growth /= 2;  // large ones grow by half
  std::int64_t total = std::max(needed, held + growth);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(total, element_size, &bytes)) return false;
  char* memory = allocate_array_memory(array, static_cast<std::size_t>(bytes));
  if (!memory && total > needed) {  // near the limit: just enough
    if (held >= needed) {
      place(held_in, held);
      return true;
    }
    total = needed;
    memory = allocate_array_memory(array, static_cast<std::size_t>(total * element_size));
  }
  if (!memory) return false;
  const bool had_memory = (array->flags & array_external) != 0;
  const auto old = reinterpret_cast<std::uintptr_t>(held_in - buffer_margin);
  place(memory, total);
  if (had_memory) {
    free_array_memory(old);
  } else {
    array->flags |= array_external;
  }
  return true;
}

bool Heap::resize_vector(ArrayObject* array, std::int64_t new_length) {
  const std::int64_t added = new_length - array->length;
  if (new_length > capacity_of(array) && !make_room(array, 0, added)) return false;
  if (added > 0)
    clear_memory(array->data + array->length * array->element_size,
                 static_cast<std::size_t>(added) * array->element_size);
  array->length = new_length;
  return true;
}

bool Heap::resize_vector_front(ArrayObject* array, std::int64_t new_length) {
  if (array->element_size == 0) return resize_vector(array, new_length);  // nothing has a place
  const std::int64_t added = new_length - array->length;
  if (added > front_of(array) && !make_room(array, added, 0)) return false;
  set_room(array, capacity_of(array) + added, front_of(array) - added);
  if (added > 0 && front.marking) impl_->marker->moved_back(array, added);
  array->data -= added * static_cast<std::int64_t>(array->element_size);
  if (added > 0) clear_memory(array->data, static_cast<std::size_t>(added) * array->element_size);
  array->length = new_length;
  return true;
}

// --- strings, cells, boxes ---

StringObject* Heap::allocate_string_uninitialized(std::size_t bytes) {
  if (bytes > limit_) return nullptr;
  auto* string = static_cast<StringObject*>(
      allocate_object(types_.builtin().string, sizeof(StringObject) + bytes + 1, sizeof(StringObject)));
  if (!string) return nullptr;
  string->length = static_cast<std::int64_t>(bytes);
  string->bytes[bytes] = 0;
  return string;
}

StringObject* Heap::allocate_string(std::string_view text) {
  StringObject* string = allocate_string_uninitialized(text.size());
  if (string && !text.empty()) std::memcpy(string->bytes, text.data(), text.size());
  return string;
}

CellObject* Heap::allocate_cell() { return static_cast<CellObject*>(allocate(types_.builtin().cell, sizeof(Value))); }

Value Heap::box(const DataType* type, const void* bytes) {
  switch (type->storage) {
    case Storage::singleton:
      return type->instance;
    case Storage::bits: {
      Value v(type, std::int64_t{0});
      std::memcpy(&v.bits, bytes, type->size);
      return v;
    }
    case Storage::aggregate: {
      Object* object = allocate(type, type->size);
      if (!object) {
        // To look at what is there already may not fail because of a limit: the engine's own code looks everywhere. What
        // is allocated next will.
        const CollectionPause pause(*this);
        object = allocate(type, type->size);
      }
      if (!object) return Value();
      std::memcpy(object->payload(), bytes, type->size);
      return Value(type, object);
    }
    default: {
      void* pointer;
      std::memcpy(&pointer, bytes, sizeof pointer);
      return pointer ? Value(type, pointer) : Value();
    }
  }
}

// --- the barrier ---

void Heap::shade(Value v) { impl_->marker->value(v); }

void Heap::shade(Object* object) { impl_->marker->object(object); }

void Heap::trace_again(Object* object) {
  if (impl_->marker->alive(object)) impl_->marker->pending.push_back(object);
}

// --- roots ---

int Heap::add_root_tracer(RootTracer tracer) {
  impl_->roots.emplace_back(impl_->next_root, std::move(tracer));
  return impl_->next_root++;
}

void Heap::remove_root_tracer(int key) {
  // The newest mostly goes first: they stand for activations.
  auto& roots = impl_->roots;
  for (std::size_t i = roots.size(); i-- > 0;)
    if (roots[i].first == key) return static_cast<void>(roots.erase(roots.begin() + static_cast<std::ptrdiff_t>(i)));
}

void Heap::trace_roots(Tracer& tracer, int before) {
  for (auto& [key, trace] : impl_->roots)
    if (key < before) trace(tracer);
}

int Heap::next_root() const { return impl_->next_root; }

int Heap::add_weak_tracer(WeakTracer tracer) {
  impl_->weak.emplace_back(impl_->next_root, std::move(tracer));
  return impl_->next_root++;
}

void Heap::remove_weak_tracer(int key) {
  std::erase_if(impl_->weak, [&](const auto& entry) { return entry.first == key; });
}

Rooted::Rooted(Heap& heap) : heap_(heap) {
  key_ = heap.add_root_tracer([this](Tracer& tracer) {
    for (Value v : values) tracer.value(v);
  });
}

Rooted::~Rooted() { heap_.remove_root_tracer(key_); }

}  // namespace slope
