#include "lang/memory/outliving.hpp"

#include <cstring>
#include <vector>

namespace slope {

ArrayObject* outliving_array(Heap& heap, ArrayObject* array) {
  if (!array || !(array->flags & array_in_scratch)) return array;
  const auto ndims = static_cast<std::size_t>(as_value(array->type->params[1])->value.bits);
  ArrayObject* copy = heap.allocate_array(array->type, {dims_of(array), ndims});
  if (!copy) {  // an empty one is better than one that goes
    const std::vector<std::int64_t> none(ndims, 0);
    return heap.allocate_array(array->type, none);
  }
  std::memcpy(copy->data, array->data, static_cast<std::size_t>(array->length) * array->element_size);
  return copy;
}

}  // namespace slope
