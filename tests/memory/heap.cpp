#include "lang/memory/heap.hpp"

#include <string>

#include "tests/memory/fixture.hpp"

using namespace slope;
using testing::apart;
using testing::wipe_stack;

namespace {

struct Fixture : testing::MemoryFixture {
  // mutable struct Node; next::Any; number::Int64; end
  const DataType* node_type() {
    TypeName* name = types.new_name(symbols.intern("Node"), nullptr);
    const Symbol* names[] = {symbols.intern("next"), symbols.intern("number")};
    const Type* field_types[] = {b.any, b.int64};
    types.define_struct(name, {}, b.any, names, field_types, true, 2);
    return name->primary;
  }
};

double* numbers(ArrayObject* array) { return reinterpret_cast<double*>(array->data); }

}  // namespace

TEST_CASE_METHOD(Fixture, "objects are zeroed, typed and counted") {
  std::uint64_t before = heap.statistics().live_bytes;
  Object* object = heap.allocate(b.cell, 16);
  CHECK(object->type == b.cell);
  CHECK(static_cast<CellObject*>(object)->value.type == nullptr);
  CHECK(heap.statistics().live_bytes == before + 32);
  CHECK(heap.statistics().allocations >= 1);
}

TEST_CASE_METHOD(Fixture, "memory of garbage is used again") {
  // 1 GB of small objects, of strings and of arrays in and outside of cells, in little memory.
  for (int i = 0; i < 4'000'000; ++i) heap.allocate(b.cell, 48);
  for (int i = 0; i < 20'000; ++i) heap.allocate_string_uninitialized(20'000);
  for (int i = 0; i < 4'000; ++i) vector(b.float64, 10'000);
  for (int i = 0; i < 400'000; ++i) vector(b.float64, 100);
  CHECK(heap.statistics().allocated_bytes > 1'000'000'000);
  CHECK(heap.statistics().live_bytes < 80'000'000);
  CHECK(heap.statistics().collections > 10);
}

TEST_CASE_METHOD(Fixture, "what is reachable survives, the rest goes") {
  const DataType* type = node_type();
  Rooted roots(heap);
  roots.values.push_back(Value());
  constexpr std::int64_t count = 300'000;  // a chain that a recursive marker could not follow
  apart([&] {
    for (std::int64_t i = 0; i < count; ++i) {
      Object* node = heap.allocate(type, type->size);
      store_value(heap, node->payload() + type->fields[0].offset, b.any, roots.values[0]);
      store_value(heap, node->payload() + type->fields[1].offset, b.int64, Value(b.int64, i));
      roots.values[0] = Value(type, node);
    }
  });
  heap.collect();
  std::uint64_t live = heap.statistics().live_bytes;
  CHECK(live >= count * 32);
  apart([&] {
    for (int i = 0; i < 100'000; ++i) heap.allocate(type, type->size);
  });
  heap.collect();
  apart([&] {
    std::int64_t seen = 0;
    for (Value at = roots.values[0]; at.defined(); at = load_field(heap, at.object, type->fields[0])) {
      REQUIRE(load_field(heap, at.object, type->fields[1]).bits == count - 1 - seen);
      ++seen;
    }
    CHECK(seen == count);
  });
  wipe_stack();
  roots.values[0] = Value();
  heap.collect();
  CHECK(heap.statistics().live_bytes < live / 10);
}

TEST_CASE_METHOD(Fixture, "arrays keep what they hold, and their memory is freed with them") {
  Rooted roots(heap);
  ArrayObject* strings = vector(b.string, 5000);
  roots.values.push_back(Value(strings->type, strings));
  for (std::int64_t i = 0; i < strings->length; ++i) {
    StringObject* text = heap.allocate_string("number " + std::to_string(i));
    store_value(heap, strings->data + i * 8, b.string, Value(b.string, text));
  }
  ArrayObject* anything = vector(b.any, 10);
  roots.values.push_back(Value(anything->type, anything));
  ArrayObject* inner = vector(b.float64, 3);
  store_value(heap, anything->data, b.any, Value(inner->type, inner));
  numbers(inner)[2] = 2.5;
  heap.collect();
  for (int i = 0; i < 100'000; ++i) heap.allocate_string("garbage garbage");
  heap.collect();
  Value last = load_stored(heap, strings->data + 4999 * 8, b.string);
  CHECK(static_cast<StringObject*>(last.object)->view() == "number 4999");
  Value kept = load_stored(heap, anything->data, b.any);
  CHECK(numbers(static_cast<ArrayObject*>(kept.object))[2] == 2.5);
  CHECK(!load_stored(heap, anything->data + 16, b.any).defined());

  std::uint64_t before = heap.statistics().live_bytes;
  roots.values.push_back(Value());
  {
    ArrayObject* large = vector(b.float64, 1'000'000);
    roots.values.back() = Value(large->type, large);
  }
  CHECK(heap.statistics().live_bytes >= before + 8'000'000);
}

TEST_CASE_METHOD(Fixture, "element memory is aligned, growing keeps the contents and zeroes the new") {
  for (std::int64_t length : {0, 1, 7, 100, 5000}) {
    ArrayObject* array = vector(b.float64, length);
    REQUIRE(reinterpret_cast<std::uintptr_t>(array->data) % (length < 8 ? 16 : 64) == 0);
    for (std::int64_t i = 0; i < length; ++i) numbers(array)[i] = static_cast<double>(i);
    for (std::int64_t n = length; n < length + 3000; n += 7) REQUIRE(heap.resize_vector(array, n));
    CHECK(reinterpret_cast<std::uintptr_t>(array->data) % 64 == 0);
    for (std::int64_t i = 0; i < length; ++i) REQUIRE(numbers(array)[i] == static_cast<double>(i));
    for (std::int64_t i = length; i < array->length; ++i) REQUIRE(numbers(array)[i] == 0.0);
    REQUIRE(heap.resize_vector(array, 1));
    REQUIRE(heap.resize_vector(array, 3));
    CHECK(array->length == 3);
    CHECK(numbers(array)[2] == 0.0);
  }
}

TEST_CASE_METHOD(Fixture, "appending one by one moves the elements a logarithmic number of times") {
  ArrayObject* array = vector(b.int64, 0);
  int moves = 0;
  for (std::int64_t n = 1; n <= 1'000'000; ++n) {
    char* before = array->data;
    heap.resize_vector(array, n);
    moves += array->data != before;
  }
  CHECK(moves < 30);
}

TEST_CASE_METHOD(Fixture, "a vector changes at both ends in constant amortised time") {
  // What is added at each end and taken from it, in turn, from time to time for so long that the other end is reached.
  struct Change {
    std::int64_t front, end;
  };
  const std::vector<std::vector<Change>> patterns = {{{1, 0}},          {{1, 0}, {0, 1}},   {{-1, 0}, {0, 1}},
                                                     {{1, 0}, {0, -1}}, {{3, -1}, {-1, 2}}, {{0, 1}, {1, 0}, {-2, 1}}};
  for (const std::vector<Change>& pattern : patterns) {
    for (std::int64_t start : {0, 1, 5, 1000, 50'000}) {
      Rooted roots(heap);
      ArrayObject* array = vector(b.int64, start);
      roots.values.push_back(Value(array->type, array));
      std::int64_t first = 0;  // elements are numbered from here on
      auto at = [&](std::int64_t i) -> std::int64_t& { return reinterpret_cast<std::int64_t*>(array->data)[i]; };
      for (std::int64_t i = 0; i < start; ++i) at(i) = i;
      std::int64_t moved = 0;
      std::int64_t wrong = 0;  // counted: forty million assertions would take longer than what they check
      constexpr std::int64_t changes = 300'000;
      for (std::int64_t k = 0; k < changes; ++k) {
        const Change change = pattern[static_cast<std::size_t>(k) % pattern.size()];
        for (bool front : {true, false}) {
          const std::int64_t added = std::max(front ? change.front : change.end, -array->length);
          if (added == 0) continue;
          const char* stays = array->data;
          const std::int64_t length = array->length;
          const std::int64_t changed = length + added;
          if (!(front ? heap.resize_vector_front(array, changed) : heap.resize_vector(array, changed)))
            FAIL("no memory");
          if (front) stays -= 8 * added;
          if (array->data != stays) moved += length;
          if (front) first -= added;
          for (std::int64_t i = 0; i < added; ++i) {
            const std::int64_t place = front ? i : length + i;
            wrong += at(place) != 0;
            at(place) = first + place;
          }
          if (array->length > 0) {
            wrong += at(0) != first;
            wrong += at(array->length - 1) != first + array->length - 1;
          }
        }
      }
      for (std::int64_t i = 0; i < array->length; ++i) wrong += at(i) != first + i;
      CHECK(wrong == 0);
      CHECK(moved <= 8 * (changes + start));
      CHECK(front_of(array) + capacity_of(array) <= 4 * std::max<std::int64_t>(array->length, start + 16));
    }
  }
}

TEST_CASE_METHOD(Fixture, "a vector that begins inside its memory is kept and freed with it") {
  const std::uint64_t before = heap.statistics().live_bytes;
  apart([&] {
    Rooted roots(heap);
    for (std::int64_t length : {4, 10'000, 10'000, 10'000, 10'000, 10'000, 10'000, 10'000}) {
      ArrayObject* array = vector(b.string, length);
      roots.values.push_back(Value(array->type, array));
      heap.set_stress(true);
      for (std::int64_t i = 0; i < 20; ++i) {
        heap.resize_vector_front(array, array->length - 1);
        StringObject* text = heap.allocate_string("number " + std::to_string(i));
        heap.resize_vector(array, array->length + 1);
        store_value(heap, array->data + (array->length - 1) * 8, b.string, Value(b.string, text));
      }
      heap.set_stress(false);
      Value last = load_stored(heap, array->data + (array->length - 2) * 8, b.string);
      CHECK(static_cast<StringObject*>(last.object)->view() == "number 18");
    }
  });
  wipe_stack();
  heap.collect();
  CHECK(heap.statistics().live_bytes <= before + 400'000);  // one or two may still show on the stack
}

TEST_CASE_METHOD(Fixture, "what shares the memory of a vector keeps the elements that its owner has given up") {
  Rooted roots(heap);
  ArrayObject* owner = vector(b.string, 3);
  roots.values.push_back(Value(owner->type, owner));
  for (std::int64_t i = 0; i < 3; ++i) {
    StringObject* text = heap.allocate_string("number " + std::to_string(i));
    store_value(heap, owner->data + i * 8, b.string, Value(b.string, text));
  }
  const std::int64_t dims[] = {1, 3};
  ArrayObject* shared = heap.share_array(types.array_of(b.string, 2), owner, dims);
  roots.values.push_back(Value(shared->type, shared));
  REQUIRE(heap.resize_vector(owner, 2));
  REQUIRE(heap.resize_vector_front(owner, 1));
  heap.collect();
  for (int i = 0; i < 10'000; ++i) heap.allocate_string("garbage!");
  for (std::int64_t i = 0; i < 3; ++i) {
    Value v = load_stored(heap, shared->data + i * 8, b.string);
    CHECK(static_cast<StringObject*>(v.object)->view() == "number " + std::to_string(i));
  }
}

TEST_CASE_METHOD(Fixture, "a limit is a limit") {
  std::uint64_t limit = heap.statistics().live_bytes + 10'000'000;
  heap.set_limit(limit);
  CHECK(vector(b.float64, 2'000'000) == nullptr);
  CHECK(vector(b.float64, std::int64_t{1} << 60) == nullptr);
  Rooted roots(heap);
  std::size_t kept = 0;
  while (StringObject* text = heap.allocate_string("one more string that is kept for ever and ever")) {
    roots.values.push_back(Value(b.string, text));
    ++kept;
  }
  CHECK(heap.statistics().live_bytes <= limit);
  CHECK(kept > 100'000);
  roots.values.clear();
  CHECK(heap.allocate_string("again") != nullptr);
}

TEST_CASE_METHOD(Fixture, "shared memory lives as long as one of its arrays") {
  Rooted roots(heap);
  std::int64_t dims[] = {100, 100};
  {
    ArrayObject* owner = vector(b.float64, 10'000);
    numbers(owner)[9'999] = 7;
    ArrayObject* matrix = heap.share_array(types.array_of(b.float64, 2), owner, dims);
    roots.values.push_back(Value(matrix->type, matrix));
    CHECK((owner->flags & array_shared) != 0);
  }
  heap.collect();
  for (int i = 0; i < 1000; ++i) vector(b.float64, 10'000);
  heap.collect();
  CHECK(numbers(static_cast<ArrayObject*>(roots.values[0].object))[9'999] == 7);
}

TEST_CASE_METHOD(Fixture, "a pointer into an array's memory on the stack keeps the array") {
  heap.set_stress(true);
  for (std::int64_t length : {10, 10'000}) {
    double* middle = numbers(vector(b.float64, length)) + length / 2;
    *middle = 42;
    for (int i = 0; i < 20; ++i) vector(b.float64, length);
    CHECK(*middle == 42);
  }
}

TEST_CASE_METHOD(Fixture, "collecting at every allocation loses nothing") {
  heap.set_stress(true);
  ArrayObject* array = vector(b.any, 0);
  for (std::int64_t i = 0; i < 200; ++i) {
    StringObject* text = heap.allocate_string(std::to_string(i));
    heap.resize_vector(array, i + 1);
    store_value(heap, array->data + i * 16, b.any, Value(b.string, text));
  }
  for (std::int64_t i = 0; i < 200; ++i) {
    Value v = load_stored(heap, array->data + i * 16, b.any);
    REQUIRE(static_cast<StringObject*>(v.object)->view() == std::to_string(i));
  }
}
