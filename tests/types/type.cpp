// Construction, layout and printing of types.
#include <catch2/catch.hpp>

#include "tests/types/type_reader.hpp"

using namespace slope;
using slope::testing::TypeFixture;

TEST_CASE_METHOD(TypeFixture, "equal types are one pointer", "[type]") {
  CHECK(read("Vector{Float64}") == read("Array{Float64, 1}"));
  CHECK(read("Vector{T} where T") == b.vector);
  CHECK(read("Array{T, N} where {T, N}") == b.array);
  CHECK(read("Tuple{T, S} where {T, S<:Vector{T}}") == read("Tuple{A, B} where {A, B<:Vector{A}}"));
  CHECK(read("Tuple{T, S} where {T, S<:Vector{T}}") != read("Tuple{T, S} where {T, S<:Vector}"));
  CHECK(read("Union{Int64, String}") == read("Union{String, Int64, Int64}"));
  CHECK(read("Union{Int64, Union{Nothing, String}}") == read("Union{Nothing, Int64, String}"));
  CHECK(read("Union{Int64, Integer}") == b.integer);
  CHECK(read("Union{}") == b.bottom);
  CHECK(read("Tuple{Vararg{Int64, 2}}") == read("Tuple{Int64, Int64}"));
  CHECK(read("T where T<:Real") == b.real);
  CHECK(read("Vector{Int64} where T") == read("Vector{Int64}"));
  CHECK((read("Tuple{Union{T, Int64}, Union{S, Int64}} where {T, S}")) ==
        (read("Tuple{Union{A, Int64}, Union{B, Int64}} where {A, B}")));
  // Values as parameters.
  CHECK(types.value_int(3) == types.value_int(3));
  const Symbol* names[] = {symbol("a"), symbol("b")};
  CHECK(types.named_tuple(names, read("Tuple{Int64, Int64}")) == types.named_tuple(names, read("Tuple{Int64, Int64}")));
}

TEST_CASE_METHOD(TypeFixture, "types print as in Julia 1.10", "[type]") {
  auto prints = [&](const char* text, const char* expected) { CHECK(to_string(read(text)) == expected); };
  prints("Vector{Float64}", "Vector{Float64}");
  prints("Array{Int64, 2}", "Matrix{Int64}");
  prints("Vector", "Vector");
  prints("Matrix", "Matrix");
  prints("Array", "Array");
  prints("Array{Float64}", "Array{Float64}");
  prints("Array{T, 3} where T", "Array{T, 3} where T");
  prints("Array{T, 3} where T<:Real", "Array{T, 3} where T<:Real");
  prints("AbstractVector", "AbstractVector");
  prints("AbstractArray{Int64}", "AbstractArray{Int64}");
  prints("Union{Int64, Nothing}", "Union{Nothing, Int64}");
  prints("Union{String, Int64, Float64}", "Union{Float64, Int64, String}");
  prints("Tuple{Int64, String}", "Tuple{Int64, String}");
  prints("Tuple{}", "Tuple{}");
  prints("Tuple", "Tuple");
  prints("Tuple{Int64, Vararg{String}}", "Tuple{Int64, Vararg{String}}");
  prints("Tuple{Int64, Int64, Int64, Int64}", "NTuple{4, Int64}");
  prints("Tuple{Int64, Int64, Int64}", "Tuple{Int64, Int64, Int64}");
  prints("Tuple{String, Int64, Int64, Int64, Int64}", "Tuple{String, Vararg{Int64, 4}}");
  prints("Type{Int64}", "Type{Int64}");
  prints("Type", "Type");
  prints("Union{}", "Union{}");
  prints("Val{3}", "Val{3}");
  prints("Val{:x}", "Val{:x}");
  prints("Tuple{T, Vector{S}} where {T<:Real, S}", "Tuple{T, Vector{S}} where {T<:Real, S}");
  prints("Ref{T} where T>:Int64", "Ref{T} where T>:Int64");
  const Symbol* names[] = {symbol("a"), symbol("b")};
  CHECK(to_string(types.named_tuple(names, read("Tuple{Int64, Any}"))) == "@NamedTuple{a::Int64, b}");
  CHECK(to_string(types.function_type(symbol("sin"), nullptr)) == "typeof(sin)");
  CHECK(to_string(types.function_type(symbol("+"), nullptr)) == "typeof(+)");
  const Symbol* captures[] = {symbol("x")};
  TypeName* closure = types.closure_name(symbol("#f#"), nullptr, captures);
  const Type* of_int[] = {b.int64};
  CHECK(to_string(types.apply(closure, of_int)) == "var\"#f#1\"{Int64}");
}

TEST_CASE_METHOD(TypeFixture, "layouts follow the fields", "[type]") {
  auto define = [&](const char* name, std::vector<const Type*> field_types, bool is_mutable) {
    TypeName* n = types.new_name(symbol(name), nullptr);
    std::vector<const Symbol*> names;
    for (std::size_t i = 0; i < field_types.size(); ++i) names.push_back(symbols.intern("f" + std::to_string(i)));
    types.define_struct(n, {}, b.any, names, field_types, is_mutable, static_cast<std::uint32_t>(names.size()));
    return n->primary;
  };
  auto* plain = define("Plain", {b.int8, b.float64, b.boolean}, false);
  CHECK(plain->storage == Storage::aggregate);
  CHECK(plain->is_isbits);
  CHECK(plain->size == 24);
  CHECK(plain->fields[1].offset == 8);
  CHECK(plain->fields[2].offset == 16);
  auto* nested = define("Nested", {plain, b.int8}, false);
  CHECK(nested->storage == Storage::aggregate);
  CHECK(nested->size == 32);
  auto* with_text = define("WithText", {b.int64, b.string}, false);
  CHECK(with_text->storage == Storage::reference);
  CHECK(with_text->fields[1].storage == Storage::reference);
  auto* loose = define("Loose", {b.any, read("Union{Int64, Nothing}")}, false);
  CHECK(loose->storage == Storage::reference);
  CHECK(loose->size == 32);
  auto* empty = define("Empty", {}, false);
  CHECK(empty->storage == Storage::singleton);
  CHECK(empty->instance.defined());
  auto* counter = define("Counter", {b.int64}, true);
  CHECK(counter->storage == Storage::reference);
  CHECK(counter->is_mutable);
  CHECK(stored_size(counter) == 8);
  auto* pair = as_data(read("Tuple{Int64, Int32}"));
  CHECK(pair->is_concrete);
  CHECK(pair->size == 16);
  CHECK_FALSE(as_data(read("Tuple{Int64, Real}"))->is_concrete);
  CHECK_FALSE(as_data(read("Tuple{Type{Int64}}"))->is_concrete);
  CHECK(as_data(read("Vector{Any}"))->is_concrete);
  CHECK(as_data(read("Vector{Any}"))->object_kind == DataType::ObjectKind::array);
  CHECK(as_data(read("Vector{Real}"))->storage == Storage::reference);
  CHECK(as_data(read("Val{3}"))->instance.defined());
}

TEST_CASE_METHOD(TypeFixture, "a struct may name itself", "[type]") {
  // struct Node{T} value::T; next::Union{Nothing, Node{T}} end
  TypeName* node = types.new_name(symbol("Node"), nullptr);
  const TypeVar* vars[] = {types.var(symbol("T"), nullptr, nullptr)};
  types.declare(node, vars);
  const Type* params[] = {vars[0]};
  const Type* self = types.apply(node, params);
  const Type* union_members[] = {b.nothing, self};
  const Symbol* names[] = {symbol("value"), symbol("next")};
  const Type* field_types[] = {vars[0], types.union_of(union_members)};
  types.define_struct(node, vars, b.any, names, field_types, false, 2);
  const Type* of_int[] = {b.int64};
  auto* ints = types.apply(node, of_int);
  CHECK(ints->is_concrete);
  CHECK(ints->storage == Storage::reference);
  CHECK(to_string(ints->fields[1].type) == "Union{Nothing, Node{Int64}}");

  // An immutable that contains itself is kept by reference, also through a tuple.
  TypeName* knot = types.new_name(symbol("Knot"), nullptr);
  types.declare(knot, {});
  const Type* tuple_elements[] = {b.int64, knot->primary};
  const Type* knot_fields[] = {types.tuple(tuple_elements)};
  const Symbol* knot_names[] = {symbol("inner")};
  types.define_struct(knot, {}, b.any, knot_names, knot_fields, false, 0);
  CHECK(knot->primary->is_concrete);
  CHECK(knot->primary->storage == Storage::reference);
  CHECK(types.tuple(tuple_elements)->is_concrete);

  // A type that nests without end does not lay out without end.
  TypeName* deep = types.new_name(symbol("Deep"), nullptr);
  const TypeVar* deep_vars[] = {types.var(symbol("T"), nullptr, nullptr)};
  types.declare(deep, deep_vars);
  const Type* once[] = {deep_vars[0]};
  const Type* once_applied[] = {types.apply(deep, once)};
  const Type* twice = types.apply(deep, once_applied);
  const Type* deep_members[] = {b.nothing, twice};
  const Type* deep_fields[] = {types.union_of(deep_members)};
  types.define_struct(deep, deep_vars, b.any, knot_names, deep_fields, false, 1);
  CHECK(types.apply(deep, of_int)->is_concrete);
}

TEST_CASE_METHOD(TypeFixture, "applying types checks parameters", "[type]") {
  std::string error;
  auto apply = [&](const Type* wrapper, std::vector<const Type*> params) {
    error.clear();
    return types.apply_wrapper(wrapper, params, &error);
  };
  CHECK(apply(b.array, {b.float64}) == read("Array{Float64}"));
  CHECK(apply(b.array, {b.float64, types.value_int(1)}) == read("Vector{Float64}"));
  CHECK(apply(b.vector, {b.float64, b.int64}) == nullptr);
  CHECK(error == "too many parameters for type Array");
  TypeName* bounded = types.new_name(symbol("Bounded"), nullptr);
  const TypeVar* vars[] = {types.var(symbol("T"), nullptr, b.real)};
  types.define_struct(bounded, vars, b.any, {}, {}, false, 0);
  CHECK(apply(bounded->wrapper, {b.string}) == nullptr);
  CHECK(error == "in Bounded, in T, expected T<:Real, got Type{String}");
  CHECK(apply(bounded->wrapper, {b.int64}) != nullptr);
  CHECK(apply(b.tuple_any, {types.value_int(1)}) == types.tuple(std::vector<const Type*>{types.value_int(1)}));
}

TEST_CASE_METHOD(TypeFixture, "substitution reaches bounds", "[type]") {
  auto* outer = as_union_all(read("Tuple{T, S} where {T, S<:Vector{T}}"));
  CHECK(types.instantiate(outer, b.int64) == read("Tuple{Int64, S} where S<:Vector{Int64}"));
  auto* counted = as_union_all(read("Tuple{Vararg{Int64, N}} where N"));
  CHECK(types.instantiate(counted, types.value_int(3)) == read("Tuple{Int64, Int64, Int64}"));
}
