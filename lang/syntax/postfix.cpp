// What follows a primary without space: calls, indices, type parameters, fields, broadcast calls, adjoints, `do`.
#include "lang/syntax/expression.hpp"
#include "lang/syntax/foreign.hpp"

namespace slope::syntax::grammar {

namespace {

// In parentheses and braces line breaks are space and operators read as usual.
Mode bracket_mode(const State& state) {
  Mode mode;
  mode.newline_is_space = true;
  mode.in_brackets = true;
  mode.end_is_name = state.mode.end_is_name;
  return mode;
}

NodeId parse_argument(State& state, Iterator& it) {
  const Iterator from = it;
  const NodeId argument = require(state, it, parse_expression(state, it), "an argument or `)`");
  return at_generator(state, it) ? parse_generator(state, it, from, argument) : argument;
}

// After the dot of a.b; the dot has been read.
NodeId parse_field(State& state, Iterator& it, Iterator from, NodeId base) {
  if (it->kind == TokenKind::left_paren && state.adjacent(it)) {
    const std::size_t mark = state.operands.size();
    state.push(base);
    parse_call_arguments(state, it, "call");
    return state.reduce(Head::dot_call, from, it, mark);
  }
  if (it->kind == TokenKind::identifier || it->is_keyword() || it->kind == TokenKind::where) {
    const Iterator name = it++;
    if (it->kind == TokenKind::raw_string && state.adjacent(it)) {
      if (state.ast.name(name->payload) == "var") {  // a.var"b c"
        const Iterator text = it++;
        const NameId field = state.ast.intern(state.ast.text_of(text->payload));
        return state.make(Head::dot, from, it, {base, state.quoted_name(field, text)});
      }
      const std::string macro = "@" + std::string(state.ast.name(name->payload)) + "_str";
      const NodeId path = state.make(Head::dot, from, it, {base, state.quoted_name(state.ast.intern(macro), name)});
      const Iterator text = it++;
      return state.make(Head::macrocall, from, it, {path, text->payload});
    }
    return state.make(Head::dot, from, it, {base, state.quoted_name(name->payload, name)});
  }
  // a.in, and Base. *
  if (it->is_operator() && it->kind != TokenKind::colon && !it->dotted() &&
      (it->payload == op_in || it->payload == op_isa || it->kind == TokenKind::op)) {
    const Iterator name = it++;
    return state.make(Head::dot, from, it,
                      {base, state.quoted_name(state.ast.intern(state.operator_text(name)), name)});
  }
  if (it->kind == TokenKind::question) {
    const Iterator name = it++;
    return state.make(Head::dot, from, it, {base, state.quoted_name(state.ast.intern("?"), name)});
  }
  if (it->kind == TokenKind::literal && state.ast.head(it->payload) == Head::string) {  // for macros
    const Iterator text = it++;
    return state.make(Head::dot, from, it, {base, text->payload});
  }
  if (it->kind == TokenKind::colon) {
    const NodeId quoted = parse_colon(state, it);
    if (state.ast.head(quoted) == Head::quote && state.ast.head(state.ast.child(quoted, 0)) == Head::integer)
      return state.make(Head::dot, from, it, {base, state.ast.child(quoted, 0)});
    if (state.ast.head(quoted) == Head::quote)  // a.:($name), as a.$name
      return state.make(Head::dot, from, it, {base, quoted});
    if (state.ast.head(quoted) == Head::quote_symbol) return state.make(Head::dot, from, it, {base, quoted});
    state.refuse(it - 1, "a field is named by a symbol", "write `a.b`, or `getfield(a, name)` for a computed name");
  }
  if (it->kind == TokenKind::left_bracket) {  // a.[i]: a quoted vector, for macros
    const Iterator bracket = it;
    const NodeId items = parse_primary(state, it);
    return state.make(Head::dot, from, it, {base, state.make(Head::quote, bracket, it, {items})});
  }
  if (it->kind == TokenKind::dollar) {
    const Iterator dollar = it;
    const NodeId inserted = parse_prefix(state, it);
    const NodeId quoted = state.make(Head::quote, dollar, it, {inserted}, 1);
    return state.make(Head::dot, from, it, {base, quoted});
  }
  if (it->kind == TokenKind::at) {
    const Iterator at = it++;
    const std::string name = macro_name(state, it);
    if (name.empty()) state.fail(it, "a macro's name after `@`");
    ++it;
    const NameId macro = state.ast.intern("@" + name);
    const NodeId path = state.make(Head::dot, from, it, {base, state.quoted_name(macro, at)});
    return parse_macro_arguments(state, it, from, path);
  }
  state.fail(it, "a field name after `.`");
}

bool accepts_do(const State& state, NodeId call) {
  const Head head = state.ast.head(call);
  return head == Head::call || head == Head::macrocall;
}

}  // namespace

NodeId to_keyword_argument(State& state, NodeId argument) {
  if (state.ast.head(argument) != Head::assign) return argument;
  const Span span = state.ast.node(argument).span;
  const NodeId parts[] = {state.ast.child(argument, 0), state.ast.child(argument, 1)};
  return state.ast.make(Head::kw, span, parts);
}

void parse_call_arguments(State& state, Iterator& it, std::string_view what) {
  const Iterator paren = it++;
  ModeGuard guard(state, bracket_mode(state));
  const OpenerGuard opener(state, paren);
  const std::size_t mark = state.operands.size();
  const auto parse_list = [&] {
    while (it->kind != TokenKind::right_paren && it->kind != TokenKind::semicolon) {
      state.push(to_keyword_argument(state, parse_argument(state, it)));
      if (it->kind != TokenKind::comma) break;
      ++it;
    }
  };
  parse_list();
  if (it->kind == TokenKind::semicolon) {
    const Iterator semicolon = it++;
    const std::size_t named = state.operands.size();
    parse_list();
    if (it->kind == TokenKind::semicolon)
      state.refuse(it, "a call has at most one `;`", "separate keyword arguments with commas");
    const NodeId parameters = state.reduce(Head::parameters, semicolon, it, named);
    state.operands.insert(state.operands.begin() + static_cast<std::ptrdiff_t>(mark), parameters);
  }
  if (it->kind != TokenKind::right_paren) {
    state.fail_to_close(it, paren, "`,` or `)`", what);
  }
  ++it;
}

void parse_braced_list(State& state, Iterator& it) {
  const Iterator brace = it++;
  ModeGuard guard(state, bracket_mode(state));
  const OpenerGuard opener(state, brace);
  const std::size_t mark = state.operands.size();
  const auto parse_list = [&] {
    while (it->kind != TokenKind::right_brace && it->kind != TokenKind::semicolon) {
      state.push(require(state, it, parse_expression(state, it), "a type parameter or `}`"));
      if (it->kind != TokenKind::comma) break;
      ++it;
    }
  };
  parse_list();
  // `{X; Y}` is syntax for macros.
  if (it->kind == TokenKind::semicolon) {
    const Iterator semicolon = it++;
    const std::size_t named = state.operands.size();
    parse_list();
    const NodeId parameters = state.reduce(Head::parameters, semicolon, it, named);
    state.operands.insert(state.operands.begin() + static_cast<std::ptrdiff_t>(mark), parameters);
  }
  if (it->kind != TokenKind::right_brace) state.fail_to_close(it, brace, "`,` or `}`", "type parameters");
  ++it;
}

NodeId parse_postfix(State& state, Iterator& it) {
  const Iterator from = it;
  const NodeId base = parse_primary(state, it);
  if (base == no_node) return no_node;
  const bool is_number = it == from + 1 && from->kind == TokenKind::literal && (from->flags & flag_number) != 0;
  return parse_postfix_chain(state, it, from, base, is_number);
}

NodeId parse_postfix_chain(State& state, Iterator& it, Iterator from, NodeId base, bool is_number) {
  while (true) {
    if (it->space_before()) {
      if (it->kind == TokenKind::kw_do && state.continues(it) && accepts_do(state, base)) {
        const NodeId function = parse_do_block(state, it);
        base = state.make(Head::do_, from, it, {base, function});
        continue;
      }
      if (is_number && it->kind == TokenKind::left_paren) return base;  // a factor, were there no space
      const bool detached = (it->kind == TokenKind::left_paren || it->kind == TokenKind::left_bracket) &&
                            !it->newline_before() && !state.mode.space_sensitive;
      if (detached) {
        const bool call = it->kind == TokenKind::left_paren;
        // `switch (x) {`, `foreach (x in xs)`: a word of another language and not a function.
        const std::string foreign = call && it == from + 1 ? foreign_word_help(state.word(from)) : std::string();
        if (!foreign.empty()) state.fail(it, "the end of the line or `;` after the statement", foreign);
        state.refuse(it, std::string("no space may stand before `") + (call ? "(` in a call" : "[` in an index"),
                     call ? "write `f(x)`" : "write `a[i]`");
      }
      // (a\n.b) inside parentheses goes on
      if (!(it->kind == TokenKind::dot && it->newline_before() && state.mode.newline_is_space)) return base;
    }
    switch (it->kind) {
      case TokenKind::left_paren: {
        if (is_number) return base;
        const std::size_t mark = state.operands.size();
        const bool dotted_operator = state.ast.head(base) == Head::dot && state.ast.child_count(base) == 1;
        state.push(dotted_operator ? state.ast.child(base, 0) : base);
        parse_call_arguments(state, it, "call");
        base = dotted_operator ? state.reduce(Head::dot_call, from, it, mark, 1)
                               : state.reduce(Head::call, from, it, mark);
        break;
      }
      case TokenKind::left_bracket:
        base = parse_indexed(state, it, from, base);
        break;
      case TokenKind::left_brace: {
        if (is_number) return base;
        const std::size_t mark = state.operands.size();
        state.push(base);
        parse_braced_list(state, it);
        base = state.reduce(Head::curly, from, it, mark);
        break;
      }
      case TokenKind::dot:
        if (is_number) return base;
        ++it;
        base = parse_field(state, it, from, base);
        break;
      case TokenKind::adjoint:
        ++it;
        base = state.make(Head::adjoint, from, it, {base});
        break;
      default:
        return base;
    }
    is_number = false;
  }
}

}  // namespace slope::syntax::grammar
