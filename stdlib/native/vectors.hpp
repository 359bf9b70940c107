// Vectors of numbers that a program and a library of C functions exchange.
#pragma once

#include <algorithm>
#include <span>

#include "stdlib/native/native.hpp"

namespace slope::stdlib {

inline double* numbers(ArrayObject* array) { return reinterpret_cast<double*>(array->data); }
inline std::int64_t* integers(ArrayObject* array) { return reinterpret_cast<std::int64_t*>(array->data); }
inline bool holds(const ArrayObject* array, std::size_t length) {
  return static_cast<std::size_t>(array->length) == length;
}
// The arguments from `from` on, vectors of `element`. False: the error is pending.
inline bool take_vectors(Call& call, std::size_t from, const DataType* element, std::span<ArrayObject*> arrays) {
  for (ArrayObject*& array : arrays)
    if (!call.array_of(from++, element, 1, array)) return false;
  return true;
}
inline bool take_vectors(Call& call, std::size_t from, std::span<ArrayObject*> arrays) {
  return take_vectors(call, from, call.builtin.float64, arrays);
}

}  // namespace slope::stdlib
