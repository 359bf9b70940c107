// Heap objects as they lie in memory. Compiled code reads these layouts directly: change them together with
// codegen/layout.cpp, whose static_asserts check them.
//
// Every object starts with its type (8 bytes). Mark bits are in the heap's side tables. Objects never move.
//   fields    struct, closure or boxed aggregate: the fields follow at Field::offset
//   array     ArrayObject: element memory is outside, column-major
//   string    StringObject: UTF-8 bytes follow, and a 0 after them
//   cell      CellObject: one Value
//   coroutine CoroutineObject: what a task runs on
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "lang/types/type.hpp"

namespace slope {

struct Object {
  const DataType* type;
  char* payload() { return reinterpret_cast<char*>(this + 1); }
  const char* payload() const { return reinterpret_cast<const char*>(this + 1); }
};
static_assert(sizeof(Object) == 8);

// What follows the four words depends on whose memory it is, and on the rank:
//
//   a small vector (array_compact):   the elements; how many fit is in the flags
//   another vector with own memory:   capacity, front
//   an array without own memory:      owner       and, when it is no vector, its dims
//   another array with own memory:    –           its dims
//
// A vector may begin anywhere in its memory, so that it grows and shrinks at both ends:
//
//   | front: free | length: data[0] … | free |
//                 |<------ capacity ------->|
struct ArrayObject : Object {
  char* data;  // first element; when owned aligned to 64 bytes, of a small vector to 16; not so in a vector that
               // has changed at its front
  std::int64_t length;  // product of the dims
  std::uint32_t flags;  // ArrayFlags
  std::uint32_t element_size;
  std::int64_t words[];
};
enum ArrayFlags : std::uint32_t {
  array_owns_memory = 1,
  array_borrowed = 2,  // memory belongs to the host and is valid for the current call only
  array_shared = 4,    // another array shares this memory: it may not grow
  array_external = 8,  // the memory is the heap's but outside the array's own cell (the heap frees it)
  array_compact = 16,  // a vector whose elements follow the header; its capacity and front are in the next two bytes
  array_in_scratch = 1u << 29,  // header and memory lie in scratch memory (lang/memory/scratch.hpp)
};
inline constexpr unsigned compact_capacity_shift = 8, compact_front_shift = 16;
inline constexpr std::uint32_t compact_mask = 0xff;    // of both
inline constexpr std::size_t most_compact_bytes = 64;  // of elements

struct StringObject : Object {
  std::int64_t length;  // bytes
  char bytes[];
  std::string_view view() const { return {bytes, static_cast<std::size_t>(length)}; }
};

struct CellObject : Object {
  Value value;
};

struct Coroutine;
// Of lang/runtime/coroutines.hpp. The collector finds through it what lies on the stack of a suspended one.
struct CoroutineObject : Object {
  enum class State : std::uint8_t { fresh, alive, ended };
  enum class Waits : std::uint8_t { no, ready, asleep };  // ready: for its turn; asleep: for a time
  Value task;                                             // whose it is
  Value entry;                                            // called with the task
  Coroutine* running;                                     // null: not begun, or ended
  State state;
  Waits waits;
};

int array_ndims(const ArrayObject* a);
// The sizes along all dimensions.
inline const std::int64_t* dims_of(const ArrayObject* a) { return array_ndims(a) == 1 ? &a->length : a->words + 1; }
inline std::int64_t* dims_of(ArrayObject* a) { return array_ndims(a) == 1 ? &a->length : a->words + 1; }
// The array whose memory this one shares (reshape, views of memory); of those over a host's memory the next in their
// ring. Null: it has its own.
inline Object* owner_of(const ArrayObject* a) {
  return a->flags & array_owns_memory ? nullptr : reinterpret_cast<Object*>(a->words[0]);
}
inline void set_owner(ArrayObject* a, Object* owner) {  // of one without own memory
  a->words[0] = reinterpret_cast<std::int64_t>(owner);
}
// Elements that fit from `data` on, and before it; of a vector.
inline std::int64_t capacity_of(const ArrayObject* vector) {
  if (vector->flags & array_compact) return vector->flags >> compact_capacity_shift & compact_mask;
  return vector->flags & array_owns_memory ? vector->words[0] : vector->length;
}
inline std::int64_t front_of(const ArrayObject* vector) {
  if (vector->flags & array_compact) return vector->flags >> compact_front_shift & compact_mask;
  return vector->flags & array_owns_memory ? vector->words[1] : 0;
}
inline void set_room(ArrayObject* vector, std::int64_t capacity, std::int64_t front) {  // of one with own memory
  if (vector->flags & array_compact) {
    constexpr std::uint32_t both = compact_mask << compact_capacity_shift | compact_mask << compact_front_shift;
    vector->flags = (vector->flags & ~both) | static_cast<std::uint32_t>(capacity) << compact_capacity_shift |
                    static_cast<std::uint32_t>(front) << compact_front_shift;
  } else {
    vector->words[0] = capacity;
    vector->words[1] = front;
  }
}
// Where the memory of an array that owns it begins.
inline char* memory_of(ArrayObject* a) {
  return array_ndims(a) == 1 ? a->data - front_of(a) * static_cast<std::int64_t>(a->element_size) : a->data;
}
inline const Type* array_element_type(const ArrayObject* a) { return a->type->params[0]; }

// `===`: payloads, and the contents of immutable aggregates and immutable references, strings by their bytes.
bool egal(Value a, Value b);
std::uint64_t egal_hash(Value v);

}  // namespace slope
