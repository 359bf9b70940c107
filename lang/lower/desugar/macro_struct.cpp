// @kwdef: a struct whose fields may have defaults, and constructors that take the fields as keywords.
#include <utility>

#include "lang/lower/desugar/desugar.hpp"

namespace slope::lower {

// @kwdef struct P{T} <: A; x::T = 1; y; end becomes
//   struct P{T} <: A; x::T; y; end
//   P(; x = 1, y) = P(x, y)
//   P{T}(; x = 1, y) where {T} = P{T}(x, y)
Form* Desugar::macro_kwdef(NodeId node, std::span<const NodeId> arguments) {
  const Span at = span(node);
  const NodeId definition = expanded_target(arguments[0]);  // @kwdef @m struct …
  if (ast_->head(definition) != Head::struct_ || ast_->child_count(definition) != 2)
    return error(node, "`@kwdef` stands before a struct definition");
  const NodeId signature = ast_->child(definition, 0);
  NodeId header = signature;
  if (ast_->head(header) == Head::subtype && ast_->child_count(header) == 2) header = ast_->child(header, 0);
  std::vector<NodeId> type_parameters;
  NodeId type_name = header;
  if (ast_->head(header) == Head::curly && ast_->child_count(header) > 0) {
    type_parameters = children(header);
    type_name = type_parameters[0];
    type_parameters.erase(type_parameters.begin());
  }

  std::vector<NodeId> names;
  std::vector<NodeId> keywords;
  // The field as a struct holds it: without its default.
  const auto field = [&](const auto& self, NodeId declared) -> NodeId {
    const auto parts = children(declared);
    switch (ast_->head(declared)) {
      case Head::macrocall:  // "documentation" of a field
        if (parts.size() != 3 || !is_identifier(parts[0], "@doc")) return declared;
        return self(self, parts[2]);
      case Head::const_: {
        const NodeId inner = parts.size() == 1 ? self(self, parts[0]) : no_node;
        return inner == no_node ? declared : ast_->make(Head::const_, span(declared), std::vector<NodeId>{inner});
      }
      case Head::assign: {
        NodeId target = parts.size() == 2 ? parts[0] : no_node;
        if (ast_->head(target) == Head::type_assert && ast_->child_count(target) == 2) target = ast_->child(target, 0);
        if (ast_->head(target) != Head::identifier) return declared;  // a constructor
        names.push_back(target);
        keywords.push_back(ast_->make(Head::kw, span(declared), std::vector<NodeId>{target, parts[1]}));
        return parts[0];
      }
      case Head::type_assert:
      case Head::identifier: {
        const NodeId name = ast_->head(declared) == Head::identifier || parts.empty() ? declared : parts[0];
        names.push_back(name);
        keywords.push_back(name);
        return declared;
      }
      default:
        return declared;
    }
  };
  std::vector<NodeId> fields;
  for (const NodeId declared : children(ast_->child(definition, 1))) fields.push_back(field(field, declared));
  const NodeId body = ast_->make(Head::block, span(ast_->child(definition, 1)), fields);
  std::vector<NodeId> statements{
      ast_->make(Head::struct_, span(definition), std::vector<NodeId>{signature, body}, ast_->node(definition).flag)};

  const auto constructor = [&](NodeId callee) {
    const std::vector<NodeId> head{callee, ast_->make(Head::parameters, at, keywords)};
    std::vector<NodeId> call{callee};
    call.insert(call.end(), names.begin(), names.end());
    const NodeId made = ast_->make(Head::call, at, call);
    return std::pair(ast_->make(Head::call, at, head), ast_->make(Head::block, at, std::vector<NodeId>{made}));
  };
  if (!names.empty()) {
    const auto [plain, plain_body] = constructor(type_name);
    statements.push_back(ast_->make(Head::function, at, std::vector<NodeId>{plain, plain_body}));
    if (!type_parameters.empty()) {
      std::vector<NodeId> applied{type_name};
      for (NodeId parameter : type_parameters) {
        while (ast_->child_count(parameter) > 0) parameter = ast_->child(parameter, 0);
        applied.push_back(parameter);
      }
      const auto [typed, typed_body] = constructor(ast_->make(Head::curly, at, applied));
      std::vector<NodeId> where{typed};
      where.insert(where.end(), type_parameters.begin(), type_parameters.end());
      statements.push_back(
          ast_->make(Head::function, at, std::vector<NodeId>{ast_->make(Head::where, at, where), typed_body}));
    }
  }
  return expression(ast_->make(Head::block, at, statements));
}

}  // namespace slope::lower
