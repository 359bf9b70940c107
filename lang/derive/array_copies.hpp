// Copies of what large arrays hold, in parts. Parts that are as in the last copy of the same array are that copy's: of an
// array that changes little from copy to copy, as a memo table or a stack does, a copy takes what has changed.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "lang/runtime/runtime.hpp"

namespace slope::derive {

class ArrayCopies {
 public:
  explicit ArrayCopies(Runtime& runtime) : runtime_(runtime) {}

  static constexpr std::size_t least_bytes = 4096;  // of an array that is copied so

  // A Box of a vector: the length, the parts. Null: no memory.
  Object* copy(Heap& heap, const ArrayObject* array, const char* content, std::int64_t length);
  // Whether it is a copy of such an array; a program may have made it by hand.
  bool is_copy_of(const ArrayObject* array, Value copy) const;
  static std::int64_t length(const Object* copy);
  // visit(offset in bytes, content, bytes) → whether to go on; so does it itself.
  static bool each_part(const Object* copy, const std::function<bool(std::size_t, const char*, std::size_t)>& visit);
  // The array holds that again.
  void holds(const ArrayObject* array, Object* copy) { last_[array] = copy; }
  // The collector comes: neither arrays nor copies are held.
  void forget() { last_.clear(); }

 private:
  Runtime& runtime_;
  std::unordered_map<const ArrayObject*, Object*> last_;
};

}  // namespace slope::derive
