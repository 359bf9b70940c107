// The smallest expressions: literals, names, brackets, quotations, and the keyword forms, which are expressions too.
#include "lang/syntax/grammar.hpp"

namespace slope::syntax::grammar {

NodeId parse_braces(State& state, Iterator& it) {
  const Iterator from = it;
  const std::size_t mark = state.operands.size();
  parse_braced_list(state, it);
  return state.reduce(Head::braces, from, it, mark);
}

namespace {

using K = TokenKind;

bool at_literal(const State&, Iterator it) { return it->kind == K::literal; }
bool at_name(const State&, Iterator it) { return it->kind == K::identifier; }
bool at_string(const State&, Iterator it) { return it->kind == K::string_begin; }
bool at_paren(const State&, Iterator it) { return it->kind == K::left_paren; }
bool at_bracket(const State&, Iterator it) { return it->kind == K::left_bracket; }
bool at_brace(const State&, Iterator it) { return it->kind == K::left_brace; }
bool at_colon(const State&, Iterator it) { return it->kind == K::colon; }
bool at_prefix(const State&, Iterator it) { return it->kind == K::dollar || it->kind == K::double_colon; }
bool at_macro(const State&, Iterator it) { return it->kind == K::at; }
bool at_operator(const State&, Iterator it) { return it->kind == K::op; }
bool at_where(const State&, Iterator it) { return it->kind == K::where; }  // a name where an operand stands
bool at_keyword(const State&, Iterator it) { return it->is_keyword(); }

// `end` and `begin` in an index; abstract type, primitive type, mutable struct, which are two words.
bool at_index_end(const State& state, Iterator it) {
  return state.mode.end_is_name && (it->kind == K::kw_end || it->kind == K::kw_begin);
}
bool at_type_definition(const State& state, Iterator it) {
  if ((it + 1)->kind == K::kw_struct) return it->payload == state.words.mutable_ && !(it + 1)->newline_before();
  return (it + 1)->kind == K::identifier && (it + 1)->payload == state.words.type && !(it + 1)->newline_before() &&
         (it->payload == state.words.abstract || it->payload == state.words.primitive);
}

// `public a, b` of Julia 1.11: what a module offers without exporting it. Nothing depends on it here.
bool at_public(const State& state, Iterator it) {
  const Iterator next = it + 1;
  if (it->payload != state.words.public_ || next->newline_before()) return false;
  if (next->kind == K::at) return true;
  return next->kind == K::identifier && ((next + 1)->kind == K::comma || (next + 1)->kind == K::semicolon ||
                                         (next + 1)->newline_before() || (next + 1)->kind == K::end_of_input);
}
NodeId parse_public(State& state, Iterator& it) {
  const Iterator from = it++;
  const std::size_t mark = state.operands.size();
  parse_exports(state, it);
  state.operands.resize(mark);
  return state.make(Head::nothing, from, it, {});
}

NodeId take_literal(State& state, Iterator& it) {
  if ((it->flags & flag_too_large) != 0) {
    const Span at = state.ast.node(it->payload).span;
    const NodeId parts[] = {state.ast.identifier("@int128_str", at), state.ast.string_leaf("9223372036854775808", at)};
    ++it;
    return state.ast.make(Head::macrocall, at, parts);
  }
  return (it++)->payload;
}

NodeId take_word(State& state, Iterator& it) {
  const Iterator word = it++;
  return state.name_leaf(word->payload, word);
}

NodeId take_operator(State& state, Iterator& it) {
  const Iterator op = it++;
  const NodeId name = state.operator_leaf(op);
  return op->dotted() ? state.make(Head::dot, op, it, {name}) : name;
}

const auto primary_def =
    (ahead<&at_name> >> ((ahead<&at_type_definition> >> definition) |
                         (ahead<&at_public> >> native<&parse_public>("names")) | native<&parse_name>("a name"))) |
    (ahead<&at_literal> >> native<&take_literal>("a literal")) |
    (ahead<&at_paren> >> native<&parse_parenthesised>("`(`")) |
    (ahead<&at_bracket> >> native<&parse_bracketed>("`[`")) |
    (ahead<&at_string> >> native<&parse_interpolated_string>("a string")) |
    (ahead<&at_colon> >> native<&parse_colon>("`:`")) |
    (ahead<&at_macro> >> native<&parse_macro_call>("a macro call")) |
    (ahead<&at_prefix> >> native<&parse_prefix>("an expression")) |
    (ahead<&at_keyword> >>
     ((ahead<&at_index_end> >> native<&take_word>("`end`")) | control_form | definition | declaration)) |
    (ahead<&at_operator> >> native<&take_operator>("an operator")) |
    (ahead<&at_brace> >> native<&parse_braces>("`{`")) | (ahead<&at_where> >> native<&take_word>("a name"));

}  // namespace

SLOPE_DEFINE_RULE(primary)

NodeId parse_primary(State& state, Iterator& it) { return run_for_node(primary, state, it); }

}  // namespace slope::syntax::grammar
