// A heap with its types, and no runtime above them.
#pragma once

#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lang/memory/heap.hpp"
#include "lang/support/thread_stack.hpp"
#include "lang/types/symbol.hpp"

namespace slope::testing {

struct MemoryFixture {
  SymbolTable symbols;
  TypeTable types{symbols};
  Heap heap{types};
  const BuiltinTypes& b = types.builtin();

  MemoryFixture() { heap.set_stack_base(thread_stack().high); }

  Value integer(std::int64_t n) const { return Value(b.int64, n); }
  Value number(double x) const { return Value(b.float64, x); }
  Value string(std::string_view text) { return Value(b.string, heap.allocate_string(text)); }
  Value nothing() const { return b.nothing->instance; }

  Value tuple(std::initializer_list<Value> elements) {
    std::vector<const Type*> element_types;
    for (const Value& v : elements) element_types.push_back(v.type);
    const DataType* type = types.tuple(element_types);
    Object* object = heap.allocate(type, type->size);
    REQUIRE(object);
    for (std::size_t i = 0; i < elements.size(); ++i)
      store_value(heap, object->payload() + type->fields[i].offset, type->fields[i].type, elements.begin()[i]);
    return Value(type, object);
  }

  ArrayObject* vector(const Type* element, std::int64_t length) {
    std::int64_t dims[] = {length};
    return heap.allocate_array(types.array_of(element, 1), dims);
  }
};

// Frames of their own, gone when the collector looks, and no stale words below them.
template <class F>
__attribute__((noinline)) void apart(F f) {
  f();
}
__attribute__((noinline)) inline void wipe_stack() {
  volatile char bytes[8192];
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = 0;
}

}  // namespace slope::testing
