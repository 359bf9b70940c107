// Control: begin, quote, if, while, for, let, try, do, return, break, continue.
#include <utility>

#include "lang/syntax/grammar.hpp"

namespace slope::syntax::grammar {

namespace {

using K = TokenKind;

bool value_follows(const State& state, Iterator it) { return !state.ends_here(it); }
bool bindings_follow(const State& state, Iterator it) {
  return state.continues(it) && it->kind != K::semicolon && it->kind != K::kw_end;
}
bool catch_variable_follows(const State& state, Iterator it) {
  return state.continues(it) && it->kind == K::identifier;
}

NodeId absent_value(State& state, Iterator& it) {
  const NodeId made = state.ast.leaf(Head::nothing, state.span(it - 1, it));
  return made;
}

// `a = 1, b` after let, or the loops of a for: one stands by itself, several in a block.
template <auto Item>
void parse_items(State& state, Iterator& it, const char* expected) {
  const Iterator from = it;
  const std::size_t mark = state.operands.size();
  state.push(require(state, it, Item(state, it), expected));
  while (it->kind == K::comma && state.continues(it)) {
    ++it;
    state.push(require(state, it, Item(state, it), expected));
  }
  const Head only = state.operands.size() - mark == 1 ? state.ast.head(state.operands.back()) : Head::none;
  if (only != Head::assign && only != Head::identifier) {
    const NodeId block = state.reduce(Head::block, from, it, mark, 2);
    state.push(block);
  }
}

void parse_bindings(State& state, Iterator& it) {
  parse_items<&parse_expression>(state, it, "a variable or `name = value`");
}
// `(i = 0; i < n; i++)`
bool is_foreign_loop(Iterator it) {
  if (it->kind != K::left_paren) return false;
  constexpr int most = 100;  // tokens of such a header
  int depth = 0;
  for (int seen = 0; seen < most && it->kind != K::end_of_input; ++seen, ++it) {
    if (depth == 1 && it->kind == K::semicolon) return true;
    if (it->kind == K::left_paren) ++depth;
    if (it->kind == K::right_paren && --depth == 0) return false;
  }
  return false;
}

void parse_loops(State& state, Iterator& it) {
  if (is_foreign_loop(it))
    state.fail(it, "a loop variable", "a loop is written `for i in 1:n … end`; with a condition it is `while … end`");
  parse_items<&parse_iteration>(state, it, "a loop variable");
}

void parse_do_parameters(State& state, Iterator& it) {
  const std::size_t mark = state.operands.size();
  const Iterator from = it;
  if (!state.ends_here(it)) {
    state.push(require(state, it, parse_expression(state, it), "a parameter"));
    while (it->kind == K::comma && state.continues(it)) {
      ++it;
      state.push(require(state, it, parse_expression(state, it), "a parameter"));
    }
  }
  const NodeId parameters = state.reduce(Head::tuple, from, it, mark);
  state.push(parameters);
}

NodeId parse_catch_variable(State& state, Iterator& it) {
  const Iterator name = it++;
  return state.name_leaf(name->payload, name);
}

// From source order (body, variable, catch, else, finally) to the node's (…, finally, else), without absent ones at the
// end.
void arrange_try(State& state, Iterator& it) {
  NodeId* parts = state.operands.data() + state.operands.size() - 5;
  const bool has_catch = parts[2] != no_node;
  if (!has_catch && parts[4] == no_node) {
    if (it->kind != K::kw_end) return;  // the missing `end` is reported
    state.refuse(it, "expected `catch` or `finally` before the `end` of the `try`",
                 "a `try` without either does nothing");
  }
  if (!has_catch && parts[3] != no_node) state.refuse(it, "the `else` of a `try` needs a `catch` before it");
  std::swap(parts[3], parts[4]);
  std::size_t dropped = 0;
  while (dropped < 2 && parts[4 - dropped] == no_node) ++dropped;
  state.operands.resize(state.operands.size() - dropped);
}

void push_documented_statements(State& state, Iterator& it) { parse_statements(state, it, false, true); }

const x3::rule<struct else_branch_class> else_branch = "`elseif`, `else` or `end`";
const auto condition = native<&parse_expression>("a condition");

const auto else_branch_def =
    (token(K::kw_else) > body) |
    node<Head::if_, 1>[token(K::kw_elseif) > node<Head::block>[condition] > body > -nested[else_branch]];

BOOST_SPIRIT_DEFINE(else_branch)

const auto begin_form = form<Head::block>[token(K::kw_begin) > pushing<&push_documented_statements>];
const auto quote_form = form<Head::quote>[token(K::kw_quote) > documented_body];
const auto if_form = form<Head::if_>[token(K::kw_if) > condition > body > -else_branch];
const auto while_form = form<Head::while_>[token(K::kw_while) > condition > body];
const auto for_form = form<Head::for_>[token(K::kw_for) > pushing<&parse_loops> > body];
const auto let_form = form<Head::let_>[token(K::kw_let) > ((ahead<&bindings_follow> >> pushing<&parse_bindings>) |
                                                           node<Head::block>[x3::eps]) > body];

const auto else_part = (token(K::kw_else) > body) | absent;
const auto finally_part = (token(K::kw_finally) > body) | absent;
const auto catch_part =
    (token(K::kw_catch) > ((ahead<&catch_variable_follows> >> native<&parse_catch_variable>("a variable")) | absent) >
     body) |
    (absent >> absent);
const auto try_form =
    form<Head::try_>[token(K::kw_try) > body > catch_part > else_part > finally_part > pushing<&arrange_try>];

const auto return_form = node<Head::return_>[token(K::kw_return) > ((ahead<&value_follows> >> statement_expression) |
                                                                    native<&absent_value>("a value"))];
const auto break_form = node<Head::break_>[token(K::kw_break)];
const auto continue_form = node<Head::continue_>[token(K::kw_continue)];

const auto control_form_def = if_form | for_form | return_form | begin_form | while_form | let_form | quote_form |
                              try_form | break_form | continue_form;

const auto do_block_def = form<Head::arrow>[token(K::kw_do) > pushing<&parse_do_parameters> > body];

}  // namespace

SLOPE_DEFINE_RULE(control_form)
SLOPE_DEFINE_RULE(do_block)

NodeId parse_do_block(State& state, Iterator& it) { return run_for_node(do_block, state, it); }

}  // namespace slope::syntax::grammar
