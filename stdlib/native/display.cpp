// Text of types, functions, symbols, modules and exceptions.
#include <algorithm>
#include <array>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

bool type_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "type_text", args, count, result);
  const Type* t = nullptr;
  return call.type(0, t) && call.give(to_string(t));
}

// The name without parameters: Dict of Dict{String, Int64}.
bool type_name_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "type_name_text", args, count, result);
  const Type* t = nullptr;
  if (!call.type(0, t)) return false;
  while (auto* u = as_union_all(t)) t = u->body;
  auto* d = as_data(t);
  return call.give(d ? std::string_view(d->name->name->name) : "Union");
}

bool module_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "module_text", args, count, result);
  if (!call.arity(1)) return false;
  if (args[0].type != call.builtin.module) return ctx.type_error("show", call.builtin.module, args[0]);
  const Module* m = args[0].module;
  std::string text = m->name ? m->name->name : "Module";
  for (m = m->parent; m && m->name; m = m->parent) text = m->name->name + "." + text;
  return call.give(text);
}

bool is_identifier(std::string_view s) {
  if (s.empty()) return false;
  auto letter = [](unsigned char c) { return (c | 32u) - 'a' < 26u || c == '_' || c >= 0x80; };
  if (!letter(static_cast<unsigned char>(s[0]))) return false;
  return std::all_of(s.begin(), s.end(), [&](char c) {
    return letter(static_cast<unsigned char>(c)) || (c >= '0' && c <= '9') || c == '!';
  });
}

// Also dotted, and with `=` the update form: .+ and +=.
bool is_operator(std::string_view s) {
  static constexpr std::array<std::string_view, 15> updating = {"+", "-",  "*",  "/",  "\\",  "^", "%", "&",
                                                                "|", "//", "<<", ">>", ">>>", "÷", "⊻"};
  static constexpr std::array<std::string_view, 25> others = {
      "~",  "!",  "<",  ">",  "<=", ">=",  "==", "!=", "===", "!==", "|>", "<|", "=>",
      "<:", ">:", "->", "&&", "||", "...", "..", "$",  ".",   "++",  "=",  "-->"};
  const auto among = [](const auto& table, std::string_view name) {
    return std::find(table.begin(), table.end(), name) != table.end();
  };
  if (among(others, s)) return true;
  if (s.size() > 1 && s[0] == '.') s.remove_prefix(1);
  if (among(updating, s) || among(others, s)) return true;
  return s.size() > 1 && s.back() == '=' && among(updating, s.substr(0, s.size() - 1));
}

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\' || c == '$') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string literal_of(std::string_view s) {
  if (s == "==" || s == "===" || s == "=>" || s == "=" || s == "::" || s == ":" || s == ":=")
    return ":(" + std::string(s) + ")";
  if (is_identifier(s) || is_operator(s)) return ":" + std::string(s);
  return "Symbol(" + quoted(s) + ")";
}

bool symbol_literal(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "symbol_literal", args, count, result);
  const Symbol* s = nullptr;
  return call.symbol(0, s) && call.give(literal_of(s->name));
}

// As a field name in a named tuple: var"…" when it is no identifier.
bool symbol_name_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "symbol_name_text", args, count, result);
  const Symbol* s = nullptr;
  if (!call.symbol(0, s)) return false;
  return call.give(is_identifier(s->name) || is_operator(s->name) ? s->name : "var" + quoted(s->name));
}

std::string name_of_function(Call& call, Value f) {
  auto* d = as_data(f.type);
  if (d == call.builtin.builtin_function) return "builtin";
  const std::string& name = d->name->name->name;
  return d->name->is_closure && (name.empty() || name[0] != '#') ? name : name;
}

bool function_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "function_text", args, count, result);
  if (!call.arity(1)) return false;
  auto* d = as_data(args[0].type);
  if (d->name->is_function || d == call.builtin.builtin_function) return call.give(name_of_function(call, args[0]));
  return call.give(to_string(d) + (d->fields.empty() ? "()" : "(…)"));
}

// f (generic function with 2 methods)
bool function_description(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "function_description", args, count, result);
  if (!call.arity(1)) return false;
  auto* d = as_data(args[0].type);
  if (d == call.builtin.builtin_function) return call.give(name_of_function(call, args[0]) + " (built-in function)");
  std::size_t n = 0;
  if (MethodTable* table = call.runtime.method_table(d))
    for (const auto& method : table->methods)
      if (method->max_world == newest_world) ++n;
  std::string text = d->name->is_function ? name_of_function(call, args[0]) : "(::" + to_string(d) + ")";
  return call.give(text + " (generic function with " + std::to_string(n) + (n == 1 ? " method)" : " methods)"));
}

bool exception_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "exception_text", args, count, result);
  return call.arity(1) && call.give(call.runtime.exception_text(ctx, args[0]));
}

const NativeInfo display_natives[] = {
    {"type_text", type_text, effect_makes, returns_string},
    {"type_name_text", type_name_text, effect_makes, returns_string},
    {"module_text", module_text, effect_makes, returns_string},
    {"symbol_literal", symbol_literal, effect_makes, returns_string},
    {"symbol_name_text", symbol_name_text, effect_makes, returns_string},
    {"function_text", function_text, effect_makes, returns_string},
    {"function_description", function_description, effect_makes | effect_reads, returns_string},
    {"exception_text", exception_text, effect_all, returns_string, false, true},
};

}  // namespace

void define_display_natives(Runtime& runtime) { define_all(runtime, display_natives); }

}  // namespace slope::stdlib
