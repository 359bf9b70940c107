// Dispatch, worlds, invalidation and the text of errors, on a runtime without tiers: methods have C++ bodies.
#include <catch2/catch.hpp>

#include "lang/runtime/call_cache.hpp"
#include "lang/runtime/runtime.hpp"
#include "tests/types/type_reader.hpp"

using namespace slope;
using slope::testing::TypeReader;

namespace {

bool give_number(Context& ctx, std::int64_t n, Value& result) {
  result = ctx.runtime->from_int(n);
  return true;
}
template <int n>
bool answer(Context& ctx, const Value*, std::size_t, Value& result) {
  return give_number(ctx, n, result);
}
bool count_arguments(Context& ctx, const Value*, std::size_t count, Value& result) {
  return give_number(ctx, static_cast<std::int64_t>(count), result);
}

template <int n>
constexpr NativeInfo answering{"answer", answer<n>};
constexpr NativeInfo counting{"count", count_arguments};

struct DispatchFixture {
  Runtime runtime;
  TypeReader read{runtime.symbols, runtime.types};
  Context& ctx = runtime.context;

  Value function(const char* name) {
    Value f = runtime.generic_function(runtime.main, runtime.symbol(name));
    read.define(std::string("typeof_") + name, f.type);
    return f;
  }
  Method* define(const std::string& signature, const NativeInfo* body) {
    auto method = std::make_unique<Method>();
    method->signature = read(signature);
    method->module = runtime.main;
    method->native = body;
    Method* added = runtime.add_method(std::move(method));
    ctx.world = runtime.world();
    return added;
  }
  // The number that the call gives, or what went wrong.
  std::string call(Value f, std::vector<Value> args) {
    Value result;
    if (!runtime.call(ctx, f, args.data(), args.size(), result)) {
      Value error = ctx.take_error();
      return runtime.exception_text(ctx, error);
    }
    return std::to_string(result.bits);
  }
  Value integer(std::int64_t n) { return runtime.from_int(n); }
  Value real(double x) { return runtime.from_float(x); }
  Value text(const char* s) { return runtime.from_string(s); }
  Value type(const char* t) { return runtime.from_type(read(t)); }
};

}  // namespace

TEST_CASE_METHOD(DispatchFixture, "the most specific method is called", "[dispatch]") {
  Value f = function("f");
  define("Tuple{typeof_f, Any}", &answering<1>);
  define("Tuple{typeof_f, Real}", &answering<2>);
  define("Tuple{typeof_f, Int64}", &answering<3>);
  define("Tuple{typeof_f, T, T} where T", &answering<4>);
  define("Tuple{typeof_f, Any, Any}", &answering<5>);
  define("Tuple{typeof_f, Any, Vararg{Any}}", &answering<6>);
  CHECK(call(f, {text("x")}) == "1");
  CHECK(call(f, {real(1.0)}) == "2");
  CHECK(call(f, {integer(1)}) == "3");
  CHECK(call(f, {integer(1), integer(2)}) == "4");
  CHECK(call(f, {integer(1), real(2)}) == "5");
  CHECK(call(f, {integer(1), real(2), real(3)}) == "6");
  CHECK(call(f, {integer(1), real(2)}) == "5");  // from the cache
}

TEST_CASE_METHOD(DispatchFixture, "types as arguments and as callees", "[dispatch]") {
  Value f = function("f");
  define("Tuple{typeof_f, Type{Int64}}", &answering<1>);
  define("Tuple{typeof_f, Type{T}} where T<:Real", &answering<2>);
  define("Tuple{typeof_f, DataType}", &answering<3>);
  define("Tuple{typeof_f, Any}", &answering<4>);
  CHECK(call(f, {type("Int64")}) == "1");
  CHECK(call(f, {type("Float64")}) == "2");
  CHECK(call(f, {type("String")}) == "3");
  CHECK(call(f, {type("Vector")}) == "4");
  CHECK(call(f, {type("Int64")}) == "1");

  define("Tuple{Type{Int64}, Any}", &answering<11>);
  define("Tuple{Type{T}, Any} where T<:Real", &answering<12>);
  define("Tuple{Type{Vector{T}}, Any} where T", &answering<13>);
  CHECK(call(type("Int64"), {real(1)}) == "11");
  CHECK(call(type("Float64"), {real(1)}) == "12");
  CHECK(call(type("Vector{Int64}"), {real(1)}) == "13");
  CHECK(call(type("String"), {real(1)}).starts_with("MethodError: no method matching String(::Float64)"));

  // Callable objects, through an abstract callee type.
  define("Tuple{Real, Any}", &answering<21>);
  CHECK(call(integer(3), {text("x")}) == "21");
  define("Tuple{Function, String, String, String}", &answering<22>);
  CHECK(call(f, {text("x"), text("y"), text("z")}) == "22");
  CHECK(call(text("s"), {integer(1)}) == "MethodError: objects of type String are not callable");
}

TEST_CASE_METHOD(DispatchFixture, "ambiguous calls say so", "[dispatch]") {
  Value f = function("f");
  define("Tuple{typeof_f, Int64, Any}", &answering<1>);
  define("Tuple{typeof_f, Any, Int64}", &answering<2>);
  CHECK(call(f, {integer(1), real(1)}) == "1");
  std::string error = call(f, {integer(1), integer(1)});
  CHECK(error.starts_with("MethodError: f(::Int64, ::Int64) is ambiguous."));
  CHECK(error.find("f(::Int64, ::Any)") != std::string::npos);
  define("Tuple{typeof_f, Int64, Int64}", &answering<3>);
  CHECK(call(f, {integer(1), integer(1)}) == "3");
}

TEST_CASE_METHOD(DispatchFixture, "definitions are seen from the next world on", "[dispatch]") {
  Value f = function("f");
  Method* first = define("Tuple{typeof_f, Any}", &answering<1>);
  World before = runtime.world();
  CallCache site;
  auto through_site = [&] {
    Value arg = integer(1), result;
    REQUIRE(runtime.call_caching(ctx, site, f, &arg, 1, result));
    return result.bits;
  };
  CHECK(through_site() == 1);
  CHECK(through_site() == 1);
  Method* second = define("Tuple{typeof_f, Any}", &answering<2>);  // replaces
  CHECK(first->max_world == before);
  CHECK(second->min_world == before + 1);
  CHECK(through_site() == 2);
  CHECK(call(f, {integer(1)}) == "2");
  define("Tuple{typeof_f, Int64}", &answering<3>);
  CHECK(through_site() == 3);
  CHECK(call(f, {real(1)}) == "2");
  // A frame that still runs in the old world keeps its view.
  ctx.world = before;
  CHECK(through_site() == 1);
  CHECK(call(f, {integer(1)}) == "1");
  ctx.world = runtime.world();
  CHECK(call(f, {integer(1)}) == "3");
}

TEST_CASE_METHOD(DispatchFixture, "code ends with what it depends on, and nothing else", "[dispatch]") {
  function("f");
  function("g");
  Method* method = define("Tuple{typeof_f, Any}", &answering<1>);
  define("Tuple{typeof_g, Any}", &answering<1>);
  Specialization* s = runtime.specialize(method, as_data(read("Tuple{typeof_f, Int64}")), {});
  CHECK(runtime.specialize(method, as_data(read("Tuple{typeof_f, Int64}")), {}) == s);
  auto code_with = [&](Edge edge) {
    s->code.push_back(std::make_unique<CodeInstance>());
    CodeInstance* code = s->code.back().get();
    code->owner = s;
    code->min_world = runtime.world();
    code->edges.push_back(edge);
    runtime.add_dependent(code);
    return code;
  };
  Edge lookup;
  lookup.signature = read("Tuple{typeof_g, Int64}");
  CodeInstance* on_lookup = code_with(lookup);
  Edge caller;
  caller.kind = Edge::Kind::callee;
  caller.callee = s;
  Binding* global = runtime.binding(runtime.main, runtime.symbol("answer"));
  Edge constant;
  constant.kind = Edge::Kind::binding;
  constant.binding = global;
  CodeInstance* on_binding = code_with(constant);

  Method* h_method = define("Tuple{typeof_g, String, String}", &answering<9>);
  Specialization* h = runtime.specialize(h_method, as_data(read("Tuple{typeof_g, String, String}")), {});
  h->code.push_back(std::make_unique<CodeInstance>());
  CodeInstance* on_callee = h->code.back().get();
  on_callee->owner = h;
  on_callee->edges.push_back(caller);
  runtime.add_dependent(on_callee);

  CHECK(on_lookup->max_world == newest_world);  // two arguments: not its business
  define("Tuple{typeof_g, String}", &answering<2>);
  CHECK(on_lookup->max_world == newest_world);
  CHECK(on_callee->max_world == newest_world);
  World before = runtime.world();
  define("Tuple{typeof_g, Integer}", &answering<3>);
  CHECK(on_lookup->max_world == before);
  CHECK(on_callee->max_world == before);  // used what was inferred of f(::Int64)
  CHECK(on_binding->max_world == newest_world);
  runtime.set_constant(runtime.main, "answer", integer(1));
  CHECK(on_binding->max_world == newest_world);
  runtime.set_constant(runtime.main, "answer", integer(2));
  CHECK(on_binding->max_world < runtime.world());
  CHECK(global->version == 1);
}

TEST_CASE_METHOD(DispatchFixture, "lookups for inference", "[dispatch]") {
  function("f");
  define("Tuple{typeof_f, Int64}", &answering<1>);
  define("Tuple{typeof_f, Float64}", &answering<2>);
  Method* general = define("Tuple{typeof_f, Real}", &answering<3>);
  define("Tuple{typeof_f, AbstractString}", &answering<4>);
  World now = runtime.world();
  auto all = [&](const char* types, int limit = 4) { return runtime.lookup_all(read(types), now, limit); };
  CHECK(all("Tuple{typeof_f, Int64}").size() == 1);
  CHECK(all("Tuple{typeof_f, Symbol}").empty());
  auto either = all("Tuple{typeof_f, Union{Int64, Float64}}");
  REQUIRE(either.size() >= 2);
  CHECK(either[0].covered);
  CHECK(either.back().method == general);
  auto real_numbers = all("Tuple{typeof_f, Real}");
  REQUIRE(real_numbers.size() == 3);
  CHECK(real_numbers.back().method == general);
  CHECK(real_numbers.back().exact);
  auto anything = all("Tuple{typeof_f, Any}");
  REQUIRE(anything.size() == 4);
  CHECK_FALSE(anything[0].covered);
  CHECK_FALSE(anything[0].exact);
  auto too_many = all("Tuple{typeof_f, Any}", 3);
  REQUIRE(too_many.size() == 1);
  CHECK(too_many[0].method == nullptr);
  auto unknown_callee = all("Tuple{Function, Any}");
  REQUIRE(unknown_callee.size() == 1);
  CHECK(unknown_callee[0].method == nullptr);
}

TEST_CASE_METHOD(DispatchFixture, "methods that another hides do not count among too many", "[dispatch]") {
  function("f");
  for (const char* second : {"Integer", "Signed", "Real", "Number", "Any"})
    define("Tuple{typeof_f, Number, " + std::string(second) + "}", &answering<1>);
  Method* hides_all = define("Tuple{typeof_f, Number, Int64}", &answering<2>);
  const World now = runtime.world();
  const auto hidden = runtime.lookup_all(read("Tuple{typeof_f, Number, Int64}"), now, 1);
  REQUIRE(hidden.size() == 1);
  CHECK(hidden[0].method == hides_all);
  CHECK(hidden[0].covered);
  // Of two arguments of wide types those below are reached as well.
  const auto some = runtime.lookup_all(read("Tuple{typeof_f, Number, Signed}"), now, 2);
  REQUIRE(some.size() == 2);
  CHECK(some[0].method == hides_all);
  const auto too_many = runtime.lookup_all(read("Tuple{typeof_f, Number, Signed}"), now, 1);
  REQUIRE(too_many.size() == 1);
  CHECK(too_many[0].method == nullptr);
}

TEST_CASE_METHOD(DispatchFixture, "MethodError names the closest candidates", "[dispatch]") {
  Value f = function("f");
  define("Tuple{typeof_f, Int64}", &answering<1>);
  define("Tuple{typeof_f, String, Int64}", &answering<1>);
  CHECK(call(f, {text("x")}) ==
        "MethodError: no method matching f(::String)\n\nClosest candidates are:\n"
        "  f(!Matched::Int64)\n   @ Main (builtin)");
  // Of other numbers of arguments only where none takes as many.
  CHECK(call(f, {text("x"), text("y"), text("z")}) ==
        "MethodError: no method matching f(::String, ::String, ::String)\n\nClosest candidates are:\n"
        "  f(::String, !Matched::Int64)\n   @ Main (builtin)\n"
        "  f(!Matched::Int64)\n   @ Main (builtin)");
  CHECK(call(f, {type("Int64")}).starts_with("MethodError: no method matching f(::Type{Int64})"));
}

TEST_CASE_METHOD(DispatchFixture, "variable numbers of arguments reach natives unpacked", "[dispatch]") {
  Value f = function("f");
  define("Tuple{typeof_f, Vararg{Any}}", &counting);
  CHECK(call(f, {}) == "0");
  CHECK(call(f, {integer(1), real(2), text("x")}) == "3");
}
