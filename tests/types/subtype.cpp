// Subtyping, solving of static parameters, intersection, specificity and joins. What is expected is what Julia answers.
#include <catch2/catch.hpp>

#include "tests/types/type_reader.hpp"

using namespace slope;
using slope::testing::TypeFixture;

namespace {

struct Relation {
  const char* a;
  const char* b;
  bool forwards;
  bool backwards;
};

constexpr Relation subtypes[] = {
    {"Int64", "Real", true, false},
    {"Int64", "Float64", false, false},
    {"Vector{Int64}", "Vector{Real}", false, false},
    {"Vector{Int64}", "Vector{T} where T<:Real", true, false},
    {"Vector{Int64}", "AbstractArray{Int64}", true, false},
    {"Vector", "AbstractVector", true, false},
    {"Vector{Vector}", "Vector{Vector{T}} where T", false, false},
    {"Vector{Vector{Int64}}", "Vector{Vector{T}} where T", true, false},
    {"Vector{Vector{T} where T}", "Vector{Vector}", true, true},
    {"Tuple{Int64, String}", "Tuple{Real, AbstractString}", true, false},
    {"Tuple{Int64, String}", "Tuple{T, T} where T", false, false},
    {"Tuple{Int64, Int64}", "Tuple{T, T} where T", true, false},
    {"Tuple{Real, Real}", "Tuple{T, T} where T", false, false},
    {"Tuple{Int64, Vector{Real}}", "Tuple{T, Vector{T}} where T", true, false},
    {"Tuple{Any, Vector{Int64}}", "Tuple{T, Vector{T}} where T", false, false},
    {"Tuple{Vector, Vector}", "Tuple{Vector{T}, Vector{T}} where T", false, true},
    {"Tuple{Vararg{Vector}}", "Tuple{Vararg{Vector{T}}} where T", false, true},
    {"Tuple{Int64, Int64}", "Tuple{Vararg{Int64}}", true, false},
    {"Tuple{}", "Tuple{Vararg{Int64}}", true, false},
    {"Tuple{Int64, String}", "Tuple{Vararg{T}} where T", false, false},
    {"Tuple{Int64, Int64, Int64}", "Tuple{Vararg{T, N}} where {T, N}", true, false},
    {"Tuple{Tuple{Int64}, Tuple{Int64}}", "Tuple{Tuple{Vararg{Int64, N}}, Tuple{Vararg{Int64, N}}} where N", true,
     false},
    {"Tuple{Tuple{Int64}, Tuple{Int64, Int64}}", "Tuple{Tuple{Vararg{Int64, N}}, Tuple{Vararg{Int64, N}}} where N",
     false, false},
    {"Tuple{Vararg{Int64}}", "Tuple{Vararg{Int64, N}} where N", true, true},
    {"Union{Int64, String}", "Union{Real, AbstractString}", true, false},
    {"Tuple{Union{Int64, String}}", "Union{Tuple{Int64}, Tuple{String}}", true, true},
    {"Vector{Union{Int64, String}}", "Union{Vector{Int64}, Vector{String}}", false, false},
    {"Tuple{Union{Int64, Float64}, Union{Int64, Float64}}", "Tuple{T, T} where T", false, false},
    {"Tuple{T, T} where T<:Union{Int64, String}", "Union{Tuple{Int64, Int64}, Tuple{String, String}}", false, true},
    {"Type{Int64}", "DataType", true, false},
    {"Type{Vector}", "UnionAll", true, false},
    {"Type{Int64}", "Type{T} where T<:Integer", true, false},
    {"Type{Int64}", "Type{Integer}", false, false},
    {"DataType", "Type", true, false},
    {"DataType", "Type{T} where T<:Integer", false, false},
    {"Tuple{Type{Int64}, Int64}", "Tuple{Type{T}, T} where T", true, false},
    {"Tuple{Type{Real}, Int64}", "Tuple{Type{T}, T} where T", true, false},
    {"Tuple{Type{Int64}, Real}", "Tuple{Type{T}, T} where T", false, false},
    {"Array{Int64, 2}", "AbstractArray{T, 2} where T", true, false},
    {"Val{3}", "Val{N} where N", true, false},
    {"Val{3}", "Val{4}", false, false},
    {"Tuple{Vector{Int64}, Int64}", "Tuple{S, T} where {T, S<:AbstractVector{T}}", true, false},
    {"Tuple{Vector{Int64}, String}", "Tuple{S, T} where {T, S<:AbstractVector{T}}", false, false},
    {"Ref{T} where T<:Integer", "Ref{T} where T<:Real", true, false},
    {"Ref{Ref{T} where T}", "Ref{Ref{T}} where T", false, false},
    {"Tuple{T, Ref{T}} where T<:Integer", "Tuple{Real, Ref}", true, false},
    {"Vector{Union{T, Int64}} where T", "Vector{T} where T>:Int64", true, true},
    {"Tuple{T, T, Vararg{Vector{T}}} where T", "Tuple{Int64, Float64}", false, true},
    {"Union{}", "Int64", true, false},
};

}  // namespace

TEST_CASE_METHOD(TypeFixture, "subtyping", "[subtype]") {
  for (const Relation& r : subtypes) {
    CAPTURE(r.a, r.b);
    CHECK(is_subtype(types, read(r.a), read(r.b)) == r.forwards);
    CHECK(is_subtype(types, read(r.b), read(r.a)) == r.backwards);
    CHECK(is_subtype(types, read(r.a), read(r.a)));
    CHECK(type_equal(types, read(r.a), read(r.b)) == (r.forwards && r.backwards));
  }
}

TEST_CASE_METHOD(TypeFixture, "matching solves static parameters", "[subtype]") {
  auto solve = [&](const char* arguments, const char* signature) -> std::string {
    auto solved = match(types, read(arguments), read(signature));
    if (!solved) return "no";
    std::string text;
    for (const Type* t : *solved) text += (text.empty() ? "" : ", ") + to_string(t);
    return text;
  };
  CHECK(solve("Tuple{Vector{Int64}, Float64}", "Tuple{Vector{T}, S} where {T, S}") == "Int64, Float64");
  CHECK(solve("Tuple{Matrix{Int64}}", "Tuple{Array{T, N}} where {T, N}") == "Int64, 2");
  CHECK(solve("Tuple{Int64, Int64, Int64}", "Tuple{Vararg{T, N}} where {N, T}") == "3, Int64");
  CHECK(solve("Tuple{Type{Float64}, Int64}", "Tuple{Type{T}, Any} where T<:Real") == "Float64");
  CHECK(solve("Tuple{Val{:x}}", "Tuple{Val{s}} where s") == ":x");
  CHECK(solve("Tuple{Int64, String}", "Tuple{T, T} where T") == "no");
  CHECK(solve("Tuple{Vector{Float64}}", "Tuple{S} where {T, S<:AbstractVector{T}}") == "Float64, Vector{Float64}");
  CHECK(solve("Tuple{Vector{Any}}", "Tuple{Vector{T}} where T<:Real") == "no");
  CHECK(solve("Tuple{Type{Int64}}", "Tuple{T} where T") == "DataType");
  CHECK(solve("Tuple{Type{Int64}, Type{Float64}}", "Tuple{T, T} where T") == "DataType");
  CHECK(solve("Tuple{Type{Int64}, Type{Vector}}", "Tuple{T, T} where T") == "no");
  // Nothing definite is claimed of a variable when the arguments are not.
  auto loose = match(types, read("Tuple{Real}"), read("Tuple{T} where T"));
  REQUIRE(loose);
  CHECK(as_var((*loose)[0]));
  auto either = match(types, read("Tuple{Union{Vector{Int64}, Vector{String}}}"), read("Tuple{Vector{T}} where T"));
  REQUIRE(either);
  CHECK(as_var((*either)[0]));
}

TEST_CASE_METHOD(TypeFixture, "intersection keeps all common instances", "[subtype]") {
  auto meets = [&](const char* a, const char* b, const char* expected) {
    CAPTURE(a, b);
    const Type* met = intersect(types, read(a), read(b));
    CHECK(to_string(met) == expected);
    const Type* other = intersect(types, read(b), read(a));
    CHECK(type_equal(types, met, other));
  };
  meets("Int64", "Real", "Int64");
  meets("Int64", "String", "Union{}");
  meets("Vector", "AbstractArray{Float64}", "Vector{Float64}");
  meets("Union{Int64, String}", "Real", "Int64");
  meets("Tuple{Any, Int64}", "Tuple{String, Any}", "Tuple{String, Int64}");
  meets("Tuple{Vararg{Int64}}", "Tuple{Any, Any}", "Tuple{Int64, Int64}");
  meets("Tuple{Int64}", "Tuple{Int64, Int64}", "Union{}");
  meets("Tuple{Vector{T}, T} where T", "Tuple{Vector{Int64}, Any}", "Tuple{Vector{Int64}, Int64}");
  meets("Type{T} where T<:Real", "DataType", "Type{T} where T<:Real");
  meets("Type{Int64}", "Type{T} where T<:AbstractString", "Union{}");
  // (1, Any[]) is an instance of both.
  CHECK(is_subtype(types, read("Tuple{Int64, Vector{Any}}"),
                   intersect(types, read("Tuple{T, Vector{T}} where T"), read("Tuple{Int64, Any}"))));
  CHECK(certainly_disjoint(types, read("Tuple{T, T} where T<:Real"), read("Tuple{String, Any}")));
  CHECK_FALSE(certainly_disjoint(types, read("Tuple{T, Type{T}} where T"), read("Tuple{Int64, Type{Real}}")));
}

TEST_CASE_METHOD(TypeFixture, "specificity", "[subtype]") {
  constexpr Relation pairs[] = {
      {"Tuple{Int64}", "Tuple{Real}", true, false},
      {"Tuple{Int64, Any}", "Tuple{Any, Int64}", false, false},
      {"Tuple{Int64}", "Tuple{Vararg{Int64}}", true, false},
      {"Tuple{Any, Any}", "Tuple{Vararg{Int64}}", false, true},
      {"Tuple{T, T} where T", "Tuple{Any, Any}", true, false},
      {"Tuple{T, T} where T<:Real", "Tuple{Real, Real}", true, false},
      {"Tuple{T, Float64} where T", "Tuple{T, T} where T", true, false},
      {"Tuple{Symbol, Any}", "Tuple{T, T} where T", false, false},
      {"Tuple{Vector{Int64}}", "Tuple{Vector{T}} where T", true, false},
      {"Tuple{Vector{T}} where T<:Real", "Tuple{AbstractArray}", true, false},
      {"Tuple{Vector}", "Tuple{AbstractArray{Float64}}", true, false},
      {"Tuple{Type{Int64}, Any}", "Tuple{Type{T}, T} where T", false, false},
      {"Tuple{Union{Int64, String}}", "Tuple{Any}", true, false},
      {"Tuple{Int64}", "Tuple{Union{Int64, String}}", true, false},
      {"Tuple{Number, Vararg{Float64}}", "Tuple{Signed, Vararg{AbstractArray}}", false, true},
      {"Tuple{Any, AbstractString}", "Tuple{Vararg{T}} where T", true, false},
      {"Tuple{T, T} where T<:Array", "Tuple{Array{A, N}, Array{B, N}} where {A, B, N}", true, false},
  };
  for (const Relation& r : pairs) {
    CAPTURE(r.a, r.b);
    CHECK(more_specific(types, read(r.a), read(r.b)) == r.forwards);
    CHECK(more_specific(types, read(r.b), read(r.a)) == r.backwards);
  }
}

TEST_CASE_METHOD(TypeFixture, "joins and merges", "[subtype]") {
  auto join = [&](const char* a, const char* b) { return to_string(type_join(types, read(a), read(b))); };
  CHECK(join("Int64", "Float64") == "Real");
  CHECK(join("Int64", "Int32") == "Signed");
  CHECK(join("Int64", "String") == "Any");
  CHECK(join("Vector{Int64}", "Vector{Float64}") == "Vector");
  CHECK(join("Vector{Int64}", "Matrix{Int64}") == "Array{Int64}");
  CHECK(join("Tuple{Int64, String}", "Tuple{Float64, String}") == "Tuple{Real, String}");
  CHECK(join("Tuple{Int64}", "Tuple{Int64, Int64}") == "Tuple{Int64, Vararg{Int64}}");
  CHECK(to_string(type_merge(types, read("Int64"), read("Nothing"))) == "Union{Nothing, Int64}");
  const Type* merged = b.bottom;
  for (const char* t : {"Int8", "Int16", "Int32", "Int64", "Float32", "Float64"})
    merged = type_merge(types, merged, read(t));
  CHECK(is_subtype(types, b.int8, merged));
  CHECK(is_subtype(types, b.float64, merged));
  CHECK((!as_union(merged) || as_union(merged)->members.size() <= 4));
}
