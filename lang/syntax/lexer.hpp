// From text to tokens. Literals become leaves of the tree at once and names are interned, so that the grammar only
// passes ids on. Any bytes are accepted: what is no token is reported and becomes an `invalid` token.
#pragma once

#include <vector>

#include "lang/support/diagnostic.hpp"
#include "lang/syntax/ast.hpp"
#include "lang/syntax/token.hpp"

namespace slope::syntax {

struct LexResult {
  std::vector<Token> tokens;  // ends with end_of_input
  std::vector<Diagnostic> diagnostics;
  std::size_t unterminated = 0;  // of the diagnostics, those of a string or a comment that the text ends in
};

LexResult lex(std::string_view text, FileId file, Ast& ast);

}  // namespace slope::syntax
