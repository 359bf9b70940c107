// How the standard library's own definitions are run: there are thousands, at each start, so they are run without IR in
// between, and those of plain functions wait until somebody asks for the function (lang/runtime/postponed.cpp).
#include <utility>

#include "lang/lower/definition.hpp"
#include "lang/lower/generated.hpp"

namespace slope::lower {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

LibraryLoading::LibraryLoading(Runtime& runtime) : runtime_(runtime) { state_of(runtime).loading_library = true; }
LibraryLoading::~LibraryLoading() { state_of(runtime_).loading_library = false; }

namespace {

// "text" @inline f(x) = …: takes what stands around the definition off it. False: another macro.
bool take_hints(const Ast& ast, NodeId& statement, DefinitionHints& hints) {
  while (ast.head(statement) == Head::macrocall) {
    const auto parts = ast.children(statement);
    const auto name = parts.empty() ? std::string_view{} : identifier_text(ast, parts[0]);
    if (parts.size() == 2 && name == "@inline") {
      hints.inline_hint = 1;
    } else if (parts.size() == 2 && name == "@noinline") {
      hints.inline_hint = -1;
    } else if (parts.size() == 3 && name == "@doc" && ast.head(parts[1]) == Head::string) {
      hints.documentation = std::string(ast.text_of(parts[1]));
    } else {
      return false;
    }
    statement = parts.back();
  }
  return true;
}

bool is_definition(const Ast& ast, NodeId statement) {
  switch (ast.head(statement)) {
    case Head::assign:
      return is_short_definition(ast, statement);
    case Head::function: {
      // `function (x) … end` is a value.
      NodeId inner = ast.child_count(statement) > 0 ? ast.child(statement, 0) : no_node;
      while ((ast.head(inner) == Head::where || ast.head(inner) == Head::type_assert) && ast.child_count(inner) > 0)
        inner = ast.child(inner, 0);
      return ast.head(inner) != Head::tuple;
    }
    case Head::struct_:
    case Head::abstract_:
    case Head::primitive_:
    case Head::export_:
      return true;
    default:
      return false;
  }
}

// The call f(…) in a function's definition; none when it is anything that must be looked at more closely.
NodeId plain_call(const Ast& ast, NodeId definition) {
  const Head head = ast.head(definition);
  if ((head != Head::assign && head != Head::function) || ast.child_count(definition) != 2) return no_node;
  NodeId node = ast.child(definition, 0);
  while ((ast.head(node) == Head::where || ast.head(node) == Head::type_assert) && ast.child_count(node) > 0)
    node = ast.child(node, 0);
  if (ast.head(node) != Head::call || ast.head(ast.child(node, 0)) != Head::identifier) return no_node;
  return node;
}

// Notes that a statement defines so many methods of a function. False: it must run now.
bool note(Runtime& runtime, Module* module, const std::shared_ptr<Ast>& ast, NodeId statement, Value function,
          std::uint32_t methods, bool has_keywords) {
  const Type* type = function.type->is_kind ? runtime.types.type_type(function.as_type) : function.type;
  auto& parts = state_of(runtime).library_parts;
  if (parts.empty() || parts.back().ast != ast || parts.back().module != module) parts.push_back({ast, module});
  const Postponed what{static_cast<std::uint32_t>(parts.size() - 1), statement};
  return runtime.postpone(type, methods, has_keywords, what);
}

// Notes the definition of a plain function. False: it must run now.
bool postpone(Runtime& runtime, Context& ctx, Module* module, const std::shared_ptr<Ast>& ast, NodeId statement,
              NodeId definition) {
  const NodeId call = plain_call(*ast, definition);
  if (call == no_node || has_generated_part(*ast, ast->child(definition, 1))) return false;
  // As variants_of (signature.hpp) counts them.
  std::uint32_t optional = 0;
  bool has_keywords = false;
  const auto parts = ast->children(call);
  for (const NodeId part : parts.subspan(1)) {
    const Head head = ast->head(part);
    if (head == Head::parameters)
      has_keywords |= ast->child_count(part) > 0;
    else if (head == Head::kw || head == Head::assign)
      ++optional;
    else if (head == Head::macrocall)
      return false;
  }
  Value function;
  if (!function_to_extend(runtime, ctx, module, *ast, parts[0], function)) return true;
  return note(runtime, module, ast, statement, function, (optional + 1) * (has_keywords ? 2 : 1), has_keywords);
}

// Rules of differentiation are one method each, of a function that their macro names (macro_rules.cpp).
bool postpone_rule(Runtime& runtime, Module* module, const std::shared_ptr<Ast>& ast, NodeId statement) {
  if (ast->head(statement) != Head::macrocall) return false;
  const std::string_view macro = identifier_text(*ast, ast->child(statement, 0));
  const char* target = macro == "@scalar_rule"          ? "scalar_partials"
                       : macro == "@non_differentiable" ? "nondifferentiable"
                                                        : nullptr;
  if (target == nullptr) return false;
  const Binding* binding = runtime.base->find(runtime.symbol(target));
  return binding != nullptr && binding->value.defined() &&
         note(runtime, module, ast, statement, binding->value, 1, false);
}

}  // namespace

bool run_library_definition(Runtime& runtime, Context& ctx, Module* module, const std::shared_ptr<Ast>& ast,
                            NodeId statement) {
  DefinitionHints hints;
  NodeId definition = statement;
  const bool loading = state_of(runtime).loading_library;
  if (!take_hints(*ast, definition, hints)) return loading && postpone_rule(runtime, module, ast, statement);
  if (!is_definition(*ast, definition)) return false;
  if (loading && postpone(runtime, ctx, module, ast, statement, definition)) return true;
  Definition made{ast, definition, module, std::move(hints), nullptr};
  Value ignored;
  run_definition(runtime, ctx, made, ignored);
  return true;
}

bool define_postponed(Runtime& runtime, Context& ctx, Postponed what) {
  const LoweringState::LibraryPart part = state_of(runtime).library_parts[what.source];
  DefinitionHints hints;
  NodeId definition = what.definition;
  Value ignored;
  if (!take_hints(*part.ast, definition, hints))  // a rule
    return run_statements(runtime, ctx, part.module, part.ast, {&what.definition, 1}, ignored);
  Definition made{part.ast, definition, part.module, std::move(hints), nullptr};
  return run_definition(runtime, ctx, made, ignored);
}

}  // namespace slope::lower
