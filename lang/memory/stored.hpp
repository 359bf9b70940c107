// Values in the memory of arrays and objects, by the storage class of their declared type.
#pragma once

#include "lang/types/object.hpp"

namespace slope {

// Elements and fields by storage class. `where` points at stored_size(declared) bytes.
Value load_stored(class Heap& heap, const char* where,
                  const Type* declared);  // boxes aggregates; undefined reference gives an undefined Value
// v isa declared must hold. The heap is told of a reference (the barrier of lang/memory/heap.hpp).
void store_value(class Heap& heap, char* where, const Type* declared, Value v);

inline Value load_field(class Heap& heap, Object* object, const Field& field) {
  // No object: the type is a singleton, and so are its fields.
  return load_stored(heap, object ? object->payload() + field.offset : nullptr, field.type);
}

}  // namespace slope
