#include "lang/types/object.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "lang/runtime/runtime.hpp"

using namespace slope;

namespace {

struct Fixture {
  Runtime runtime;
  const BuiltinTypes& b = runtime.types.builtin();
  Value tuple(std::initializer_list<Value> elements) {
    Value result;
    REQUIRE(runtime.new_tuple(runtime.context, elements.begin(), elements.size(), result));
    return result;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "identity of numbers is of their bits") {
  CHECK(egal(runtime.from_int(3), runtime.from_int(3)));
  CHECK_FALSE(egal(runtime.from_int(3), Value(b.int32, std::int64_t{3})));
  CHECK(egal(runtime.from_float(NAN), runtime.from_float(NAN)));
  CHECK_FALSE(egal(runtime.from_float(0.0), runtime.from_float(-0.0)));
}

TEST_CASE_METHOD(Fixture, "identity of immutables is of their contents") {
  auto make = [&](double x, const char* text) {
    return tuple({runtime.from_float(x), runtime.from_string(text), tuple({runtime.from_int(1), runtime.nothing()})});
  };
  Value a = make(1.5, "text"), same = make(1.5, "text"), other = make(1.5, "texts");
  CHECK(a.object != same.object);
  CHECK(egal(a, same));
  CHECK(egal_hash(a) == egal_hash(same));
  CHECK_FALSE(egal(a, other));
  CHECK_FALSE(egal(a, make(2.5, "text")));
  CHECK(egal(runtime.from_string("äß"), runtime.from_string("äß")));
  CHECK(egal_hash(runtime.from_string("äß")) == egal_hash(runtime.from_string("äß")));
}

TEST_CASE_METHOD(Fixture, "identity of mutables is of their place") {
  std::int64_t dims[] = {2};
  const DataType* type = runtime.types.array_of(b.int64, 1);
  Value a(type, runtime.heap.allocate_array(type, dims));
  Value c(type, runtime.heap.allocate_array(type, dims));
  CHECK(egal(a, a));
  CHECK_FALSE(egal(a, c));
  CHECK(egal(tuple({a}), tuple({a})));
  CHECK_FALSE(egal(tuple({a}), tuple({c})));
}

TEST_CASE_METHOD(Fixture, "values go into memory and come back") {
  alignas(16) char memory[64];
  auto round_trip = [&](const Type* declared, Value v) {
    store_value(memory, declared, v);
    return load_stored(runtime.heap, memory, declared);
  };
  for (const DataType* type : {b.int8, b.uint16, b.int32, b.uint64})
    CHECK(round_trip(type, Value(type, std::int64_t{0x7f})).identical(Value(type, std::int64_t{0x7f})));
  CHECK(round_trip(b.float64, runtime.from_float(2.5)).float64 == 2.5);
  CHECK(round_trip(b.any, runtime.from_int(5)).identical(runtime.from_int(5)));
  CHECK(round_trip(b.nothing, runtime.nothing()).identical(runtime.nothing()));
  Value pair = tuple({runtime.from_int(1), runtime.from_float(2)});
  CHECK(egal(round_trip(pair.type, pair), pair));
  std::memset(memory, 0, sizeof memory);
  CHECK_FALSE(load_stored(runtime.heap, memory, b.string).defined());
}

TEST_CASE_METHOD(Fixture, "exceptions from C++ have Julia's fields") {
  Context& ctx = runtime.context;
  CHECK_FALSE(ctx.type_error("typeassert", b.int64, runtime.from_string("x")));
  Value error = ctx.take_error();
  CHECK_FALSE(ctx.failed());
  REQUIRE(error.type == b.type_error);
  auto field = [&](const char* name) {
    const DataType* type = as_data(error.type);
    return load_field(runtime.heap, error.object,
                      type->fields[static_cast<std::size_t>(type->field_index(runtime.symbol(name)))]);
  };
  CHECK(field("func").symbol == runtime.symbol("typeassert"));
  CHECK(field("expected").as_type == b.int64);
  ctx.type_error("Array, in T", b.type, runtime.from_int(1));
  error = ctx.take_error();
  CHECK(field("func").symbol == runtime.symbol("Array"));
  CHECK(static_cast<StringObject*>(field("context").object)->view() == "T");
  ctx.undef_var(runtime.symbol("x"));
  error = ctx.take_error();
  CHECK(field("var").symbol == runtime.symbol("x"));
  Value args[] = {runtime.from_int(1), runtime.from_float(2)};
  ctx.method_error(runtime.from_string("f"), args, 2);
  error = ctx.take_error();
  CHECK(egal(field("args"), tuple({args[0], args[1]})));
}
