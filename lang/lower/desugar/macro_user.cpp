// Macros that programs define: a function called `@m` of syntax values. Its arguments are `__source__`, `__module__`
// and the unevaluated expressions; what it returns is lowered in place of the call, hygienically (expr.hpp).
#include <algorithm>
#include <utility>

#include "lang/lower/definition.hpp"
#include "lang/lower/desugar/desugar.hpp"
#include "lang/lower/expr.hpp"
#include "lang/lower/state.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/support/tuning.hpp"

namespace slope::lower {

namespace {

// Types, or one call of another macro, which may define them.
bool defines_types(const Ast& ast, NodeId node) {
  if (ast.head(node) != Head::block) return false;
  const auto statements = ast.children(node);
  const auto is_told = [&](NodeId statement) { return ast.head(statement) != Head::nothing; };
  if (std::count_if(statements.begin(), statements.end(), is_told) == 1) {
    const NodeId only = *std::find_if(statements.begin(), statements.end(), is_told);
    if (ast.head(only) == Head::macrocall || defines_types(ast, only)) return true;
  }
  return std::any_of(statements.begin(), statements.end(), [&](NodeId statement) {
    const Head head = ast.head(statement);
    return head == Head::struct_ || head == Head::abstract_ || head == Head::primitive_;
  });
}

}  // namespace

Form* Desugar::user_macro(NodeId node, Value macro, Module* definer) {
  const auto& builtin = runtime_.types.builtin();
  const auto nodes = children(node);
  if (macro_depth_ > tuning::macro_depth) return error(node, "macro expansion is nested too deeply");
  const auto failed = [&]() -> Form* {
    const Value raised = ctx_.take_error();
    if (std::exchange(quote_expansion_, false))
      return native(span(node), "throw", {constant(span(node), keep(runtime_, raised))});
    state_of(runtime_).macro_errors.values.push_back(raised);
    return error(node, "in macro expansion: " + runtime_.exception_text(ctx_, raised));
  };
  Rooted arguments(runtime_.heap);
  const auto& file = runtime_.sources.file(span(node).file).name();
  const Value fields[] = {runtime_.from_int(runtime_.sources.line_of(span(node))), runtime_.from_symbol(intern(file))};
  Value source;
  if (!runtime_.new_object(ctx_, builtin.line_number_node, fields, 2, source)) return failed();
  arguments.values.push_back(source);
  arguments.values.push_back(Value(builtin.module, static_cast<const void*>(module_)));
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    Value argument;
    if (!to_value(runtime_, ctx_, *ast_, nodes[i], argument)) return failed();
    arguments.values.push_back(argument);
  }
  Value expansion;
  LoweringState& state = state_of(runtime_);
  state.macro_ran = true;
  {
    const Restored of_source(state.of_source, false);
    const Restored world(ctx_.world, top_world(runtime_));
    if (!runtime_.call(ctx_, macro, arguments.values.data(), arguments.values.size(), expansion)) return failed();
  }
  arguments.values.push_back(expansion);
  Hygiene hygiene;
  hygiene.module = definer;
  const bool at_top = node == top_statement_;
  collect_introduced(runtime_, ctx_, expansion, hygiene, at_top && definer == module_);
  std::string problem;
  NodeId expanded = from_value(runtime_, ctx_, *ast_, span(node), expansion, &hygiene, problem);
  if (ctx_.failed()) return failed();
  if (!problem.empty()) return unsupported(node, "in macro expansion: " + problem);
  if (std::exchange(quote_expansion_, false)) return quoted(expanded, 0);
  bool is_splat = false;
  if (std::exchange(argument_macro_, no_node) == node) {
    if (ast_->head(expanded) == Head::splat && ast_->child_count(expanded) == 1) {
      is_splat = true;
      expanded = ast_->child(expanded, 0);
    } else if (ast_->head(expanded) == Head::macrocall) {
      argument_macro_ = expanded;
    }
  }
  if (std::exchange(keep_expansion_, false)) {
    expansion_ = expanded;
    return nothing(span(node));
  }
  ++macro_depth_;
  if (at_top) top_statement_ = expanded;
  Form* made = at_top && defines_types(*ast_, expanded) ? one_after_another(expanded) : expression(expanded);
  --macro_depth_;
  argument_is_splat_ |= is_splat;
  return made;
}

NodeId Desugar::expanded_target(NodeId node) {
  for (int depth = 0; depth < tuning::macro_depth && ast_->head(node) == Head::macrocall; ++depth) {
    keep_expansion_ = true;
    expansion_ = no_node;
    expression(node);
    keep_expansion_ = false;
    if (expansion_ == no_node) break;
    node = std::exchange(expansion_, no_node);
  }
  return node;
}

// What an expansion says after it has defined a type is lowered when the type is there.
Form* Desugar::one_after_another(NodeId block_of_statements) {
  const auto statements = children(block_of_statements);
  std::vector<Form*> forms;
  for (const NodeId statement : statements) {
    const NodeId alone[] = {statement};
    forms.push_back(deferred(ast_->make(Head::toplevel, span(statement), alone)));
  }
  return block(span(block_of_statements), std::move(forms));
}

// @macroexpand @m x: what `@m x` becomes, as an expression. It is expanded when control reaches it.
Form* Desugar::macro_expand(NodeId node, std::span<const NodeId> arguments) {
  Form* module = constant(span(node), Value(runtime_.types.builtin().module, static_cast<const void*>(module_)));
  const bool is_single = identifier_text(*ast_, ast_->child(node, 0)) == "@macroexpand1";
  return base_call(span(node), is_single ? "macroexpand1" : "macroexpand", {module, quoted(arguments[0], 0)});
}

// What `macroexpand` evaluates: the expansion of one call of a macro, quoted.
Form* Desugar::macro_expanded(NodeId, std::span<const NodeId> arguments) {
  if (ast_->head(arguments[0]) != Head::macrocall) return quoted(arguments[0], 0);
  const auto callee = ast_->child(arguments[0], 0);
  const Symbol* name = identifier(callee);
  if (name != nullptr && runtime_.resolve(module_, name) == nullptr && find_macro(name->name) != nullptr)
    return quoted(arguments[0], 0);  // built in: part of the language, like a keyword
  quote_expansion_ = true;
  Form* made = expression(arguments[0]);
  quote_expansion_ = false;
  return made;
}

bool define_macro(Runtime& runtime, Context& ctx, Definition& definition, Value& result) {
  Ast& ast = *definition.ast;
  std::vector<Diagnostic> diagnostics;
  auto signature = parse_signature(definition.ast, definition.node, diagnostics);
  if (signature == nullptr) return raise_diagnostics(runtime, ctx, diagnostics);
  const auto name = signature->callee == no_node ? std::string_view{} : identifier_text(ast, signature->callee);
  if (name.empty())
    return raise_at(ctx, signature->span, "expected a macro's name and parameters, such as `macro m(x)`");
  if (!signature->keywords.empty()) return raise_at(ctx, signature->span, "macros do not take keyword arguments");
  const std::string full = name[0] == '@' ? std::string(name) : "@" + std::string(name);
  signature->callee = ast.identifier(full, ast.node(signature->callee).span);
  std::vector<ParameterSyntax> hidden(2);
  hidden[0].pattern = ast.identifier("__source__", signature->span);
  hidden[1].pattern = ast.identifier("__module__", signature->span);
  hidden[0].span = hidden[1].span = signature->span;
  signature->parameters.insert(signature->parameters.begin(), hidden.begin(), hidden.end());
  return define_methods(runtime, ctx, definition.module, std::move(signature), definition.hints, nullptr, nullptr,
                        result);
}

}  // namespace slope::lower
