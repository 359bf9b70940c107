// Names, quoting, interpolation and macro calls.
#include "lang/syntax/expression.hpp"

namespace slope::syntax::grammar {

namespace {

// What `:` may quote as one token: an operator, an assignment sign, a keyword.
bool is_quotable_sign(Iterator at) {
  switch (at->kind) {
    case TokenKind::double_colon:
    case TokenKind::arrow:
    case TokenKind::ellipsis:
    case TokenKind::dot:
    case TokenKind::dollar:
      return true;
    default:
      return at->is_operator();
  }
}

NodeId parse_quoted(State& state, Iterator& it, Iterator colon) {
  if (it->kind == TokenKind::left_paren && at_parenthesised_operator(state, it)) {
    const Iterator sign = it + 1;
    it += 3;
    return state.quoted_name(state.ast.intern(state.operator_text(sign)), sign);
  }
  if (it->kind == TokenKind::left_paren && (it + 1)->is_keyword() && (it + 2)->kind == TokenKind::right_paren &&
      (it + 1)->kind != TokenKind::kw_return && (it + 1)->kind != TokenKind::kw_break &&
      (it + 1)->kind != TokenKind::kw_continue) {
    const Iterator word = it + 1;
    it += 3;
    return state.quoted_name(word->payload, word);
  }
  // An operator of Julia's parser that nothing uses.
  if (it->kind == TokenKind::dollar && (it + 1)->kind == TokenKind::assign && state.adjacent(it + 1)) {
    const Iterator sign = it;
    it += 2;
    return state.quoted_name(state.ast.intern("$="), sign);
  }
  if (it->is_keyword() || it->kind == TokenKind::where) {
    const Iterator word = it++;
    return state.quoted_name(word->payload, word);
  }
  const bool may_prefix = it->kind == TokenKind::dollar || it->kind == TokenKind::dot;
  if (is_quotable_sign(it) && (!may_prefix || state.ends_here(it + 1) || (it + 1)->space_before())) {
    const Iterator sign = it++;
    return state.quoted_name(state.ast.intern(state.operator_text(sign)), sign);
  }
  ModeGuard guard(state);
  state.mode.end_is_name = false;
  const NodeId quoted = require(state, it, parse_primary(state, it), "a name or `(` after `:`");
  if (state.ast.head(quoted) == Head::identifier) return state.quoted_name(state.ast.node(quoted).name, it - 1);
  if (state.ast.head(quoted) == Head::dot && state.ast.child_count(quoted) == 1) {  // :(.+)
    const std::string dotted = "." + std::string(state.ast.name_of(state.ast.child(quoted, 0)));
    return state.quoted_name(state.ast.intern(dotted), it - 1);
  }
  return state.make(Head::quote, colon, it, {quoted});
}

}  // namespace

bool at_parenthesised_operator(const State& state, Iterator it) {
  (void)state;
  return it->kind == TokenKind::left_paren && is_quotable_sign(it + 1) && (it + 2)->kind == TokenKind::right_paren;
}

NodeId parse_name(State& state, Iterator& it) {
  const Iterator name = it++;
  if (it->kind == TokenKind::raw_string && state.adjacent(it)) {
    const Iterator text = it++;
    if (state.ast.name(name->payload) == "var") return state.name_leaf(state.ast.text_of(text->payload), name);
    const NodeId macro = state.name_leaf("@" + std::string(state.ast.name(name->payload)) + "_str", name);
    if (it->kind == TokenKind::identifier && state.adjacent(it)) {
      const Iterator suffix = it++;
      const NodeId flags = state.ast.string_leaf(std::string(state.ast.name(suffix->payload)), state.span(suffix, it));
      return state.make(Head::macrocall, name, it, {macro, text->payload, flags});
    }
    return state.make(Head::macrocall, name, it, {macro, text->payload});
  }
  return state.name_leaf(name->payload, name);
}

NodeId parse_colon(State& state, Iterator& it) {
  const Iterator colon = it++;
  const NestingGuard nesting(state, colon);
  if (state.is_closing(it) || !state.continues(it)) {
    if (it->kind == TokenKind::end_of_input) state.fail(it, "a name or `(` after `:`");
    if (!(it->is_keyword() && state.adjacent(it))) return state.operator_leaf(colon);
  }
  if (!state.adjacent(it)) {
    if (it->kind == TokenKind::assign) return state.operator_leaf(colon);
    state.refuse(colon, "no space may stand after the `:` of a quotation");
  }
  return parse_quoted(state, it, colon);
}

NodeId parse_interpolated_string(State& state, Iterator& it) {
  const Iterator from = it++;
  const OpenerGuard opener(state, from);
  const std::size_t mark = state.operands.size();
  while (it->kind != TokenKind::string_end) {
    if (it->kind == TokenKind::string_text) {
      if (!state.ast.text_of(it->payload).empty()) state.push(it->payload);
      ++it;
    } else if (it->kind == TokenKind::string_dollar) {
      ++it;
      if (it->kind == TokenKind::identifier) {
        state.push(state.name_leaf(it->payload, it));
        ++it;
      } else if (it->kind == TokenKind::left_paren) {
        ModeGuard guard(state, Mode{});
        state.push(parse_parenthesised(state, it));
      } else {
        state.fail(it, "a name or `(` after `$`");
      }
    } else {
      state.fail(it, "the end of the string");
    }
  }
  ++it;
  if (state.operands.size() == mark) return state.ast.string_leaf("", state.span(from, it));
  if (state.operands.size() == mark + 1 && state.ast.head(state.operands.back()) == Head::string &&
      (it - 2)->kind == TokenKind::string_text && it - from == 3) {
    return state.pop();
  }
  return state.reduce(Head::interpolated, from, it, mark);
}

NodeId parse_prefix(State& state, Iterator& it) {
  const Iterator sign = it++;
  const NestingGuard nesting(state, sign);
  if (sign->kind == TokenKind::double_colon) {
    const Iterator from = it;
    NodeId type = require(state, it, parse_postfix(state, it), "a type after `::`");
    type = parse_where_chain(state, it, from, type);
    return state.make(Head::type_assert, sign, it, {type});
  }
  // $x inserts the next primary: $x.y is ($x).y
  const NodeId inserted = require(state, it, parse_primary(state, it), "a name or `(` after `$`");
  return state.make(Head::interpolate, sign, it, {inserted});
}

// What a macro is called, after the `@`: a word or an operator. An empty text: neither.
std::string macro_name(const State& state, Iterator it) {
  if (it->kind == TokenKind::identifier || it->kind == TokenKind::where)
    return std::string(state.ast.name(it->payload));
  if (it->is_keyword()) return std::string(state.word(it));
  if (it->kind == TokenKind::dollar) return "$";
  return it->is_operator() && !it->dotted() ? state.operator_text(it) : std::string{};
}

// @m a b, @m(a, b), @A.m x, @>> a b; at the `@`.
NodeId parse_macro_call(State& state, Iterator& it) {
  const Iterator at = it++;
  if (it->kind != TokenKind::identifier && state.adjacent(it) && !macro_name(state, it).empty()) {
    const NodeId name = state.name_leaf("@" + macro_name(state, it), at);
    ++it;
    return parse_macro_arguments(state, it, at, name);
  }
  if (it->kind == TokenKind::dot && state.adjacent(it)) {
    ++it;
    if (it->kind == TokenKind::dot && state.adjacent(it)) {
      ++it;
      return parse_macro_arguments(state, it, at, state.name_leaf("@..", at));
    }
    return parse_macro_arguments(state, it, at, state.name_leaf("@__dot__", at));
  }
  if (it->kind != TokenKind::identifier || !state.adjacent(it)) state.fail(it, "a macro's name after `@`");
  std::size_t parts = 1;
  Iterator last = it;
  while ((last + 1)->kind == TokenKind::dot && state.adjacent(last + 1) && (last + 2)->kind == TokenKind::identifier &&
         state.adjacent(last + 2)) {
    last += 2;
    ++parts;
  }
  const NameId macro = state.ast.intern("@" + std::string(state.ast.name(last->payload)));
  if (parts == 1) {
    ++it;
    const NodeId name = state.name_leaf(macro, last);
    return parse_macro_arguments(state, it, at, name);
  }
  NodeId path = state.name_leaf(it->payload, it);
  for (it += 2; it != last; it += 2)
    path = state.make(Head::dot, at, it + 1, {path, state.quoted_name(it->payload, it)});
  path = state.make(Head::dot, at, last + 1, {path, state.quoted_name(macro, last)});
  ++it;
  return parse_macro_arguments(state, it, at, path);
}

// doc"…", md"…"
bool is_text_macro(const State& state, NodeId node) {
  if (state.ast.head(node) != Head::macrocall) return false;
  const std::string_view name = state.ast.name_of(state.ast.child(node, 0));
  return name == "@doc_str" || name == "@md_str" || name == "@raw_str";
}

NodeId parse_macro_arguments(State& state, Iterator& it, Iterator from, NodeId name) {
  const NestingGuard nesting(state, from);
  const std::size_t mark = state.operands.size();
  state.push(name);
  if (it->kind == TokenKind::left_paren && state.adjacent(it)) {
    parse_call_arguments(state, it, "macro call");
    // Arguments of a macro are syntax: `@m(a = 1)` passes the assignment.
    for (std::size_t i = mark; i < state.operands.size(); ++i) {
      const NodeId argument = state.operands[i];
      if (state.ast.head(argument) != Head::kw) continue;
      const NodeId sides[] = {state.ast.child(argument, 0), state.ast.child(argument, 1)};
      state.operands[i] = state.ast.make(Head::assign, state.ast.node(argument).span, sides);
    }
    return state.reduce(Head::macrocall, from, it, mark);
  }
  if (it->kind == TokenKind::left_bracket && state.adjacent(it)) {
    state.push(parse_bracketed(state, it));
    return state.reduce(Head::macrocall, from, it, mark);
  }
  if (it->kind == TokenKind::left_brace && state.adjacent(it)) {
    state.push(parse_braces(state, it));
    return state.reduce(Head::macrocall, from, it, mark);
  }
  ModeGuard guard(state);
  state.mode.space_sensitive = true;
  while (!state.ends_here(it) && !(state.mode.in_brackets && it->kind == TokenKind::kw_for)) {
    if (it->kind == TokenKind::kw_do) {
      state.refuse(it, "a `do` block follows a call with parentheses", "write `@m(f(x)) do y … end`");
    }
    const NodeId argument = parse_statement_expression(state, it);
    if (argument == no_node) state.fail(it, "an argument of the macro");
    state.push(argument);
  }
  // `@doc "…"` takes what is on the next line, as a docstring without it does.
  if (state.operands.size() == mark + 2 && state.ast.name_of(state.operands[mark]) == "@doc" &&
      (is_text(state, state.operands[mark + 1]) || is_text_macro(state, state.operands[mark + 1])) &&
      !state.mode.in_brackets && !closes_body(it) && it->kind != TokenKind::semicolon &&
      state.newlines_before(it) == 1) {
    state.mode.space_sensitive = false;
    state.push(require(state, it, parse_statement_expression(state, it), "what the docstring describes"));
  }
  return state.reduce(Head::macrocall, from, it, mark);
}

}  // namespace slope::syntax::grammar
