// What a name means: `?name`, `@doc name`, `apropos("text")`.
//
// A function's documentation is stored with its methods. That of types, constants, modules and macros is recorded when
// a program defines them (Core.document). That of the library is read from its syntax trees when it is needed, so that
// it costs nothing at the start.
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "lang/lower/definition.hpp"
#include "lang/lower/lower.hpp"
#include "lang/lower/state.hpp"
#include "lang/memory/tape.hpp"
#include "stdlib/native/native.hpp"
#include "tools/keywords.hpp"
#include "tools/tools.hpp"

namespace slope::api {

namespace detail {

using syntax::Ast;
using syntax::Head;
using syntax::NodeId;

namespace {

const Type* without_variables(const Type* t) {
  while (const UnionAllType* all = as_union_all(t)) t = all->body;
  return t;
}

// The text before a definition of `name` other than a method, where the node is one; else empty.
std::string_view text_before(const Ast& ast, NodeId id, const std::string& name) {
  if (ast.head(id) != Head::macrocall || ast.child_count(id) != 3) return {};
  const std::span<const NodeId> parts = ast.children(id);
  if (ast.head(parts[0]) != Head::identifier || ast.name_of(parts[0]) != "@doc" || ast.head(parts[1]) != Head::string)
    return {};
  const Head head = ast.head(parts[2]);
  const bool has_methods = (head == Head::function && ast.child_count(parts[2]) > 1) ||
                           (head == Head::assign && ast.head(ast.child(parts[2], 0)) != Head::identifier);
  if (has_methods) return {};
  if (head == Head::function)  // function f end
    return ast.child_count(parts[2]) == 1 && lower::documented_name(ast, ast.child(parts[2], 0)) == name
               ? ast.text_of(parts[1])
               : std::string_view();
  return lower::documented_name(ast, parts[2]) == name ? ast.text_of(parts[1]) : std::string_view();
}

// The library's trees, and what a module of the library consists of: the node of the module and the files that it includes.
class LibraryTexts {
 public:
  explicit LibraryTexts(Runtime& runtime) : runtime_(runtime) {}

  // Of a name of Base.
  std::string in_base(const std::string& name) {
    for (std::uint32_t file = 0; file < count(); ++file) {
      const Ast& ast = tree(file);
      for (NodeId id = 1; id < ast.node_count(); ++id)
        if (const std::string_view text = text_before(ast, id, name); !text.empty()) return std::string(text);
    }
    return "";
  }

  // Of a name of the module `module`, which Base or a module in it defines.
  std::string in_module(const std::string& module, const std::string& name) {
    for (std::uint32_t file = 0; file < count(); ++file) {
      const Ast& ast = tree(file);
      for (NodeId id = 1; id < ast.node_count(); ++id) {
        if (ast.head(id) != Head::module_ || ast.child_count(id) == 0) continue;
        const NodeId title = ast.child(id, 0);
        if (ast.head(title) != Head::identifier || ast.name_of(title) != module) continue;
        if (std::string text = below(ast, id, name); !text.empty()) return text;
      }
    }
    return "";
  }

 private:
  std::size_t count() const { return lower::state_of(runtime_).library_parts.size(); }
  const Ast& tree(std::uint32_t file) { return *lower::library_tree(runtime_, file); }

  std::string below(const Ast& ast, NodeId id, const std::string& name) {
    if (const std::string_view text = text_before(ast, id, name); !text.empty()) return std::string(text);
    if (ast.head(id) == Head::call && ast.child_count(id) == 2 && ast.head(ast.child(id, 0)) == Head::identifier &&
        ast.name_of(ast.child(id, 0)) == "include" && ast.head(ast.child(id, 1)) == Head::string)
      return in_file("Base/" + std::string(ast.text_of(ast.child(id, 1))), name);
    for (const NodeId child : ast.children(id))
      if (child != 0)
        if (std::string text = below(ast, child, name); !text.empty()) return text;
    return "";
  }
  std::string in_file(const std::string& path, const std::string& name) {
    const auto& parts = lower::state_of(runtime_).library_parts;
    for (std::uint32_t file = 0; file < parts.size(); ++file)
      if (runtime_.sources.file(parts[file].file).name() == path) return below(tree(file), tree(file).root, name);
    return "";
  }

  Runtime& runtime_;
};

// The documentation in the library's trees, by name.
std::string library_documentation(EngineState& engine, const Module* module, const std::string& name) {
  LibraryTexts texts(engine.runtime);
  if (module == engine.runtime.base) return texts.in_base(name);
  for (const Module* up = module; up && up->name && up != up->parent; up = up->parent)
    if (up->parent == engine.runtime.base) return texts.in_module(module->name->name, name);
  return "";
}

std::string dotted_name(const Module* module) {
  std::string text = module->name ? module->name->name : "Main";
  for (const Module* up = module->parent; up && up->name && up != module; module = up, up = up->parent)
    text = up->name->name + "." + text;
  return text;
}

std::string type_description(EngineState& engine, const Type* type) {
  const DataType* data = as_data(without_variables(type));
  if (!data) return "`" + to_string(type) + "` is a union of types.\n";
  const TypeName& name = *data->name;
  const char* what = name.is_abstract                                   ? "an abstract type"
                     : name.is_primitive                                ? "a primitive type"
                     : data->is_tuple                                   ? "the type of tuples"
                     : name.is_mutable                                  ? "a mutable type"
                     : data->fields.empty() && name.field_names.empty() ? "a type without fields"
                                                                        : "a type";
  std::string text = "`" + to_string(type) + "` is " + what;
  if (name.is_primitive && name.primitive_bits) text += " of " + std::to_string(name.primitive_bits) + " bits";
  std::string chain;
  for (const DataType* super = data->super; super && super->super != super; super = super->super)
    chain += (chain.empty() ? "" : " <: ") + to_string(super);
  text += chain.empty() ? ".\n" : ", below " + chain + ".\n";
  if (!name.field_names.empty() && !name.is_abstract) {
    text += "\nFields:\n";
    for (std::size_t i = 0; i < name.field_names.size(); ++i) {
      text += "  " + name.field_names[i]->name;
      if (i < name.field_types.size() && name.field_types[i] != engine.types.any)
        text += "::" + to_string(name.field_types[i]);
      text += "\n";
    }
  }
  return text;
}

std::string module_description(const Runtime& runtime, const Module& module) {
  std::vector<std::string> names;
  module.enter_all();
  for (const Symbol* name : module.exported_names)
    if (is_plain_name(name->name)) names.push_back(name->name);
  std::sort(names.begin(), names.end());
  // The library's modules have their names in Base.
  if (names.empty() && module.parent == runtime.base && module.name)
    return "The names of " + module.name->name +
           " are part of the library: they are known without `using`, and `using " + module.name->name +
           "` changes nothing. `?name` tells of each.\n";
  std::string text = "Module " + dotted_name(&module) + " exports " + std::to_string(names.size()) +
                     (names.size() == 1 ? " name" : " names");
  constexpr std::size_t most = 40;
  std::string line;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) {
    line += (i ? ", " : ": ") + names[i];
    if (line.size() > 76 && i + 1 < names.size()) {
      text += line + (i + 1 < most ? "," : "") + "\n ";
      line.clear();
      if (i + 1 < names.size()) line = " " + (++i < names.size() ? names[i] : std::string());
    }
  }
  return text + line + (names.size() > most ? ", …" : ".") + "\n";
}

std::string without_last_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool contains_ignoring_case(std::string_view text, std::string_view wanted) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(), same) != text.end();
}

}  // namespace

std::string method_signature(const Method& method) {
  std::string text = (method.name ? method.name->name : std::string("?")) + "(";
  const DataType* signature = as_data(without_variables(method.signature));
  const bool is_macro = method.name && method.name->name.starts_with('@');
  const std::size_t first = is_macro ? 3 : 1;  // a macro gets its place and its module before what is written
  for (std::size_t i = first; signature && i < signature->params.size(); ++i) {
    const Type* type = signature->params[i];
    const VarargType* rest = as_vararg(type);
    if (rest) type = rest->element;
    if (i > first) text += ", ";
    const bool named = i < method.arg_names.size() && is_plain_name(method.arg_names[i]->name);
    if (named) text += method.arg_names[i]->name;
    const DataType* data = as_data(type);
    const bool any = data && data->super == data;
    if (!any || !named) text += "::" + to_string(type);
    if (rest) text += "...";
  }
  std::string keywords;
  for (const std::string& keyword : keywords_of(method)) keywords += (keywords.empty() ? "; " : ", ") + keyword;
  return text + keywords + ")";
}

std::vector<std::string> keywords_of(const Method& method) {
  std::vector<std::string> names;
  if (!method.body || !method.body->ast || method.body->definition == syntax::no_node) return names;
  const Head head = method.body->ast->head(method.body->definition);
  if (head != Head::function && head != Head::assign && head != Head::arrow) return names;
  std::vector<Diagnostic> problems;
  const auto signature = lower::parse_signature(method.body->ast, method.body->definition, problems);
  if (!signature) return names;
  for (const lower::KeywordSyntax& keyword : signature->keywords)
    names.push_back(keyword.name + (keyword.is_rest ? "..." : ""));
  return names;
}

namespace {

// The names of functions that the method's body calls with `name...` after the semicolon.
void forwarded_to(const syntax::Ast& ast, syntax::NodeId node, std::string_view name,
                  std::vector<std::string>& callees) {
  if (ast.head(node) == Head::call && ast.child_count(node) > 1) {
    for (const syntax::NodeId argument : ast.children(node)) {
      if (ast.head(argument) != Head::parameters) continue;
      for (const syntax::NodeId each : ast.children(argument)) {
        const bool forwards = ast.head(each) == Head::splat && ast.head(ast.child(each, 0)) == Head::identifier &&
                              ast.name_of(ast.child(each, 0)) == name;
        const syntax::NodeId callee = ast.child(node, 0);
        if (!forwards) continue;
        if (ast.head(callee) == Head::identifier) callees.push_back(std::string(ast.name_of(callee)));
        if (ast.head(callee) == Head::dot && ast.head(ast.child(callee, 0)) == Head::identifier)
          callees.push_back(std::string(ast.name_of(ast.child(callee, 0))) + "." +
                            std::string(ast.name_of(ast.child(callee, 1))));
      }
    }
  }
  for (const syntax::NodeId child : ast.children(node)) forwarded_to(ast, child, name, callees);
}

}  // namespace

std::vector<std::string> accepted_keywords(EngineState& engine, RawValue callee) {
  std::vector<std::string> names;
  std::vector<RawValue> pending{callee};
  std::set<const Method*> seen;
  while (!pending.empty()) {
    const RawValue next = pending.back();
    pending.pop_back();
    for (const Method* method : current_methods(engine, next)) {
      if (!seen.insert(method).second) continue;
      for (const std::string& keyword : keywords_of(*method)) {
        if (!keyword.ends_with("...")) {
          if (std::find(names.begin(), names.end(), keyword) == names.end()) names.push_back(keyword);
          continue;
        }
        std::vector<std::string> callees;
        forwarded_to(*method->body->ast, method->body->definition, keyword.substr(0, keyword.size() - 3), callees);
        for (const std::string& path : callees) {
          // As the method's own module sees the name; a path begins at its first part.
          const std::size_t dot = path.find('.');
          const Symbol* first = engine.runtime.symbol(path.substr(0, dot));
          const Binding* binding = method->module ? method->module->find(first) : nullptr;
          const RawValue found = dot != std::string::npos ? value_of_path(engine, path)
                                 : binding                ? binding->value
                                                          : RawValue();
          if (found.defined()) pending.push_back(found);
        }
      }
    }
  }
  return names;
}

RawValue value_of_path(EngineState& engine, std::string_view path) {
  Runtime& runtime = engine.runtime;
  std::size_t dot = path.find('.');
  RawValue v = engine.global(path.substr(0, dot));
  while (v.defined() && dot != std::string_view::npos) {
    const std::size_t begin = dot + 1;
    dot = path.find('.', begin);
    const Symbol* name = runtime.symbol(path.substr(begin, dot == std::string_view::npos ? dot : dot - begin));
    if (v.type == engine.types.module) {
      Binding* binding = runtime.resolve(const_cast<Module*>(v.module), name);
      v = binding ? binding->value : RawValue();
      continue;
    }
    const DataType* type = as_data(v.type);
    std::size_t index = 0;
    while (index < type->fields.size() && type->fields[index].name != name) ++index;
    if (index == type->fields.size()) return {};
    const RawValue arguments[] = {v, runtime.from_symbol(name)};
    RawValue found;
    if (!engine.call_library("getfield", arguments, 2, found)) {
      if (engine.ctx.failed()) engine.ctx.take_error();
      return {};
    }
    v = found;
  }
  return v;
}

std::string documentation_of(EngineState& engine, const Binding& binding) {
  std::string text;
  if (const auto noted = engine.documentation.find({binding.module, binding.name}); noted != engine.documentation.end())
    text = noted->second + "\n";
  if (text.empty()) {
    // `using X` makes a name of the program for a module of the library.
    const bool is_module = binding.value.defined() && binding.value.type == engine.types.module;
    const Module* owner = is_module ? binding.value.module->parent : binding.module;
    const std::string found = owner ? library_documentation(engine, owner, binding.name->name) : std::string();
    if (!found.empty()) text = found + "\n";
  }
  if (binding.value.defined())
    for (const Method* method : current_methods(engine, binding.value))
      if (!method->documentation.empty() && text.find(method->documentation) == std::string::npos)
        text += (text.empty() ? "" : "\n") + without_last_newline(method->documentation) + "\n";
  return text;
}

std::string help_text(EngineState& engine, const std::string& name) {
  if (const std::string_view keyword = tools::keyword_help(name); !keyword.empty()) {
    std::string text = std::string(keyword) + "\n";
    return text;
  }
  Runtime& runtime = engine.runtime;
  Binding* binding = nullptr;
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0 && dot + 1 < name.size()) {
    const RawValue owner = value_of_path(engine, std::string_view(name).substr(0, dot));
    if (owner.defined() && owner.type == engine.types.module)
      binding = runtime.resolve(const_cast<Module*>(owner.module), runtime.symbol(name.substr(dot + 1)));
  } else {
    binding = runtime.resolve(runtime.main, runtime.symbol(name));
  }
  if (!binding || !binding->value.defined()) return "";
  const RawValue v = binding->value;
  std::string text = documentation_of(engine, *binding);
  if (text.empty()) {
    text = "No documentation of `" + name + "`";
    text += v.type == engine.types.module || runtime.is_type_value(v) ? ".\n" : ", " + engine.describe(v) + ".\n";
  }
  if (runtime.is_type_value(v)) text += "\n" + type_description(engine, v.as_type);
  if (v.type == engine.types.module) return text + "\n" + module_description(runtime, *v.module);
  const std::vector<const Method*> methods = current_methods(engine, v);
  if (methods.empty()) return text;
  constexpr std::size_t shown = 20;
  text += "\n" + std::to_string(methods.size()) + (methods.size() == 1 ? " method:\n" : " methods:\n");
  for (std::size_t i = 0; i < methods.size() && i < shown; ++i) {
    text += "  " + method_signature(*methods[i]);
    if (methods[i]->span.file != 0)
      text += " @ " + runtime.sources.file(methods[i]->span.file).name() + ":" +
              std::to_string(runtime.sources.line_of(methods[i]->span));
    text += "\n";
  }
  if (methods.size() > shown) text += "  …\n";
  return text;
}

namespace {

using stdlib::Call;

// document(module, name, text): what stands before a definition.
bool document(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "document", args, count, result);
  const Symbol* name = nullptr;
  std::string_view text;
  if (!call.arity(3) || !call.symbol(1, name) || !call.string(2, text)) return false;
  if (args[0].type != call.builtin.module) return ctx.type_error("document", call.builtin.module, args[0]);
  const Binding* binding = ctx.runtime->resolve(const_cast<Module*>(args[0].module), name);
  const Module* owner = binding ? binding->module : args[0].module;
  engine_of(ctx).documentation[{owner, name}] = std::string(text);
  return call.give_nothing();
}

// help_text(name::String) → String, empty when nothing is known.
bool help_text_native(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "help_text", args, count, result);
  std::string_view name;
  return call.arity(1) && call.string(0, name) && call.give(help_text(engine_of(ctx), std::string(name)));
}

// help_names(text::String) → String: what `apropos` prints, a line each.
bool help_names(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "apropos", args, count, result);
  std::string_view wanted;
  if (!call.arity(1) || !call.string(0, wanted)) return false;
  EngineState& engine = engine_of(ctx);
  std::set<std::string> found;
  const auto search = [&](const Module& module, bool all) {
    std::vector<const Symbol*> names;
    module.enter_all();
    for (const auto& [name, binding] : module.bindings)
      if (all || module.exports(name)) names.push_back(name);
    for (const Symbol* name : names) {
      if (!is_plain_name(name->name)) continue;
      Binding* binding = engine.runtime.resolve(const_cast<Module*>(&module), name);
      if (!binding || !binding->value.defined()) continue;
      if (contains_ignoring_case(name->name, wanted) ||
          contains_ignoring_case(documentation_of(engine, *binding), wanted))
        found.insert(dotted_name(binding->module) + "." + name->name);
    }
  };
  search(*engine.runtime.main, true);
  for (const Module* used : engine.runtime.main->usings) search(*used, false);
  for (const tools::KeywordHelp& keyword : tools::keyword_helps())
    if (contains_ignoring_case(keyword.name, wanted) || contains_ignoring_case(keyword.text, wanted))
      found.insert(std::string(keyword.name));
  std::string text;
  for (const std::string& name : found) text += name + "\n";
  return call.give(text);
}

// code_color() → Bool
bool code_color(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "code_color", args, count, result);
  return call.arity(0) && call.give_bool(engine_of(ctx).color);
}

// definition_text(f, types::Type{<:Tuple}) → String: the text of the method that a call with such arguments chooses;
// empty when there is no text.
bool definition_text(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "less", args, count, result);
  const Type* t = nullptr;
  if (!call.arity(2) || !call.type(1, t)) return false;
  const DataType* tuple = as_data(t);
  if (!tuple || !tuple->is_tuple) return ctx.argument_error("argument types must be a tuple type");
  std::vector<const Type*> types{call.runtime.types.dispatch_type(args[0])};
  types.insert(types.end(), tuple->params.begin(), tuple->params.end());
  const Lookup found = call.runtime.lookup(call.runtime.types.tuple(types), ctx.world);
  if (!found.method) return ctx.raise_error("no unique matching method found for the specified argument types");
  const auto& body = found.method->body;
  if (!body || !body->ast || body->definition == syntax::no_node) return call.give("");
  const Span span = body->ast->node(body->definition).span;
  const std::string_view text = call.runtime.sources.file(span.file).text();
  if (span.file == 0 || span.end > text.size() || span.begin >= span.end) return call.give("");
  return call.give(text.substr(span.begin, span.end - span.begin));
}

// prompt_request(text::String): what the prompt is to do when the input has run, such as opening an editor.
bool prompt_request(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "prompt_request", args, count, result);
  std::string_view text;
  if (!call.arity(1) || !call.string(0, text)) return false;
  engine_of(ctx).request = std::string(text);
  return call.give_nothing();
}

// compile_nanoseconds() → Int64: spent so far in making machine code
bool compile_nanoseconds(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "compile_nanoseconds", args, count, result);
  return call.arity(0) && may_use(ctx, call.runtime.capabilities.time, "reading the clock", "time") &&
         call.give_int(static_cast<std::int64_t>(engine_of(ctx).pipeline->statistics().compile_nanoseconds));
}

// tape_peak(begin) → Int64: the most bytes of tapes that were open at once; from now on counted from `begin`.
bool tape_peak(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "tape_peak", args, count, result);
  std::int64_t begin = 0;
  if (!call.arity(1) || !call.integer(0, begin)) return false;
  if (!ctx.tapes) return call.give_int(0);
  const auto peak = static_cast<std::int64_t>(ctx.tapes->peak());
  ctx.tapes->set_peak(static_cast<std::uint64_t>(std::max<std::int64_t>(begin, 0)));
  return call.give_int(peak);
}

// is_terminal(descriptor) → Bool
bool is_terminal(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "is_terminal", args, count, result);
  std::int64_t descriptor = 0;
  return call.arity(1) && call.integer(0, descriptor) && call.give_bool(isatty(static_cast<int>(descriptor)) != 0);
}

const NativeInfo help_natives[] = {
    {"is_terminal", is_terminal, effect_all, stdlib::returns_bool},
    {"tape_peak", tape_peak, effect_all, stdlib::returns_int},
    {"compile_nanoseconds", compile_nanoseconds, effect_all, stdlib::returns_int},
    {"document", document, effect_all, nullptr},
    {"help_text", help_text_native, effect_all, stdlib::returns_string},
    {"help_names", help_names, effect_all, stdlib::returns_string},
    {"code_color", code_color, effect_all, stdlib::returns_bool},
    {"definition_text", definition_text, effect_all, stdlib::returns_string},
    {"prompt_request", prompt_request, effect_all, stdlib::returns_nothing},
};

}  // namespace

void define_tool_natives(EngineState& engine) {
  stdlib::define_all(engine.runtime, help_natives);
  define_front_end_natives(engine);
  define_key_natives(engine);
  define_picture_natives(engine);
  define_report_natives(engine);
}

}  // namespace detail

namespace tools {

using detail::EngineState;
using detail::RawValue;

Result<std::string> help(Engine& engine, std::string_view name) {
  EngineState& state = detail::Access::state(engine);
  if (state.broken) return *state.broken;
  detail::Entry entry(state);
  std::string text = detail::help_text(state, std::string(name));
  if (text.empty()) return detail::engine_error("`" + std::string(name) + "` is not defined");
  return text;
}

Result<std::string> display(Engine& engine, const Value& value, int rows, int columns) {
  EngineState& state = detail::Access::state(engine);
  if (state.broken) return *state.broken;
  detail::Entry entry(state);
  Rooted raw(state.runtime.heap);
  raw.values = {value.is_nothing() ? state.runtime.nothing() : detail::Access::raw(value), state.runtime.from_int(rows),
                state.runtime.from_int(columns)};
  RawValue text;
  if (!state.call_library("display_text", raw.values.data(), 3, text)) {
    if (state.ctx.failed()) return state.failure();
    return value.display();
  }
  if (text.type != state.types.string) return value.display();
  return std::string(static_cast<const StringObject*>(text.object)->view());
}

std::string take_request(Engine& engine) { return std::exchange(detail::Access::state(engine).request, {}); }

std::string compile_times(Engine& engine) {
  const StageTimes* times = detail::Access::state(engine).times.get();
  return times ? times->report() : std::string();
}

void set_color(Engine& engine, bool color) { detail::Access::state(engine).color = color; }

}  // namespace tools

}  // namespace slope::api
