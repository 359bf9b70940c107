#include "lang/lower/lower.hpp"

#include <utility>

#include "lang/ir/passes/passes.hpp"
#include "lang/lower/definition.hpp"
#include "lang/lower/desugar/desugar.hpp"
#include "lang/lower/emit.hpp"
#include "lang/lower/scope.hpp"
#include "lang/lower/state.hpp"
#include "lang/lower/type_expression.hpp"
#include "lang/support/exception_safe.hpp"

namespace slope::lower {

namespace {

bool has_errors(const std::vector<Diagnostic>& diagnostics, std::size_t from) {
  for (std::size_t i = from; i < diagnostics.size(); ++i)
    if (diagnostics[i].severity == Severity::error) return true;
  return false;
}

std::unique_ptr<ir::Function> finish(Runtime& runtime, Context& ctx, FormArena& arena, Lambda& lambda,
                                     const Method* method, std::vector<Diagnostic>& diagnostics, std::size_t errors) {
  if (has_errors(diagnostics, errors)) return nullptr;
  resolve(runtime, ctx, arena, lambda, diagnostics);
  if (has_errors(diagnostics, errors)) return nullptr;
  auto function = Emitter(runtime, ctx, lambda, method, diagnostics).run();
  if (has_errors(diagnostics, errors)) return nullptr;
  return function;
}

}  // namespace

std::unique_ptr<ir::Function> lower_statement(Runtime& runtime, Context& ctx, Module* module, std::shared_ptr<Ast> ast,
                                              NodeId statement, std::vector<Diagnostic>& diagnostics) {
  const std::size_t errors = diagnostics.size();
  if (is_library(runtime, module) && run_library_definition(runtime, ctx, module, ast, statement)) return nullptr;
  FormArena arena(runtime.outside_heap);
  LoweringState& state = state_of(runtime);
  std::vector<std::size_t> made;
  const Restored collecting(state.made, &made);
  Lambda* lambda = Desugar(runtime, ctx, module, ast, arena, diagnostics).top_level(statement);
  auto function = finish(runtime, ctx, arena, *lambda, nullptr, diagnostics, errors);
  if (function == nullptr)
    end_definitions(runtime, made);
  else if (!made.empty())
    state.definitions_of[function.get()] = std::move(made);
  return function;
}

void reach_tree(const syntax::Ast& tree, Reached& reached) {
  if (!reached.wants_places(&tree)) return;
  for (syntax::NodeId id = 0; id < tree.node_count(); ++id) reached.place(tree.node(id).span);
}

void reach_signature(const SignatureSyntax& signature, Reached& reached) {
  reached.place(signature.span);
  if (signature.ast) reach_tree(*signature.ast, reached);
}

void reach_syntax(Runtime& runtime, const Method* method, Reached& reached) {
  if (method) {
    if (!method->body) return;
    if (method->body->ast) reach_tree(*method->body->ast, reached);
    if (!method->body->scope) return;
    const auto& source = *static_cast<const MethodSource*>(method->body->scope.get());
    reached.word(source.constructed);
    if (source.arena) source.arena->reach(reached);
    if (source.signature) reach_signature(*source.signature, reached);
    return;
  }
  const LoweringState& state = state_of(runtime);
  for (const Definition& definition : state.definitions) {
    reached.word(definition.module);
    for (const auto& [name, v] : definition.hints.names) {
      reached.word(v.type);
      reached.word(v.pointer);
    }
    if (definition.ast) reach_tree(*definition.ast, reached);
    if (!definition.prepared) continue;
    if (definition.prepared->signature) reach_signature(*definition.prepared->signature, reached);
    if (definition.prepared->arena) definition.prepared->arena->reach(reached);
  }
  reached.words(state.open_modules.data(), state.open_modules.data() + state.open_modules.size());
  reached.words(state.to_start.data(), state.to_start.data() + state.to_start.size());
}

void statement_ended(Runtime& runtime, const ir::Function& body) {
  LoweringState& state = state_of(runtime);
  const auto found = state.definitions_of.find(&body);
  if (found == state.definitions_of.end()) return;
  end_definitions(runtime, found->second);
  state.definitions_of.erase(found);
}

std::unique_ptr<ir::Function> lower_expression(Runtime& runtime, Context& ctx, Module* module, std::shared_ptr<Ast> ast,
                                               NodeId node, std::span<const std::pair<const Symbol*, Value>> names,
                                               std::vector<Diagnostic>& diagnostics) {
  FormArena arena(runtime.outside_heap);
  const std::size_t errors = diagnostics.size();
  Desugar desugar(runtime, ctx, module, std::move(ast), arena, diagnostics);
  Lambda* lambda = desugar.top_level_with(node, names);
  return finish(runtime, ctx, arena, *lambda, nullptr, diagnostics, errors);
}

std::shared_ptr<ir::Function> lower_body(Runtime& runtime, Context& ctx, const Method& method,
                                         const std::shared_ptr<Ast>& ast,
                                         const std::shared_ptr<const SignatureSyntax>& signature,
                                         const MethodSource& source, std::vector<Diagnostic>& diagnostics) {
  // What macros in a statement call is lowered now, and stays.
  const Restored collecting(state_of(runtime).made, nullptr);
  std::shared_ptr<FormArena> arena = source.arena;
  Lambda* lambda = source.lambda;
  if (lambda == nullptr || signature != source.signature) {
    arena = std::make_shared<FormArena>(runtime.outside_heap);
    Desugar desugar(runtime, ctx, method.module, ast, *arena, diagnostics);
    lambda = desugar.method(signature, source.variant, source.constructed);
  }
  if (lambda->span.end == 0) lambda->span = method.span;
  for (std::size_t i = 0; i < lambda->static_parameters.size(); ++i) {
    Variable* variable = lambda->static_parameters[i];
    variable->index = i < source.static_indices.size() ? source.static_indices[i] : ~0u;
    variable->type_var =
        variable->index < method.static_params.size() ? method.static_params[variable->index] : nullptr;
  }
  lambda->is_vararg = method.is_vararg;
  return finish(runtime, ctx, *arena, *lambda, &method, diagnostics, 0);
}

bool lower_method(Runtime& runtime, Context& ctx, Method& method) {
  if (method.ir != nullptr) return true;
  if (method.body == nullptr || method.body->scope == nullptr)
    return ctx.raise_error("the method " + (method.name == nullptr ? std::string("?") : method.name->name) +
                           " has no body");
  auto& source = *const_cast<MethodSource*>(static_cast<const MethodSource*>(method.body->scope.get()));
  std::vector<Diagnostic> diagnostics;
  if (source.signature == nullptr && source.variant.kind == Variant::Kind::syntax) {
    source.signature = parse_signature(method.body->ast, method.body->definition, diagnostics);
    if (source.signature == nullptr) return raise_diagnostics(runtime, ctx, diagnostics);
  }
  auto function = lower_body(runtime, ctx, method, method.body->ast, source.signature, source, diagnostics);
  // Resolving changes forms: they serve once.
  source.lambda = nullptr;
  source.arena = nullptr;
  if (function == nullptr) return raise_diagnostics(runtime, ctx, diagnostics);
  method.counted.add(runtime.outside_heap, bytes_with_bytecode(*function));
  method.ir = std::move(function);
  return true;
}

}  // namespace slope::lower
