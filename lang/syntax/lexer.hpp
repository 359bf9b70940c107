// From text to tokens. Literals become leaves of the tree at once and names are interned, so that the grammar only
// passes ids on. The lexer accepts any bytes. It reports text that is not a token, and makes an `invalid` token of it.
#pragma once

#include <cstddef>
#include <vector>

#include "lang/support/diagnostic.hpp"
#include "lang/syntax/ast.hpp"
#include "lang/syntax/options.hpp"
#include "lang/syntax/token.hpp"

namespace slope::syntax {

struct LexResult {
  std::vector<Token> tokens;  // ends with end_of_input
  std::vector<Diagnostic> diagnostics;
  std::size_t unterminated = 0;  // of the diagnostics, those of a string or a comment that the text ends in
};

// When `options.interrupt` becomes other than zero, the tokens end early.
LexResult lex(std::string_view text, FileId file, Ast& ast, const ParseOptions& options = {});

}  // namespace slope::syntax
