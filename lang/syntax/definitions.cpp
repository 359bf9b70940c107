// Definitions: function, macro, struct, abstract type, primitive type, module.
#include "lang/syntax/grammar.hpp"

namespace slope::syntax::grammar {

namespace {

using K = TokenKind;

bool is_name(const State& state, NodeId node) {
  const Head head = state.ast.head(node);
  return head == Head::identifier || head == Head::dot || head == Head::interpolate;
}

NodeId parse_operator_name(State& state, Iterator& it) {
  const Iterator op = it++;
  const NodeId name = state.operator_leaf(op);
  return op->dotted() ? state.make(Head::dot, op, it, {name}) : name;
}

// f(x), f(x)::T where {T}, (w::T)(x), +(a, b), A.f(x), (x, y) of an anonymous function, or f alone.
NodeId parse_signature(State& state, Iterator& it, const char* expected) {
  const Iterator from = it;
  NodeId signature = no_node;
  {
    ModeGuard guard(state);
    state.mode.where_allowed = false;
    if (it->is_operator() && (it + 1)->kind == K::left_paren) {
      const NodeId name = parse_operator_name(state, it);
      signature = parse_postfix_chain(state, it, from, name, false);
    } else if (it->is_operator() && it->kind != K::colon && state.ends_here(it + 1)) {
      signature = parse_operator_name(state, it);
    } else {
      signature = require(state, it, parse_postfix(state, it), expected);
    }
  }
  // function (:) end: the operator's name, not a parameter
  const bool is_operator_name = it - from == 3 && (from + 1)->is_operator() && it->kind == K::kw_end;
  const bool parenthesised = from->kind == K::left_paren && (it - 1)->kind == K::right_paren && !is_operator_name;
  const Head head = state.ast.head(signature);
  if (parenthesised && head != Head::call && head != Head::tuple && head != Head::block && head != Head::where &&
      head != Head::splat) {
    signature = state.make(Head::tuple, from, it, {signature});  // function (x) … end
  }
  if (it->kind == K::double_colon && state.continues(it)) {
    ++it;
    ModeGuard guard(state);
    state.mode.where_allowed = false;
    const NodeId type = require(state, it, parse_postfix(state, it), "the type of the result after `::`");
    signature = state.make(Head::type_assert, from, it, {signature, type});
  }
  signature = parse_where_chain(state, it, from, signature);
  const bool declares_only = is_name(state, signature) && it->kind == K::kw_end;
  Head shape = state.ast.head(signature);
  NodeId inner = signature;
  while (shape == Head::where || shape == Head::type_assert) {
    inner = state.ast.child(inner, 0);
    shape = state.ast.head(inner);
  }
  const bool has_arguments = shape == Head::call || shape == Head::tuple || shape == Head::block ||
                             shape == Head::splat || shape == Head::interpolate ||
                             (shape == Head::dot_call && state.ast.node(inner).flag == 1);
  if (!declares_only && !has_arguments)
    state.fail(it, "`(` and the arguments", "a definition begins `function f(x, y)`");
  return signature;
}

NodeId parse_function_signature(State& state, Iterator& it) {
  return parse_signature(state, it, "a function's name or arguments");
}
NodeId parse_macro_signature(State& state, Iterator& it) { return parse_signature(state, it, "a macro's name"); }

// `function f end` declares f and has no body.
bool declares_only(const State& state, Iterator it) {
  return it->kind == K::kw_end && is_name(state, state.operands.back());
}

bool names_type(const State& state, NodeId node) {
  const Head head = state.ast.head(node);
  return is_name(state, node) || (head == Head::curly && is_name(state, state.ast.child(node, 0)));
}

// A, A{T}, A{T} <: B
NodeId parse_type_head(State& state, Iterator& it) {
  const Iterator from = it;
  const NodeId head = parse_infix(state, it, Precedence::comparison);
  if (head == no_node) return no_node;
  const bool bounded = state.ast.head(head) == Head::subtype && state.ast.child_count(head) == 2;
  if (!names_type(state, bounded ? state.ast.child(head, 0) : head)) {
    state.fail(from, "a type's name", "a type is defined as `struct A <: B` or `struct A{T}`");
  }
  return head;
}

void skip_words(State&, Iterator& it) { it += 2; }
void skip_semicolons(State&, Iterator& it) {
  while (it->kind == K::semicolon) ++it;
}

bool at_abstract(const State& state, Iterator it) {
  return it->kind == K::identifier && it->payload == state.words.abstract;
}
bool at_primitive(const State& state, Iterator it) {
  return it->kind == K::identifier && it->payload == state.words.primitive;
}
bool at_mutable(const State& state, Iterator it) {
  return it->kind == K::identifier && it->payload == state.words.mutable_;
}

NodeId parse_module_name(State& state, Iterator& it) {
  if (it->kind == K::dollar) return parse_prefix(state, it);  // in a quote
  if (it->kind != K::identifier) return no_node;
  const Iterator name = it++;
  return state.name_leaf(name->payload, name);
}

const auto function_signature = native<&parse_function_signature>("a function's name or arguments");
const auto macro_signature = native<&parse_macro_signature>("a macro's name");
const auto type_head = native<&parse_type_head>("a type's name");
const auto bits = native<&parse_expression>("the number of bits");
const auto module_name = native<&parse_module_name>("a module's name");

const auto function_form =
    form<Head::function>[token(K::kw_function) > function_signature > (ahead<&declares_only> | body)];
const auto macro_form = form<Head::macro_>[token(K::kw_macro) > macro_signature > (ahead<&declares_only> | body)];
const auto struct_form = form<Head::struct_>[token(K::kw_struct) > type_head > body];
const auto mutable_struct_form = form<Head::struct_, 1>[ahead<&at_mutable> >> pushing<&skip_words> > type_head > body];
const auto abstract_form =
    form<Head::abstract_>[ahead<&at_abstract> >> pushing<&skip_words> > type_head > pushing<&skip_semicolons>];
const auto primitive_form =
    form<Head::primitive_>[ahead<&at_primitive> >> pushing<&skip_words> > type_head > bits > pushing<&skip_semicolons>];
const auto module_form = form<Head::module_>[token(K::kw_module) > module_name > documented_body];
const auto bare_module_form = form<Head::module_, 1>[token(K::kw_baremodule) > module_name > documented_body];

const auto definition_def = function_form | struct_form | mutable_struct_form | abstract_form | macro_form |
                            primitive_form | module_form | bare_module_form;

}  // namespace

SLOPE_DEFINE_RULE(definition)

}  // namespace slope::syntax::grammar
