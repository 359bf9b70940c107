// Quotes: op `expr` builds the Expr value, fresh each time; `$e` puts in the value of e, `$(xs...)` all of its
// elements.
#include <functional>
#include <utility>

#include "lang/ir/execute/execute.hpp"
#include "lang/lower/desugar/desugar.hpp"
#include "lang/lower/expr.hpp"

namespace slope::lower {

bool Desugar::has_interpolation(NodeId node, int depth) const {
  const Head head = ast_->head(node);
  if (head == Head::interpolate && depth == 0) return true;
  const bool deeper = head == Head::quote && ast_->node(node).flag != 1;  // not the name of a.$x
  const int inner = depth + (deeper ? 1 : head == Head::interpolate ? -1 : 0);
  for (const NodeId child : ast_->children(node))
    if (has_interpolation(child, inner)) return true;
  return false;
}

// The value of the quote around `node`.
Form* Desugar::quoted(NodeId node, int depth) {
  if (ast_->head(node) == Head::quote_symbol) {
    // :(:a) is a QuoteNode.
    return quoted_node(node, depth);
  }
  return quoted_node(node, depth);
}

Form* Desugar::quoted_node(NodeId node, int depth) {
  const Span at = span(node);
  const Head head = ast_->head(node);
  if (head == Head::interpolate && depth == 0) {
    const auto nodes = children(node);
    if (nodes.size() != 1) return error(node, "malformed `$`");
    if (ast_->head(nodes[0]) == Head::splat) return error(node, "`$(xs...)` stands only among arguments");
    return expression(nodes[0]);
  }
  if (head == Head::quote && ast_->node(node).flag == 1 && ast_->child_count(node) == 1 &&
      ast_->head(ast_->child(node, 0)) == Head::interpolate) {
    // a.$x: the name is data.
    Form* type = constant(at, runtime_.from_type(runtime_.types.builtin().quote_node));
    return operation(at, ir::Op::make_struct, {type, quoted_node(ast_->child(node, 0), depth)});
  }
  const ExprShape shape = shape_of(runtime_, ctx_, *ast_, node);
  if (shape.leaf.defined()) return constant(at, shape.leaf);
  const int inner = depth + (head == Head::quote ? 1 : head == Head::interpolate ? -1 : 0);
  using Parts = std::vector<ExprPart>;
  std::function<Form*(std::string_view, const Parts&)> build = [&](std::string_view expr_head,
                                                                   const Parts& parts) -> Form* {
    std::vector<Form*> operands{symbol(at, expr_head)};
    std::uintptr_t splats = 0;
    for (const ExprPart& part : parts) {
      if (part.value.defined()) {
        operands.push_back(constant(at, part.value));
        continue;
      }
      if (ast_->head(part.node) == Head::interpolate && inner == 0 && ast_->child_count(part.node) == 1 &&
          ast_->head(ast_->child(part.node, 0)) == Head::splat && ast_->child_count(ast_->child(part.node, 0)) == 1) {
        if (operands.size() >= 62) return error(part.node, "too many parts before `$(xs...)`");
        splats |= std::uintptr_t{1} << (operands.size() + 1);
        operands.push_back(expression(ast_->child(ast_->child(part.node, 0), 0)));
        continue;
      }
      if (part.node == node) {
        // f.(a, b): the arguments as a tuple.
        Parts arguments;
        const auto nodes = children(node);
        for (std::size_t i = 1; i < nodes.size(); ++i) arguments.push_back(ExprPart{nodes[i], Value()});
        operands.push_back(build("tuple", arguments));
        continue;
      }
      if (ast_->head(part.node) == Head::interpolate && inner == 0 && ast_->child_count(part.node) == 1 &&
          ast_->head(ast_->child(part.node, 0)) == Head::macrocall)
        argument_macro_ = ast_->child(part.node, 0);
      Form* made = quoted_node(part.node, inner);
      argument_macro_ = syntax::no_node;
      if (std::exchange(argument_is_splat_, false)) {
        if (operands.size() >= 62) return error(part.node, "too many parts before `$(xs...)`");
        splats |= std::uintptr_t{1} << (operands.size() + 1);
      }
      operands.push_back(made);
    }
    if (splats == 0) return operation(at, ir::Op::expr, std::move(operands));
    if (operands.size() > 62) return error(node, "too many parts beside `$(xs...)`");
    operands.insert(operands.begin(), constant(at, ir::builtin_op(runtime_.types.builtin(), ir::Op::expr)));
    Form* made = call(at, std::move(operands));
    made->aux = splats;
    return made;
  };
  return build(shape.head, shape.parts);
}

}  // namespace slope::lower
