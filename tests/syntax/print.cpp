// Trees as source text: laid out as Julia does, and read back to the same tree.
#include "lang/syntax/print.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "lang/syntax/parse.hpp"
#include "tests/golden.hpp"
#include "tests/syntax/parsed.hpp"

using namespace slope;
using namespace slope::syntax;
using slope::test::Parsed;

namespace {

std::string source_of(const std::string& text) {
  const Parsed parsed(text);
  REQUIRE(parsed.result.ok());
  return to_source(parsed.result.ast, parsed.result.ast.root);
}

// Conditionals print as `if`, whose branches are blocks, so they do not come back as they were.
bool has_conditional(const Ast& ast, NodeId node) {
  if (ast.head(node) == Head::if_ && ast.head(ast.child(node, 1)) != Head::block) return true;
  for (std::size_t i = 0; i < ast.child_count(node); ++i) {
    if (has_conditional(ast, ast.child(node, i))) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("source text has one normal layout") {
  const std::pair<std::string, std::string> cases[] = {
      {"a+b*c", "a + b * c"},
      {"(a+b)*c", "(a + b) * c"},
      {"a-b-c", "(a - b) - c"},
      {"a^-b", "a ^ -b"},
      {"-a^2", "-(a ^ 2)"},
      {"(-a)^2", "(-a) ^ 2"},
      {"!f(x)", "!(f(x))"},
      {"2x", "2x"},
      {"2*3", "2 * 3"},
      {"f(x;a=1)", "f(x; a = 1)"},
      {"f.(x).+1", "f.(x) .+ 1"},
      {"a<b<=c", "a < b <= c"},
      {"a&&(b||c)", "a && (b || c)"},
      {"1:n", "1:n"},
      {"(1:n).+1", "(1:n) .+ 1"},
      {"x::Vector{T}", "x::Vector{T}"},
      {"A{T} where {T,S<:B}", "A{T} where {T, S <: B}"},
      {"a[i,end]", "a[i, end]"},
      {"f(x)[1]", "(f(x))[1]"},
      {"(a=1,b=2)", "(a = 1, b = 2)"},
      {"(a,)", "(a,)"},
      {"[1 2;3 4]", "[1 2; 3 4]"},
      {"[x for x in y if z]", "[x for x = y if z]"},
      {"a'b", "a' * b"},
      {"\"a $x b\"", "\"a $(x) b\""},
      {":a", ":a"},
      {":(a+b)", ":(a + b)"},
      {"isapprox(a,b;atol=1e-3)", "isapprox(a, b; atol = 0.001)"},
      {"if a;b;elseif c;d;else;e;end", "if a\n    b\nelseif c\n    d\nelse\n    e\nend"},
      {"for i in 1:n,j=1:m;b;end", "for i = 1:n, j = 1:m\n    b\nend"},
      {"function f(x) x+1;y end", "function f(x)\n    x + 1\n    y\nend"},
      {"map(x) do y;y+1 end", "map(x) do y\n    y + 1\nend"},
      {"@m a b", "@m a b"},
      {"f(@m(a,b),c)", "f(@m(a, b), c)"},
      {"raw\"a\\b\"", "raw\"a\\b\""},
  };
  for (const auto& [text, expected] : cases) CHECK(source_of(text) == expected);
}

TEST_CASE("printed source reads back to the same tree") {
  for (const std::string name : {"arrays", "calls", "control", "functions", "generators", "literals", "macros",
                                 "modules", "newer", "operators", "quoting", "strings", "tuples", "types"}) {
    const Parsed parsed(test::golden_input("ast", name + ".slope"));
    REQUIRE(parsed.result.ok());
    const Ast& ast = parsed.result.ast;
    for (std::size_t i = 0; i < ast.child_count(ast.root); ++i) {
      const NodeId statement = ast.child(ast.root, i);
      if (has_conditional(ast, statement)) continue;
      const std::string source = to_source(ast, statement);
      const Parsed again(source);
      INFO(source << "\n" << render(again.result.diagnostics, again.sources));
      REQUIRE(again.result.ok());
      REQUIRE(again.result.ast.child_count(again.result.ast.root) == 1);
      CHECK(to_sexpr(again.result.ast, again.result.ast.child(again.result.ast.root, 0)) == to_sexpr(ast, statement));
    }
  }
}

TEST_CASE("floats print with the shortest digits, in Julia's form") {
  CHECK(source_of("[0.1, 1.0, 100000.0, 999999.0, 1e6, 1e-4, 1e-5, 123456.789, 1e100, 1f0, 1.5f-7, 2f10, 0.0]") ==
        "[0.1, 1.0, 100000.0, 999999.0, 1.0e6, 0.0001, 1.0e-5, 123456.789, 1.0e100, 1.0f0, 1.5f-7, 2.0f10, 0.0]");
}
