// Exceptions that C++ raises.
#include "lang/runtime/context.hpp"

#include <catch2/catch.hpp>

#include "lang/memory/tape.hpp"
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

TEST_CASE_METHOD(Fixture, "an error whose message has no memory is one of memory") {
  runtime.heap.set_limit(runtime.heap.statistics().live_bytes + 1'000'000);
  Rooted roots(runtime.heap);
  while (StringObject* text = runtime.heap.allocate_string("one more string that is kept for ever and ever"))
    roots.values.push_back(Value(b.string, text));
  CHECK_FALSE(runtime.context.raise_error("no memory for this message"));
  CHECK(runtime.context.error.type == b.out_of_memory_error);
}

TEST_CASE_METHOD(Fixture, "a tape beyond its limit is an error of memory") {
  TapeLayout layout{{b.float64}};
  TapePool& pool = *runtime.context.tapes;
  pool.set_limit(100'000);
  CHECK(pool.open(&layout, 20'000) == nullptr);
  CHECK(runtime.context.error.type == b.out_of_memory_error);
  runtime.context.take_error();
  CHECK(pool.open(&layout, 1'000) != nullptr);
}
