// Modules, bindings and objects made from C++.
#include <catch2/catch.hpp>

#include "lang/runtime/runtime.hpp"
#include "tests/types/type_reader.hpp"

using namespace slope;
using slope::testing::TypeReader;

TEST_CASE("names are found where they should be", "[module]") {
  Runtime runtime;
  auto value_of = [&](Module* module, const char* name) -> Value {
    Binding* found = runtime.resolve(module, runtime.symbol(name));
    return found ? found->value : Value();
  };
  CHECK(value_of(runtime.main, "Int64").as_type == runtime.types.builtin().int64);
  CHECK(value_of(runtime.main, "Base").module == runtime.base);
  CHECK_FALSE(value_of(runtime.main, "nowhere").defined());

  // Base sees all of Core; Main what is exported.
  runtime.set_constant(runtime.core, "add_int", runtime.from_int(1));
  CHECK(value_of(runtime.base, "add_int").defined());
  CHECK_FALSE(value_of(runtime.main, "add_int").defined());

  Module* m = runtime.new_module(runtime.symbol("M"), runtime.main);
  runtime.set_constant(m, "inside", runtime.from_int(5));
  runtime.set_constant(m, "shown", runtime.from_int(6));
  m->exported_names.insert(runtime.symbol("shown"));
  CHECK(value_of(runtime.main, "M").module == m);
  CHECK_FALSE(value_of(runtime.main, "shown").defined());
  runtime.main->usings.push_back(m);
  CHECK(value_of(runtime.main, "shown").bits == 6);
  CHECK_FALSE(value_of(runtime.main, "inside").defined());

  // Two modules that export one name with different values: ambiguous until one is named.
  Module* n = runtime.new_module(runtime.symbol("N"), runtime.main);
  runtime.set_constant(n, "shown", runtime.from_int(7));
  n->exported_names.insert(runtime.symbol("shown"));
  runtime.main->usings.push_back(n);
  CHECK_FALSE(value_of(runtime.main, "shown").defined());
  runtime.set_constant(runtime.main, "shown", runtime.from_int(8));
  CHECK(value_of(runtime.main, "shown").bits == 8);

  // A name of Base hides Core's.
  runtime.set_constant(runtime.base, "typeof", runtime.from_int(9));
  runtime.base->exported_names.insert(runtime.symbol("typeof"));
  CHECK(value_of(runtime.main, "typeof").bits == 9);
}

TEST_CASE("generic functions are constants of their module", "[module]") {
  Runtime runtime;
  Value f = runtime.generic_function(runtime.main, runtime.symbol("f"));
  CHECK(runtime.generic_function(runtime.main, runtime.symbol("f")).identical(f));
  CHECK(runtime.resolve(runtime.main, runtime.symbol("f"))->is_constant);
  runtime.binding(runtime.main, runtime.symbol("x"))->value = runtime.from_int(1);
  CHECK_FALSE(runtime.generic_function(runtime.main, runtime.symbol("x")).defined());
}

TEST_CASE("types print with the module that must be named", "[module]") {
  Runtime runtime;
  auto define = [&](Module* module, const char* name) {
    TypeName* n = runtime.types.new_name(runtime.symbol(name), module);
    runtime.types.define_struct(n, {}, runtime.types.builtin().any, {}, {}, false, 0);
    runtime.set_constant(module, name, runtime.from_type(n->wrapper));
    return to_string(n->primary);
  };
  CHECK(define(runtime.main, "Mine") == "Mine");
  CHECK(define(runtime.base, "Hidden") == "Base.Hidden");
  runtime.base->exported_names.insert(runtime.symbol("Shown"));
  CHECK(define(runtime.base, "Shown") == "Shown");
  Module* m = runtime.new_module(runtime.symbol("M"), runtime.main);
  CHECK(define(m, "Inner") == "Main.M.Inner");
}

TEST_CASE("objects: fields, checks, messages", "[module]") {
  Runtime runtime;
  Context& ctx = runtime.context;
  const BuiltinTypes& b = runtime.types.builtin();
  TypeReader read(runtime.symbols, runtime.types);
  auto define = [&](const char* name, std::vector<const Type*> types, bool is_mutable, std::uint32_t needed) {
    TypeName* n = runtime.types.new_name(runtime.symbol(name), runtime.main);
    std::vector<const Symbol*> names;
    for (std::size_t i = 0; i < types.size(); ++i)
      names.push_back(runtime.symbol(std::string(1, static_cast<char>('a' + i))));
    runtime.types.define_struct(n, {}, b.any, names, types, is_mutable, needed);
    return n->primary;
  };
  auto error = [&] { return runtime.exception_text(ctx, ctx.take_error()); };
  auto field = [&](Value object, const char* name) {
    Value result;
    return runtime.get_field(ctx, object, runtime.from_symbol(runtime.symbol(name)), result) ? runtime.show(ctx, result)
                                                                                             : error();
  };
  auto* point = define("Point", {b.float64, b.float64}, false, 2);
  Value xy[] = {runtime.from_float(1.5), runtime.from_float(2)}, p;
  REQUIRE(runtime.new_object(ctx, point, xy, 2, p));
  CHECK(field(p, "a") == "1.5");
  CHECK(field(p, "b") == "2.0");
  CHECK(field(p, "c") == "type Point has no field c");
  CHECK(runtime.show(ctx, p) == "Point(1.5, 2.0)");
  CHECK_FALSE(runtime.set_field(ctx, p, runtime.from_symbol(runtime.symbol("a")), xy[1]));
  CHECK(error() == "setfield!: immutable struct of type Point cannot be changed");
  Value wrong[] = {runtime.from_int(1), runtime.from_float(2)};
  CHECK_FALSE(runtime.new_object(ctx, point, wrong, 2, p));
  CHECK(error() == "TypeError: in new, expected Float64, got a value of type Int64");

  auto* box = define("Holder", {b.any, b.string}, true, 1);
  Value held[] = {p}, h, result;
  REQUIRE(runtime.new_object(ctx, box, held, 1, h));
  CHECK(field(h, "b") == "UndefRefError: access to undefined reference");
  REQUIRE(runtime.set_field(ctx, h, runtime.from_int(2), runtime.from_string("hi")));
  CHECK(field(h, "b") == "\"hi\"");
  CHECK_FALSE(runtime.set_field(ctx, h, runtime.from_int(2), runtime.from_int(2)));
  CHECK(error() == "TypeError: in setfield!, expected String, got a value of type Int64");

  Value mixed[] = {runtime.from_int(1), runtime.from_string("x"), runtime.nothing()};
  REQUIRE(runtime.new_tuple(ctx, mixed, 3, result));
  CHECK(to_string(result.type) == "Tuple{Int64, String, Nothing}");
  CHECK(runtime.show(ctx, result) == "(1, \"x\", nothing)");
  REQUIRE(runtime.new_tuple(ctx, nullptr, 0, result));
  CHECK(runtime.show(ctx, result) == "()");
  CHECK_FALSE(runtime.get_field(ctx, result, runtime.from_int(1), result));
  CHECK(error() == "BoundsError: attempt to access Tuple{} at index [1]");
}
