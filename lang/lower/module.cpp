// Modules: bodies, `using`, `import`, `export`.
#include <array>
#include <utility>

#include "lang/lower/definition.hpp"
#include "lang/lower/desugar/desugar.hpp"
#include "lang/lower/state.hpp"
#include "lang/support/exception_safe.hpp"

namespace slope::lower {

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

namespace {

// What a macro raised is a LoadError, as in Julia, of a statement that has no other error.
bool raise_of_statement(Runtime& runtime, Context& ctx, const std::vector<Diagnostic>& diagnostics,
                        std::span<const Value> raised) {
  if (ctx.failed() || raised.empty() || diagnostics.size() != raised.size())
    return raise_diagnostics(runtime, ctx, diagnostics);
  const Span at = diagnostics.front().span;
  Rooted fields(runtime.heap);
  fields.values.push_back(string_constant(runtime, runtime.sources.file(at.file).name()));
  fields.values.push_back(runtime.from_int(runtime.sources.line_of(at)));
  fields.values.push_back(raised.front());
  Value made;
  return runtime.new_object(ctx, runtime.types.builtin().load_error, fields.values.data(), 3, made) && ctx.raise(made);
}

}  // namespace

bool run_statements(Runtime& runtime, Context& ctx, Module* module, std::shared_ptr<Ast> ast,
                    std::span<const NodeId> statements, Value& result) {
  const Restored world(ctx.world, ctx.world);
  bool ok = true;
  for (const NodeId statement : statements) {
    ctx.world = top_world(runtime);
    std::vector<Diagnostic> diagnostics;
    auto& macro_errors = state_of(runtime).macro_errors.values;
    const std::size_t of_others = macro_errors.size();  // a macro may run statements, too
    auto body = lower_statement(runtime, ctx, module, ast, statement, diagnostics);
    if (body == nullptr) {
      ok = !ctx.failed() && (diagnostics.empty() ||
                             raise_of_statement(runtime, ctx, diagnostics, std::span(macro_errors).subspan(of_others)));
      macro_errors.resize(of_others);
      if (ok) continue;
      break;
    }
    ctx.world = top_world(runtime);
    ok = runtime.interpreter != nullptr ? runtime.interpreter->run_toplevel(ctx, *body, result)
                                        : ctx.raise_error("no interpreter to run the statement");
    statement_ended(runtime, *body);
    if (!ok) break;
  }
  return ok;
}

namespace {

// Calls `__init__` of modules that are complete, inner ones first.
bool start_modules(Runtime& runtime, Context& ctx, const std::vector<Module*>& modules) {
  const Restored world(ctx.world, ctx.world);
  bool ok = true;
  for (Module* module : modules) {
    const Binding* start = module->own(runtime.symbol("__init__"));
    if (start == nullptr || start->module != module || !start->value.defined()) continue;
    ctx.world = top_world(runtime);
    Value ignored;
    ok = runtime.call(ctx, start->value, nullptr, 0, ignored);
    if (!ok) break;
  }
  return ok;
}

// What a baremodule sees: the names that Julia's Core exports. They are Base's here.
constexpr const char* names_of_core[] = {"AbstractArray",
                                         "AbstractChar",
                                         "AbstractFloat",
                                         "AbstractString",
                                         "Any",
                                         "ArgumentError",
                                         "Array",
                                         "AssertionError",
                                         "Bool",
                                         "BoundsError",
                                         "Char",
                                         "DataType",
                                         "DenseArray",
                                         "DivideError",
                                         "DomainError",
                                         "ErrorException",
                                         "Exception",
                                         "Expr",
                                         "Float16",
                                         "Float32",
                                         "Float64",
                                         "Function",
                                         "GlobalRef",
                                         "IO",
                                         "InexactError",
                                         "InitError",
                                         "Int",
                                         "Int128",
                                         "Int16",
                                         "Int32",
                                         "Int64",
                                         "Int8",
                                         "Integer",
                                         "InterruptException",
                                         "LineNumberNode",
                                         "LoadError",
                                         "Method",
                                         "MethodError",
                                         "Module",
                                         "NTuple",
                                         "NamedTuple",
                                         "Nothing",
                                         "Number",
                                         "OutOfMemoryError",
                                         "OverflowError",
                                         "Ptr",
                                         "QuoteNode",
                                         "Real",
                                         "Ref",
                                         "SegmentationFault",
                                         "Signed",
                                         "StackOverflowError",
                                         "String",
                                         "Symbol",
                                         "Task",
                                         "Tuple",
                                         "Type",
                                         "TypeError",
                                         "TypeVar",
                                         "UInt",
                                         "UInt128",
                                         "UInt16",
                                         "UInt32",
                                         "UInt64",
                                         "UInt8",
                                         "UndefInitializer",
                                         "UndefKeywordError",
                                         "UndefRefError",
                                         "UndefVarError",
                                         "Union",
                                         "UnionAll",
                                         "Unsigned",
                                         "Vararg",
                                         "VecElement",
                                         "WeakRef",
                                         "applicable",
                                         "eval",
                                         "fieldtype",
                                         "getfield",
                                         "ifelse",
                                         "invoke",
                                         "isa",
                                         "isdefined",
                                         "nfields",
                                         "nothing",
                                         "setfield!",
                                         "throw",
                                         "tuple",
                                         "typeassert",
                                         "typeof",
                                         "undef"};

constexpr std::size_t import_bytes = 64;  // of a name in a module's tables

void see_core(Runtime& runtime, Module* module) {
  runtime.outside_heap.add(std::size(names_of_core) * import_bytes);
  for (const char* text : names_of_core) {
    const Symbol* name = runtime.symbol(text);
    Binding* theirs = runtime.base->entered(name);
    if (theirs == nullptr) theirs = runtime.resolve(runtime.base, name);
    if (theirs != nullptr) module->bindings.try_emplace(name, theirs);
  }
}

// Packages are defined in a module of their own that nobody sees.
bool is_package_root(const Module* module) { return module->name->name == package_root; }

// Julia's standard packages whose functions Base has here: `using LinearAlgebra` is welcome and does nothing.
bool is_part_of_base(std::string_view name) {
  constexpr std::array packages = {"LinearAlgebra", "Random", "Statistics", "Printf", "Test", "InteractiveUtils"};
  for (const std::string_view package : packages)
    if (name == package) return true;
  return false;
}

}  // namespace

bool define_module(Runtime& runtime, Context& ctx, Definition& definition, Value& result) {
  const Ast& ast = *definition.ast;
  const std::vector<NodeId> children(ast.children(definition.node).begin(), ast.children(definition.node).end());
  if (children.size() != 2 || ast.head(children[0]) != Head::identifier || ast.head(children[1]) != Head::block)
    return raise_at(ctx, ast.node(definition.node).span, "malformed module");
  const Symbol* name = runtime.symbol(ast.name_of(children[0]));
  const Binding* own = definition.module->own(name);
  if (own != nullptr && own->value.defined() && own->value.type != runtime.types.builtin().module)
    return raise_at(ctx, ast.node(children[0]).span, "invalid redefinition of constant " + name->name);
  Module* module = runtime.new_module(name, definition.module);
  if (ast.node(definition.node).flag == 1) {  // baremodule
    module->usings.clear();
    if (!is_library(runtime, definition.module)) see_core(runtime, module);
  }
  if (definition.module == runtime.base && is_part_of_base(name->name)) module->inherits = runtime.base;
  const Value value(runtime.types.builtin().module, static_cast<const void*>(module));
  Binding* binding = runtime.binding(definition.module, name);
  const bool replaced = binding->value.defined();
  binding->value = value;
  binding->is_constant = true;
  if (replaced) runtime.binding_changed(binding);
  const std::vector<NodeId> statements(ast.children(children[1]).begin(), ast.children(children[1]).end());
  if (definition.module->parent == nullptr && is_package_root(definition.module)) module->parent = nullptr;
  Value ignored;
  std::vector<Module*>& open = state_of(runtime).open_modules;
  const bool ok = [&] {
    open.push_back(module);
    const Finally leave([&] { open.pop_back(); });
    return run_statements(runtime, ctx, module, definition.ast, statements, ignored);
  }();
  result = value;
  if (ok) state_of(runtime).to_start.push_back(module);
  if (!open.empty()) return ok;
  return start_modules(runtime, ctx, std::exchange(state_of(runtime).to_start, {})) && ok;
}

namespace {

class Imports {
 public:
  Imports(Runtime& runtime, Context& ctx, Definition& definition)
      : runtime_(runtime), ctx_(ctx), module_(definition.module), ast_(*definition.ast), node_(definition.node) {}

  bool run() {
    const Head head = ast_.head(node_);
    const std::vector<NodeId> children(ast_.children(node_).begin(), ast_.children(node_).end());
    for (const NodeId child : children) {
      if (head == Head::export_                   ? !export_name(child)
          : ast_.head(child) == Head::import_list ? !import_list(child)
                                                  : (head == Head::using_ ? !use_module(child) : !import_path(child)))
        return false;
    }
    if (head != Head::export_) runtime_.renew_borrowed(*module_);
    return true;
  }

 private:
  bool fail(NodeId node, std::string message) { return raise_at(ctx_, ast_.node(node).span, std::move(message)); }

  bool export_name(NodeId node) {
    const auto text = identifier_text(ast_, node);
    if (text.empty()) return fail(node, "expected a name after `export`");
    const Symbol* name = runtime_.symbol(text);
    if (module_->exported_names.insert(name).second) runtime_.outside_heap.add(import_bytes);
    Binding* own = module_->entered(name);
    if (own != nullptr && own->module == module_) own->exported = true;
    return true;
  }

  // The name after `as`; null without.
  const Symbol* renamed(NodeId path) {
    const auto parts = ast_.children(path);
    return ast_.node(path).flag == 1 && !parts.empty() ? runtime_.symbol(identifier_text(ast_, parts.back())) : nullptr;
  }

  // Walks A.B.c to the module that holds the last name; `last` is that name, or null when the path is dots alone.
  bool walk(NodeId path, Module*& at, const Symbol*& last) {
    if (ast_.head(path) != Head::dot_path) return fail(path, "malformed import");
    std::vector<NodeId> parts(ast_.children(path).begin(), ast_.children(path).end());
    if (renamed(path) != nullptr) parts.pop_back();
    std::size_t i = 0;
    at = nullptr;
    for (; i < parts.size() && identifier_text(ast_, parts[i]) == "."; ++i)
      at = at == nullptr ? module_ : (at->parent != nullptr ? at->parent : at);
    last = nullptr;
    for (; i < parts.size(); ++i) {
      const auto text = identifier_text(ast_, parts[i]);
      if (text.empty()) return fail(parts[i], "malformed import");
      if (last != nullptr && !enter(path, at, last)) return false;
      last = runtime_.symbol(text);
    }
    return true;
  }

  // at = the module called `name` in `at` (null: visible from here).
  bool enter(NodeId path, Module*& at, const Symbol* name) {
    const Binding* binding = runtime_.resolve(at == nullptr ? module_ : at, name);
    // Modules of the library that are Core's in Julia.
    if (binding == nullptr && at == runtime_.core) binding = runtime_.resolve(runtime_.base, name);
    if (binding != nullptr && binding->value.type == runtime_.types.builtin().module && binding->value.defined()) {
      const bool is_librarys = at == nullptr && binding->module == runtime_.base && module_->parent != runtime_.base;
      if (is_librarys && !load_package(path, at, name, "package_before_library")) return false;
      if (at == nullptr || !is_librarys) at = binding->value.module;
      return true;
    }
    if (at == nullptr && is_part_of_base(name->name)) {
      at = runtime_.base;
      return true;
    }
    if (at != nullptr) return fail(path, "module " + name->name + " not found in " + at->name->name);
    return load_package(path, at, name);
  }

  // The library's Base.require_package finds and loads packages; Base.package_before_library one of a library module's
  // name that stands on the load path, or gives `nothing` (and `at` stays).
  bool load_package(NodeId path, Module*& at, const Symbol* name, std::string_view loader = "require_package") {
    const Binding* load = runtime_.resolve(runtime_.base, runtime_.symbol(loader));
    if (load == nullptr || !load->value.defined())
      return loader != "require_package" || fail(path, "module " + name->name + " not found");
    const Value arguments[] = {Value(runtime_.types.builtin().module, static_cast<const void*>(module_)),
                               runtime_.from_string(name->name)};
    Value package;
    const Restored world(ctx_.world, top_world(runtime_));
    if (!runtime_.call(ctx_, load->value, arguments, 2, package)) return false;
    if (package.type == runtime_.types.builtin().nothing) return true;
    if (package.type != runtime_.types.builtin().module) return fail(path, "module " + name->name + " not found");
    at = package.module;
    return true;
  }

  bool bind(NodeId node, Module* from, const Symbol* name, const Symbol* as) {
    if (is_library(runtime_, from) && Desugar::is_builtin_macro(name->name)) return true;  // seen everywhere
    if (Binding* theirs = from->entered(name); theirs != nullptr && theirs->waiting != Binding::none_waiting &&
                                               module_->bindings.try_emplace(as, theirs).second)
      return true;  // it need not be made for that
    Binding* source = runtime_.resolve(from, name);
    if (source == nullptr || (!source->value.defined() && !from->exports(name))) {
      // What the library lacks is an error where it is used.
      if ((source == nullptr || !source->value.defined()) && is_library(runtime_, from)) return true;
      if (source == nullptr || source->module != from) source = runtime_.binding(from, name);
      // A package that only wraps a C library: what it would name is missing where it is used.
      if (from->name->name.ends_with("_jll") && module_->bindings.try_emplace(as, source).second) return true;
      if (!source->value.defined())
        return fail(node, "UndefVarError: `" + name->name + "` not defined in " + from->name->name);
    }
    Binding*& slot = module_->bindings[as];
    if (slot == nullptr) runtime_.outside_heap.add(import_bytes);
    if (slot != nullptr && slot != source && slot->module == module_ && slot->value.defined() &&
        !slot->value.identical(source->value))
      return fail(node, "importing " + from->name->name + "." + name->name + " into " + module_->name->name +
                            " conflicts with an existing identifier");
    if (slot != nullptr && slot != source && slot->module == module_) {
      // Code lowered before refers to our own binding: it follows.
      slot->value = source->value;
      slot->is_constant = source->is_constant;
      slot->waiting = Binding::none_waiting;
      runtime_.binding_changed(slot);
    }
    slot = source;
    return true;
  }

  bool bind_module(NodeId node, Module* module, const Symbol* name) {
    const Value value(runtime_.types.builtin().module, static_cast<const void*>(module));
    Binding* own = runtime_.binding(module_, name);
    if (own->value.defined()) return true;
    own->value = value;
    own->is_constant = true;
    (void)node;
    return true;
  }

  bool use_module(NodeId path) {
    if (renamed(path) != nullptr)
      return fail(path, "`using` with `as` needs names: `using M: a as b`; for the module itself `import M as N`");
    Module* at = nullptr;
    const Symbol* last = nullptr;
    if (!walk(path, at, last)) return false;
    if (last != nullptr && !enter(path, at, last)) return false;
    if (at == nullptr) return fail(path, "malformed import");
    if (at != module_) {
      bool known = false;
      for (const Module* used : module_->usings) known |= used == at;
      if (!known) module_->usings.push_back(at);
    }
    if (last != nullptr && at != module_) return bind_module(path, at, last);
    return true;
  }

  bool import_path(NodeId path) {
    Module* at = nullptr;
    const Symbol* last = nullptr;
    if (!walk(path, at, last)) return false;
    if (last == nullptr) return fail(path, "malformed import");
    const Symbol* as = renamed(path) != nullptr ? renamed(path) : last;
    if (at == nullptr) {
      if (!enter(path, at, last)) return false;
      return bind_module(path, at, as);
    }
    return bind(path, at, last, as);
  }

  bool import_list(NodeId list) {
    const std::vector<NodeId> parts(ast_.children(list).begin(), ast_.children(list).end());
    if (parts.empty()) return fail(list, "malformed import");
    Module* from = nullptr;
    const Symbol* last = nullptr;
    if (!walk(parts[0], from, last)) return false;
    if (last != nullptr && !enter(parts[0], from, last)) return false;
    if (from == nullptr) return fail(list, "malformed import");
    for (std::size_t i = 1; i < parts.size(); ++i) {
      Module* at = from;
      std::vector<NodeId> names(ast_.children(parts[i]).begin(), ast_.children(parts[i]).end());
      const Symbol* as = renamed(parts[i]);
      if (as != nullptr) names.pop_back();
      if (ast_.head(parts[i]) != Head::dot_path || names.empty()) return fail(parts[i], "malformed import");
      for (std::size_t k = 0; k + 1 < names.size(); ++k)
        if (!enter(parts[i], at, runtime_.symbol(identifier_text(ast_, names[k])))) return false;
      const Symbol* name = runtime_.symbol(identifier_text(ast_, names.back()));
      if (!bind(parts[i], at, name, as != nullptr ? as : name)) return false;
    }
    return true;
  }

  Runtime& runtime_;
  Context& ctx_;
  Module* module_;
  const Ast& ast_;
  NodeId node_;
};

}  // namespace

bool define_imports(Runtime& runtime, Context& ctx, Definition& definition, Value&) {
  return Imports(runtime, ctx, definition).run();
}

}  // namespace slope::lower
