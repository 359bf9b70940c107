#include <catch2/catch.hpp>

#include "lang/support/diagnostic.hpp"
#include "lang/support/source.hpp"

using slope::Diagnostic;
using slope::Severity;
using slope::SourceFile;
using slope::SourceMap;
using slope::Span;

TEST_CASE("positions count lines from one and columns in code points") {
  const SourceFile file("f", "ab\nαβγ\n\nlast");
  CHECK(file.line_column(0).line == 1);
  CHECK(file.line_column(0).column == 1);
  CHECK(file.line_column(1).column == 2);
  CHECK(file.line_column(2).line == 1);
  CHECK(file.line_column(2).column == 3);
  CHECK(file.line_column(3).line == 2);
  CHECK(file.line_column(5).column == 2);
  CHECK(file.line_column(7).column == 3);
  CHECK(file.line_column(10).line == 3);
  CHECK(file.line_column(11).line == 4);
  CHECK(file.line_column(1000).line == 4);
  CHECK(file.line_column(1000).column == 5);
}

TEST_CASE("lines come without their line break") {
  const SourceFile file("f", "one\r\ntwo\n");
  CHECK(file.line(0).empty());
  CHECK(file.line(1) == "one");
  CHECK(file.line(2) == "two");
  CHECK(file.line(3).empty());
  CHECK(file.line(99).empty());
}

TEST_CASE("a source map names its files and keeps file 0 for none") {
  SourceMap map;
  CHECK(map.size() == 1);
  CHECK(map.file(0).name() == "<none>");
  const auto id = map.add("model.slope", "x = 1\ny = 2\n");
  CHECK(map.describe({id, 6, 7}) == "model.slope:2:1");
  CHECK(map.line_of({id, 6, 7}) == 2);
}

TEST_CASE("an excerpt marks the span") {
  SourceMap map;
  const auto id = map.add("f", "\tα = β + γ\nnext");
  CHECK(map.excerpt({id, 6, 8}) == "\tα = β + γ\n\t    ^\n");
  CHECK(map.excerpt({id, 6, 13}) == "\tα = β + γ\n\t    ^^^^^\n");
  CHECK(map.excerpt({id, 6, 17}) == "\tα = β + γ\n\t    ^^^^^\n");  // cut at the end of the line
  CHECK(map.excerpt({id, 100, 100}) == "next\n    ^\n");
  CHECK(map.excerpt({0, 0, 0}) == "\n^\n");
}

TEST_CASE("an excerpt of a very long line shows what is around the span") {
  SourceMap map;
  const auto id = map.add("f", std::string(5000, 'x') + "!" + std::string(5000, 'y'));
  const std::string shown = map.excerpt({id, 5000, 5001});
  CHECK(shown.size() < 500);
  const auto split = shown.find('\n');
  CHECK(shown.find('!') == shown.find('^') - split - 1);
}

TEST_CASE("a diagnostic renders with place, line, caret and help") {
  SourceMap map;
  const auto id = map.add("model.slope", "x = 1\n\ny = f(1, 2\n");
  const Diagnostic diagnostic{
      Severity::error, {id, 17, 17}, "expected `)` to close the call, found end of line", "write `)`"};
  CHECK(slope::render(diagnostic, map) ==
        "error: expected `)` to close the call, found end of line\n"
        " --> model.slope:3:11\n"
        "  |\n"
        "3 | y = f(1, 2\n"
        "  |           ^\n"
        "  = help: write `)`\n");
  const std::vector<Diagnostic> two{diagnostic, {Severity::warning, {id, 0, 1}, "odd", ""}};
  CHECK(slope::render(two, map).find("\n\nwarning: odd\n --> model.slope:1:1\n") != std::string::npos);
}
