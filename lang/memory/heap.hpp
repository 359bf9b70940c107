// The garbage-collected heap of one engine: mark and sweep in slices, non-moving, size-class blocks and separately
// mapped large objects. Objects are traced precisely. Roots (the native stack, the interpreter's registers, tapes) are
// conservative. docs/heap.md has the design and its invariants.
//
// Rules that must not be broken:
//  1. An object is not reachable when only malloc'ed memory (std::vector<Value>, maps) refers to it. Keep it on the
//     stack, in a `Rooted` list, or in something registered with `add_root_range` or a root tracer.
//  2. Bytes are counted exactly. Array memory comes from allocate_buffer and returns through free. A limit is a limit
//     (OutOfMemoryError).
//  3. A pointer on the native stack keeps its object alive also when it points into the middle: into the object's cell,
//     or into an array's memory and up to 64 bytes before its first element (a base moved for 1-based indices). A
//     pointer that was moved farther does not.
//  4. Collection happens only inside an allocation function (or `collect`), on the engine's own thread.
//  5. A reference that is written into an object is reported: store_value does it, everything else calls `wrote` or
//     `rewrote`. Only what is written before the next allocation into an object just made needs no report.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lang/memory/stored.hpp"
#include "lang/support/memory_count.hpp"

namespace slope {

struct HeapStatistics {
  std::uint64_t live_bytes = 0;       // after the last collection plus what was allocated since
  std::uint64_t allocated_bytes = 0;  // ever
  std::uint64_t allocations = 0;      // objects, ever
  std::uint64_t collections = 0;
  std::uint64_t collection_nanoseconds = 0;
  std::uint64_t slices = 0;               // of collections that were not done at once
  std::uint64_t longest_nanoseconds = 0;  // of all that the collector did without a break
};

struct Block;
struct FreeCell;

// Cells that were not handed out since their block was empty, one after the other.
struct FreshCells {
  char* at = nullptr;
  char* end = nullptr;
};

// Where small objects come from without a call of the heap: machine code takes them from here as well, at fixed offsets
// (codegen/layout.cpp). An object of `bytes` may be taken when there is a free or a fresh cell of its class and
// room - bytes is not negative. Everything else (collections, limits, watchers) makes the room end.
struct AllocationFront {
  static constexpr std::size_t most_classes = 32;
  std::int64_t room = 0;              // bytes that may be taken before the heap is asked again
  std::uint64_t allocations = 0;      // objects, ever
  std::uint64_t marking = 0;          // 1 while a collection in slices marks: writes of references are reported
  FreeCell* free[most_classes] = {};  // by size class; what died between others, first to be taken
  FreshCells fresh[most_classes];
};

// The objects allocated while it is set: the only memory that a generator of code may change.
struct AllocationRecord;

class Tracer {  // given to root tracers
 public:
  virtual void value(Value v) = 0;
  virtual void object(Object* object) = 0;
  virtual void conservative(const void* begin, const void* end) = 0;  // words that may be pointers into objects

 protected:
  ~Tracer() = default;
};

class Survivors {  // given to weak tracers
 public:
  virtual bool alive(const Object* object) const = 0;

 protected:
  ~Survivors() = default;
};

// Stacks on which nothing runs at present (lang/runtime/coroutines.hpp). Each is a root of those who hold its
// coroutine, not of everybody.
class SuspendedStacks {
 public:
  virtual void trace(Tracer& tracer, CoroutineObject* coroutine) = 0;  // it is reachable
  // When all that is reachable is marked: those that nobody can resume are kept until they were unwound.
  virtual void after_marking(Tracer& tracer, const Survivors& survivors) = 0;
  virtual void each(const std::function<void(const void* from, const void* to)>& look) const = 0;

 protected:
  ~SuspendedStacks() = default;
};

class Heap {
 public:
  // `outside`: of what counts as the heap's when there is a limit, or null.
  explicit Heap(TypeTable& types, const MemoryCount* outside = nullptr);
  ~Heap();
  Heap(const Heap&) = delete;

  AllocationFront front;  // first: its address is the heap's

  // The cell for an object of so many bytes, at most largest_cell of lang/memory/heap_blocks.hpp.
  struct CellKind {
    std::uint8_t size_class = 0;
    std::uint32_t bytes = 0;
  };
  CellKind cell_kind(std::size_t bytes, bool aligned = false) const;  // aligned: to 64 bytes, as arrays are
  // In a cell, before the elements; of small vectors it is sizeof(ArrayObject).
  static std::size_t array_header_bytes(std::size_t ndims);
  struct VectorCell {
    CellKind kind;
    std::uint32_t flags = 0;  // of the vector; 0: it is not small
  };
  VectorCell small_vector(std::uint64_t length, std::uint32_t element_size) const;
  // Numbers may start as anything, but a Bool must be one.
  static bool starts_zeroed(const BuiltinTypes& types, const Type* element);

  // All return null when the limit is reached even after a collection; callers raise OutOfMemoryError.
  Object* allocate(const DataType* type, std::size_t payload_bytes);  // payload zeroed
  ArrayObject* allocate_array(const DataType* array_type,
                              std::span<const std::int64_t> dims);  // numbers undefined, references null
  ArrayObject* share_array(const DataType* array_type, ArrayObject* owner, std::span<const std::int64_t> dims);
  ArrayObject* borrow_array(const DataType* array_type, void* data, std::span<const std::int64_t> dims);
  // Resizes at the end, or at the front. Memory grows geometrically, and new slots are zeroed. Memory that others share
  // is not moved; the caller makes sure that it is large enough.
  bool resize_vector(ArrayObject* array, std::int64_t new_length);
  bool resize_vector_front(ArrayObject* array, std::int64_t new_length);
  StringObject* allocate_string(std::string_view text);
  StringObject* allocate_string_uninitialized(std::size_t bytes);
  CellObject* allocate_cell();

  Value box(const DataType* type, const void* bytes);  // bits → Value, aggregates → boxed, singleton → instance

  // The barrier: a reference was written into an object, or an object's contents were replaced as a whole.
  void wrote(Value v) {
    if (front.marking) [[unlikely]]
      shade(v);
  }
  void rewrote(Object* object) {
    if (front.marking) [[unlikely]]
      trace_again(object);
  }
  void shade(Value v);
  void shade(Object* object);  // the start of an object, or something that is not of this heap

  void collect();  // whole, now
  // Works for about so long at the collection that is in progress, and begins one when enough was allocated for it to be
  // worth it. False: there is nothing more to do.
  bool collect_for(std::chrono::nanoseconds budget);
  // About how long the collector may work without a break.
  void set_pause_target(std::chrono::nanoseconds target);
  // While somebody holds them, collections are done at once: a thread that writes references into this heap's objects
  // without this heap's barrier must not meet a collection half done.
  void hold_slices();
  void release_slices() { --slices_held_; }
  // Off: nothing is collected by itself before the limit is reached. The answer is what was.
  bool enable_collections(bool on);
  bool collects() const { return collects_; }
  void set_limit(std::size_t bytes);
  void set_stress(bool every_allocation) {  // SLOPE_GC_STRESS=1
    stress_ = every_allocation;
    grant_room();
  }
  void set_stack_base(const void* base) { stack_base_ = base; }  // highest native stack address to scan
  const void* stack_base() const { return stack_base_; }
  // From a frame below the caller's to where the engine was entered, or the end of the thread's stack: [from, to).
  struct StackExtent {
    const void* from;
    const void* to;
  };
  StackExtent stack_extent();
  void set_suspended(SuspendedStacks* stacks) { suspended_ = stacks; }
  const SuspendedStacks* suspended() const { return suspended_; }
  bool is_stressed() const { return stress_; }
  bool is_paused() const { return paused_ != 0; }
  AllocationRecord* record_allocations(AllocationRecord* record) {
    std::swap(record_, record);
    is_watched_ = record_ || on_allocation_;
    grant_room();
    return record;
  }
  // Called for every object and every array's memory. It may not use the heap.
  using AllocationHook = std::function<void(const DataType* type, std::size_t bytes)>;
  void set_allocation_hook(AllocationHook hook) {
    on_allocation_ = std::move(hook);
    is_watched_ = record_ || on_allocation_;
    grant_room();
  }
  bool is_collecting() const;
  // The parts of all objects that may hold references, their types among them; of garbage too, until it was swept.
  void each_part(const std::function<void(const void* from, const void* to)>& look) const;
  HeapStatistics statistics() const;

  using RootTracer = std::function<void(Tracer&)>;
  int add_root_tracer(RootTracer tracer);  // returns a key
  void remove_root_tracer(int key);
  // Traces everything that is registered under keys below `before`, without the stack; next_root() is the next key.
  void trace_roots(Tracer& tracer, int before);
  int next_root() const;

  // For tables that refer to objects without keeping them alive: called after marking, to remove the dead ones. It may
  // not allocate.
  using WeakTracer = std::function<void(const Survivors&)>;
  int add_weak_tracer(WeakTracer tracer);  // returns a key
  void remove_weak_tracer(int key);

 private:
  friend class CollectionPause;
  struct Impl;
  struct Marker;
  // The bytes that were taken from the front are counted by the first; then, when whatever decides about the room may
  // have changed, the second says how much there is.
  void settle_front();
  void grant_room();
  bool prepare_cell(std::uint8_t size_class, std::size_t bytes);
  bool reserve_bytes(std::size_t bytes);  // collects when due; false: over the limit
  void count_bytes(std::size_t bytes);
  void trace_again(Object* object);
  void attend(std::size_t bytes);  // does what is due before so many more bytes are allocated
  void plan_attention();
  Object* allocate_cell_of_class(const DataType* type, std::uint8_t size_class, std::size_t zeroed_bytes);
  Object* allocate_object(const DataType* type, std::size_t bytes, std::size_t zeroed_bytes);
  bool refill(std::uint8_t size_class);
  Object* take_cell(std::uint8_t size_class, std::size_t bytes);  // null: the front has none
  void note_fresh() const;                                        // in the blocks, what was taken of their fresh cells
  Object* allocate_large(const DataType* type, std::size_t bytes, std::size_t zeroed_bytes);
  char* allocate_array_memory(ArrayObject* array, std::size_t bytes);
  void free_array_memory(std::uintptr_t begin);
  bool make_room(ArrayObject* array, std::int64_t before, std::int64_t after);
  ArrayObject* allocate_small_vector(const DataType* array_type, std::int64_t length, const VectorCell& cell);
  ArrayObject* allocate_array_header(const DataType* array_type, std::span<const std::int64_t> dims,
                                     std::size_t inline_bytes);
  using Clock = std::chrono::steady_clock;
  void begin_marking();
  void scan_roots();
  bool mark_some(std::size_t bytes, Clock::time_point deadline);  // true: the collection is over
  void finish_marking();
  void abandon_marking();
  void check_marks();
  void collect_at_once();
  void prepare_sweep();
  void sweep_some(std::size_t blocks);
  void sweep_next(std::uint8_t size_class);
  void free_external(Block* block);
  void sweep_for_memory(std::size_t bytes);
  void count_pause(Clock::time_point start);

  std::unique_ptr<Impl> impl_;
  TypeTable& types_;
  std::int64_t granted_ = 0;  // front.room when it was last settled
  std::size_t allocated_since_collection_ = 0;
  std::size_t limit_ = std::size_t{1} << 40;
  const MemoryCount* outside_;
  std::size_t limit_here() const {  // less what is used outside
    return limit_ - std::min(limit_, outside_ ? outside_->since_limit() : 0);
  }
  bool stress_ = false;
  bool collects_ = true;
  void note_allocation(Object* object, std::size_t bytes);
  AllocationRecord* record_ = nullptr;
  AllocationHook on_allocation_;
  bool is_watched_ = false;  // by one of these
  int paused_ = 0;
  int slices_held_ = 0;
  const void* stack_base_ = nullptr;
  SuspendedStacks* suspended_ = nullptr;
  HeapStatistics statistics_;
};

// While one exists nothing is collected. The compiler uses it, because constants that it has just made are in functions
// that no tracer knows yet.
class CollectionPause {
 public:
  explicit CollectionPause(Heap& heap) : heap_(heap) { ++heap_.paused_; }
  ~CollectionPause() { --heap_.paused_; }
  CollectionPause(const CollectionPause&) = delete;

 private:
  Heap& heap_;
};

// A list of values that the collector sees, for C++ code that must keep them outside the stack.
class Rooted {
 public:
  explicit Rooted(Heap& heap);
  ~Rooted();
  Rooted(const Rooted&) = delete;
  std::vector<Value> values;

 private:
  Heap& heap_;
  int key_;
};

}  // namespace slope
