// Tokens: what the lexer makes and the grammar reads.
//
// A token is 20 bytes: kind, how it stands to what is before it, the byte range, and a payload that depends on the
// kind. There are no newline tokens. Whether a line break ends an expression depends on the brackets and blocks around
// it, which the grammar knows, so each token only says whether white space or a line break came before it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lang/syntax/ast.hpp"
#include "lang/syntax/operators.hpp"

namespace slope::syntax {

enum class TokenKind : std::uint8_t {
  end_of_input,
  invalid,     // the lexer has reported it already
  identifier,  // payload: NameId
  literal,     // number, character, boolean, string without interpolation. payload: NodeId of its leaf
  string_begin,
  string_text,    // payload: NodeId of a string leaf
  string_dollar,  // `$` in a string: an identifier or `(` follows
  string_end,
  raw_string,  // follows its prefix identifier without space. payload: NodeId
  // operators; payload: OperatorId, but for op_assign: that of `+` in `+=`
  op,         // any operator without a kind of its own
  assign,     // =
  op_assign,  // += …
  question,   // ?
  colon,      // :
  subtype,    // <:
  supertype,  // >:
  and_and,    // &&
  or_or,      // ||
  where,      // the word; payload: NameId
  // punctuation
  double_colon,
  arrow,     // ->
  ellipsis,  // ...
  dot,
  dollar,
  adjoint,  // ' after an operand
  at,
  comma,
  semicolon,
  left_paren,
  right_paren,
  left_bracket,
  right_bracket,
  left_brace,
  right_brace,
  // keywords; payload: NameId
  kw_baremodule,
  kw_begin,
  kw_break,
  kw_catch,
  kw_const,
  kw_continue,
  kw_do,
  kw_else,
  kw_elseif,
  kw_end,
  kw_export,
  kw_finally,
  kw_for,
  kw_function,
  kw_global,
  kw_if,
  kw_import,
  kw_let,
  kw_local,
  kw_macro,
  kw_module,
  kw_quote,
  kw_return,
  kw_struct,
  kw_try,
  kw_using,
  kw_while,
};

enum TokenFlag : std::uint8_t {
  flag_space = 1,         // white space, comment or line break came before
  flag_newline = 2,       // a line break came before
  flag_dotted = 4,        // an operator written with a dot: .+ .= .+=
  flag_number = 8,        // a literal that juxtaposition may multiply: 2x
  flag_too_large = 16,    // 9223372036854775808: only right after a minus
  flag_ends_in_dot = 32,  // `5.`
  flag_triple = 64,       // string_begin of """
  flag_suffixed = 128,    // an operator with subscripts, superscripts or primes: its text is its name
};

struct Token {
  TokenKind kind = TokenKind::end_of_input;
  std::uint8_t flags = 0;
  Precedence precedence = Precedence::none;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t payload = 0;

  bool space_before() const { return (flags & flag_space) != 0; }
  bool newline_before() const { return (flags & flag_newline) != 0; }
  bool dotted() const { return (flags & flag_dotted) != 0; }
  bool suffixed() const { return (flags & flag_suffixed) != 0; }
  bool is_operator() const { return kind >= TokenKind::op && kind <= TokenKind::or_or; }
  bool is_keyword() const { return kind >= TokenKind::kw_baremodule; }
};

std::string_view token_kind_name(TokenKind kind);  // "identifier", "`end`", "`)`": how a message names it

// One token a line, for golden files: kind, marks (s space, n newline, d dotted), spelling.
std::string dump_tokens(const std::vector<Token>& tokens, std::string_view text);

}  // namespace slope::syntax
