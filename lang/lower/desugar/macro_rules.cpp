// Macros of differentiation rules, and those that inspect a call without making it.
#include <utility>

#include "lang/lower/desugar/desugar.hpp"

namespace slope::lower {

// @scalar_rule f(x, y) (px, py)   defines   Base.scalar_partials(::typeof(f), Ω, x, y) = (px, py)
// @scalar_rule f(x) @setup(a = …) p   evaluates the setup first.
Form* Desugar::macro_scalar_rule(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  const NodeId signature = arguments[0];
  if (ast_->head(signature) != Head::call || ast_->child_count(signature) < 2)
    return error(signature, "expected a call f(x, …) in `@scalar_rule`");
  const auto parts = children(signature);
  std::vector<NodeId> setup;
  NodeId partials = arguments.back();
  for (const NodeId extra : arguments.subspan(1, arguments.size() - 2)) {
    if (ast_->head(extra) != Head::macrocall || !is_identifier(ast_->child(extra, 0), "@setup")) {
      // `@scalar_rule f(x, y) px py` is taken as the partials in order.
      std::vector<NodeId> all(arguments.begin() + 1, arguments.end());
      if (parts.size() - 1 != all.size()) return error(extra, "expected the partials as a tuple");
      partials = ast_->make(Head::tuple, at, all);
      setup.clear();
      break;
    }
    const auto statements = children(extra);
    setup.insert(setup.end(), statements.begin() + 1, statements.end());
  }
  if (ast_->head(partials) != Head::tuple)
    partials = ast_->make(Head::tuple, span(partials), std::vector<NodeId>{partials});
  if (ast_->child_count(partials) != parts.size() - 1)
    return error(partials, "`@scalar_rule` needs one partial for each argument");
  const NodeId of = ast_->make(Head::call, at, std::vector<NodeId>{ast_->identifier("typeof", at), parts[0]});
  std::vector<NodeId> parameters{global_name("scalar_partials", at),
                                 ast_->make(Head::type_assert, at, std::vector<NodeId>{of}), ast_->identifier("Ω", at)};
  parameters.insert(parameters.end(), parts.begin() + 1, parts.end());
  std::vector<NodeId> body = setup;
  body.push_back(partials);
  const NodeId definition = ast_->make(
      Head::assign, at, std::vector<NodeId>{ast_->make(Head::call, at, parameters), ast_->make(Head::block, at, body)});
  DefinitionHints hints;
  hints.inline_hint = 1;
  if (module_ == runtime_.base || module_ == runtime_.core)
    return block(at, {function_definition(definition, hints), nothing(at)});
  // Defined before, so that the partials are preferred where both apply.
  Form* reverse = complex_rule(at, parts, "rrule");
  Form* forward = complex_rule(at, parts, "frule");
  return block(at, {reverse, forward, function_definition(definition, hints), nothing(at)});
}

// The partials hold for complex numbers too, of a holomorphic function:
//   Base.rrule(f, x::Number…) = Base.complex_rrule(f, x…)
//   Base.frule(tangents, f, x::Number…) = Base.complex_frule(tangents, f, x…)
Form* Desugar::complex_rule(Span at, std::span<const NodeId> parts, std::string_view rule) {
  const NodeId of = ast_->make(Head::call, at, std::vector<NodeId>{ast_->identifier("typeof", at), parts[0]});
  std::vector<NodeId> parameters{global_name(rule, at)};
  std::vector<NodeId> passed{global_name("complex_" + std::string(rule), at)};
  if (rule == "frule") {
    parameters.push_back(ast_->identifier("tangents", at));
    passed.push_back(ast_->identifier("tangents", at));
  }
  parameters.push_back(ast_->make(Head::type_assert, at, std::vector<NodeId>{of}));
  passed.push_back(parts[0]);
  for (const NodeId parameter : parts.subspan(1)) {
    const bool is_typed = ast_->head(parameter) == Head::type_assert && ast_->child_count(parameter) == 2;
    const NodeId number = ast_->identifier("Number", at);
    parameters.push_back(is_typed ? parameter
                                  : ast_->make(Head::type_assert, at, std::vector<NodeId>{parameter, number}));
    passed.push_back(is_typed ? ast_->child(parameter, 0) : parameter);
  }
  const NodeId definition =
      ast_->make(Head::assign, at,
                 std::vector<NodeId>{ast_->make(Head::call, at, parameters), ast_->make(Head::call, at, passed)});
  return function_definition(definition, {});
}

// Base.name as syntax.
NodeId Desugar::global_name(std::string_view name, Span at) {
  const NodeId member = ast_->leaf(Head::quote_symbol, at);
  ast_->made(member).name = ast_->intern(name);
  return ast_->make(Head::dot, at, std::vector<NodeId>{ast_->identifier("Base", at), member});
}

// @non_differentiable f(x…)   defines   Base.nondifferentiable(::typeof(f), x…) = true
Form* Desugar::macro_non_differentiable(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  const NodeId signature = arguments[0];
  if (ast_->head(signature) != Head::call || ast_->child_count(signature) < 1)
    return error(signature, "expected a call f(x, …) in `@non_differentiable`");
  const auto parts = children(signature);
  const NodeId of = ast_->make(Head::call, at, std::vector<NodeId>{ast_->identifier("typeof", at), parts[0]});
  std::vector<NodeId> parameters{global_name("nondifferentiable", at),
                                 ast_->make(Head::type_assert, at, std::vector<NodeId>{of})};
  parameters.insert(parameters.end(), parts.begin() + 1, parts.end());
  const NodeId yes = ast_->leaf(Head::boolean, at);
  ast_->made(yes).integer = 1;
  const NodeId definition =
      ast_->make(Head::assign, at, std::vector<NodeId>{ast_->make(Head::call, at, parameters), yes});
  return block(at, {function_definition(definition, {}), nothing(at)});
}

Form* Desugar::macro_thunk(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  const std::vector<NodeId> none;
  const NodeId arrow =
      ast_->make(Head::arrow, at, std::vector<NodeId>{ast_->make(Head::tuple, at, none), arguments[0]});
  return base_call(at, "Thunk", {anonymous(arrow)});
}

// The callee and arguments of a call, evaluated but not called.
bool Desugar::split_call(NodeId node, std::vector<Form*>& setup, Form*& callee, std::vector<Form*>& arguments) {
  const Head head = ast_->head(node);
  const auto nodes = children(node);
  const Span at = span(node);
  std::vector<NodeId> operands;
  if (head == Head::call && !nodes.empty()) {
    callee = expression(nodes[0]);
    operands.assign(nodes.begin() + 1, nodes.end());
  } else if (head == Head::ref && !nodes.empty()) {
    callee = base(at, "getindex");
    operands = nodes;
  } else if (head == Head::adjoint && nodes.size() == 1) {
    callee = base(at, "adjoint");
    operands = nodes;
  } else if (head == Head::comparison && nodes.size() == 3) {
    callee = expression(nodes[1]);
    operands = {nodes[0], nodes[2]};
  } else if (head == Head::dot && nodes.size() == 2) {
    callee = base(at, "getproperty");
    operands = nodes;
  } else {
    error(node, "expected a call, such as f(x)");
    return false;
  }
  callee = temporary(callee);
  setup.push_back(callee);
  for (const NodeId operand : operands) {
    const Head kind = ast_->head(operand);
    if (kind == Head::splat || kind == Head::kw || kind == Head::parameters) {
      error(operand, "splats and keyword arguments are not supported here");
      return false;
    }
    setup.push_back(temporary(expression(operand)));
    arguments.push_back(use(setup.back()));
  }
  return true;
}

Form* Desugar::macro_reflection(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  const auto text = identifier_text(*ast_, ast_->child(node, 0));
  std::vector<Form*> setup;
  std::vector<Form*> values;
  Form* callee = nullptr;
  // `name=value` before the call: pairs after the arguments.
  std::vector<Form*> options;
  for (const NodeId option : arguments.first(arguments.size() - 1)) {
    const bool named = (ast_->head(option) == Head::assign || ast_->head(option) == Head::kw) &&
                       ast_->head(ast_->child(option, 0)) == Head::identifier;
    if (!named) return error(option, "expected an option such as `full=true` before the call");
    options.push_back(
        tuple(at, {symbol(at, ast_->name_of(ast_->child(option, 0))), expression(ast_->child(option, 1))}));
  }
  if (!split_call(arguments.back(), setup, callee, values)) return nothing(at);
  std::vector<Form*> given{use(callee), tuple(at, std::move(values))};
  given.insert(given.end(), options.begin(), options.end());
  setup.push_back(base_call(at, text.substr(1), std::move(given)));
  return block(at, std::move(setup));
}

}  // namespace slope::lower
