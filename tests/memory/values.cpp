// What is the same value, and values in the memory of objects.
#include <cmath>
#include <cstring>

#include "tests/memory/fixture.hpp"

using namespace slope;
using slope::testing::MemoryFixture;

TEST_CASE_METHOD(MemoryFixture, "identity of numbers is of their bits") {
  CHECK(egal(integer(3), integer(3)));
  CHECK_FALSE(egal(integer(3), Value(b.int32, std::int64_t{3})));
  CHECK(egal(number(NAN), number(NAN)));
  CHECK_FALSE(egal(number(0.0), number(-0.0)));
}

TEST_CASE_METHOD(MemoryFixture, "identity of immutables is of their contents") {
  auto make = [&](double x, const char* text) {
    return tuple({number(x), string(text), tuple({integer(1), nothing()})});
  };
  Value a = make(1.5, "text"), same = make(1.5, "text"), other = make(1.5, "texts");
  CHECK(a.object != same.object);
  CHECK(egal(a, same));
  CHECK(egal_hash(a) == egal_hash(same));
  CHECK_FALSE(egal(a, other));
  CHECK_FALSE(egal(a, make(2.5, "text")));
  CHECK(egal(string("äß"), string("äß")));
  CHECK(egal_hash(string("äß")) == egal_hash(string("äß")));
}

TEST_CASE_METHOD(MemoryFixture, "identity of mutables is of their place") {
  std::int64_t dims[] = {2};
  const DataType* type = types.array_of(b.int64, 1);
  Value a(type, heap.allocate_array(type, dims));
  Value c(type, heap.allocate_array(type, dims));
  CHECK(egal(a, a));
  CHECK_FALSE(egal(a, c));
  CHECK(egal(tuple({a}), tuple({a})));
  CHECK_FALSE(egal(tuple({a}), tuple({c})));
}

TEST_CASE_METHOD(MemoryFixture, "values go into memory and come back") {
  alignas(16) char memory[64];
  auto round_trip = [&](const Type* declared, Value v) {
    store_value(heap, memory, declared, v);
    return load_stored(heap, memory, declared);
  };
  for (const DataType* type : {b.int8, b.uint16, b.int32, b.uint64})
    CHECK(round_trip(type, Value(type, std::int64_t{0x7f})).identical(Value(type, std::int64_t{0x7f})));
  CHECK(round_trip(b.float64, number(2.5)).float64 == 2.5);
  CHECK(round_trip(b.any, integer(5)).identical(integer(5)));
  CHECK(round_trip(b.nothing, nothing()).identical(nothing()));
  Value pair = tuple({integer(1), number(2)});
  CHECK(egal(round_trip(pair.type, pair), pair));
  std::memset(memory, 0, sizeof memory);
  CHECK_FALSE(load_stored(heap, memory, b.string).defined());
}
