#include "lang/lower/type_expression.hpp"

#include <algorithm>

#include "lang/lower/lower.hpp"
#include "lang/lower/scope.hpp"
#include "lang/lower/state.hpp"
#include "lang/support/tuning.hpp"

namespace slope::lower {

using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

namespace {

// Of one signature or type. Each is bound around all that are inside, so that they cost the cube of their number.
constexpr std::size_t most_type_variables = tuning::type_variables;

// A value as a type parameter: types stand for themselves.
const Type* as_parameter(Runtime& runtime, Value v) {
  const auto& builtin = runtime.types.builtin();
  if (v.type->is_kind || v.type == builtin.type_var || v.type == builtin.type_of_vararg) return v.as_type;
  return runtime.types.value(v);
}

}  // namespace

bool TypeExpression::fail(NodeId node, std::string message) {
  error_span = ast_->node(node).span;
  return ctx_.raise_error(std::move(message));
}

bool TypeExpression::type(NodeId node, const Type*& out) {
  Value v;
  if (!evaluate(node, v)) return false;
  const auto& builtin = runtime_.types.builtin();
  if (v.type->is_kind || v.type == builtin.type_var || v.type == builtin.type_of_vararg) {
    out = v.as_type;
    return true;
  }
  error_span = ast_->node(node).span;
  return ctx_.type_error("type declaration", builtin.type, v);
}

bool TypeExpression::declare(NodeId entry, const TypeVar*& out) {
  if (names.size() >= most_type_variables)
    return fail(entry, "more than " + std::to_string(most_type_variables) + " type variables");
  BoundSyntax bound;
  if (!parse_bound(*ast_, entry, bound)) return fail(entry, "expected a type variable with optional bounds");
  const Type* lower = runtime_.types.builtin().bottom;
  const Type* upper = runtime_.types.builtin().any;
  if (bound.lower != no_node && !type(bound.lower, lower)) return false;
  if (bound.upper != no_node && !type(bound.upper, upper)) return false;
  const Symbol* symbol = symbol_of(runtime_, *ast_, bound.name);
  out = runtime_.types.var(symbol, lower, upper);
  names.emplace_back(symbol, Value(runtime_.types.builtin().type_var, out));
  return true;
}

bool TypeExpression::name(NodeId node, Value& out) {
  const Symbol* symbol = symbol_of(runtime_, *ast_, node);
  for (std::size_t i = names.size(); i-- > 0;) {
    if (names[i].first != symbol) continue;
    out = names[i].second;
    return true;
  }
  if (outer) {
    bool found = false;
    if (!outer(symbol, ast_->node(node).span, out, found)) return false;
    if (found) return true;
  }
  const Binding* binding = runtime_.resolve(module_, symbol);
  if (binding == nullptr || !binding->value.defined()) {
    error_span = ast_->node(node).span;
    return ctx_.undef_var(symbol);
  }
  out = binding->value;
  return true;
}

bool TypeExpression::evaluate(NodeId node, Value& out) {
  const auto& n = ast_->node(node);
  switch (n.head) {
    case Head::identifier:
      return name(node, out);
    case Head::curly:
      return application(node, out);
    case Head::value: {
      const auto& values = state_of(runtime_).spliced.values;
      if (n.value >= values.size()) return fail(node, "internal: a spliced value is gone");
      out = values[n.value];
      if (out.type != runtime_.types.builtin().global_ref) return true;
      Value module;
      Value symbol;
      if (!runtime_.get_field(ctx_, out, runtime_.from_int(1), module) ||
          !runtime_.get_field(ctx_, out, runtime_.from_int(2), symbol))
        return false;
      const Binding* binding = runtime_.resolve(module.module, symbol.symbol);
      if (binding == nullptr || !binding->value.defined()) {
        error_span = n.span;
        return ctx_.undef_var(symbol.symbol);
      }
      out = binding->value;
      return true;
    }
    case Head::integer:
      if (n.flag != 0) return general(node, out);
      out = runtime_.from_int(n.integer);
      return true;
    case Head::boolean:
      out = runtime_.from_bool(n.integer != 0);
      return true;
    case Head::quote_symbol:
      out = runtime_.from_symbol(runtime_.symbol(ast_->name_of(node)));
      return true;
    case Head::nothing:
      out = runtime_.nothing();
      return true;
    case Head::dot: {
      const auto parts = ast_->children(node);
      if (parts.size() != 2 || ast_->head(parts[1]) != Head::quote_symbol) return general(node, out);
      Value object;
      const NodeId member = parts[1];
      if (!evaluate(parts[0], object)) return false;
      if (object.type != runtime_.types.builtin().module) return general(node, out);
      const Symbol* symbol = runtime_.symbol(ast_->name_of(member));
      const Binding* binding = runtime_.resolve(object.module, symbol);
      if (binding == nullptr || !binding->value.defined()) {
        error_span = n.span;
        return ctx_.undef_var(symbol);
      }
      out = binding->value;
      return true;
    }
    case Head::where: {
      const std::vector<NodeId> parts(ast_->children(node).begin(), ast_->children(node).end());
      if (parts.empty()) return fail(node, "malformed `where`");
      std::vector<NodeId> entries(parts.begin() + 1, parts.end());
      if (entries.size() == 1 && ast_->head(entries[0]) == Head::braces)
        entries.assign(ast_->children(entries[0]).begin(), ast_->children(entries[0]).end());
      const std::size_t depth = names.size();
      std::vector<const TypeVar*> vars;
      for (const NodeId entry : entries) {
        vars.push_back(nullptr);
        if (!declare(entry, vars.back())) return false;
      }
      const Type* body = nullptr;
      if (!type(parts[0], body)) return false;
      names.resize(depth);
      for (std::size_t i = vars.size(); i-- > 0;) body = runtime_.types.union_all(vars[i], body);
      out = runtime_.from_type(body);
      return true;
    }
    case Head::call: {
      const auto parts = ast_->children(node);
      if (parts.size() == 2 && identifier_text(*ast_, parts[0]) == "typeof" && ast_->head(parts[1]) != Head::splat) {
        const NodeId argument = parts[1];
        Value v;
        if (!evaluate(argument, v)) return false;
        out = runtime_.from_type(v.type);
        return true;
      }
      return general(node, out);
    }
    case Head::tuple: {
      // A tuple of symbols or numbers, the names of a NamedTuple.
      const std::vector<NodeId> parts(ast_->children(node).begin(), ast_->children(node).end());
      std::vector<Value> elements;
      std::vector<const Symbol*> symbols;
      for (const NodeId part : parts) {
        if (ast_->head(part) != Head::quote_symbol) return general(node, out);
        symbols.push_back(runtime_.symbol(ast_->name_of(part)));
      }
      out = symbol_tuple(runtime_, ctx_, symbols);
      return out.defined();
    }
    default:
      return general(node, out);
  }
}

bool TypeExpression::application(NodeId node, Value& out) {
  const std::vector<NodeId> parts(ast_->children(node).begin(), ast_->children(node).end());
  if (parts.empty()) return fail(node, "malformed type application");
  // The struct under definition, applied to its own or other parameters.
  const bool own = incomplete != nullptr && identifier_text(*ast_, parts[0]) == incomplete->name->name;
  Value base;
  if (!own && !evaluate(parts[0], base)) return false;
  std::vector<const Type*> parameters;
  std::vector<const TypeVar*> fresh;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (ast_->head(parts[i]) == Head::splat) return general(node, out);
    const Type* made = nullptr;
    if (!parameter(parts[i], made, fresh)) return false;
    parameters.push_back(made);
  }
  if (own) {
    if (parameters.size() > incomplete->vars.size())
      return fail(node, "too many parameters for type " + incomplete->name->name);
    std::vector<const Type*> all = parameters;
    for (std::size_t i = parameters.size(); i < incomplete->vars.size(); ++i) all.push_back(incomplete->vars[i]);
    const Type* made = runtime_.types.apply(incomplete, all);
    for (std::size_t i = incomplete->vars.size(); i-- > parameters.size();)
      made = runtime_.types.union_all(incomplete->vars[i], made);
    out = runtime_.from_type(made);
  } else if (!apply(node, base, parameters, out)) {
    return false;
  }
  if (!fresh.empty()) {
    const Type* body = out.as_type;
    for (std::size_t i = fresh.size(); i-- > 0;) body = runtime_.types.union_all(fresh[i], body);
    out = runtime_.from_type(body);
  }
  return true;
}

// <:B and >:B make a variable of their own.
bool TypeExpression::parameter(NodeId node, const Type*& out, std::vector<const TypeVar*>& fresh) {
  const Head head = ast_->head(node);
  if ((head == Head::subtype || head == Head::supertype) && ast_->child_count(node) == 1) {
    const Type* bound = nullptr;
    if (!type(ast_->child(node, 0), bound)) return false;
    const auto& builtin = runtime_.types.builtin();
    const TypeVar* var = runtime_.types.var(runtime_.symbol("#s"), head == Head::supertype ? bound : builtin.bottom,
                                            head == Head::subtype ? bound : builtin.any);
    fresh.push_back(var);
    out = var;
    return true;
  }
  Value v;
  if (!evaluate(node, v)) return false;
  const DataType* data = as_data(v.type);
  if (!data->is_kind && data->is_mutable && data != runtime_.types.builtin().module) {
    error_span = ast_->node(node).span;
    return ctx_.type_error("Type", runtime_.types.builtin().type, v);
  }
  out = as_parameter(runtime_, v);
  return true;
}

bool TypeExpression::apply(NodeId node, Value base, std::vector<const Type*>& parameters, Value& out) {
  const auto& builtin = runtime_.types.builtin();
  if (!base.type->is_kind && base.type != builtin.type_of_vararg) {
    error_span = ast_->node(node).span;
    return ctx_.type_error("Type{...} expression", builtin.union_all, base);
  }
  std::string error;
  const Type* made = runtime_.types.apply_wrapper(base.as_type, parameters, &error);
  if (made == nullptr) return fail(node, std::move(error));
  out = runtime_.from_type(made);
  return true;
}

// Anything else: an expression, run with the known names as constants.
bool TypeExpression::general(NodeId node, Value& out) {
  error_span = ast_->node(node).span;
  std::vector<Diagnostic> diagnostics;
  std::vector<std::pair<const Symbol*, Value>> known = names;
  auto function = lower_expression(runtime_, ctx_, module_, ast_, node, known, diagnostics);
  if (function == nullptr)
    return ctx_.raise_error("syntax: " +
                            (diagnostics.empty() ? std::string("invalid expression") : diagnostics[0].message));
  if (runtime_.interpreter == nullptr) return ctx_.raise_error("no interpreter to run a type expression");
  return runtime_.interpreter->run_toplevel(ctx_, *function, out);
}

}  // namespace slope::lower
