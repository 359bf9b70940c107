// What prompts need to know about names: completion and help.
#include <algorithm>
#include <array>
#include <set>

#include "embed/engine_state.hpp"

namespace slope::api {

using detail::EngineState;
using detail::RawValue;

namespace {

constexpr std::array keywords = {"abstract", "baremodule", "begin",  "break",  "catch",   "const", "continue",
                                 "do",       "else",       "elseif", "end",    "export",  "false", "finally",
                                 "for",      "function",   "global", "if",     "import",  "in",    "isa",
                                 "let",      "local",      "macro",  "module", "mutable", "quote", "return",
                                 "struct",   "true",       "try",    "type",   "using",   "where", "while"};

bool is_plain(const std::string& name) {
  return !name.empty() && name[0] != '#' && name.find("##") == std::string::npos;
}

void add_names(const Module& module, bool all, std::string_view prefix, std::set<std::string>& found) {
  module.enter_all();
  for (const auto& [name, binding] : module.bindings) {
    if (!is_plain(name->name) || !std::string_view(name->name).starts_with(prefix)) continue;
    if ((binding->value.defined() || binding->waiting != Binding::none_waiting) && (all || module.exports(name)))
      found.insert(name->name);
  }
}

// The method's line as help lists it: name, arguments, place.
std::string method_line(const Runtime& runtime, const Method& method) {
  std::string text = "  " + (method.name ? method.name->name : std::string("?")) + "(";
  const Type* t = method.signature;
  while (const UnionAllType* all = as_union_all(t)) t = all->body;
  const DataType* signature = as_data(t);
  for (std::size_t i = 1; signature && i < signature->params.size(); ++i) {
    const Type* type = signature->params[i];
    const VarargType* rest = as_vararg(type);
    if (rest) type = rest->element;
    if (i > 1) text += ", ";
    if (i < method.arg_names.size() && is_plain(method.arg_names[i]->name)) text += method.arg_names[i]->name;
    const DataType* data = as_data(type);
    if (!data || data->super != data) text += "::" + to_string(type);  // not Any
    if (rest) text += "...";
  }
  text += ")";
  if (method.span.file != 0)
    text += " @ " + runtime.sources.file(method.span.file).name() + ":" +
            std::to_string(runtime.sources.line_of(method.span));
  return text + "\n";
}

}  // namespace

std::vector<std::string> Engine::complete(std::string_view prefix) {
  if (!state_) return {};
  Runtime& runtime = state_->runtime;
  std::set<std::string> found;
  if (std::size_t dot = prefix.rfind('.'); dot != std::string_view::npos) {
    // Names of a module, fields of a value.
    std::string_view owner = prefix.substr(0, dot);
    std::string_view rest = prefix.substr(dot + 1);
    RawValue v = state_->global(owner);
    if (!v.defined()) return {};
    if (v.type == state_->types.module) {
      add_names(*v.module, true, rest, found);
    } else {
      for (const Field& field : as_data(v.type)->fields)
        if (field.name && std::string_view(field.name->name).starts_with(rest)) found.insert(field.name->name);
    }
    std::vector<std::string> names;
    for (const std::string& name : found) names.push_back(std::string(owner) + "." + name);
    return names;
  }
  add_names(*runtime.main, true, prefix, found);
  for (const Module* used : runtime.main->usings) add_names(*used, false, prefix, found);
  for (const char* keyword : keywords)
    if (std::string_view(keyword).starts_with(prefix)) found.insert(keyword);
  return {found.begin(), found.end()};
}

Result<std::string> Engine::help(std::string_view name) {
  if (const Error* why = unusable()) return *why;
  EngineState& engine = *state_;
  RawValue v = engine.global(name);
  if (!v.defined()) return detail::engine_error("`" + std::string(name) + "` is not defined");
  MethodTable* table = nullptr;
  const DataType* type = as_data(v.type);
  if (engine.runtime.is_type_value(v)) {
    const Type* t = v.as_type;
    while (const UnionAllType* all = as_union_all(t)) t = all->body;
    if (as_data(t)) table = engine.runtime.method_table(engine.runtime.types.type_type(t));
  } else if (type->name->is_function) {
    table = engine.runtime.method_table(type);
  }
  std::string text;
  std::string methods;
  std::size_t count = 0;
  constexpr std::size_t shown = 20;
  if (table) {
    for (const auto& method : table->methods) {
      if (method->max_world != newest_world) continue;
      if (!method->documentation.empty()) text += method->documentation + "\n";
      if (++count <= shown) methods += method_line(engine.runtime, *method);
    }
  }
  if (text.empty()) text = "No documentation of `" + std::string(name) + "`, " + engine.describe(v) + ".\n";
  if (count != 0) text += "\n" + std::to_string(count) + (count == 1 ? " method:\n" : " methods:\n") + methods;
  if (count > shown) text += "  …\n";
  return text;
}

namespace detail {

std::vector<const Method*> current_methods(EngineState& engine, RawValue callee) {
  Runtime& runtime = engine.runtime;
  MethodTable* table = nullptr;
  const Type* constructed = nullptr;
  if (runtime.is_type_value(callee)) {
    constructed = callee.as_type;
    while (const UnionAllType* general = as_union_all(constructed)) constructed = general->body;
    if (!as_data(constructed)) return {};
    table = runtime.method_table(runtime.types.type_type(constructed));
  } else if (as_data(callee.type)->name->is_function) {
    table = runtime.method_table(callee.type);
  }
  std::vector<const Method*> found;
  if (!table) return found;
  for (const auto& method : table->methods)
    if (method->max_world == newest_world) found.push_back(method.get());
  return found;
}

}  // namespace detail

}  // namespace slope::api
