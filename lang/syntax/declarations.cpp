// Declarations: const, global, local, using, import, export.
#include "lang/syntax/grammar.hpp"

namespace slope::syntax::grammar {

namespace {

using K = TokenKind;

// `global a, b` declares both: the names stand in the node itself, not in a tuple.
void parse_declared_names(State& state, Iterator& it) {
  const Iterator from = it;
  const NodeId names = require(state, it, parse_statement_expression(state, it), "a name or an assignment");
  if (state.ast.head(names) == Head::tuple && from->kind != K::left_paren) {
    for (std::size_t i = 0; i < state.ast.child_count(names); ++i) state.push(state.ast.child(names, i));
  } else {
    state.push(names);
  }
}

bool scope_follows(const State&, Iterator it) { return it->kind == K::kw_global || it->kind == K::kw_local; }

// `global const x = 1` is `const global x = 1`
NodeId parse_scoped_const(State& state, Iterator& it) {
  const Iterator from = it;
  const Head scope = it->kind == K::kw_global ? Head::global_ : Head::local_;
  if ((it + 1)->kind != K::kw_const) return no_node;
  it += 2;
  const std::size_t mark = state.operands.size();
  parse_declared_names(state, it);
  const NodeId inner = state.reduce(scope, from, it, mark);
  return state.make(Head::const_, from, it, {inner});
}

// One name of a path or a list: a word, an operator, @macro, (+), :+
NodeId parse_path_name(State& state, Iterator& it) {
  if (it->kind == K::at && (it + 1)->kind == K::dot && (it + 2)->kind == K::dot) {
    it += 3;
    return state.name_leaf("@..", it - 3);
  }
  if (it->kind == K::at && !macro_name(state, it + 1).empty()) {
    const Iterator at = it;
    it += 2;
    return state.name_leaf("@" + macro_name(state, it - 1), at);
  }
  if (it->kind == K::left_paren && (it + 1)->kind == K::identifier && (it + 2)->kind == K::right_paren) {
    it += 3;
    return state.name_leaf((it - 2)->payload, it - 2);
  }
  if (it->kind == K::identifier || it->kind == K::where) {
    const Iterator name = it++;
    if (it->kind == K::raw_string && state.adjacent(it) && state.ast.name(name->payload) == "var") {
      const Iterator text = it++;
      return state.name_leaf(state.ast.text_of(text->payload), name);
    }
    return state.name_leaf(name->payload, name);
  }
  if (it->kind == K::colon && ((it + 1)->is_operator() || (it + 1)->kind == K::identifier)) ++it;
  if (at_parenthesised_operator(state, it)) {
    it += 3;
    return state.name_leaf(state.operator_text(it - 2), it - 2);
  }
  if (it->is_operator()) {
    const Iterator op = it++;
    return state.operator_leaf(op);
  }
  if (it->kind == K::dollar) return parse_prefix(state, it);
  return no_node;
}

bool is_double_dot(const State& state, Iterator it) {
  return it->kind == K::op && !it->dotted() && state.operator_text(it) == "..";
}

// A.B.c, .A, ..A, Base.+ (whose dot the lexer has taken for a broadcast)
NodeId parse_dot_path(State& state, Iterator& it) {
  const Iterator from = it;
  const std::size_t mark = state.operands.size();
  while (true) {
    std::size_t dots = 0;
    if (it->kind == K::dot) dots = 1;
    if (is_double_dot(state, it)) dots = 2;
    if (it->kind == K::ellipsis) dots = 3;
    if (dots == 0) break;
    for (std::size_t i = 0; i < dots; ++i) state.push(state.name_leaf(".", it));
    ++it;
  }
  const NodeId first = parse_path_name(state, it);
  if (first == no_node) {
    if (it == from) return no_node;
    state.fail(it, "a module's name after `.`");
  }
  state.push(first);
  while (!it->space_before()) {
    if (it->kind == K::dot) {
      ++it;
    } else if (!it->dotted()) {
      break;
    }
    const NodeId part = parse_path_name(state, it);
    if (part == no_node) state.fail(it, "a name after `.`");
    state.push(part);
  }
  if (it->kind == K::identifier && state.ast.name(it->payload) == "as" && state.continues(it)) {
    ++it;
    const NodeId renamed = parse_path_name(state, it);
    if (renamed == no_node) state.fail(it, "a name after `as`");
    state.push(renamed);
    const NodeId made = state.reduce(Head::dot_path, from, it, mark);
    state.ast.made(made).flag = 1;
    return made;
  }
  return state.reduce(Head::dot_path, from, it, mark);
}

void parse_paths(State& state, Iterator& it) {
  const Iterator from = it;
  const std::size_t mark = state.operands.size();
  state.push(require(state, it, parse_dot_path(state, it), "a module's name"));
  const bool selects = it->kind == K::colon && state.continues(it);
  if (selects)
    ++it;
  else if (!(it->kind == K::comma && state.continues(it)))
    return;
  if (!selects) ++it;
  while (true) {
    state.push(require(state, it, parse_dot_path(state, it), selects ? "a name to import" : "a module's name"));
    if (it->kind == K::colon && state.continues(it)) {
      state.refuse(it, "names can be chosen from one module at a time", "write one `using` for each module");
    }
    if (it->kind != K::comma || !state.continues(it)) break;
    ++it;
  }
  if (selects) {
    const NodeId list = state.reduce(Head::import_list, from, it, mark);
    state.push(list);
  }
}

const x3::rule<struct scope_class> scope = "a declaration";
const auto names = pushing<&parse_declared_names>;

const auto scope_def = (ahead<&scope_follows> >> native<&parse_scoped_const>("a declaration")) |
                       node<Head::global_>[token(K::kw_global) > names] |
                       node<Head::local_>[token(K::kw_local) > names];

BOOST_SPIRIT_DEFINE(scope)

const auto const_form = node<Head::const_>[token(K::kw_const) > (scope | names)];
const auto using_form = node<Head::using_>[token(K::kw_using) > pushing<&parse_paths>];
const auto import_form = node<Head::import_>[token(K::kw_import) > pushing<&parse_paths>];
const auto export_form = node<Head::export_>[token(K::kw_export) > pushing<&parse_exports>];

const auto declaration_def = scope | const_form | using_form | import_form | export_form;

}  // namespace

void parse_exports(State& state, Iterator& it) {
  while (true) {
    state.push(require(state, it, parse_path_name(state, it), "a name to export"));
    if (it->kind != K::comma || !state.continues(it)) break;
    ++it;
  }
}

SLOPE_DEFINE_RULE(declaration)

}  // namespace slope::syntax::grammar
