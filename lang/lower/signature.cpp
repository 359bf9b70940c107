#include "lang/lower/signature.hpp"

#include <utility>

namespace slope::lower {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

void report(std::vector<Diagnostic>& diagnostics, Span span, std::string message, std::string help) {
  diagnostics.push_back({Severity::error, span, std::move(message), std::move(help)});
}

std::string_view identifier_text(const Ast& ast, NodeId node) {
  const Head head = ast.head(node);
  if (head == Head::identifier || head == Head::quote_symbol) return ast.name_of(node);
  return {};
}

std::size_t SignatureSyntax::optional_count() const {
  std::size_t count = 0;
  for (const auto& parameter : parameters) count += parameter.default_value != no_node && !parameter.is_vararg;
  return count;
}

std::size_t SignatureSyntax::positional_count() const { return parameters.size() - (is_vararg() ? 1 : 0); }

std::vector<Variant> variants_of(const SignatureSyntax& signature) {
  std::vector<Variant> variants;
  const auto optional = static_cast<std::uint32_t>(signature.optional_count());
  variants.reserve((std::size_t{optional} + 1) * (signature.keywords.empty() ? 1 : 2));
  for (std::uint32_t omitted = 0; omitted <= optional; ++omitted) {
    variants.push_back({Variant::Kind::syntax, omitted, false});
    if (!signature.keywords.empty()) variants.push_back({Variant::Kind::syntax, omitted, true});
  }
  return variants;
}

bool parse_bound(const Ast& ast, NodeId node, BoundSyntax& out) {
  const auto is_name = [&](NodeId n) { return ast.head(n) == Head::identifier; };
  switch (ast.head(node)) {
    case Head::identifier:
      out.name = node;
      return true;
    case Head::subtype:
      if (ast.child_count(node) != 2 || !is_name(ast.child(node, 0))) return false;
      out.name = ast.child(node, 0);
      out.upper = ast.child(node, 1);
      return true;
    case Head::supertype:
      if (ast.child_count(node) != 2 || !is_name(ast.child(node, 0))) return false;
      out.name = ast.child(node, 0);
      out.lower = ast.child(node, 1);
      return true;
    case Head::comparison: {
      if (ast.child_count(node) != 5 || !is_name(ast.child(node, 2))) return false;
      const auto first = identifier_text(ast, ast.child(node, 1));
      const auto second = identifier_text(ast, ast.child(node, 3));
      if (first != second || (first != "<:" && first != ">:")) return false;
      out.name = ast.child(node, 2);
      out.lower = ast.child(node, first == "<:" ? 0 : 4);
      out.upper = ast.child(node, first == "<:" ? 4 : 0);
      return true;
    }
    default:
      return false;
  }
}

namespace {

bool is_call_like(const Ast& ast, NodeId node) {
  for (;;) {
    switch (ast.head(node)) {
      case Head::call:
        return true;
      case Head::where:
        if (ast.child_count(node) == 0) return false;
        node = ast.child(node, 0);
        continue;
      case Head::type_assert:
        if (ast.child_count(node) != 2) return false;
        node = ast.child(node, 0);
        if (ast.head(node) != Head::call) return false;
        continue;
      default:
        return false;
    }
  }
}

class Reader {
 public:
  Reader(SignatureSyntax& out, std::vector<Diagnostic>& diagnostics)
      : ast_(*out.ast), out_(out), diagnostics_(diagnostics) {}

  bool read(NodeId definition) {
    NodeId signature = no_node;
    switch (ast_.head(definition)) {
      case Head::function:
      case Head::macro_:
        if (ast_.child_count(definition) == 0) return fail(definition, "malformed function definition");
        signature = ast_.child(definition, 0);
        out_.body = ast_.child_count(definition) > 1 ? ast_.child(definition, 1) : no_node;
        break;
      case Head::assign:
      case Head::arrow:
        if (ast_.child_count(definition) != 2) return fail(definition, "malformed function definition");
        signature = ast_.child(definition, 0);
        out_.body = ast_.child(definition, 1);
        break;
      default:
        return fail(definition, "malformed function definition");
    }
    out_.span = ast_.node(signature).span;
    if (ast_.head(definition) == Head::arrow) return arrow_parameters(signature);
    return read_signature(signature, definition);
  }

 private:
  bool fail(NodeId node, std::string message) {
    report(diagnostics_, ast_.node(node).span, std::move(message));
    return false;
  }

  bool read_signature(NodeId node, NodeId definition) {
    // where and return types may be written in either order: f(x)::R where T, and f(x) where T ::R does not exist.
    for (;;) {
      const Head head = ast_.head(node);
      if (head == Head::where) {
        const auto children = ast_.children(node);
        if (children.size() < 1) return fail(node, "malformed `where`");
        auto variables = children.subspan(1);
        if (variables.size() == 1 && ast_.head(variables[0]) == Head::braces) variables = ast_.children(variables[0]);
        out_.where_variables.insert(out_.where_variables.end(), variables.begin(), variables.end());
        node = children[0];
      } else if (head == Head::type_assert && ast_.child_count(node) == 2 &&
                 (is_call_like(ast_, ast_.child(node, 0)) || ast_.head(ast_.child(node, 0)) == Head::tuple)) {
        if (out_.return_type != no_node) return fail(node, "a function has one return type");
        out_.return_type = ast_.child(node, 1);
        node = ast_.child(node, 0);
      } else {
        break;
      }
    }
    for (const NodeId variable : out_.where_variables) {
      BoundSyntax bound;
      if (!parse_bound(ast_, variable, bound)) return fail(variable, "expected a type variable with optional bounds");
    }
    if (ast_.head(node) == Head::identifier || ast_.head(node) == Head::dot) {
      if (out_.body != no_node && ast_.head(definition) != Head::assign)
        return fail(node, "expected a parameter list in the function's signature");
      out_.callee = node;
      return true;
    }
    if (ast_.head(node) == Head::tuple) return parameters(ast_.children(node), false);
    if (ast_.head(node) == Head::block) return arrow_parameters(node);
    if (ast_.head(node) != Head::call || ast_.child_count(node) == 0)
      return fail(node, "expected a function signature, such as f(x)");
    NodeId callee = ast_.child(node, 0);
    if (ast_.head(callee) == Head::macrocall && ast_.child_count(callee) == 2 &&
        identifier_text(ast_, ast_.child(callee, 0)) == "@nospecialize")  // (@nospecialize(T::Type{<:A}))(x)
      callee = ast_.child(callee, 1);
    switch (ast_.head(callee)) {
      case Head::identifier:
      case Head::dot:
      case Head::curly:
      case Head::where:
      case Head::value:
        out_.callee = callee;
        break;
      case Head::type_assert: {
        out_.is_object = true;
        const auto parts = ast_.children(callee);
        if (parts.size() == 2) out_.object_name = parts[0];
        if (parts.empty() || parts.size() > 2) return fail(callee, "malformed callable object signature");
        if (parts.size() == 2 && ast_.head(parts[0]) != Head::identifier)
          return fail(parts[0], "expected a name for the callable object");
        out_.object_type = parts.back();
        break;
      }
      default:
        return fail(callee, "invalid function name in a definition");
    }
    return parameters(ast_.children(node).subspan(1), false);
  }

  bool arrow_parameters(NodeId node) {
    switch (ast_.head(node)) {
      case Head::tuple:
        return parameters(ast_.children(node), true);
      case Head::where: {
        // (x::T) where T -> …
        const auto children = ast_.children(node);
        if (children.empty()) return fail(node, "malformed `where`");
        out_.where_variables.insert(out_.where_variables.end(), children.begin() + 1, children.end());
        for (const NodeId variable : out_.where_variables) {
          BoundSyntax bound;
          if (!parse_bound(ast_, variable, bound))
            return fail(variable, "expected a type variable with optional bounds");
        }
        return arrow_parameters(children[0]);
      }
      case Head::type_assert:
        if (ast_.child_count(node) == 2 && ast_.head(ast_.child(node, 0)) == Head::tuple) {
          out_.return_type = ast_.child(node, 1);
          return arrow_parameters(ast_.child(node, 0));
        }
        break;
      case Head::block: {
        // (x; y=1) -> …: the part after `;` is the block's second statement and later ones.
        const auto children = ast_.children(node);
        for (std::size_t i = 0; i < children.size(); ++i) {
          if (i == 0 ? !positional(children[i]) : !keyword(children[i])) return false;
        }
        return check();
      }
      default:
        break;
    }
    return positional(node) && check();
  }

  bool parameters(std::span<const NodeId> nodes, bool) {
    out_.parameters.reserve(nodes.size());
    for (const NodeId node : nodes) {
      if (ast_.head(node) == Head::parameters) {
        for (const NodeId entry : ast_.children(node))
          if (!keyword(entry)) return false;
      } else if (!positional(node)) {
        return false;
      }
    }
    return check();
  }

  bool positional(NodeId node) {
    ParameterSyntax made;
    made.span = ast_.node(node).span;
    Head head = ast_.head(node);
    if (head == Head::macrocall) {  // @nospecialize x
      const auto children = ast_.children(node);
      if (children.size() == 2 && identifier_text(ast_, children[0]) == "@nospecialize") {
        made.is_unspecialized = true;
        node = children[1];
        head = ast_.head(node);
      }
    }
    if (head == Head::kw || head == Head::assign) {
      if (ast_.child_count(node) != 2) return fail(node, "malformed default argument");
      made.default_value = ast_.child(node, 1);
      node = ast_.child(node, 0);
      head = ast_.head(node);
    }
    if (head == Head::splat) {
      if (ast_.child_count(node) != 1) return fail(node, "malformed vararg parameter");
      made.is_vararg = true;
      node = ast_.child(node, 0);
      head = ast_.head(node);
    }
    if (head == Head::type_assert) {
      const auto children = ast_.children(node);
      if (children.size() == 1) {
        made.type = children[0];
      } else if (children.size() == 2) {
        made.pattern = children[0];
        made.type = children[1];
      } else {
        return fail(node, "malformed parameter");
      }
    } else {
      made.pattern = node;
    }
    // xs::Vararg{T,N} and xs::Vararg{T} say the same as xs::T..., with a count.
    if (made.type != no_node) {
      const bool applied = ast_.head(made.type) == Head::curly && ast_.child_count(made.type) > 0;
      made.is_vararg |= identifier_text(ast_, applied ? ast_.child(made.type, 0) : made.type) == "Vararg";
    }
    if (made.pattern != no_node) {
      const Head pattern = ast_.head(made.pattern);
      if (pattern != Head::identifier && pattern != Head::tuple)
        return fail(made.pattern, "expected a parameter: a name, a destructuring tuple, with optional ::Type");
    }
    out_.parameters.push_back(made);
    return true;
  }

  bool keyword(NodeId node) {
    KeywordSyntax made;
    made.span = ast_.node(node).span;
    Head head = ast_.head(node);
    if (head == Head::kw || head == Head::assign) {
      if (ast_.child_count(node) != 2) return fail(node, "malformed keyword argument");
      made.default_value = ast_.child(node, 1);
      node = ast_.child(node, 0);
      head = ast_.head(node);
    } else if (head == Head::splat) {
      if (ast_.child_count(node) != 1) return fail(node, "malformed keyword argument");
      made.is_rest = true;
      node = ast_.child(node, 0);
      head = ast_.head(node);
    }
    if (head == Head::type_assert && ast_.child_count(node) == 2) {
      made.type = ast_.child(node, 1);
      node = ast_.child(node, 0);
      head = ast_.head(node);
    }
    if (head != Head::identifier) return fail(node, "expected a keyword parameter: name = default");
    made.name = ast_.name_of(node);
    out_.keywords.push_back(std::move(made));
    return true;
  }

  // f(a, c...=x) takes x for c when nothing is given for it: if c === (), c = (x,).
  bool vararg_default() {
    ParameterSyntax& parameter = out_.parameters.back();
    if (!out_.keywords.empty() || out_.body == no_node || parameter.pattern == no_node ||
        ast_.head(parameter.pattern) != Head::identifier) {
      report(diagnostics_, parameter.span,
             "a vararg parameter with a default value beside keywords is not part of Slope");
      return false;
    }
    const Span at = parameter.span;
    const NodeId name = parameter.pattern;
    const NodeId none[] = {ast_.identifier("===", at), name, ast_.make(Head::tuple, at, {})};
    const NodeId one[] = {std::exchange(parameter.default_value, no_node)};
    const NodeId given[] = {name, ast_.make(Head::tuple, at, one)};
    const NodeId parts[] = {ast_.make(Head::call, at, none), ast_.make(Head::assign, at, given)};
    const NodeId body[] = {ast_.make(Head::if_, at, parts), out_.body};
    out_.body = ast_.make(Head::block, at, body);
    out_.has_vararg_default = true;
    return true;
  }

  bool check() {
    bool seen_default = false;
    for (std::size_t i = 0; i < out_.parameters.size(); ++i) {
      const auto& parameter = out_.parameters[i];
      if (parameter.is_vararg && i + 1 != out_.parameters.size()) {
        report(diagnostics_, parameter.span, "invalid `...` on a parameter that is not the last");
        return false;
      }
      if (parameter.is_vararg && parameter.default_value != no_node && !vararg_default()) return false;
      if (parameter.default_value != no_node) {
        seen_default = true;
      } else if (seen_default && !parameter.is_vararg) {
        report(diagnostics_, parameter.span, "optional positional arguments must come last");
        return false;
      }
    }
    if (out_.parameters.size() + out_.keywords.size() < 2) return true;
    std::vector<std::string_view> names;
    names.reserve(out_.parameters.size() + out_.keywords.size());
    const auto add = [&](std::string_view name, Span span) {
      if (name.empty() || name == "_") return true;
      for (const auto other : names) {
        if (other != name) continue;
        report(diagnostics_, span, "function argument name not unique: \"" + std::string(name) + "\"");
        return false;
      }
      names.push_back(name);
      return true;
    };
    for (const auto& parameter : out_.parameters)
      if (parameter.pattern != no_node && !add(identifier_text(ast_, parameter.pattern), parameter.span)) return false;
    for (std::size_t i = 0; i < out_.keywords.size(); ++i) {
      const auto& keyword = out_.keywords[i];
      if (!add(keyword.name, keyword.span)) return false;
      if (keyword.is_rest && i + 1 != out_.keywords.size()) {
        report(diagnostics_, keyword.span, "invalid `...` on a keyword that is not the last");
        return false;
      }
    }
    return true;
  }

  Ast& ast_;
  SignatureSyntax& out_;
  std::vector<Diagnostic>& diagnostics_;
};

}  // namespace

bool is_short_definition(const Ast& ast, NodeId assign) {
  return ast.head(assign) == Head::assign && ast.child_count(assign) == 2 && is_call_like(ast, ast.child(assign, 0));
}

bool read_signature(SignatureSyntax& out, std::shared_ptr<Ast> ast, NodeId definition,
                    std::vector<Diagnostic>& diagnostics) {
  SignatureSyntax cleared;
  cleared.ast = std::move(ast);
  cleared.definition = definition;
  cleared.where_variables = std::move(out.where_variables);
  cleared.parameters = std::move(out.parameters);
  cleared.keywords = std::move(out.keywords);
  cleared.where_variables.clear();
  cleared.parameters.clear();
  cleared.keywords.clear();
  out = std::move(cleared);
  return Reader(out, diagnostics).read(definition);
}

std::shared_ptr<SignatureSyntax> parse_signature(std::shared_ptr<Ast> ast, NodeId definition,
                                                 std::vector<Diagnostic>& diagnostics) {
  auto out = std::make_shared<SignatureSyntax>();
  if (!read_signature(*out, std::move(ast), definition, diagnostics)) return nullptr;
  return out;
}

}  // namespace slope::lower
