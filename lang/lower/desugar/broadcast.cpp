// Dotted calls. Nested ones fuse: f.(x, g.(y)) is Base.materialize(Base.broadcasted(f, x, Base.broadcasted(g, y))).
#include <utility>

#include "lang/lower/desugar/desugar.hpp"

namespace slope::lower {

bool Desugar::is_dotted(NodeId node) const {
  const Head head = ast_->head(node);
  if (head == Head::dot_call) return true;
  if (head == Head::comparison) {
    const auto nodes = ast_->children(node);
    for (std::size_t i = 1; i < nodes.size(); i += 2) {
      const auto op = identifier_text(*ast_, nodes[i]);
      if (op.size() > 1 && op[0] == '.') return true;
    }
  }
  return false;
}

Form* Desugar::broadcast_operand(NodeId node) {
  return ast_->head(node) == Head::dot_call ? broadcast(node) : expression(node);
}

Form* Desugar::broadcast(NodeId node) {
  if (ast_->head(node) != Head::dot_call) return expression(node);
  const auto nodes = children(node);
  const Span at = span(node);
  if (nodes.empty()) return error(node, "malformed broadcast");
  std::vector<Form*> operands{base(at, "broadcasted")};
  const auto text = identifier_text(*ast_, nodes[0]);
  if (ast_->node(node).flag == 1 && (text == "&&" || text == "||")) {
    operands.push_back(base(at, text == "&&" ? "andand" : "oror"));
  } else if (text == "^" && nodes.size() == 3 && ast_->head(nodes[2]) == Head::integer &&
             ast_->node(nodes[2]).flag == 0) {
    // x .^ 2, as for x^2.
    const Type* parameter = runtime_.types.value_int(ast_->node(nodes[2]).integer);
    const DataType* val = runtime_.types.apply(runtime_.types.builtin().val_name, std::span(&parameter, 1));
    operands.push_back(base(at, "literal_pow"));
    operands.push_back(expression(nodes[0]));
    operands.push_back(broadcast_operand(nodes[1]));
    operands.push_back(val->instance.defined()
                           ? constant(at, val->instance)
                           : operation(at, ir::Op::make_struct, {constant(at, runtime_.from_type(val))}));
    return call(at, std::move(operands));
  } else {
    operands.push_back(expression(nodes[0]));
  }
  std::uintptr_t splats = 0;
  std::vector<NodeId> keywords;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Head head = ast_->head(nodes[i]);
    if (head == Head::kw) {
      keywords.push_back(nodes[i]);
    } else if (head == Head::parameters) {
      const auto entries = children(nodes[i]);
      keywords.insert(keywords.end(), entries.begin(), entries.end());
    } else if (head == Head::splat && ast_->child_count(nodes[i]) == 1) {
      if (operands.size() >= 64) return error(nodes[i], "a call with a splat takes at most 63 arguments");
      splats |= std::uintptr_t{1} << operands.size();
      operands.push_back(expression(ast_->child(nodes[i], 0)));
    } else {
      operands.push_back(broadcast_operand(nodes[i]));
    }
  }
  if (splats != 0 && operands.size() > 64) return error(node, "a call with a splat takes at most 63 arguments");
  if (!keywords.empty()) {
    // Keywords are not broadcast over: f.(x; k=v) calls f with them for each element.
    operands[1] = base_call(at, "WithKeywords", {operands[1], named_tuple_of(at, keywords)});
  }
  Form* made = call(at, std::move(operands));
  made->aux = splats;
  return made;
}

Form* Desugar::materialized(NodeId node) { return base_call(span(node), "materialize", {broadcast(node)}); }

}  // namespace slope::lower
