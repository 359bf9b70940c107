#include "lang/syntax/parse.hpp"

#include <algorithm>
#include <utility>

#include "lang/support/tuning.hpp"
#include "lang/syntax/grammar.hpp"
#include "lang/syntax/lexer.hpp"

namespace slope::syntax {

ParseResult parse(const SourceMap& sources, FileId file, const ParseOptions& options) {
  ParseResult result;
  const std::string_view text = sources.file(file).text();
  LexResult lexed = lex(text, file, result.ast, options);
  const std::size_t lexical_errors = lexed.diagnostics.size() - lexed.unterminated;
  result.diagnostics = std::move(lexed.diagnostics);
  // After so many errors the rest is noise, and there may be one for each character.
  if (result.diagnostics.size() > tuning::syntax_errors)
    result.diagnostics.erase(result.diagnostics.begin() + tuning::syntax_errors, result.diagnostics.end());

  grammar::State state(text, file, result.ast, lexed.tokens, options, result.diagnostics);
  if (lexed.unterminated > 0) state.ran_out_already();
  grammar::Iterator it = state.first();
  try {
    result.ast.root = grammar::run_for_node(grammar::whole_text, state, it);
  } catch (const grammar::SyntaxFailure& failure) {  // interrupted after the last statement
    state.report(failure);
    result.ast.root = result.ast.leaf(Head::error, state.span(state.first(), state.final_token()));
  }
  result.ast.give_back_room();
  result.incomplete = lexical_errors == 0 && state.only_ran_out();

  std::stable_sort(result.diagnostics.begin(), result.diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.span.begin < b.span.begin; });
  return result;
}

}  // namespace slope::syntax
