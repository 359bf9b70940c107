#include "lang/syntax/token.hpp"

namespace slope::syntax {

namespace {

// How a message names the kind; a dump takes the same words without quotes.
constexpr std::string_view kind_names[] = {
    "the end of the text",
    "a valid character",
    "a name",
    "a literal",
    "a string",
    "text",
    "`$`",
    "the end of the string",
    "a string",
    "an operator",
    "`=`",
    "an assignment",
    "`?`",
    "`:`",
    "`<:`",
    "`>:`",
    "`&&`",
    "`||`",
    "`where`",
    "`::`",
    "`->`",
    "`...`",
    "`.`",
    "`$`",
    "`'`",
    "`@`",
    "`,`",
    "`;`",
    "`(`",
    "`)`",
    "`[`",
    "`]`",
    "`{`",
    "`}`",
    "`baremodule`",
    "`begin`",
    "`break`",
    "`catch`",
    "`const`",
    "`continue`",
    "`do`",
    "`else`",
    "`elseif`",
    "`end`",
    "`export`",
    "`finally`",
    "`for`",
    "`function`",
    "`global`",
    "`if`",
    "`import`",
    "`let`",
    "`local`",
    "`macro`",
    "`module`",
    "`quote`",
    "`return`",
    "`struct`",
    "`try`",
    "`using`",
    "`while`",
};
static_assert(std::size(kind_names) == static_cast<std::size_t>(TokenKind::kw_while) + 1);

std::string_view dump_name(TokenKind kind) {
  switch (kind) {
    case TokenKind::end_of_input:
      return "end-of-input";
    case TokenKind::invalid:
      return "invalid";
    case TokenKind::identifier:
      return "identifier";
    case TokenKind::literal:
      return "literal";
    case TokenKind::string_begin:
      return "string-begin";
    case TokenKind::string_text:
      return "string-text";
    case TokenKind::string_dollar:
      return "string-dollar";
    case TokenKind::string_end:
      return "string-end";
    case TokenKind::raw_string:
      return "raw-string";
    case TokenKind::adjoint:
      return "adjoint";
    case TokenKind::where:
      return "where";
    default:
      break;
  }
  if (kind >= TokenKind::kw_baremodule) return "keyword";
  if (kind >= TokenKind::op && kind <= TokenKind::or_or) return "operator";
  return "punctuation";
}

}  // namespace

std::string_view token_kind_name(TokenKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::string dump_tokens(const std::vector<Token>& tokens, std::string_view text) {
  std::string out;
  for (const Token& token : tokens) {
    out += dump_name(token.kind);
    out += ' ';
    out += token.newline_before() ? 'n' : token.space_before() ? 's' : '-';
    out += token.dotted() ? 'd' : '-';
    out += ' ';
    for (const char c : text.substr(token.begin, token.end - token.begin)) {
      if (c == '\n') {
        out += "\\n";
      } else {
        out += c;
      }
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
  }
  return out;
}

}  // namespace slope::syntax
