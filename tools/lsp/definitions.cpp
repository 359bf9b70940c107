#include "tools/lsp/definitions.hpp"

#include <algorithm>

#include "tools/lsp/scopes.hpp"

namespace slope::api::tools::lsp {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

namespace {

// A value that costs nothing and depends on nothing: numbers, strings, and arrays, tuples and sums of such.
bool is_plain_value(const Ast& ast, NodeId node, int depth = 0) {
  if (depth > 20) return false;
  switch (ast.head(node)) {
    case Head::integer:
    case Head::floating:
    case Head::float32:
    case Head::character:
    case Head::string:
    case Head::boolean:
    case Head::nothing:
    case Head::quote_symbol:
      return true;
    case Head::vect:
    case Head::tuple:
    case Head::hcat:
    case Head::vcat:
    case Head::row:
      return std::all_of(ast.children(node).begin(), ast.children(node).end(), [&](NodeId child) {
        return is_plain_value(ast, ast.head(child) == Head::assign ? ast.child(child, 1) : child, depth + 1);
      });
    case Head::call: {
      const std::string_view op = ast.name_of(ast.child(node, 0));
      if (op != "+" && op != "-" && op != "*" && op != "/" && op != ":") return false;
      const auto arguments = ast.children(node).subspan(1);
      return std::all_of(arguments.begin(), arguments.end(),
                         [&](NodeId child) { return is_plain_value(ast, child, depth + 1); });
    }
    default:
      return false;
  }
}

// Without documentation and other macros around it. `is_plain`: only such as leave a definition what it is.
NodeId unwrapped(const Ast& ast, NodeId node, bool& is_plain) {
  while (ast.head(node) == Head::macrocall && ast.child_count(node) > 1) {
    const std::string_view name = ast.name_of(ast.child(node, 0));
    if (name == "@enum" || name == "@deprecate") return node;
    is_plain = is_plain && (name == "@doc" || name == "@inline" || name == "@noinline");
    node = ast.children(node).back();
  }
  return node;
}

// `for op in (:+, :-) … @eval … end`: methods for a list of names that is written there.
bool makes_methods(const Ast& ast, NodeId node) {
  const NodeId head = ast.child(node, 0), body = ast.child(node, 1);
  const bool over_list = ast.head(head) == Head::assign && is_plain_value(ast, ast.child(head, 1));
  const auto statements = ast.children(body);
  return over_list && !statements.empty() && std::all_of(statements.begin(), statements.end(), [&](NodeId each) {
           return ast.head(each) == Head::macrocall && ast.name_of(ast.child(each, 0)) == "@eval";
         });
}

bool is_type_expression(const Ast& ast, NodeId node) {
  switch (ast.head(node)) {
    case Head::curly:
    case Head::identifier:
    case Head::where:
      return true;
    case Head::tuple:
      return std::all_of(ast.children(node).begin(), ast.children(node).end(),
                         [&](NodeId each) { return is_type_expression(ast, each); });
    default:
      return false;
  }
}

bool is_definition(const Ast& ast, NodeId node) {
  switch (ast.head(node)) {
    case Head::macrocall: {
      const std::string_view name = ast.name_of(ast.child(node, 0));
      return name == "@enum" || name == "@deprecate";
    }
    case Head::for_:
      return makes_methods(ast, node);
    case Head::function:
      return ast.child_count(node) > 0 && ast.head(ast.child(node, 0)) != Head::tuple;
    case Head::macro_:
    case Head::struct_:
    case Head::abstract_:
    case Head::primitive_:
    case Head::using_:
    case Head::import_:
    case Head::module_:
    case Head::export_:
      return true;
    case Head::assign:
      return is_short_function(ast, node) ||
             (ast.head(ast.child(node, 0)) == Head::identifier && is_plain_value(ast, ast.child(node, 1))) ||
             (ast.head(ast.child(node, 0)) == Head::curly && is_type_expression(ast, ast.child(node, 1)));
    case Head::const_: {
      const NodeId inner = ast.child(node, 0);
      if (ast.head(inner) != Head::assign) return false;
      const Head left = ast.head(ast.child(inner, 0));
      return (left == Head::identifier && is_plain_value(ast, ast.child(inner, 1))) ||
             ((left == Head::identifier || left == Head::curly || left == Head::tuple) &&
              is_type_expression(ast, ast.child(inner, 1)));
    }
    default:
      return false;
  }
}

class Reader {
 public:
  Reader(std::string_view text, const Ast& ast) : text_(text), ast_(ast) {}

  std::vector<Definition> run() {
    for (const NodeId statement : ast_.children(ast_.root)) {
      bool is_plain = true;
      const NodeId inner = unwrapped(ast_, statement, is_plain);
      if (!is_definition(ast_, inner)) continue;
      const Span span = ast_.node(statement).span;
      if (span.end > text_.size() || span.begin >= span.end) continue;
      Definition made;
      made.begin = span.begin;
      made.node = statement;
      made.node_begin = span.begin;
      made.text = std::string(text_.substr(span.begin, span.end - span.begin));
      if (ast_.head(inner) == Head::module_) {
        made.kind = Definition::Kind::module;
        blank_statements(made, ast_.child(inner, 1));
      } else if (is_plain && (ast_.head(inner) == Head::function || is_short_function(ast_, inner)) &&
                 ast_.child_count(inner) == 2) {
        made.kind = Definition::Kind::function;
        const Span signature = ast_.node(ast_.child(inner, 0)).span;
        made.signature = std::string(text_.substr(signature.begin, signature.end - signature.begin));
      }
      add_path(made, inner);
      mentioned(statement, made.mentions);
      std::sort(made.mentions.begin(), made.mentions.end());
      made.mentions.erase(std::unique(made.mentions.begin(), made.mentions.end()), made.mentions.end());
      found_.push_back(std::move(made));
    }
    return std::move(found_);
  }

 private:
  // What else a module's body does, its statements, is left out.
  void blank_statements(Definition& made, NodeId body) {
    for (const NodeId statement : ast_.children(body)) {
      bool is_plain = true;
      const NodeId inner = unwrapped(ast_, statement, is_plain);
      if (ast_.head(inner) == Head::module_) {
        blank_statements(made, ast_.child(inner, 1));
      } else if (!is_definition(ast_, inner)) {
        blank(made, statement);
      }
    }
  }

  // Of an assignment its name stays, which may be one of the library too: `x = 0`.
  void blank(Definition& made, NodeId statement) const {
    Span span = ast_.node(statement).span;
    NodeId assigned = statement;
    if (ast_.head(statement) == Head::const_) assigned = ast_.child(statement, 0);
    const bool has_name = ast_.head(assigned) == Head::assign && ast_.head(ast_.child(assigned, 0)) == Head::identifier;
    const Span name = has_name ? ast_.node(ast_.child(assigned, 0)).span : span;
    const Span value = has_name ? ast_.node(ast_.child(assigned, 1)).span : span;
    for (std::uint32_t at = span.begin; at < span.end && at >= made.begin && at < made.end(); ++at) {
      char& c = made.text[at - made.begin];
      const bool is_kept = has_name && ((at >= name.begin && at < name.end) || (at >= name.end && at < value.begin));
      if (c != '\n' && !is_kept) c = has_name && at == value.begin ? '0' : ' ';
    }
  }

  void add_path(Definition& made, NodeId node) {
    NodeId named = ast_.child(node, 0);
    switch (ast_.head(node)) {
      case Head::using_:
      case Head::import_:
      case Head::export_:
      case Head::for_:
      case Head::macrocall:
        return;
      case Head::const_:
        named = ast_.child(named, 0);
        break;
      case Head::macro_:
        if (const NodeId id = defined_identifier(ast_, named); id != no_node)
          made.paths.push_back("@" + std::string(ast_.name_of(id)));
        return;
      default:
        break;
    }
    if (const NodeId call = signature_call(ast_, named); call != no_node) named = ast_.child(call, 0);
    while (ast_.head(named) == Head::curly || ast_.head(named) == Head::subtype) named = ast_.child(named, 0);
    std::string path;
    for (; ast_.head(named) == Head::dot; named = ast_.child(named, 0))
      path = "." + std::string(ast_.name_of(ast_.child(named, 1))) + path;
    if (ast_.head(named) == Head::identifier) {
      made.paths.push_back(std::string(ast_.name_of(named)) + path);
    } else if (ast_.head(named) == Head::type_assert) {  // (p::P)(x) = …
      const NodeId type = ast_.children(named).back();
      if (ast_.head(type) == Head::identifier) made.paths.emplace_back(ast_.name_of(type));
    }
  }

  void mentioned(NodeId node, std::vector<std::string>& names) const {
    const std::string_view name = ast_.name_of(node);
    if (!name.empty()) names.emplace_back(name);
    for (const NodeId child : ast_.children(node)) mentioned(child, names);
  }

  std::string_view text_;
  const Ast& ast_;
  std::vector<Definition> found_;
};

}  // namespace

std::vector<Definition> read_definitions(std::string_view text, const Ast& ast) { return Reader(text, ast).run(); }

}  // namespace slope::api::tools::lsp
