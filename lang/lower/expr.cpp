#include "lang/lower/expr.hpp"

#include <utility>

#include "lang/ir/execute/execute.hpp"
#include "lang/lower/definition.hpp"
#include "lang/lower/state.hpp"
#include "lang/support/thread_stack.hpp"

namespace slope::lower {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

namespace {

Value line_number(Runtime& runtime, Context& ctx, Span span) {
  const auto& builtin = runtime.types.builtin();
  const SourceMap* const own = state_of(runtime).texts;
  const SourceMap& sources = own != nullptr ? *own : runtime.sources;
  const auto& file = sources.file(span.file).name();
  const Value fields[] = {runtime.from_int(sources.line_of(span)), runtime.from_symbol(runtime.symbol(file))};
  Value made;
  if (!runtime.new_object(ctx, builtin.line_number_node, fields, 2, made)) {
    ctx.take_error();
    return runtime.nothing();
  }
  return keep(runtime, made);
}

Value quote_node(Runtime& runtime, Context& ctx, Value inner) {
  Value made;
  if (!runtime.new_object(ctx, runtime.types.builtin().quote_node, &inner, 1, made)) {
    ctx.take_error();
    return runtime.nothing();
  }
  return keep(runtime, made);
}

// What stands for a node without children. False: it has children.
bool leaf_value(Runtime& runtime, Context& ctx, const Ast& ast, NodeId node, Value& leaf) {
  const auto& builtin = runtime.types.builtin();
  const auto& n = ast.node(node);
  switch (n.head) {
    case Head::none:
    case Head::nothing:
      leaf = runtime.nothing();
      return true;
    case Head::identifier:
      leaf = runtime.from_symbol(runtime.symbol(ast.name_of(node)));
      return true;
    case Head::integer: {
      const DataType* type = builtin.int64;
      if (n.flag == 8) type = builtin.uint8;
      if (n.flag == 16) type = builtin.uint16;
      if (n.flag == 32) type = builtin.uint32;
      if (n.flag == 64) type = builtin.uint64;
      leaf = Value(type, n.integer);
      return true;
    }
    case Head::floating:
      leaf = runtime.from_float(n.floating);
      return true;
    case Head::float32:
      leaf = Value(builtin.float32, std::int64_t{0});
      leaf.float32 = static_cast<float>(n.floating);
      return true;
    case Head::character:
      leaf = Value(builtin.character, static_cast<std::int64_t>(n.code_point));
      return true;
    case Head::string:
      leaf = string_constant(runtime, ast.text_of(node));
      return true;
    case Head::boolean:
      leaf = runtime.from_bool(n.integer != 0);
      return true;
    case Head::quote_symbol:
      leaf = quote_node(runtime, ctx, runtime.from_symbol(runtime.symbol(ast.name_of(node))));
      return true;
    case Head::value: {
      const auto& values = state_of(runtime).spliced.values;
      leaf = n.value < values.size() ? values[n.value] : runtime.nothing();
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

Value global_reference(Runtime& runtime, Context& ctx, Module* module, std::string_view name) {
  const auto& builtin = runtime.types.builtin();
  const Value fields[] = {Value(builtin.module, static_cast<const void*>(module)),
                          runtime.from_symbol(runtime.symbol(name))};
  Value made;
  if (!runtime.new_object(ctx, builtin.global_ref, fields, 2, made)) {
    ctx.take_error();
    return runtime.nothing();
  }
  return keep(runtime, made);
}

bool reference_parts(Runtime& runtime, Context& ctx, Value v, Module*& module, const Symbol*& name) {
  Value owner, symbol;
  if (v.type != runtime.types.builtin().global_ref) return false;
  if (!runtime.get_field(ctx, v, runtime.from_int(1), owner) ||
      !runtime.get_field(ctx, v, runtime.from_int(2), symbol)) {
    ctx.take_error();
    return false;
  }
  module = owner.module;
  name = symbol.symbol;
  return true;
}

// The name of the operator that a node begins with. In an expansion it is a reference to the macro's module.
static std::string operator_of(Runtime& runtime, Context& ctx, const Ast& ast, NodeId node) {
  const auto children = ast.children(node);
  if (children.empty()) return {};
  Module* owner = nullptr;
  const Symbol* name = nullptr;
  Value leaf;
  if (ast.head(children[0]) == Head::value && leaf_value(runtime, ctx, ast, children[0], leaf) &&
      reference_parts(runtime, ctx, leaf, owner, name))
    return name->name;
  return std::string(identifier_text(ast, children[0]));
}

// Long because it is a table: one case for each head whose expression is more than its parts.
ExprShape shape_of(Runtime& runtime, Context& ctx, const Ast& ast, NodeId node) {
  const auto& n = ast.node(node);
  ExprShape shape;
  const auto symbol = [&](std::string_view text) { return runtime.from_symbol(runtime.symbol(text)); };
  const auto constant = [&](Value v) { shape.parts.push_back({no_node, v}); };
  const auto rest = [&](std::size_t from) {
    const auto children = ast.children(node);
    for (std::size_t i = from; i < children.size(); ++i) shape.parts.push_back({children[i], {}});
  };
  const auto truth = [&](bool b) { return runtime.from_bool(b); };
  if (leaf_value(runtime, ctx, ast, node, shape.leaf)) return shape;
  const auto children = ast.children(node);
  shape.head = syntax::head_name(n.head);
  const auto operator_text = [&] { return operator_of(runtime, ctx, ast, node); };
  switch (n.head) {
    case Head::dot_call:
      if (n.flag == 1 && !operator_text().empty()) {
        shape.head = "call";
        constant(symbol("." + operator_text()));
        rest(1);
      } else {
        shape.head = ".";
        if (!children.empty()) shape.parts.push_back({children[0], {}});
        shape.parts.push_back({node, {}});  // the arguments as a tuple: see to_value
      }
      break;
    case Head::call:
      if (n.flag == 1 && !operator_text().empty()) {
        shape.head = operator_text();
        rest(1);
      } else {
        rest(0);
      }
      break;
    case Head::op_assign:
    case Head::dot_op_assign:
      shape.head = (n.head == Head::dot_op_assign ? "." : "") + operator_text() + "=";
      rest(1);
      break;
    case Head::if_:
      if (n.flag == 1) shape.head = "elseif";
      rest(0);
      break;
    case Head::macrocall:
      if (n.flag == 1) {  // a docstring before what it describes
        constant(global_reference(runtime, ctx, runtime.core, "@doc"));
      } else if (!children.empty()) {
        shape.parts.push_back({children[0], {}});
      }
      constant(line_number(runtime, ctx, n.span));
      rest(1);
      break;
    case Head::try_:
      for (std::size_t i = 0; i < children.size(); ++i) {
        if (i > 0 && children[i] == no_node) {
          constant(truth(false));
        } else {
          shape.parts.push_back({children[i], {}});
        }
      }
      break;
    case Head::dot_path:
      if (n.flag == 1 && children.size() > 1) {
        // A.B as C is (as (. A B) C).
        Rooted parts(runtime.heap);
        parts.values.push_back(symbol("."));
        for (std::size_t i = 0; i + 1 < children.size(); ++i)
          parts.values.push_back(symbol(identifier_text(ast, children[i])));
        Value path;
        if (!ir::execute(ctx, ir::Op::expr, parts.values.data(), parts.values.size(), 0, path)) {
          ctx.take_error();
          path = runtime.nothing();
        }
        shape.head = "as";
        constant(keep(runtime, path));
        shape.parts.push_back({children.back(), {}});
      } else {
        rest(0);
      }
      break;
    case Head::let_:
      if (!children.empty() && ast.head(children[0]) == Head::block && ast.child_count(children[0]) == 0) {
        Value none = runtime.from_symbol(runtime.symbol("block"));
        if (!ir::execute(ctx, ir::Op::expr, &none, 1, 0, none)) {
          ctx.take_error();
          none = runtime.nothing();
        }
        constant(keep(runtime, none));  // no variables: no line either
        rest(1);
      } else {
        rest(0);
      }
      break;
    case Head::struct_:
      constant(truth(n.flag == 1));
      rest(0);
      break;
    case Head::module_:
      constant(truth(n.flag != 1));
      rest(0);
      break;
    case Head::block:
    case Head::toplevel:
      if (n.flag == 2) {  // variables of a `let`, loops of a `for`: without line numbers
        rest(0);
        break;
      }
      for (const NodeId child : children) {
        constant(line_number(runtime, ctx, ast.node(child).span));
        shape.parts.push_back({child, {}});
      }
      if (children.empty() && ast.head(node) == Head::block) constant(line_number(runtime, ctx, n.span));
      break;
    default:
      rest(0);
  }
  return shape;
}

bool to_value(Runtime& runtime, Context& ctx, const Ast& ast, NodeId node, Value& out) {
  if (is_below(ctx.stack_limit)) return ctx.stack_overflow();
  if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
  if (ast.head(node) == Head::quote && ast.node(node).flag == 1 && ast.child_count(node) == 1) {  // the name of a.$x
    Rooted inner(runtime.heap);
    inner.values.emplace_back();
    return to_value(runtime, ctx, ast, ast.child(node, 0), inner.values[0]) &&
           runtime.new_object(ctx, runtime.types.builtin().quote_node, inner.values.data(), 1, out);
  }
  const ExprShape shape = shape_of(runtime, ctx, ast, node);
  if (shape.leaf.defined()) {
    out = shape.leaf;
    return true;
  }
  Rooted parts(runtime.heap);
  parts.values.push_back(runtime.from_symbol(runtime.symbol(shape.head)));
  for (const ExprPart& part : shape.parts) {
    Value v = part.value;
    if (!v.defined()) {
      if (part.node == node) {  // the arguments of f.(…)
        Rooted arguments(runtime.heap);
        arguments.values.push_back(runtime.from_symbol(runtime.symbol("tuple")));
        const std::vector<NodeId> children(ast.children(node).begin(), ast.children(node).end());
        for (std::size_t i = 1; i < children.size(); ++i) {
          Value argument;
          if (!to_value(runtime, ctx, ast, children[i], argument)) return false;
          arguments.values.push_back(argument);
        }
        if (!ir::execute(ctx, ir::Op::expr, arguments.values.data(), arguments.values.size(), 0, v)) return false;
      } else if (!to_value(runtime, ctx, ast, part.node, v)) {
        return false;
      }
    }
    parts.values.push_back(v);
  }
  return ir::execute(ctx, ir::Op::expr, parts.values.data(), parts.values.size(), 0, out);
}

bool eval(Runtime& runtime, Context& ctx, Module* module, Value expression, Value& result) {
  const auto& builtin = runtime.types.builtin();
  auto ast = std::make_shared<Ast>();
  std::string error;
  Span span;
  if (!ctx.trace.empty()) span = ctx.trace.front().span;
  if (is_library_text(runtime, span)) span = {};  // `eval` itself is; what it evaluates is not
  if (expression.type == builtin.symbol || expression.type == builtin.expr) {
    const NodeId node = from_value(runtime, ctx, *ast, span, expression, nullptr, error);
    if (node == no_node) return ctx.failed() ? false : ctx.raise_error("eval: " + error);
    ast = counted(runtime, std::move(ast));
    std::vector<NodeId> statements{node};
    if (ast->head(node) == Head::toplevel) statements.assign(ast->children(node).begin(), ast->children(node).end());
    return run_statements(runtime, ctx, module, ast, statements, result);
  }
  if (expression.type == builtin.quote_node) return runtime.get_field(ctx, expression, runtime.from_int(1), result);
  result = expression;
  return true;
}

}  // namespace slope::lower
