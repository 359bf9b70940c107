// Whatever the text, the parser ends, reports, and leaves a tree that the printers can walk.
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <random>
#include <string>

#include "lang/syntax/parse.hpp"
#include "lang/syntax/print.hpp"
#include "tests/golden.hpp"
#include "tests/syntax/parsed.hpp"

using namespace slope;
using namespace slope::syntax;
using slope::test::Parsed;

namespace {

bool has_error_node(const Ast& ast, NodeId node) {
  if (ast.head(node) == Head::error) return true;
  for (std::size_t i = 0; i < ast.child_count(node); ++i) {
    if (has_error_node(ast, ast.child(node, i))) return true;
  }
  return false;
}

void survives(const std::string& text) {
  const Parsed parsed(text);
  const ParseResult& result = parsed.result;
  REQUIRE(result.ast.root != no_node);
  REQUIRE(result.ast.head(result.ast.root) == Head::toplevel);
  for (const Diagnostic& diagnostic : result.diagnostics) {
    REQUIRE(diagnostic.span.begin <= diagnostic.span.end);
    REQUIRE(diagnostic.span.end <= text.size());
    REQUIRE_FALSE(diagnostic.message.empty());
  }
  if (has_error_node(result.ast, result.ast.root)) REQUIRE_FALSE(result.ok());
  if (result.incomplete) REQUIRE_FALSE(result.ok());
  (void)to_sexpr(result.ast, result.ast.root);
  (void)to_source(result.ast, result.ast.root);
  if (text.size() < 4000) (void)render(result.diagnostics, parsed.sources);
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(test::golden_path("ast", ""))) {
    if (entry.path().extension() == ".slope") texts.push_back(test::read_file(entry.path()));
  }
  return texts;
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("random bytes") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 200, '\0');
    for (char& c : text) c = static_cast<char>(random());
    survives(text);
  }
}

TEST_CASE("random tokens") {
  const std::vector<std::string> words = {"x",
                                          "f",
                                          "1",
                                          "2.5",
                                          "\"",
                                          "'",
                                          "(",
                                          ")",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          ",",
                                          ";",
                                          "\n",
                                          " ",
                                          "$",
                                          "@m",
                                          ":",
                                          "::",
                                          "->",
                                          "...",
                                          ".",
                                          ".+",
                                          "+",
                                          "-",
                                          "=",
                                          "+=",
                                          "?",
                                          "&&",
                                          "end",
                                          "begin",
                                          "if",
                                          "else",
                                          "elseif",
                                          "for",
                                          "in",
                                          "while",
                                          "function",
                                          "where",
                                          "try",
                                          "catch",
                                          "finally",
                                          "struct",
                                          "do",
                                          "let",
                                          "quote",
                                          "module",
                                          "return",
                                          "global",
                                          "const",
                                          "using",
                                          "import",
                                          "export",
                                          "macro",
                                          "abstract type",
                                          "\"\"\"",
                                          "#=",
                                          "=#",
                                          "#",
                                          "<:",
                                          "<",
                                          "==",
                                          "!",
                                          "\\",
                                          "raw\"",
                                          "mutable struct",
                                          "primitive type"};
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const std::size_t length = random() % 30;
    for (std::size_t i = 0; i < length; ++i) {
      text += words[random() % words.size()];
      if (random() % 2 == 0) text += ' ';
    }
    survives(text);
  }
}

TEST_CASE("texts cut short, and with a piece missing or doubled") {
  std::mt19937 random(3);
  for (const std::string& text : corpus()) {
    for (int round = 0; round < 60; ++round) {
      const std::size_t at = random() % text.size();
      const std::size_t length = random() % 20;
      survives(text.substr(0, at));
      survives(text.substr(0, at) + text.substr(std::min(text.size(), at + length)));
      survives(text.substr(0, at) + text.substr(at, length) + text.substr(at));
    }
  }
}

TEST_CASE("deep nesting is an error") {
  const std::vector<std::string> openers = {"(",          "[",
                                            "f(",         "a[",
                                            "-",          "!",
                                            "$",          "x -> ",
                                            "::",         "if a; ",
                                            "begin ",     "f() do ",
                                            "@m ",        "a ? ",
                                            "a ? b : ",   "a = ",
                                            "a^",         "\"$(",
                                            ":(",         "{",
                                            "T{",         "[x for x in ",
                                            "quote ",     "function f() ",
                                            "<:",         "a => ",
                                            "a, ",        "return ",
                                            "global ",    "let ",
                                            "while a ",   "for i in ",
                                            "module M ",  "try ",
                                            "#=",         "a where ",
                                            "x::",        "const ",
                                            "struct ",    "A where {",
                                            "(a; ",       "(a, ",
                                            "[a; ",       "[a ",
                                            "macro m() ", ":"};
  for (const std::string& opener : openers) {
    INFO(opener);
    const Parsed parsed(repeated(opener, 100000));
    CHECK_FALSE(parsed.result.ok());
    (void)to_sexpr(parsed.result.ast, parsed.result.ast.root);
    (void)to_source(parsed.result.ast, parsed.result.ast.root);
  }
}

TEST_CASE("long chains make no tree that is too high to walk") {
  for (const std::string link :
       {"a - ", "a.", "a => ", "a && ", "a |> ", "f'", "a:b:", "a ? b : ", "a < ", "2x", "a::"}) {
    INFO(link);
    survives(repeated(link, 20000) + "b");
  }
  survives("f" + repeated("(x)", 20000));
  survives("f" + repeated("[x]", 20000));
  survives("f" + repeated("{x}", 20000));
  survives("if a\n" + repeated("elseif b\n", 20000) + "end");
  survives("[x" + repeated(" for x in y", 20000) + "]");
  CHECK(Parsed("x = " + repeated("a + ", 20000) + "b").result.ok());
  CHECK(Parsed("x = [" + repeated("a, ", 20000) + "b]").result.ok());
  CHECK(Parsed(repeated("x = 1\n", 20000)).result.ok());
}

TEST_CASE("a moderately deep program is none too deep") {
  CHECK(Parsed(repeated("(", 200) + "x" + repeated(")", 200)).result.ok());
  CHECK(Parsed(repeated("if a\n", 100) + "b\n" + repeated("end\n", 100)).result.ok());
}

TEST_CASE("many errors are all found, up to a limit") {
  CHECK(Parsed(repeated("x = )\n", 100)).result.diagnostics.size() == 100);
  CHECK(Parsed(repeated("x = )\n", 10000)).result.diagnostics.size() <= 1000);
}

TEST_CASE("A file that is no text is seldom one token, and one error") {
  const Parsed parsed(std::string(1'000'000, '\xff'));
  REQUIRE(parsed.result.diagnostics.size() == 1);
  CHECK(parsed.result.diagnostics[0].message == "this is not valid UTF-8");
  std::atomic<std::uint32_t> stop{1};  // asked for while it is read: the tokens end
  SourceMap sources;
  const FileId file = sources.add("text", std::string(1'000'000, '\xff'));
  CHECK_FALSE(parse(sources, file, {.interrupt = &stop}).ok());
}
