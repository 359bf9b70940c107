// Tokens, trees and error messages of whole files against their expected texts. The trees' expectations agree with what
// Julia's parser makes of the same text (tests/golden/ast/newer.slope: with that of Julia 1.10).
#include "tests/golden.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "lang/syntax/lexer.hpp"
#include "lang/syntax/parse.hpp"
#include "lang/syntax/print.hpp"

using namespace slope;
using namespace slope::syntax;

namespace {

// Each statement as a comment, and under it its tree.
std::string trees(const std::string& name) {
  SourceMap sources;
  const std::string file_name = name + ".slope";
  const FileId file = sources.add(file_name, test::golden_input("ast", file_name));
  const ParseResult result = parse(sources, file);
  std::string out;
  for (std::size_t i = 0; i < result.ast.child_count(result.ast.root); ++i) {
    const NodeId statement = result.ast.child(result.ast.root, i);
    const Span span = result.ast.node(statement).span;
    std::string text(sources.file(file).text().substr(span.begin, span.end - span.begin));
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
      text.insert(at + 1, "# ");
    out += "# " + text + "\n" + to_sexpr(result.ast, statement) + "\n\n";
  }
  return out + render(result.diagnostics, sources);
}

std::string tokens(const std::string& name) {
  const std::string text = test::golden_input("tokens", name + ".slope");
  Ast ast;
  const LexResult lexed = lex(text, 0, ast);
  CHECK(lexed.diagnostics.empty());
  return dump_tokens(lexed.tokens, text);
}

std::string errors(const std::string& name) {
  SourceMap sources;
  const std::string file_name = name + ".slope";
  const FileId file = sources.add(file_name, test::golden_input("errors", file_name));
  const ParseResult result = parse(sources, file);
  CHECK_FALSE(result.ok());
  return render(result.diagnostics, sources);
}

}  // namespace

TEST_CASE("trees") {
  for (const std::string name : {"arrays", "calls", "control", "functions", "generators", "literals", "macros",
                                 "modules", "newer", "operators", "quoting", "strings", "tuples", "types"}) {
    CHECK_GOLDEN("ast", name, trees(name));
  }
}

TEST_CASE("tokens") {
  for (const std::string name : {"layout", "strings"}) CHECK_GOLDEN("tokens", name, tokens(name));
}

TEST_CASE("errors, all of a file") {
  for (const std::string name : {"unclosed", "statements", "forms"}) CHECK_GOLDEN("errors", name, errors(name));
}
