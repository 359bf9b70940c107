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

// A vector may begin anywhere in its memory, so that it grows and shrinks at both ends:
//
//   | front: free | length: data[0] … | free |
//                 |<------ capacity ------->|
struct ArrayObject : Object {
  char* data;           // first element; when owned aligned to 64 bytes, fewer than 64 bytes of elements to 16; not so
                        // in a vector that has changed at its front
  std::int64_t length;  // product of the dims
  std::int64_t capacity;  // elements that fit from `data` on; of a 1-d array that owns its memory
  Object* owner;          // the array whose memory this one shares (reshape, views of memory), else null
  std::uint32_t flags;    // ArrayFlags
  std::uint32_t element_size;
  std::int64_t dims[];  // as many as the type says (dims[0] == length for vectors, which have front_of behind it)
};
enum ArrayFlags : std::uint32_t {
  array_owns_memory = 1,
  array_borrowed = 2,           // memory belongs to the host and is valid for the current call only
  array_shared = 4,             // another array shares this memory: it may not grow
  array_external = 8,           // the memory is the heap's but outside the array's own cell (the heap frees it)
  array_in_scratch = 1u << 29,  // header and memory lie in scratch memory (lang/memory/scratch.hpp)
};

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

inline std::int64_t array_dim(const ArrayObject* a, int dimension) { return a->dims[dimension]; }
// Elements that fit before the first, of a vector alone: its header has room for this anyway.
inline std::int64_t& front_of(ArrayObject* vector) { return vector->dims[1]; }
int array_ndims(const ArrayObject* a);
// Where the memory of an array that owns it begins.
inline char* memory_of(ArrayObject* a) {
  return array_ndims(a) == 1 ? a->data - front_of(a) * static_cast<std::int64_t>(a->element_size) : a->data;
}
inline const Type* array_element_type(const ArrayObject* a) { return a->type->params[0]; }

// `===`: payloads, and the contents of immutable aggregates and immutable references, strings by their bytes.
bool egal(Value a, Value b);
std::uint64_t egal_hash(Value v);

}  // namespace slope
