#include "lang/syntax/state.hpp"

#include <algorithm>
#include <utility>

#include "lang/support/tuning.hpp"
#include "lang/syntax/foreign.hpp"

namespace slope::syntax::grammar {

namespace {

// A tree this many times higher than the nesting limit comes only from long chains (a - b - c …, a.b.c …), which
// parse without recursion but would overflow the stack of whoever walks the tree.
constexpr std::uint32_t height_per_nesting = tuning::nesting_height;

// After this many errors the rest is noise.
constexpr std::size_t max_diagnostics = tuning::syntax_errors;

// The memory of the tree is looked at after so many nodes.
constexpr std::uint32_t nodes_between_counts = 4096;

}  // namespace

State::State(std::string_view text, FileId file, Ast& ast, const std::vector<Token>& tokens,
             const ParseOptions& options, std::vector<Diagnostic>& diagnostics)
    : ast(ast),
      text(text),
      words{ast.intern("abstract"), ast.intern("primitive"), ast.intern("mutable"),
            ast.intern("type"),     ast.intern("outer"),     ast.intern("public")},
      tokens_(tokens),
      diagnostics_(diagnostics),
      file_(file),
      options_(options),
      growth_(options.memory) {
  operands.reserve(64);
}

Span State::span(Iterator from, Iterator to) const {
  const std::uint32_t end = to > from ? (to - 1)->end : from->begin;
  return {file_, from->begin, std::max(from->begin, end)};
}

NodeId State::checked(NodeId made, Iterator from) {
  if (ast.node_count() - counted_at_ >= nodes_between_counts) {
    counted_at_ = ast.node_count();
    growth_.to(tokens_.capacity() * sizeof(Token) + ast.bytes());
  }
  if (!gave_up_ && options_.is_interrupted()) interrupted(from);
  if (ast.node(made).height > height_per_nesting * options_.max_nesting) too_deep(from);
  return made;
}

NodeId State::make(Head head, Iterator from, Iterator to, std::initializer_list<NodeId> children, std::uint8_t flag) {
  return checked(ast.make(head, span(from, to), {children.begin(), children.size()}, flag), from);
}

NodeId State::reduce(Head head, Iterator from, Iterator to, std::size_t mark, std::uint8_t flag) {
  const NodeId made = ast.make(head, span(from, to), {operands.data() + mark, operands.size() - mark}, flag);
  operands.resize(mark);
  return checked(made, from);
}

NodeId State::name_leaf(NameId name, Iterator at) {
  const NodeId made = ast.leaf(Head::identifier, {file_, at->begin, at->end});
  ast.made(made).name = name;
  return made;
}

NodeId State::quoted_name(NameId name, Iterator at) {
  const NodeId made = ast.leaf(Head::quote_symbol, {file_, at->begin, at->end});
  ast.made(made).name = name;
  return made;
}

NodeId State::operator_leaf(Iterator at) {
  if (at->suffixed()) {
    const std::string spelled = operator_text(at);
    return name_leaf(std::string_view(spelled).substr(at->dotted() ? 1 : 0), at);
  }
  if (at->is_operator()) return name_leaf(operator_info(static_cast<OperatorId>(at->payload)).spelling, at);
  return name_leaf(text.substr(at->begin, at->end - at->begin), at);
}

std::string State::operator_text(Iterator at) const {
  if (!at->is_operator() || at->suffixed()) return std::string(text.substr(at->begin, at->end - at->begin));
  std::string spelled = at->dotted() ? "." : "";
  spelled += operator_info(static_cast<OperatorId>(at->payload)).spelling;
  if (at->kind == TokenKind::op_assign) spelled += '=';
  return spelled;
}

NodeId State::pop() {
  const NodeId top = operands.back();
  operands.pop_back();
  return top;
}

bool State::is_closing(Iterator at) const {
  switch (at->kind) {
    case TokenKind::end_of_input:
    case TokenKind::right_paren:
    case TokenKind::right_bracket:
    case TokenKind::right_brace:
    case TokenKind::comma:
    case TokenKind::semicolon:
    case TokenKind::string_end:
    case TokenKind::string_text:
    case TokenKind::string_dollar:
    case TokenKind::kw_else:
    case TokenKind::kw_elseif:
    case TokenKind::kw_catch:
    case TokenKind::kw_finally:
      return true;
    case TokenKind::kw_end:
      return !mode.end_is_name;
    default:
      return false;
  }
}

std::uint32_t State::newlines_before(Iterator at) const {
  const std::uint32_t from = at == first() ? 0 : (at - 1)->end;
  return static_cast<std::uint32_t>(std::count(text.begin() + from, text.begin() + at->begin, '\n'));
}

std::uint32_t State::line_of(Iterator at) const {
  return static_cast<std::uint32_t>(std::count(text.begin(), text.begin() + at->begin, '\n')) + 1;
}

std::uint32_t State::column_of(Iterator at) const {
  if (at->begin == 0) return 0;
  const std::size_t line_break = text.rfind('\n', at->begin - 1);
  return at->begin - (line_break == std::string_view::npos ? 0 : static_cast<std::uint32_t>(line_break) + 1);
}

std::string_view State::word(Iterator at) const {
  const bool is_word = at->kind == TokenKind::identifier || at->is_keyword() || at->is_operator();
  return is_word ? text.substr(at->begin, at->end - at->begin) : std::string_view();
}

std::string State::describe(Iterator at) const {
  if (at->kind == TokenKind::end_of_input) return "the end of the text";
  std::string spelled(text.substr(at->begin, std::min<std::uint32_t>(at->end - at->begin, 40)));
  if (spelled.find('\n') != std::string::npos) spelled = spelled.substr(0, spelled.find('\n')) + "…";
  switch (at->kind) {
    case TokenKind::literal:
      return ((at->flags & flag_number) != 0 ? "the number `" : "`") + spelled + "`";
    case TokenKind::string_begin:
      return "a string";
    case TokenKind::string_text:
    case TokenKind::string_end:
    case TokenKind::string_dollar:
      return "the end of the interpolation";
    default:
      return "`" + spelled + "`";
  }
}

void State::fail(Iterator at, std::string expected, std::string help) {
  throw SyntaxFailure{at, std::move(expected), std::move(help), false, !continues(at)};
}

void State::refuse(Iterator at, std::string message, std::string help) {
  throw SyntaxFailure{at, std::move(message), std::move(help), true, false};
}

void State::complain(Iterator from, Iterator to, std::string message, std::string help) {
  other_errors_ = true;
  if (diagnostics_.size() < max_diagnostics) {
    diagnostics_.push_back({Severity::error, span(from, to), std::move(message), std::move(help)});
  }
}

void State::too_deep(Iterator at) {
  gave_up_ = true;
  throw SyntaxFailure{at, "this is nested too deeply", "split it into several statements or functions", true, false};
}

void State::interrupted(Iterator at) {
  gave_up_ = true;
  throw SyntaxFailure{at, "interrupted", "", true, false};
}

// `closer` is quoted, "`)`" or "`,` or `)`"; `what` says what the closer would close: "call", "`function`".
void State::fail_to_close(Iterator at, Iterator opener, std::string closer, std::string_view what) {
  const std::string line = std::to_string(line_of(opener));
  const bool far = line_of(opener) != line_of(at);
  const std::size_t last = closer.rfind(' ') == std::string::npos ? 0 : closer.rfind(' ') + 1;
  const std::string foreign =
      at->newline_before() || at == first() ? std::string() : foreign_help_inside(word(at - 1), word(at));
  if (!foreign.empty()) fail(at, closer + " to close the " + std::string(what), foreign);
  fail(at, closer + " to close the " + std::string(what),
       far ? closer.substr(last) + " missing for the " + std::string(what) + " begun at line " + line : "");
}

namespace {

// Columns of white space before the first token of the line of `at`; none if the line is very long.
std::optional<std::uint32_t> indentation(std::string_view text, Iterator at) {
  constexpr std::uint32_t far = 400;
  std::uint32_t start = at->begin;
  while (start > 0 && text[start - 1] != '\n') {
    if (at->begin - --start > far) return std::nullopt;
  }
  std::uint32_t column = 0;
  while (start + column < at->begin && (text[start + column] == ' ' || text[start + column] == '\t')) ++column;
  return column;
}

}  // namespace

void State::note_closed(Iterator opener, Iterator end) {
  if (doubtful_ || !end->newline_before()) return;
  const auto opened = indentation(text, opener), closed = indentation(text, end);
  const bool else_if = opener != first() && (opener - 1)->kind == TokenKind::kw_else && !opener->newline_before();
  if (else_if || (opened && closed && *closed < *opened)) doubtful_ = {opener, end};
}

// Of the forms that are open at the end of the text the innermost is reported. The `end` that is missing may belong to
// a form inside of it which took that one's: then an `end` is indented less than what it closes.
void State::fail_without_end(Iterator at, Iterator opener) {
  const auto word = [&](Iterator it) { return "`" + std::string(text.substr(it->begin, it->end - it->begin)) + "`"; };
  const auto line = [&](Iterator it) { return "line " + std::to_string(line_of(it)); };
  SyntaxFailure failure{at, "", "", false, !continues(at), opener};
  if (doubtful_ && doubtful_->first > opener) {
    const auto [inner, end] = *doubtful_;
    failure.shown = inner;
    failure.help = "the `end` at " + line(end) + " closes this " + word(inner) +
                   ", but is indented as if it closed a form around it, such as the " + word(opener) + " of " +
                   line(opener);
    if (inner != first() && (inner - 1)->kind == TokenKind::kw_else && !inner->newline_before())
      failure.help = "`else if` begins an `if` of its own, which needs an `end`; write `elseif`";
  } else if (at->kind != TokenKind::end_of_input) {
    failure.help = "found " + describe(at) + " at " + line(at) + " instead";
  }
  failure.expected = "expected an `end` for this " + word(failure.shown);
  if (failure.help.empty() && failure.shown->kind == TokenKind::kw_let)
    failure.help = "`let x = 1 … end` is a block with variables of its own; without `let`, `x = 1` makes a variable";
  for (Iterator token = failure.shown + 1; token < at && !token->newline_before(); ++token)
    if (token->kind == TokenKind::left_brace && (token - 1)->kind == TokenKind::right_paren && token->space_before())
      failure.help = "a block has no braces: it begins in the next line, or behind `;`, and ends with `end`";
  if (at->kind == TokenKind::end_of_input) failure.expected += ", found the end of the text";
  throw failure;
}

void State::report(const SyntaxFailure& failure) {
  if (gave_up_ && std::exchange(told_that_, true)) return;
  const Iterator at = failure.at;
  const bool at_end = at->kind == TokenKind::end_of_input;
  // What the lexer could not read it has reported; and of several forms open at the end of the text the innermost
  // speaks.
  if (at->kind == TokenKind::invalid && !failure.complete) {
    other_errors_ = true;
    return;
  }
  if (at_end && !failure.complete) {
    if (ran_out_) return;
    ran_out_ = true;
  } else {
    other_errors_ = true;
  }
  if (diagnostics_.size() >= max_diagnostics) return;
  std::string message = failure.expected;
  Span where{file_, at->begin, at->end};
  if (failure.shown) {
    where = {file_, failure.shown->begin, failure.shown->end};
  } else if (!failure.complete) {
    const bool line_end = at_end || failure.at_line_end;
    message =
        "expected " + failure.expected + ", found " + (line_end && !at_end ? "the end of the line" : describe(at));
    if (line_end && at != first()) where.begin = where.end = (at - 1)->end;
  }
  diagnostics_.push_back({Severity::error, where, std::move(message), failure.help});
}

}  // namespace slope::syntax::grammar
