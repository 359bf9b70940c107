// Reading and writing stored values.
#include "lang/memory/stored.hpp"

#include <cstring>

#include "lang/memory/heap.hpp"

namespace slope {

Value load_stored(Heap& heap, const char* where, const Type* declared) {
  const DataType* type = as_data(declared);
  switch (storage_of(declared)) {
    case Storage::singleton:
      return type->instance;
    case Storage::bits: {
      Value v(type, std::int64_t{0});
      std::memcpy(&v.bits, where, type->size);
      return v;
    }
    case Storage::aggregate:
      return heap.box(type, where);
    case Storage::reference: {
      void* pointer;
      std::memcpy(&pointer, where, sizeof pointer);
      return pointer ? Value(type, pointer) : Value();
    }
    case Storage::dynamic: {
      Value v;
      std::memcpy(static_cast<void*>(&v), where, sizeof v);
      return v;
    }
  }
  return Value();
}

void store_value(Heap& heap, char* where, const Type* declared, Value v) {
  switch (storage_of(declared)) {
    case Storage::singleton:
      break;
    case Storage::bits:
      std::memcpy(where, &v.bits, as_data(declared)->size);
      break;
    case Storage::aggregate:
      std::memcpy(where, v.object->payload(), as_data(declared)->size);
      break;
    case Storage::reference:
      std::memcpy(where, &v.pointer, sizeof v.pointer);
      heap.wrote(v);
      break;
    case Storage::dynamic:
      std::memcpy(where, &v, sizeof v);
      heap.wrote(v);
      break;
  }
}

}  // namespace slope
