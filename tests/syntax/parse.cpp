// What golden files show badly: incompleteness, spans, limits of literals, and what is refused.
#include "lang/syntax/parse.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "lang/syntax/print.hpp"
#include "tests/syntax/parsed.hpp"

using namespace slope;
using namespace slope::syntax;
using slope::test::Parsed;

namespace {

std::string messages(const std::string& text) {
  const Parsed parsed(text);
  std::string out;
  for (const Diagnostic& diagnostic : parsed.result.diagnostics) {
    out += parsed.sources.describe(diagnostic.span) + ": " + diagnostic.message + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("a text that ends inside a form is incomplete") {
  for (const std::string text : {"f(",
                                 "f(1,",
                                 "x =",
                                 "1 +",
                                 "function f(x)",
                                 "if a",
                                 "if a\n  b\nelse",
                                 "begin",
                                 "[1, 2",
                                 "[1 2",
                                 "\"abc",
                                 "\"\"\"abc\n",
                                 "\"a $(",
                                 "#= comment",
                                 "x -> ",
                                 "try\n a\n",
                                 "let x = 1",
                                 "for i in 1:3",
                                 "for",
                                 "a ? b :",
                                 "module A",
                                 "struct A",
                                 "quote",
                                 "raw\"a",
                                 "f(x) do y",
                                 "(a, ",
                                 "T{",
                                 "using A:",
                                 "@m(",
                                 "x::",
                                 "a &&",
                                 "A.",
                                 ":("}) {
    INFO(text);
    const Parsed parsed(text);
    CHECK(parsed.result.incomplete);
    CHECK_FALSE(parsed.result.ok());
  }
}

TEST_CASE("a text that is wrong, or complete, is not incomplete") {
  for (const std::string text :
       {"f)", "x = )", "if a end end", "1 2", "'ab'", "f(1 2", "(a b", "x = 1", "", "\n", "@m", "begin end", "f(]"}) {
    INFO(text);
    CHECK_FALSE(Parsed(text).result.incomplete);
  }
}

TEST_CASE("empty texts parse to nothing") {
  for (const std::string text : {"", "\n\n", "# comment", "#= a #= b =# =#", ";", " ; ;\n"}) {
    const Parsed parsed(text);
    CHECK(parsed.result.ok());
    CHECK(parsed.result.ast.child_count(parsed.result.ast.root) == 0);
  }
}

TEST_CASE("the limits of integers") {
  const Parsed least("-9223372036854775808");
  REQUIRE(least.result.ok());
  CHECK(least.result.ast.node(least.only()).integer == std::numeric_limits<std::int64_t>::min());
  // What does not fit is for macros of the library, as in Julia.
  for (const char* text : {"9223372036854775808", "x - 9223372036854775809", "0x10000000000000000"})
    CHECK(Parsed(text).result.ok());
  CHECK(Parsed("0xffffffffffffffff").result.ok());
}

TEST_CASE("numbers are rounded correctly") {
  const Parsed parsed("[0.1, 1e23, 5e-324, 2.2250738585072011e-308, 123456789.123456789, 1e-400]");
  REQUIRE(parsed.result.ok());
  const auto at = [&](std::size_t i) {
    return parsed.result.ast.node(parsed.result.ast.child(parsed.only(), i)).floating;
  };
  CHECK(at(0) == 0.1);
  CHECK(at(1) == 1e23);
  CHECK(at(2) == 5e-324);
  CHECK(at(3) == 2.2250738585072011e-308);
  CHECK(at(4) == 123456789.123456789);
  CHECK(at(5) == 0.0);
}

TEST_CASE("spans cover the text of their node") {
  const std::string text = "y = f(x, a[end])\nz = \"s\"";
  const Parsed parsed(text);
  const Ast& ast = parsed.result.ast;
  const auto text_of = [&](NodeId node) {
    return text.substr(ast.node(node).span.begin, ast.node(node).span.end - ast.node(node).span.begin);
  };
  const NodeId first = ast.child(ast.root, 0);
  CHECK(text_of(first) == "y = f(x, a[end])");
  CHECK(text_of(ast.child(first, 1)) == "f(x, a[end])");
  CHECK(text_of(ast.child(ast.child(first, 1), 2)) == "a[end]");
  CHECK(text_of(ast.child(ast.root, 1)) == "z = \"s\"");
}

TEST_CASE("names that look alike are one name") {
  const Parsed parsed("\u00e9 = e\u0301; \u00b5 = \u03bc");
  REQUIRE(parsed.result.ok());
  for (std::size_t i = 0; i < 2; ++i) {
    const NodeId assignment = parsed.result.ast.child(parsed.result.ast.root, i);
    const Ast& ast = parsed.result.ast;
    CHECK(ast.node(ast.child(assignment, 0)).name == ast.node(ast.child(assignment, 1)).name);
  }
}

TEST_CASE("what is outside the language is refused by name") {
  CHECK(messages("[1 2;; 3]") == "text:1:5: spaces and `;;` both separate columns\n");
  CHECK(messages("a ** b") == "text:1:3: invalid operator `**`\n");
  CHECK(messages("a -- b") == "text:1:3: invalid operator `--`\n");
  CHECK(messages("1.+x").find("may be read in two ways") != std::string::npos);
  CHECK(messages("\"a\"x").find("a string may not be juxtaposed") != std::string::npos);
  CHECK(messages("f (x)") == "text:1:3: no space may stand before `(` in a call\n");
}

TEST_CASE("an unclosed form names the line where it began") {
  const Parsed parsed("function f(x)\n  if x\n    1\n");
  REQUIRE(parsed.result.diagnostics.size() == 1);
  CHECK(parsed.result.diagnostics[0].message == "expected an `end` for this `if`, found the end of the text");
  CHECK(parsed.result.diagnostics[0].span.begin == 16);
}

TEST_CASE("after an error the next statements are read") {
  const Parsed parsed("a = (1\nb = 2\nfunction f(x\n  y\nend\nc = 3\nif d\n  e = ]\n  g = 1\nend\nh = 4 5\ni = 6");
  CHECK(messages("a = (1\nb = 2\nfunction f(x\n  y\nend\nc = 3\nif d\n  e = ]\n  g = 1\nend\nh = 4 5\ni = 6") ==
        "text:2:1: expected `,` or `)` to close the parenthesis, found `b`\n"
        "text:4:3: expected `,` or `)` to close the call, found `y`\n"
        "text:8:7: expected an expression after `=`, found `]`\n"
        "text:11:7: expected the end of the line or `;` after the statement, found the number `5`\n");
  const Ast& ast = parsed.result.ast;
  std::string shapes;
  for (std::size_t i = 0; i < ast.child_count(ast.root); ++i)
    shapes += std::string(head_name(ast.head(ast.child(ast.root, i)))) + " ";
  CHECK(shapes == "error = error = if error = ");
}

TEST_CASE("nesting can be limited more") {
  SourceMap sources;
  const FileId file = sources.add("text", "((((x))))");
  CHECK(parse(sources, file).ok());
  const ParseResult limited = parse(sources, file, {.max_nesting = 3});
  REQUIRE(limited.diagnostics.size() == 1);
  CHECK(limited.diagnostics[0].message == "this is nested too deeply");
}
