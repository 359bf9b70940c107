// Values in the memory of arrays and objects, by the storage class of their declared type.
#pragma once

#include "lang/types/object.hpp"

namespace slope {

// Elements and fields by storage class. `where` points at stored_size(declared) bytes.
Value load_stored(class Heap& heap, const char* where,
                  const Type* declared);  // boxes aggregates; undefined reference gives an undefined Value
void store_value(char* where, const Type* declared, Value v);  // v isa declared must hold

inline Value load_field(class Heap& heap, Object* object, const Field& field) {
  // No object: the type is a singleton, and so are its fields.
  return load_stored(heap, object ? object->payload() + field.offset : nullptr, field.type);
}

}  // namespace slope
