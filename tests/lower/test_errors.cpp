// What lowering refuses: each error names the construct and stands at its place.
#include <catch2/catch.hpp>

#include "tests/lower/support.hpp"

using slope::test::Lowering;

namespace {

void check_error(const std::string& text, const std::string& expected) {
  INFO(text);
  Lowering lowering;
  const std::string found = lowering.lower("test.slope", text);
  INFO(found);
  CHECK(found.find(expected) != std::string::npos);
}

}  // namespace

TEST_CASE("lowering: jumps outside loops", "[lower]") {
  check_error("break", "`break` outside a loop");
  check_error("f() = continue", "`continue` outside a loop");
  check_error("for i in 1:2\n  map(x -> break, i)\nend", "`break` outside a loop");
}

TEST_CASE("lowering: places of assignment", "[lower]") {
  check_error("1 = 2", "invalid assignment location");
  check_error("[a, b] = 1, 2", "invalid assignment location");
  check_error("f(x::T) where {T} = (T = 1)", "cannot assign a value to the type parameter");
  check_error("function f()\n  (a..., b..., ) = 1\nend", "`...`");
}

TEST_CASE("lowering: declarations", "[lower]") {
  check_error("function f()\n  const x = 1\nend", "unsupported `const` declaration on a local variable");
  check_error("function f(x)\n  local x = 1\nend", "conflicts with an argument");
  check_error("function f(x)\n  global x = 1\nend", "both an argument and declared `global`");
  check_error("f(x, x) = 1", "function argument name not unique");
  check_error("f(x = 1, y) = 1", "optional positional arguments must come last");
  check_error("f(x..., y) = 1", "not the last");
}

TEST_CASE("lowering: definitions inside functions", "[lower]") {
  check_error("function f()\n  struct A end\nend", "must be at top level");
  check_error("function f()\n  module A end\nend", "must be at top level");
  check_error("function f()\n  using A\nend", "must be at top level");
  check_error("function f(n)\n  T = n\n  g(x::T) = x\n  g\nend", "cannot be used in a closure declaration");
  check_error("let a = 1, T = Int\n  global g\n  g(x::Vector{S}, y::T) where {S<:T} = a\nend",
              "a global method that uses the local variable");
}

TEST_CASE("lowering: macros and what is not part of the language", "[lower]") {
  check_error("@nonsense 1", "macro `@nonsense` is not defined");
  check_error("@sprintf(\"%d %d\", 1)", "the format wants 2 arguments, 1 are given");
  check_error("@sprintf(\"%y\", 1)", "is no conversion");
  check_error("f(; a = 1, a = 2)", "repeated");
  check_error("x = $y", "`$` outside a quote");
  check_error("f(x) = _", "write-only");
}

TEST_CASE("lowering: types that do not hold together", "[lower]") {
  check_error("struct A\n  x\n  x\nend", "duplicate field name");
  check_error("struct A <: Int64 end", "can only subtype abstract types");
  check_error("struct A\n  x::Int64\nend\nstruct A\n  x::Float64\nend", "invalid redefinition of constant A");
  check_error("struct A\n  x::Nowhere\nend", "`Nowhere` not defined");
}

TEST_CASE("lowering: an identical struct may be defined again", "[lower]") {
  Lowering lowering;
  const std::string text = "struct A{T}\n  x::T\n  y::Vector{T}\n  z::Union{Nothing,A{T}}\nend\n";
  const std::string found = lowering.lower("test.slope", text + text);
  CHECK(found.find("error") == std::string::npos);
}

TEST_CASE("lowering: garbage in any shape is refused, never a crash", "[lower]") {
  const char* texts[] = {
      "f(x) do end",
      "(a; b) -> c",
      "a.b = c = d",
      "a[end]",
      "begin end",
      "() -> ()",
      "f(x...; y...)",
      "(x...,)",
      "[x... y]",
      "T[x... ; y]",
      ":(x...)",
      "quote end",
      "x::T",
      "local x::T",
      "global x, y",
      "let x end",
      "try end",
      "if a end",
      "f(::T) = 1",
      "f(::T...) = 1",
      "((a, b),) -> a",
      "a, b... = c",
      "(; a) = b",
      "@show",
      "a .= b .= c",
      "a .&& b .|| c",
      "x -> y -> x",
      "do_it() do\nend",
      "export a, b",
      "x' * y'",
      "f(g = 1)",
      "a < b .< c",
      "-x^2",
      "2x + 3(y)",
      "[i for i in 1:3, j in 1:2 if i > j]",
      "function f end",
      "struct A{T} end",
      "abstract type B{T} <: Any end",
      "x = y = z",
      "\"$x $(y)\"",
  };
  for (const char* text : texts) {
    INFO(text);
    Lowering lowering;
    const std::string found = lowering.lower("test.slope", text);
    CHECK(found.find("internal") == std::string::npos);
    CHECK(found.find("MALFORMED") == std::string::npos);
  }
}
