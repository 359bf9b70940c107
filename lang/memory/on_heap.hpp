// Which values are objects of the heap, as far as their types tell: a box outside the heap is told by its address alone.
#pragma once

#include "lang/types/value.hpp"

namespace slope {

inline bool may_be_on_heap(const DataType* type) {
  return (type->storage == Storage::reference || type->storage == Storage::aggregate) &&
         type->object_kind != DataType::ObjectKind::immortal;
}

inline bool may_be_on_heap(Value v) { return v.type && v.pointer && may_be_on_heap(as_data(v.type)); }

}  // namespace slope
