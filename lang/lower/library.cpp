// How the standard library's own definitions are run: there are thousands, at each start, so they are run without IR in
// between, and those of plain functions, types and constants wait until somebody asks for them
// (lang/runtime/postponed.cpp).
#include <utility>

#include "lang/lower/definition.hpp"
#include "lang/lower/generated.hpp"

namespace slope::lower {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

LibraryLoading::LibraryLoading(Runtime& runtime) : runtime_(runtime) { state_of(runtime).loading_library = true; }
LibraryLoading::~LibraryLoading() {
  state_of(runtime_).loading_library = false;
  state_of(runtime_).waiting_types.clear();
}

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

NodeId without_where(const Ast& ast, NodeId node) {
  while ((ast.head(node) == Head::where || ast.head(node) == Head::type_assert) && ast.child_count(node) > 0)
    node = ast.child(node, 0);
  return node;
}

bool is_definition(const Ast& ast, NodeId statement) {
  switch (ast.head(statement)) {
    case Head::assign:
      return is_short_definition(ast, statement);
    case Head::function: {
      // `function (x) … end` is a value.
      return ast.child_count(statement) == 0 || ast.head(without_where(ast, ast.child(statement, 0))) != Head::tuple;
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

// The call f(…) in a function's definition; none when there is none.
NodeId defined_call(const Ast& ast, NodeId definition) {
  const Head head = ast.head(definition);
  if ((head != Head::assign && head != Head::function) || ast.child_count(definition) != 2) return no_node;
  const NodeId node = without_where(ast, ast.child(definition, 0));
  return ast.head(node) == Head::call ? node : no_node;
}

// What a definition gives, as variants_of (signature.hpp) counts it.
struct Made {
  std::uint32_t methods = 0;
  bool has_keywords = false;
  bool is_plain = true;  // else it must be looked at more closely
};

Made made_by(const Ast& ast, NodeId call) {
  Made made;
  std::uint32_t optional = 0;
  for (const NodeId part : ast.children(call).subspan(1)) {
    const Head head = ast.head(part);
    if (head == Head::parameters)
      made.has_keywords |= ast.child_count(part) > 0;
    else if (head == Head::kw || head == Head::assign)
      ++optional;
    else if (head == Head::macrocall)
      made.is_plain = false;
  }
  made.methods = (optional + 1) * (made.has_keywords ? 2 : 1);
  return made;
}

Postponed place_of(Runtime& runtime, Module* module, const std::shared_ptr<Ast>& ast, NodeId statement) {
  auto& parts = state_of(runtime).library_parts;
  if (parts.empty() || parts.back().ast != ast || parts.back().module != module) parts.push_back({ast, module});
  return {static_cast<std::uint32_t>(parts.size() - 1), statement};
}

// Notes that a statement defines so many methods of a function. False: it must run now.
bool note(Runtime& runtime, Module* module, const std::shared_ptr<Ast>& ast, NodeId statement, Value function,
          std::uint32_t methods, bool has_keywords) {
  const Type* type = function.type->is_kind ? runtime.types.type_type(function.as_type) : function.type;
  return runtime.postpone(type, methods, has_keywords, place_of(runtime, module, ast, statement));
}

// A type of this module whose definition waits; null when there is none.
Binding* waiting_type(Runtime& runtime, const Module* module, const Ast& ast, NodeId name) {
  if (ast.head(name) == Head::curly && ast.child_count(name) > 0) name = ast.child(name, 0);
  if (ast.head(name) != Head::identifier) return nullptr;
  const auto at = module->bindings.find(symbol_of(runtime, ast, name));
  if (at == module->bindings.end() || at->second->waiting == Binding::none_waiting) return nullptr;
  return at->second->module == module && state_of(runtime).waiting_types.count(at->second) != 0 ? at->second : nullptr;
}

// Notes the definition of a plain function, or of a constructor. False: it must run now.
bool postpone_function(Runtime& runtime, Context& ctx, Module* module, const std::shared_ptr<Ast>& ast,
                       NodeId statement, NodeId definition) {
  const NodeId call = defined_call(*ast, definition);
  if (call == no_node || has_generated_part(*ast, ast->child(definition, 1))) return false;
  const Made made = made_by(*ast, call);
  if (!made.is_plain) return false;
  const NodeId callee = ast->child(call, 0);
  const bool is_object = ast->head(callee) == Head::type_assert && ast->child_count(callee) > 0;  // (f::T)(…)
  if (Binding* type = waiting_type(runtime, module, *ast, is_object ? ast->children(callee).back() : callee);
      type != nullptr && !made.has_keywords) {
    runtime.postpone(*type, made.methods, place_of(runtime, module, ast, statement));
    return true;
  }
  Value function;
  if (ast->head(callee) != Head::identifier) return false;
  if (!function_to_extend(runtime, ctx, module, *ast, callee, function)) return true;
  return note(runtime, module, ast, statement, function, made.methods, made.has_keywords);
}

// How many methods a struct's definition gives at most; 0 when that is not known.
std::uint32_t constructors_of(const Ast& ast, NodeId body) {
  std::uint32_t methods = 0;
  for (NodeId node : ast.children(body)) {
    if (ast.head(node) == Head::macrocall && ast.child_count(node) > 0) node = ast.children(node).back();
    if (ast.head(node) != Head::function && ast.head(node) != Head::assign) continue;
    const NodeId call = defined_call(ast, node);
    if (call == no_node || has_generated_part(ast, ast.child(node, 1))) return 0;
    const Made made = made_by(ast, call);
    if (made.has_keywords || !made.is_plain) return 0;
    methods += made.methods;
  }
  return methods == 0 ? 2 : methods;  // the default ones
}

// Is a constant's value made of calls and names alone, without functions that its expression would define?
bool is_plain_value(const Ast& ast, NodeId node) {
  switch (ast.head(node)) {
    case Head::arrow:
    case Head::do_:
    case Head::function:
    case Head::macrocall:
    case Head::comprehension:
    case Head::typed_comprehension:
    case Head::generator:
    case Head::block:
    case Head::let_:
    case Head::quote:
      return false;
    default:
      break;
  }
  for (const NodeId part : ast.children(node))
    if (!is_plain_value(ast, part)) return false;
  return true;
}

// Notes the definition of a struct or a constant with its name. False: it must run now.
bool postpone_value(Runtime& runtime, Module* module, const std::shared_ptr<Ast>& ast, NodeId statement,
                    NodeId definition) {
  NodeId name = no_node;
  std::uint32_t methods = 0;
  if (ast->head(definition) == Head::struct_ && ast->child_count(definition) == 2) {
    name = ast->child(definition, 0);
    if (ast->head(name) == Head::subtype) name = ast->child(name, 0);
    if (ast->head(name) == Head::curly) name = ast->child(name, 0);
    methods = constructors_of(*ast, ast->child(definition, 1));
    if (methods == 0) return false;
  } else if (ast->head(definition) == Head::const_ && ast->child_count(definition) == 1) {
    const NodeId assignment = ast->child(definition, 0);
    if (ast->head(assignment) != Head::assign) return false;
    const NodeId value = ast->child(assignment, 1);
    if (ast->head(value) == Head::assign || !is_plain_value(*ast, value)) return false;
    name = ast->child(assignment, 0);
    if (ast->head(name) == Head::curly) name = ast->child(name, 0);  // const Name{T} = …
  }
  if (name == no_node || ast->head(name) != Head::identifier) return false;
  const Symbol* symbol = symbol_of(runtime, *ast, name);
  if (module->bindings.count(symbol) != 0) return false;
  Binding* binding = runtime.binding(module, symbol);
  if (methods != 0) state_of(runtime).waiting_types.insert(binding);
  runtime.postpone(*binding, methods, place_of(runtime, module, ast, statement));
  return true;
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
  if (loading && postpone_value(runtime, module, ast, statement, definition)) return true;
  if (!is_definition(*ast, definition)) return false;
  if (loading && postpone_function(runtime, ctx, module, ast, statement, definition)) return true;
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
  if (!take_hints(*part.ast, definition, hints) || !is_definition(*part.ast, definition))  // a rule or a constant
    return run_statements(runtime, ctx, part.module, part.ast, {&what.definition, 1}, ignored);
  Definition made{part.ast, definition, part.module, std::move(hints), nullptr};
  return run_definition(runtime, ctx, made, ignored);
}

}  // namespace slope::lower
