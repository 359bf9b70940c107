// What people write who know another language: the error says what it is here.
#include <catch2/catch.hpp>
#include <string>

#include "tests/syntax/parsed.hpp"

using slope::test::Parsed;

namespace {

std::string help_of(const std::string& text) {
  const Parsed parsed(text);
  REQUIRE_FALSE(parsed.result.ok());
  return parsed.result.diagnostics.front().help;
}

}  // namespace

TEST_CASE("words of other languages get their help") {
  const std::pair<const char*, const char*> rows[] = {
      {"def f(x)\nend", "function f(x)"},
      {"class Point\nend", "`struct`"},
      {"elif x", "elseif"},
      {"lambda x: x + 1", "x -> x + 1"},
      {"switch x\nend", "elseif"},
      {"var x = 1", "assigning"},
      {"new Point(1)", "calling its type"},
      {"raise \"no\"", "throw"},
      {"x = a and b", "`a && b`"},
      {"x = a or b", "`a || b`"},
      {"x is nothing", "==="},
      {"not x", "`!x`"},
      {"print \"x\"", "print(…)"},
      {"x++", "x += 1"},
      {"x--", "x -= 1"},
      {"x = 1 //", "`#`"},
      {"return 1 if x > 0", "condition"},
  };
  for (const auto& [text, wanted] : rows) {
    CAPTURE(text, help_of(text));
    CHECK(help_of(text).find(wanted) != std::string::npos);
  }
}

TEST_CASE("a plain mistake gets no such help") {
  CHECK(help_of("(1 + 2) 3").empty());
  CHECK(help_of("x = )").find("function") == std::string::npos);
}
