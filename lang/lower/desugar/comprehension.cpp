// Generators and comprehensions: closures over the element expression, the filter and inner iterators.
//
//   (f(x) for x in xs if p(x))        Generator(x -> f(x), Filter(x -> p(x), xs))
//   (f(x, y) for x in a, y in b)      Generator(((x, y),) -> f(x, y), product(a, b))
//   (f(x, y) for x in a for y in b)   Flatten(Generator(x -> Generator(y -> f(x, y), b), a))
//   [...]                             collect(…), T[...] collect(T, …)
//
// A comprehension's closures are dead when its collect returns, so variables that they capture need no cells
// (Lambda::transient).
#include <array>
#include <utility>

#include "lang/lower/desugar/desugar.hpp"

namespace slope::lower {

// A closure with one parameter per pattern, or one tuple parameter that is destructured into all patterns.
Form* Desugar::simple_closure(Span at, std::span<const NodeId> patterns, bool transient, NodeId body) {
  std::vector<NodeId> parameters;
  if (patterns.size() == 1) {
    parameters.push_back(patterns[0]);
  } else {
    parameters.push_back(ast_->make(Head::tuple, at, patterns));
  }
  const NodeId tuple_node = ast_->make(Head::tuple, at, parameters);
  const NodeId arrow = ast_->make(Head::arrow, at, std::array<NodeId, 2>{tuple_node, body});
  auto signature = parse_signature(ast_, arrow, diagnostics_);
  if (signature == nullptr) return nothing(at);
  Form* made = closure_of(std::move(signature));
  for (Lambda* lambda : made->lambdas) lambda->transient = transient;
  return made;
}

Form* Desugar::generator(NodeId node, bool transient) {
  const auto nodes = children(node);
  const Span at = span(node);
  if (nodes.size() < 2) return error(node, "malformed generator");
  NodeId condition = no_node;
  std::vector<NodeId> iterators;
  if (nodes.size() == 2 && ast_->head(nodes[1]) == Head::filter) {
    const auto parts = children(nodes[1]);
    if (parts.size() < 2) return error(node, "malformed generator");
    condition = parts[0];
    iterators.assign(parts.begin() + 1, parts.end());
  } else {
    iterators.assign(nodes.begin() + 1, nodes.end());
  }
  std::vector<NodeId> patterns;
  std::vector<Form*> sources;
  for (const NodeId iterator : iterators) {
    const auto parts = children(iterator);
    if (ast_->head(iterator) != Head::assign || parts.size() != 2)
      return error(iterator, "expected `variable in iterable` in a generator");
    patterns.push_back(parts[0]);
    sources.push_back(expression(parts[1]));
  }
  Form* items = sources.size() == 1 ? sources[0] : base_call(at, "product", sources);
  if (condition != no_node)
    items = base_call(at, "Filter", {simple_closure(span(condition), patterns, transient, condition), items});
  // `x for x in items if …`: the items as they are, which reductions of none of them ask for.
  const bool plain = patterns.size() == 1 && ast_->head(patterns[0]) == Head::identifier &&
                     ast_->head(nodes[0]) == Head::identifier && ast_->name_of(patterns[0]) == ast_->name_of(nodes[0]);
  Form* value = plain ? base(at, "identity") : simple_closure(span(nodes[0]), patterns, transient, nodes[0]);
  return base_call(at, "Generator", {value, items});
}

// for i in a for j in b: the innermost expression gets variables of its own for those of outer loops that it assigns
// to; the next j sees this iteration's i.
NodeId Desugar::with_own_variables(NodeId node, std::vector<const Symbol*> around) {
  const Head head = ast_->head(node);
  const auto parts = children(node);
  if (head == Head::flatten || head == Head::generator) {
    const auto gather = [&](const auto& self, NodeId pattern) -> void {
      if (const Symbol* sym = identifier(pattern)) return around.push_back(sym);
      for (const NodeId child : children(pattern)) self(self, child);
    };
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const auto loops = ast_->head(parts[i]) == Head::filter ? children(parts[i]) : std::vector<NodeId>{parts[i]};
      for (const NodeId loop : loops)
        if (ast_->head(loop) == Head::assign) gather(gather, ast_->child(loop, 0));
    }
    if (parts.empty()) return node;
    const NodeId inner = with_own_variables(parts[0], std::move(around));
    if (inner == parts[0]) return node;
    std::vector<NodeId> made(parts.begin(), parts.end());
    made[0] = inner;
    return ast_->make(head, span(node), made, ast_->node(node).flag);
  }
  std::vector<NodeId> own;
  for (const Symbol* variable : around) {
    if (!assigns(node, variable)) continue;
    const NodeId named = ast_->identifier(variable->name, span(node));
    own.push_back(ast_->make(Head::assign, span(node), std::array<NodeId, 2>{named, named}));
  }
  if (own.empty()) return node;
  const NodeId bindings = ast_->make(Head::block, span(node), own);
  return ast_->make(Head::let_, span(node), std::array<NodeId, 2>{bindings, node});
}

Form* Desugar::flattened(NodeId node, bool transient) {
  const auto nodes = children(node);
  if (nodes.size() != 1) return error(node, "malformed generator");
  if (ast_->head(nodes[0]) != Head::generator) return error(node, "malformed generator");
  // The inner generator is this one's element expression; it is as short-lived as we are.
  const NodeId whole = with_own_variables(nodes[0], {});
  const NodeId element = ast_->child_count(whole) > 0 ? ast_->child(whole, 0) : no_node;
  const NodeId outer = std::exchange(transient_node_, transient ? element : no_node);
  Form* items = generator(whole, transient);
  transient_node_ = outer;
  return base_call(span(node), "Flatten", {items});
}

Form* Desugar::comprehension(NodeId node) {
  const auto nodes = children(node);
  const bool typed = ast_->head(node) == Head::typed_comprehension;
  const Span at = span(node);
  if (nodes.size() != (typed ? 2u : 1u)) return error(node, "malformed comprehension");
  const NodeId inner = nodes.back();
  std::vector<Form*> operands;
  if (typed) operands.push_back(expression(nodes[0]));
  switch (ast_->head(inner)) {
    case Head::generator:
      operands.push_back(generator(inner, true));
      break;
    case Head::flatten:
      operands.push_back(flattened(inner, true));
      break;
    default:
      return error(node, "malformed comprehension");
  }
  return base_call(at, "collect", std::move(operands));
}

}  // namespace slope::lower
