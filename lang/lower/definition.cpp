#include "lang/lower/definition.hpp"

#include <algorithm>
#include <utility>

#include "lang/ir/execute/execute.hpp"
#include "lang/lower/desugar/desugar.hpp"
#include "lang/lower/emit.hpp"
#include "lang/lower/expr.hpp"
#include "lang/lower/generated.hpp"
#include "lang/lower/type_expression.hpp"

namespace slope::lower {

bool is_library(const Runtime& runtime, const Module* module) {
  for (; module != nullptr; module = module->parent)
    if (module == runtime.base || module == runtime.core) return true;
  return false;
}

bool raise_diagnostics(Runtime& runtime, Context& ctx, const std::vector<Diagnostic>& diagnostics) {
  if (ctx.failed()) return false;
  if (ctx.interrupt.load(std::memory_order_relaxed) != no_interrupt) return ctx.stop();  // that is what ended it
  std::string text = "syntax: ";
  for (std::size_t i = 0; i < diagnostics.size(); ++i) {
    if (i > 0) text += "\n";
    text += diagnostics[i].message + " (" + runtime.sources.describe(diagnostics[i].span) + ")";
    if (!diagnostics[i].help.empty()) text += "; " + diagnostics[i].help;
  }
  return ctx.raise_error(text);
}

bool raise_at(Context& ctx, Span span, std::string message) {
  return ctx.raise_error(std::move(message) + " (" + ctx.runtime->sources.describe(span) + ")");
}

namespace {

// What a macro makes of its arguments depends on the moment, and so does a value that one has put into the tree.
bool holds_macro_calls(const Ast& ast, NodeId node) {
  if (node == no_node) return false;
  const Head head = ast.head(node);
  if (head == Head::macrocall || head == Head::value) return true;
  return std::ranges::any_of(ast.children(node), [&](NodeId child) { return holds_macro_calls(ast, child); });
}

}  // namespace

std::shared_ptr<PreparedFunction> prepare_function(Runtime& runtime, Context& ctx, Module* module,
                                                   std::shared_ptr<Ast> ast, NodeId node,
                                                   std::vector<Diagnostic>& diagnostics) {
  const std::size_t errors = diagnostics.size();
  auto prepared = std::make_shared<PreparedFunction>();
  prepared->signature = parse_signature(ast, node, diagnostics);
  if (prepared->signature == nullptr) return nullptr;
  prepared->arena = std::make_shared<FormArena>(runtime.outside_heap);
  if (prepared->signature->body == no_node) return prepared;
  for (const Variant variant : variants_of(*prepared->signature)) {
    Desugar desugar(runtime, ctx, module, ast, *prepared->arena, diagnostics);
    prepared->lambdas.push_back(desugar.method(prepared->signature, variant, nullptr));
    if (diagnostics.size() != errors || desugar.is_interrupted(prepared->signature->span)) return nullptr;
    // Now, because there may be many: a method for each parameter that has a default.
    prepared->arena->count();
  }
  // The forms take several times the room of the tree, most functions of a large program are never called, and without
  // macros the tree gives the same forms whenever it is desugared. So they were for the errors.
  if (!holds_macro_calls(*ast, node)) {
    prepared->lambdas.clear();
    prepared->arena = nullptr;
  }
  return prepared;
}

bool function_to_extend(Runtime& runtime, Context& ctx, Module* module, const Ast& ast, NodeId callee, Value& out) {
  const Symbol* name = symbol_of(runtime, ast, callee);
  const Binding* own = module->own(name);
  if (own != nullptr && own->value.defined()) {
    out = own->value;
    return true;
  }
  const bool bound_elsewhere = own != nullptr && own->module != module;
  Binding* visible = runtime.resolve(module, name);
  if (visible != nullptr && visible->value.defined() && visible->module != module) {
    const auto& builtin = runtime.types.builtin();
    if (visible->value.type->is_kind) {  // constructors are defined by the type's name, wherever it comes from
      out = visible->value;
      return true;
    }
    if (is_library(runtime, module)) {
      if (visible->value.type == builtin.builtin_function && ir::as_builtin_op(builtin, visible->value))
        return raise_at(ctx, ast.node(callee).span, "cannot add methods to the builtin function " + name->name);
    } else if (module == runtime.main && state_of(runtime).foreign_uses.count(name) != 0) {
      return raise_at(ctx, ast.node(callee).span,
                      "error in method definition: function " + visible->module->name->name + "." + name->name +
                          " must be explicitly imported to be extended");
    }
  }
  out = runtime.generic_function(bound_elsewhere ? own->module : module, name);
  if (!out.defined())
    return raise_at(ctx, ast.node(callee).span, "cannot define function " + name->name + "; it already has a value");
  return true;
}

namespace {

// What the callee of a definition means: the first element of the methods' signatures.
struct Callee {
  Value value;                 // the function or type; undefined for a callable object
  const Type* type = nullptr;  // its type in the signature
  const Symbol* name = nullptr;
};

class Methods {
 public:
  Methods(Runtime& runtime, Context& ctx, Module* module, std::shared_ptr<const SignatureSyntax> signature,
          bool may_read_again)
      : runtime_(runtime),
        ctx_(ctx),
        module_(module),
        signature_(std::move(signature)),
        may_read_again_(may_read_again),
        ast_(*signature_->ast),
        types_(runtime, ctx, module, signature_->ast) {}

  bool define(const DefinitionHints& hints, const TypeName* constructed, const PreparedFunction* prepared,
              Value& result) {
    types_.names = hints.names;
    Value generator;
    const bool generated = hints.is_generated || has_generated_part(ast_, signature_->body);
    if (generated && signature_->has_vararg_default)
      return raise_at(ctx_, signature_->span, "a vararg parameter of a generated function has no default value");
    if (generated) {
      if (!signature_->keywords.empty()) return define_with_keywords(hints, result);
      if (!define_generator(runtime_, ctx_, module_, *signature_, generator)) return false;
    } else if (keywords_bind_variables()) {
      return define_with_keywords(hints, result);
    }
    std::vector<const TypeVar*> vars;
    for (const NodeId entry : signature_->where_variables) {
      vars.push_back(nullptr);
      if (!types_.declare(entry, vars.back())) return false;
    }
    Callee callee;
    if (!find_callee(callee)) return false;
    result = callee.value.defined() ? callee.value : runtime_.nothing();
    if (signature_->body == no_node) return true;  // function f end
    const auto& builtin = runtime_.types.builtin();
    std::vector<const Type*> parameters;
    parameters.reserve(signature_->parameters.size());
    for (const auto& parameter : signature_->parameters) {
      const Type* type = builtin.any;
      if (parameter.type != no_node && !types_.type(parameter.type, type)) return false;
      if (as_vararg(type) != nullptr && !parameter.is_vararg && &parameter != &signature_->parameters.back())
        return raise_at(ctx_, parameter.span, "Vararg on a parameter that is not the last");
      if (parameter.is_vararg && as_vararg(type) == nullptr) type = runtime_.types.vararg(type, nullptr);
      parameters.push_back(type);
    }
    const auto variants = variants_of(*signature_);
    for (std::size_t i = 0; i < variants.size(); ++i) {
      if (ctx_.interrupt.load(std::memory_order_relaxed)) return ctx_.stop();
      if (!add(callee, vars, parameters, variants[i], hints, constructed, generated ? nullptr : prepared, i, generator))
        return false;
    }
    return true;
  }

 private:
  bool mentions(NodeId node, std::string_view name) const {
    if (node == no_node) return false;
    if (ast_.head(node) == Head::identifier) return ast_.name_of(node) == name;
    return std::ranges::any_of(ast_.children(node), [&](NodeId child) { return mentions(child, name); });
  }

  // Has the type of a keyword a variable that the types of the positional arguments do not give a value?
  bool keywords_bind_variables() const {
    if (signature_->keywords.empty() || signature_->where_variables.empty()) return false;
    return std::ranges::any_of(signature_->where_variables, [&](NodeId entry) {
      BoundSyntax bound;
      if (!parse_bound(ast_, entry, bound)) return false;
      const std::string_view name = identifier_text(ast_, bound.name);
      const auto in_type_of = [&](const auto& parameter) { return mentions(parameter.type, name); };
      return std::ranges::any_of(signature_->keywords, in_type_of) &&
             std::ranges::none_of(signature_->parameters, in_type_of) && !mentions(signature_->object_type, name) &&
             !mentions(signature_->callee, name);
    });
  }

  // A generated function with keyword arguments is two: a hidden one that takes the keywords' values first, generated,
  // and an ordinary one that calls it. So is one whose type variables follow from keywords: dispatch to the hidden one
  // gives them their values.
  bool define_with_keywords(const DefinitionHints& hints, Value& result) {
    Ast& ast = *signature_->ast;
    const Span at = signature_->span;
    auto outer = std::make_shared<SignatureSyntax>(*signature_);
    const NodeId hidden =
        ast.identifier(name_text() + "#generated#" + std::to_string(++state_of(runtime_).closures), at);
    std::vector<NodeId> given{hidden};
    std::vector<NodeId> taken{hidden};
    const auto pass = [&](NodeId name, NodeId type, bool is_vararg) {
      NodeId parameter = type == no_node ? name : ast.make(Head::type_assert, at, std::vector{name, type});
      if (is_vararg) parameter = ast.make(Head::splat, at, {&parameter, 1});
      taken.push_back(parameter);
      given.push_back(is_vararg ? ast.make(Head::splat, at, {&name, 1}) : name);
    };
    for (const KeywordSyntax& keyword : signature_->keywords)
      pass(ast.identifier(keyword.name, at), keyword.is_rest ? no_node : keyword.type, false);
    if (outer->is_object) {
      if (outer->object_name == no_node) outer->object_name = ast.identifier("#object", at);
      pass(outer->object_name, outer->object_type, false);
    }
    for (std::size_t i = 0; i < outer->parameters.size(); ++i) {
      ParameterSyntax& parameter = outer->parameters[i];
      if (parameter.pattern == no_node || ast.head(parameter.pattern) != Head::identifier)
        parameter.pattern = ast.identifier("#argument" + std::to_string(i + 1), at);
      pass(parameter.pattern, parameter.type, parameter.is_vararg);
    }
    NodeId head = ast.make(Head::call, at, taken);
    if (!signature_->where_variables.empty()) {
      std::vector<NodeId> parts{head};
      parts.insert(parts.end(), signature_->where_variables.begin(), signature_->where_variables.end());
      head = ast.make(Head::where, at, parts);
    }
    const NodeId definition = ast.make(Head::function, at, std::vector{head, signature_->body});
    std::vector<Diagnostic> diagnostics;
    auto inner = parse_signature(signature_->ast, definition, diagnostics);
    if (inner == nullptr) return raise_diagnostics(runtime_, ctx_, diagnostics);
    inner->span = at;
    Value generated;
    if (!define_methods(runtime_, ctx_, module_, std::move(inner), hints, nullptr, nullptr, generated)) return false;
    outer->body = ast.make(Head::call, at, given);
    if (!hints.is_generated && !has_generated_part(ast_, signature_->body))
      for (KeywordSyntax& keyword : outer->keywords) keyword.type = no_node;
    DefinitionHints plain = hints;
    plain.is_generated = plain.is_cached = false;
    if (!define_methods(runtime_, ctx_, module_, std::move(outer), plain, nullptr, nullptr, result)) return false;
    for (const auto& method : runtime_.method_table(generated.type)->methods)
      if (method->generator) method->generator->stands_for = result;
    return true;
  }

  std::string name_text() const {
    if (signature_->is_object || signature_->callee == no_node) return "object";
    const NodeId callee = signature_->callee;
    const bool dotted = ast_.head(callee) == Head::dot && ast_.child_count(callee) == 2;
    const NodeId name = dotted ? ast_.child(callee, 1) : callee;
    return ast_.head(name) == Head::identifier || dotted ? std::string(ast_.name_of(name)) : "function";
  }

  // The function `out.name` of a module, for `M.f(x) = …`: made when it is not there.
  bool function_of_module(Module* owner, Callee& out) {
    Binding* binding = owner == module_ ? runtime_.binding(module_, out.name) : runtime_.resolve(owner, out.name);
    // A function that the library lacks exists from then on: packages give methods to many.
    if (binding == nullptr && is_library(runtime_, owner)) binding = runtime_.binding(owner, out.name);
    if (is_library(runtime_, owner) && !binding->value.defined())
      out.value = runtime_.generic_function(owner, out.name);
    if (out.value.defined()) return true;
    if (binding == nullptr || (!binding->value.defined() && owner != module_ && !is_library(runtime_, module_)))
      return ctx_.undef_var(out.name);
    out.value = binding->value.defined() ? binding->value : runtime_.generic_function(owner, out.name);
    return true;
  }

  bool find_callee(Callee& out) {
    const auto& builtin = runtime_.types.builtin();
    if (signature_->is_object) {
      if (!types_.type(signature_->object_type, out.type)) return false;
      out.name = runtime_.symbol(signature_->object_name == no_node ? "" : ast_.name_of(signature_->object_name));
      return true;
    }
    const NodeId callee = signature_->callee;
    switch (ast_.head(callee)) {
      case Head::identifier:
        out.name = symbol_of(runtime_, ast_, callee);
        if (!function_to_extend(runtime_, ctx_, module_, ast_, callee, out.value)) return false;
        break;
      case Head::dot: {
        const auto parts = ast_.children(callee);
        if (parts.size() != 2 || ast_.head(parts[1]) != Head::quote_symbol)
          return raise_at(ctx_, signature_->span, "invalid function name in a definition");
        out.name = runtime_.symbol(ast_.name_of(parts[1]));
        Value owner;
        if (!types_.evaluate(parts[0], owner)) return false;
        if (owner.type != builtin.module)
          return raise_at(ctx_, signature_->span, "invalid function name in a definition: not a module");
        if (!function_of_module(owner.module, out)) return false;
        break;
      }
      case Head::value: {  // of an Expr: a function, a type, or a GlobalRef
        const auto& spliced = state_of(runtime_).spliced.values;
        Module* owner = nullptr;
        if (ast_.node(callee).value < spliced.size() &&
            reference_parts(runtime_, ctx_, spliced[ast_.node(callee).value], owner, out.name)) {
          if (!function_of_module(owner, out)) return false;
          break;
        }
        out.name = runtime_.symbol("");
        if (!types_.evaluate(callee, out.value)) return false;
        break;
      }
      case Head::curly:
      case Head::where: {
        out.name = runtime_.symbol(ast_.head(callee) == Head::curly && ast_.child_count(callee) > 0
                                       ? identifier_text(ast_, ast_.child(callee, 0))
                                       : "");
        if (!types_.evaluate(callee, out.value)) return false;
        break;
      }
      default:
        return raise_at(ctx_, signature_->span, "invalid function name in a definition");
    }
    if (out.value.type->is_kind || out.value.type == builtin.type_var) {
      out.type = runtime_.types.type_type(out.value.as_type);
      return true;
    }
    if (out.value.type == builtin.builtin_function)
      return raise_at(ctx_, signature_->span, "cannot add methods to the builtin function " + out.name->name);
    const DataType* type = as_data(out.value.type);
    if (type == nullptr || !type->name->is_function)
      return raise_at(ctx_, signature_->span, "cannot define function " + out.name->name + "; it already has a value");
    out.type = type;
    return true;
  }

  bool add(const Callee& callee, std::span<const TypeVar* const> vars, const std::vector<const Type*>& parameters,
           Variant variant, const DefinitionHints& hints, const TypeName* constructed, const PreparedFunction* prepared,
           std::size_t variant_index, Value generator) {
    const auto& builtin = runtime_.types.builtin();
    std::vector<const Type*> elements;
    elements.reserve(parameters.size() + 3);
    auto method = std::make_unique<Method>();
    method->arg_names.reserve(parameters.size() + 3);
    if (variant.keyword_method) {
      const Value kwcall = runtime_.generic_function(runtime_.base, runtime_.symbol("kwcall"));
      if (!kwcall.defined()) return ctx_.raise_error("Base.kwcall is not a function");
      elements.push_back(kwcall.type);
      elements.push_back(builtin.named_tuple);
      method->arg_names.push_back(runtime_.symbol("#kwcall#"));
      method->arg_names.push_back(runtime_.symbol("#keywords#"));
    }
    elements.push_back(callee.type);
    LoweringState& state = state_of(runtime_);
    if (state.self == nullptr) state.self = runtime_.symbol("#self#");
    method->arg_names.push_back(signature_->object_name != no_node ? callee.name : state.self);
    const std::size_t positional = signature_->positional_count();
    const std::size_t given = positional - variant.omitted;
    bool vararg = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (i >= given && (i < positional || variant.omitted > 0)) continue;
      if (hints.infers_as_declared && signature_->parameters[i].is_unspecialized && !parameters[i]->has_free_vars)
        method->as_declared |= as_vararg(parameters[i])
                                   ? ~std::uint64_t{0} << std::min<std::size_t>(elements.size(), 63)
                                   : std::uint64_t{1} << std::min<std::size_t>(elements.size(), 63);
      elements.push_back(parameters[i]);
      vararg |= as_vararg(parameters[i]) != nullptr;
      const NodeId pattern = signature_->parameters[i].pattern;
      const bool named = pattern != no_node && ast_.head(pattern) == Head::identifier;
      method->arg_names.push_back(named ? symbol_of(runtime_, ast_, pattern) : runtime_.symbol(""));
    }
    std::vector<std::uint32_t> indices;
    method->signature = close_signature(runtime_, runtime_.types.tuple(elements), vars, indices);
    for (const Type* t = method->signature; as_union_all(t) != nullptr; t = as_union_all(t)->body)
      method->static_params.push_back(as_union_all(t)->var);
    method->name = callee.name;
    method->module = module_;
    method->span = signature_->span;
    method->is_vararg = vararg;
    method->arg_count = static_cast<std::uint32_t>(elements.size() - (vararg ? 1 : 0));
    method->inline_hint = hints.inline_hint;
    method->documentation = hints.documentation;
    auto made = std::make_shared<SourcedBody>();
    MethodSource& source = made->source;
    if (!may_read_again_ || generator.defined()) source.signature = signature_;
    source.variant = variant;
    source.constructed = constructed;
    source.static_indices = std::move(indices);
    if (prepared != nullptr && variant_index < prepared->lambdas.size()) {
      source.arena = prepared->arena;
      source.lambda = prepared->lambdas[variant_index];
    }
    made->body.ast = signature_->ast;
    made->body.definition = signature_->definition;
    made->body.body = signature_->body;
    made->body.scope = std::shared_ptr<const void>(std::shared_ptr<const void>(), &source);
    method->body = std::shared_ptr<MethodBody>(made, &made->body);
    if (generator.defined() && variant.omitted == 0) {  // the others call this one with the defaults
      method->generator = std::make_unique<Generator>();
      method->generator->function = generator;
      method->generator->cached = hints.is_cached;
    }
    runtime_.add_method(std::move(method));
    return true;
  }

  Runtime& runtime_;
  Context& ctx_;
  Module* module_;
  std::shared_ptr<const SignatureSyntax> signature_;
  const bool may_read_again_;
  const Ast& ast_;
  TypeExpression types_;
};

}  // namespace

bool define_methods(Runtime& runtime, Context& ctx, Module* module, std::shared_ptr<const SignatureSyntax> signature,
                    const DefinitionHints& hints, const TypeName* constructed, const PreparedFunction* prepared,
                    Value& result, bool may_read_again) {
  return Methods(runtime, ctx, module, std::move(signature), may_read_again)
      .define(hints, constructed, prepared, result);
}

namespace {

// Methods with the definition's signature, one for each number of omitted optional arguments, that pass everything to
// the closure that `forward` names among the given values. Defaults, keywords and destructuring are the closure's business.
bool define_forwarding(Runtime& runtime, Context& ctx, Definition& definition, Value& result) {
  std::vector<Diagnostic> diagnostics;
  const auto signature = parse_signature(definition.ast, definition.node, diagnostics);
  if (signature == nullptr) return raise_diagnostics(runtime, ctx, diagnostics);
  Ast& ast = *definition.ast;
  const Span at = signature->span;
  auto& spliced = state_of(runtime).spliced.values;
  const NodeId closure = ast.leaf(Head::value, at);
  ast.made(closure).value = static_cast<std::uint32_t>(spliced.size());
  runtime.outside_heap.add(sizeof(Value));
  spliced.emplace_back();
  for (const auto& [name, value] : definition.hints.names)
    if (name == definition.forward) spliced.back() = value;
  std::vector<NodeId> leading{closure};
  for (const NodeId entry : definition.forwards_where ? signature->where_variables : std::vector<NodeId>{})
    if (BoundSyntax bound; parse_bound(ast, entry, bound)) leading.push_back(bound.name);
  for (std::size_t omitted = 0; omitted <= signature->optional_count(); ++omitted) {
    auto made = std::make_shared<SignatureSyntax>(*signature);
    if (omitted > 0 && made->is_vararg()) made->parameters.pop_back();
    made->parameters.resize(made->parameters.size() - omitted);
    std::vector<NodeId> call = leading;
    if (made->is_object) {
      made->object_name = ast.identifier("#object", at);
      call.push_back(made->object_name);
    }
    if (!made->keywords.empty()) {
      KeywordSyntax all;
      all.name = "#keywords";
      all.is_rest = true;
      all.span = at;
      made->keywords = {all};
      const NodeId rest = ast.make(Head::splat, at, std::vector{ast.identifier(all.name, at)});
      call.push_back(ast.make(Head::parameters, at, std::vector{rest}));
    }
    for (std::size_t i = 0; i < made->parameters.size(); ++i) {
      auto& parameter = made->parameters[i];
      parameter.default_value = no_node;
      parameter.pattern = ast.identifier("#argument" + std::to_string(i + 1), parameter.span);
      call.push_back(parameter.is_vararg ? ast.make(Head::splat, at, std::vector{parameter.pattern})
                                         : parameter.pattern);
    }
    made->return_type = no_node;
    made->body = ast.make(Head::call, at, call);
    if (!define_methods(runtime, ctx, definition.module, std::move(made), definition.hints, nullptr, nullptr, result))
      return false;
  }
  return true;
}

}  // namespace

bool define_function(Runtime& runtime, Context& ctx, Definition& definition, Value& result) {
  if (definition.forward != nullptr) return define_forwarding(runtime, ctx, definition, result);
  // Desugared forms serve once: whoever comes here again desugars anew.
  if (const auto prepared = std::exchange(definition.prepared, nullptr); prepared != nullptr)
    return define_methods(runtime, ctx, definition.module, prepared->signature, definition.hints, nullptr,
                          prepared.get(), result);
  std::vector<Diagnostic> diagnostics;
  LoweringState& state = state_of(runtime);
  std::shared_ptr<SignatureSyntax> signature = std::exchange(state.spare_signature, nullptr);
  if (signature == nullptr) signature = std::make_shared<SignatureSyntax>();
  if (!read_signature(*signature, definition.ast, definition.node, diagnostics))
    return raise_diagnostics(runtime, ctx, diagnostics);
  const bool defined =
      define_methods(runtime, ctx, definition.module, signature, definition.hints, nullptr, nullptr, result, true);
  if (signature.use_count() == 1) {
    signature->ast = nullptr;
    state.spare_signature = std::move(signature);
  }
  return defined;
}

bool define_constant(Runtime& runtime, Context& ctx, Module* module, const Symbol* name, Value v) {
  Binding* binding = runtime.binding(module, name);
  if (binding->module != module)
    return ctx.raise_error("cannot declare " + name->name + " constant; it was imported from " +
                           binding->module->name->name);
  if (binding->value.defined()) {
    if (!binding->is_constant)
      return ctx.raise_error("cannot declare " + name->name + " constant; it already has a value");
    if (egal(binding->value, v)) return true;
    // A constant may get another value of the same type (code that used the old one is compiled again); types may not.
    if (binding->value.type != v.type || v.type->is_kind)
      return ctx.raise_error("invalid redefinition of constant " + name->name);
  }
  const bool changed = binding->value.defined();
  if (changed && runtime.sink.err)
    runtime.sink.err("WARNING: redefinition of constant " + name->name +
                     ". This may fail, cause incorrect answers, or produce other errors.\n");
  binding->value = v;
  binding->is_constant = true;
  if (changed) runtime.binding_changed(binding);
  return true;
}

bool run_definition(Runtime& runtime, Context& ctx, Definition& definition, Value& result) {
  result = runtime.nothing();
  switch (definition.ast->head(definition.node)) {
    case Head::function:
    case Head::assign:
      return define_function(runtime, ctx, definition, result);
    case Head::macro_:
      return define_macro(runtime, ctx, definition, result);
    case Head::struct_:
      return define_struct(runtime, ctx, definition, result);
    case Head::abstract_:
      return define_abstract(runtime, ctx, definition, result);
    case Head::primitive_:
      return define_primitive(runtime, ctx, definition, result);
    case Head::module_:
      return define_module(runtime, ctx, definition, result);
    case Head::toplevel: {
      const std::vector<NodeId> statements(definition.ast->children(definition.node).begin(),
                                           definition.ast->children(definition.node).end());
      return run_statements(runtime, ctx, definition.module, definition.ast, statements, result);
    }
    case Head::using_:
    case Head::import_:
    case Head::export_:
      return define_imports(runtime, ctx, definition, result);
    default:
      return ctx.raise_error("internal: no definition");
  }
}

}  // namespace slope::lower
