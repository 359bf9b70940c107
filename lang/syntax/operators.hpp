// The operators: one table of spellings and precedences, as in Julia's manual (Mathematical Operations, Operator
// Precedence and Associativity). The lexer finds its entries by spelling, the parser climbs by their precedence, the
// printer asks it where parentheses are needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace slope::syntax {

// From loose to tight. `where`, juxtaposition, unary operators, `::` and `.` lie between shift and power, or above it;
// they are not infix operators of the table.
enum class Precedence : std::uint8_t {
  none,
  assignment,   // right: = += … and ~
  pair,         // right: =>
  conditional,  // right: ? :
  arrow,        // right: --> → …
  lazy_or,      // right: ||
  lazy_and,     // right: &&
  comparison,   // chained: < == in isa …
  pipe_left,    // right: <|
  pipe_right,   // left: |>
  colon,        // a:b:c and the postfix `...`
  plus,         // left
  times,        // left
  rational,     // left: //
  shift,        // left: << >> >>>
  power,        // right: ^
};

using OperatorId = std::uint16_t;

struct OperatorInfo {
  std::string_view spelling;
  Precedence precedence = Precedence::none;
  bool unary = false;   // may stand before its operand
  bool binary = true;   // may stand between two
  bool update = false;  // `op=` exists
};

// Operators that code refers to by name; their ids are the first rows of the table, in this order.
enum : OperatorId {
  op_plus,
  op_minus,
  op_times,
  op_not,
  op_colon,
  op_assign,
  op_question,
  op_pair,
  op_or,
  op_and,
  op_subtype,
  op_supertype,
  op_in,
  op_isa,
  op_tilde,
  op_ampersand,
  op_element_of,
};

const OperatorInfo& operator_info(OperatorId id);
std::optional<OperatorId> find_operator(std::string_view spelling);
std::optional<OperatorId> find_unicode_operator(char32_t code_point);

struct OperatorMatch {
  OperatorId id = 0;
  std::uint32_t length = 0;  // bytes; 0: no ASCII operator starts here
};
OperatorMatch match_ascii_operator(std::string_view text);  // the longest one at the start of `text`

// Subscripts, superscripts and primes: `+₁` is an operator of its own that binds as `+` does.
bool is_operator_suffix(char32_t code_point);
bool takes_suffix(OperatorId id);

bool is_right_associative(Precedence precedence);

}  // namespace slope::syntax
