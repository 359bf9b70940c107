// Statement lists, docstrings, and what happens after a syntax error.
//
// A statement that does not parse is reported, an `error` node stands in its place, and the list goes on at the next
// statement. Where that begins is a guess from brackets, block keywords and indentation: a line that is not indented
// more than the broken statement ends an unclosed bracket, an `end` at that depth ends an unclosed block.
#include "lang/syntax/foreign.hpp"
#include "lang/syntax/grammar.hpp"

namespace slope::syntax::grammar {

using K = TokenKind;

bool closes_body(Iterator it) {
  switch (it->kind) {
    case K::kw_end:
    case K::kw_else:
    case K::kw_elseif:
    case K::kw_catch:
    case K::kw_finally:
    case K::end_of_input:
      return true;
    default:
      return false;
  }
}

bool is_text(const State& state, NodeId node) {
  const Head head = state.ast.head(node);
  return head == Head::string || head == Head::interpolated;
}

namespace {

bool closes_bracket(Iterator it) {
  return it->kind == K::right_paren || it->kind == K::right_bracket || it->kind == K::right_brace ||
         it->kind == K::comma || it->kind == K::string_end || it->kind == K::string_text ||
         it->kind == K::string_dollar;
}

bool opens_block(const State& state, Iterator it) {
  if (it != state.first() && !it->space_before() && ((it - 1)->kind == K::colon || (it - 1)->kind == K::dot))
    return false;
  switch (it->kind) {
    case K::kw_baremodule:
    case K::kw_begin:
    case K::kw_do:
    case K::kw_for:
    case K::kw_function:
    case K::kw_if:
    case K::kw_let:
    case K::kw_macro:
    case K::kw_module:
    case K::kw_quote:
    case K::kw_struct:
    case K::kw_try:
    case K::kw_while:
      return true;
    case K::identifier:
      return (it->payload == state.words.abstract || it->payload == state.words.primitive) &&
             (it + 1)->kind == K::identifier && (it + 1)->payload == state.words.type;
    default:
      return false;
  }
}

bool begins_definition(Iterator it) {
  return it->kind == K::kw_function || it->kind == K::kw_struct || it->kind == K::kw_module || it->kind == K::kw_macro;
}

// Where the statement that began at `from` and broke at `broken` ends.
Iterator end_of_broken(const State& state, Iterator from, Iterator broken, bool whole_text) {
  Iterator line_begin = from;
  while (line_begin != state.first() && !line_begin->newline_before()) --line_begin;
  const std::uint32_t column = state.column_of(line_begin);
  std::uint32_t brackets = 0;
  std::uint32_t blocks = 0;
  for (Iterator it = from; it->kind != K::end_of_input; ++it) {
    const bool first_on_line = it != from && it->newline_before();
    if (it != from && (it > broken || (it == broken && first_on_line))) {
      const bool outside = brackets == 0 && blocks == 0;
      if (outside && (first_on_line || it->kind == K::semicolon)) return it;
      if (outside && !whole_text && closes_body(it)) return it;
      if (first_on_line && state.column_of(it) <= column) {
        if (blocks == 0 && !closes_bracket(it) && (!whole_text || !closes_body(it))) return it;
        if (begins_definition(it)) return it;
        if (it->kind == K::kw_end) brackets = 0;
      }
    }
    switch (it->kind) {
      case K::left_paren:
      case K::left_bracket:
      case K::left_brace:
        ++brackets;
        break;
      case K::right_paren:
      case K::right_bracket:
      case K::right_brace:
        if (brackets > 0) --brackets;
        break;
      case K::kw_end:
        if (brackets == 0 && blocks > 0) --blocks;
        break;
      default:
        if (brackets == 0 && opens_block(state, it)) ++blocks;
        break;
    }
  }
  return state.final_token();
}

NodeId parse_statement(State& state, Iterator& it, bool documented) {
  const Iterator from = it;
  if (it->kind == K::kw_do)
    state.fail(it, "a statement",
               "a loop that tests its condition at the end is `while true … condition || break; end`");
  const NodeId statement = require(state, it, parse_statement_expression(state, it), "a statement");
  const bool is_doc = documented && is_text(state, statement) && (from->kind == K::string_begin || it == from + 1) &&
                      !closes_body(it) && it->kind != K::semicolon && state.newlines_before(it) <= 1;
  if (!is_doc) return statement;
  const NodeId documented_thing =
      require(state, it, parse_statement_expression(state, it), "what the docstring describes");
  const NodeId macro = state.name_leaf("@doc", from);
  return state.make(Head::macrocall, from, it, {macro, statement, documented_thing}, 1);
}

// For what stands behind a statement that is complete. `from` is the statement's first token.
std::string help_behind(const State& state, Iterator from, Iterator it) {
  const bool is_operand = it->kind == K::identifier || it->kind == K::literal || it->kind == K::string_begin;
  const bool is_name = it == from + 1 && from->kind == K::identifier && (is_operand || it->is_keyword());
  for (Iterator token = it - 1; token > from && !token->newline_before(); --token)
    if (state.word(token) == "//") return foreign_operator_help("//");
  return foreign_help(is_name ? state.word(from) : std::string_view(), state.word(it - 1), state.word(it));
}

void parse_statement_and_end(State& state, Iterator& it, bool whole_text, bool documented) {
  const Iterator from = it;
  if (whole_text && it->kind == K::kw_end && state.foreign_blocks > 0) {  // of what has been complained of
    --state.foreign_blocks;
    ++it;
    state.push(state.ast.leaf(Head::error, state.span(from, it)));
    return;
  }
  if (whole_text && closes_body(it)) {
    state.refuse(it, state.describe(it) + " without a form that it could belong to",
                 "is there an `end` too many above?");
  }
  state.push(parse_statement(state, it, documented));
  if (it->newline_before() || it->kind == K::semicolon || closes_body(it) || (!whole_text && closes_bracket(it)))
    return;
  if (closes_bracket(it) && it->kind != K::comma) state.refuse(it, state.describe(it) + " closes nothing");
  if (it->kind == K::kw_do) state.refuse(it, "a `do` block follows a call with parentheses");
  state.fail(it, "the end of the line or `;` after the statement", help_behind(state, from, it));
}

}  // namespace

void parse_statements(State& state, Iterator& it, bool whole_text, bool documented) {
  const NestingGuard nesting(state, it);
  while (true) {
    while (it->kind == K::semicolon) ++it;
    if (it->kind == K::end_of_input) return;
    if (!whole_text && (closes_body(it) || closes_bracket(it))) return;
    const Iterator from = it;
    const std::size_t mark = state.operands.size();
    const auto recover = [&](const SyntaxFailure& failure) {
      state.report(failure);
      if (!failure.help.empty() && is_foreign_block(state.word(from))) ++state.foreign_blocks;
      state.operands.resize(mark);
      it = state.gave_up() ? state.final_token() : end_of_broken(state, from, failure.at, whole_text);
      if (it == from) ++it;
      state.push(state.ast.leaf(Head::error, state.span(from, it)));
    };
    try {
      parse_statement_and_end(state, it, whole_text, documented);
    } catch (const SyntaxFailure& failure) {
      recover(failure);
    } catch (const x3::expectation_failure<Iterator>& failure) {
      recover({failure.where(), failure.which(), "", false, failure.where()->newline_before()});
    }
  }
}

namespace {

void parse_body(State& state, Iterator& it) { parse_statements(state, it, false, false); }
void parse_documented(State& state, Iterator& it) { parse_statements(state, it, false, true); }
void parse_text(State& state, Iterator& it) { parse_statements(state, it, true, true); }

const auto body_def = node<Head::block>[pushing<&parse_body>];
const auto documented_body_def = node<Head::block>[pushing<&parse_documented>];
const auto whole_text_def = node<Head::toplevel>[pushing<&parse_text>] > token(K::end_of_input);

}  // namespace

SLOPE_DEFINE_RULE(body)
SLOPE_DEFINE_RULE(documented_body)
SLOPE_DEFINE_RULE(whole_text)

}  // namespace slope::syntax::grammar
