// Reflection on functions and modules.
#include <algorithm>

#include "lang/support/similar.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

// Tuple{typeof(f), types…} of a function and a tuple type.
bool call_types_of(Call& call, const DataType*& made) {
  const Type* t = nullptr;
  if (!call.arity(2) || !call.type(1, t)) return false;
  auto* tuple = as_data(t);
  if (!tuple || !tuple->is_tuple) return call.ctx.argument_error("argument types must be a tuple type");
  std::vector<const Type*> elements{call.runtime.types.dispatch_type(call[0])};
  elements.insert(elements.end(), tuple->params.begin(), tuple->params.end());
  made = call.runtime.types.tuple(elements);
  return true;
}

bool has_method(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "hasmethod", args, count, result);
  const DataType* types = nullptr;
  if (!call_types_of(call, types)) return false;
  if (args[0].type == call.builtin.builtin_function) return call.give_bool(true);
  // In a generator: of the program that wants the code. The answer is one of the things the code depends on.
  const World world = ctx.generating ? ctx.generating->world : ctx.world;
  if (ctx.generating) {
    Edge edge;
    edge.signature = types;
    ctx.generating->source->edges.push_back(edge);
  }
  for (const Lookup& found : call.runtime.lookup_all(types, world, 1000)) {
    if (ctx.generating) {
      Source& source = *ctx.generating->source;
      source.min_world = std::max(source.min_world, found.min_world);
      source.max_world = std::min(source.max_world, found.max_world);
    }
    if (found.method && is_subtype(call.runtime.types, types, found.method->signature)) return call.give_bool(true);
  }
  return call.give_bool(false);
}

// "f(x::Int64, y) where T" and where it stands.
std::string signature_text(Runtime& runtime, const Method& method) {
  const Type* t = method.signature;
  std::vector<const TypeVar*> vars;
  while (auto* u = as_union_all(t)) {
    vars.push_back(u->var);
    t = u->body;
  }
  auto* tuple = as_data(t);
  std::string text = method.name ? method.name->name : "?";
  text += "(";
  for (std::size_t i = 1; tuple && i < tuple->params.size(); ++i) {
    if (i > 1) text += ", ";
    const Type* p = tuple->params[i];
    auto* rest = as_vararg(p);
    if (rest) p = rest->element;
    std::string name = i < method.arg_names.size() && method.arg_names[i] ? method.arg_names[i]->name : "";
    if (!name.empty() && name[0] == '#') name.clear();
    bool any = p == runtime.types.builtin().any;
    text += name;
    if (!any || name.empty()) text += "::" + to_string(p);
    if (rest) text += "...";
  }
  text += ")";
  if (!vars.empty()) {
    text += vars.size() > 1 ? " where {" : " where ";
    for (std::size_t i = 0; i < vars.size(); ++i) {
      if (i) text += ", ";
      text += vars[i]->name->name;
      if (vars[i]->upper != runtime.types.builtin().any) text += "<:" + to_string(vars[i]->upper);
    }
    if (vars.size() > 1) text += "}";
  }
  if (method.module && method.module->name) text += "\n     @ " + method.module->name->name;
  if (method.span.file != 0)
    text += " " + runtime.sources.file(method.span.file).name() + ":" +
            std::to_string(runtime.sources.line_of(method.span));
  return text;
}

std::vector<const Method*> methods_of(Call& call) {
  Runtime& runtime = call.runtime;
  std::vector<const Method*> found;
  const Type* callee = runtime.types.dispatch_type(call[0]);
  MethodTable* table = runtime.method_table(callee);
  if (!table) return found;
  for (const auto& method : table->methods) {
    if (method->max_world != newest_world) continue;
    if (runtime.is_type_value(call[0])) {
      const Type* t = method->signature;
      while (auto* u = as_union_all(t)) t = u->body;
      const Type* own = as_data(t) && !as_data(t)->params.empty() ? as_data(t)->params[0] : nullptr;
      if (!own) continue;
    }
    found.push_back(method.get());
  }
  return found;
}

// What describes a method, in the order of the fields of Base.Method.
bool add_parts(Call& call, const Method& method, std::vector<Value>& parts) {
  Runtime& runtime = call.runtime;
  const Value text = runtime.from_string(signature_text(runtime, method));
  if (!text.defined()) return call.ctx.out_of_memory();
  const bool placed = method.span.file != 0;
  const Symbol* unnamed = runtime.symbol("");
  Module* module = method.module != nullptr ? method.module : runtime.core;
  parts.push_back(text);
  parts.push_back(runtime.from_symbol(method.name != nullptr ? method.name : unnamed));
  parts.push_back(Value(call.builtin.module, static_cast<const void*>(module)));
  parts.push_back(
      runtime.from_symbol(placed ? runtime.symbol(runtime.sources.file(method.span.file).name()) : unnamed));
  parts.push_back(runtime.from_int(placed ? runtime.sources.line_of(method.span) : 0));
  parts.push_back(runtime.from_type(method.signature));
  parts.push_back(runtime.from_int(static_cast<std::int64_t>(method.arg_count) + (method.is_vararg ? 1 : 0)));
  parts.push_back(runtime.from_bool(method.is_vararg));
  return true;
}

// The vector of what `parts` holds.
bool give_parts(Call& call, const Rooted& parts) {
  const Type* any = call.builtin.any;
  const DataType* type = call.runtime.types.array_of(any, 1);
  const std::int64_t dims[] = {static_cast<std::int64_t>(parts.values.size())};
  ArrayObject* made = call.ctx.heap->allocate_array(type, dims);
  if (!made) return call.ctx.out_of_memory();
  char* at = made->data;
  for (const Value part : parts.values) {
    store_value(*call.ctx.heap, at, any, part);
    at += made->element_size;
  }
  return call.give(Value(type, static_cast<const void*>(made)));
}

// method_matches(Tuple{typeof(f), types…}): of the methods that such a call may choose, the most specific first. A
// generator depends on the answer.
bool method_matches(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "methods", args, count, result);
  const Type* types = nullptr;
  if (!call.arity(1) || !call.type(0, types)) return false;
  const World world = ctx.generating ? ctx.generating->world : ctx.world;
  if (ctx.generating) {
    Edge edge;
    edge.signature = types;
    ctx.generating->source->edges.push_back(edge);
  }
  constexpr int most_methods = 1000;
  Rooted parts(*ctx.heap);
  for (const Lookup& found : call.runtime.lookup_all(types, world, most_methods)) {
    if (ctx.generating) {
      Source& source = *ctx.generating->source;
      source.min_world = std::max(source.min_world, found.min_world);
      source.max_world = std::min(source.max_world, found.max_world);
    }
    if (found.method && !add_parts(call, *found.method, parts.values)) return false;
  }
  return give_parts(call, parts);
}

// method_parts(f): of all methods of f, one after another. method_parts(f, types): of the one that a call would choose.
bool method_parts(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, count > 1 ? "which" : "methods", args, count, result);
  if (count < 1) return call.arity(1);
  std::vector<const Method*> found;
  if (count == 1) {
    found = methods_of(call);
  } else {
    const DataType* types = nullptr;
    if (!call_types_of(call, types)) return false;
    for (const Lookup& each : call.runtime.lookup_all(types, ctx.world, 1000)) {
      if (!each.method || !is_subtype(call.runtime.types, types, each.method->signature)) continue;
      found.push_back(each.method);
      break;
    }
    if (found.empty()) return ctx.raise_error("no unique matching method found for the specified argument types");
  }
  Rooted parts(*ctx.heap);
  for (const Method* method : found)
    if (!add_parts(call, *method, parts.values)) return false;
  return give_parts(call, parts);
}

bool method_count(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "methods", args, count, result);
  if (!call.arity(1)) return false;
  return call.give_int(static_cast<std::int64_t>(methods_of(call).size()));
}

// invoke_method(f, types, args…): the method that a call with arguments of these types would choose, called with args.
bool invoke_method(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "invoke", args, std::min<std::size_t>(count, 2), result);
  const DataType* types = nullptr;
  if (!call_types_of(call, types)) return false;
  Runtime& runtime = call.runtime;
  if (args[0].type == call.builtin.builtin_function) return runtime.call(ctx, args[0], args + 2, count - 2, result);
  const Lookup found = runtime.lookup(types, ctx.world);
  if (found.method == nullptr) return ctx.method_error(args[0], args + 2, count - 2);
  const DataType* actual = runtime.call_types(args[0], args + 2, count - 2);
  const auto parameters = match(runtime.types, actual, found.method->signature);
  if (!is_subtype(runtime.types, actual, types) || !parameters)
    return ctx.argument_error("invoke: the arguments do not have the given types");
  Specialization* target = runtime.specialize(found.method, actual, *parameters);
  return runtime.call_specialized(ctx, *target, args[0], args + 2, count - 2, result);
}

bool name_of(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "nameof", args, count, result);
  if (!call.arity(1)) return false;
  if (args[0].type == call.builtin.module) return call.give(call.runtime.from_symbol(args[0].module->name));
  const Type* t = call.runtime.is_type_value(args[0]) ? args[0].as_type : args[0].type;
  while (auto* u = as_union_all(t)) t = u->body;
  auto* d = as_data(t);
  if (!d) return ctx.argument_error("nameof: no name");
  // A function of a block is #name#number.
  const std::string& full = d->name->name->name;
  const std::size_t end = full.rfind('#');
  if (full.starts_with('#') && end > 1 && end + 1 < full.size() && !call.runtime.is_type_value(args[0]) &&
      full.find_first_not_of("0123456789", end + 1) == std::string::npos && full.find('#', 1) == end)
    return call.give(call.runtime.from_symbol(call.runtime.symbol(full.substr(1, end - 1))));
  return call.give(call.runtime.from_symbol(d->name->name));
}

bool module_of(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "parentmodule", args, count, result);
  if (!call.arity(1)) return false;
  Module* module = nullptr;
  if (args[0].type == call.builtin.module) {
    module = args[0].module->parent ? args[0].module->parent : args[0].module;
  } else {
    const Type* t = call.runtime.is_type_value(args[0]) ? args[0].as_type : args[0].type;
    while (auto* u = as_union_all(t)) t = u->body;
    if (auto* d = as_data(t)) module = d->name->module;
  }
  if (!module) module = call.runtime.core;
  return call.give(Value(call.builtin.module, static_cast<const void*>(module)));
}

// Those of f, and of the hidden functions that stand behind its methods with keyword arguments.
std::vector<const Method*> generated_methods_of(Call& call) {
  std::vector<const Method*> methods = methods_of(call);
  for (std::size_t i = 0, own = methods.size(); i < own; ++i) {
    const Method& method = *methods[i];
    for (const auto& [name, binding] : method.module->bindings) {
      const bool is_hidden = name->name.find("#generated#") != std::string::npos;
      MethodTable* table =
          is_hidden && binding->value.defined() ? call.runtime.method_table(binding->value.type) : nullptr;
      if (!table) continue;
      for (const auto& hidden : table->methods)
        if (hidden->generator && hidden->max_world == newest_world && hidden->generator->stands_for.defined() &&
            egal(hidden->generator->stands_for, call[0]) &&
            std::find(methods.begin(), methods.end(), hidden.get()) == methods.end())
          methods.push_back(hidden.get());
    }
  }
  std::erase_if(methods, [](const Method* method) { return !method->generator; });
  return methods;
}

// generator_counts(f) → Vector{Int64}: calls, hits, misses, nanoseconds for each SourceUse in turn, then invalidated
// and bytes; sums over the methods of f.
bool generator_counts(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "generator_stats", args, count, result);
  if (!call.arity(1)) return false;
  std::vector<std::int64_t> sums(source_use_count * 4 + 2, 0);
  for (const Method* method : generated_methods_of(call)) {
    const Generator& generator = *method->generator;
    std::size_t at = 0;
    for (const Generator::Counts& counts : generator.counts)
      for (const std::uint64_t n :
           {counts.calls, counts.hits, counts.misses, call.runtime.capabilities.time ? counts.nanoseconds : 0})
        sums[at++] += static_cast<std::int64_t>(n);
    sums[at++] += static_cast<std::int64_t>(generator.invalidated);
    sums[at] += static_cast<std::int64_t>(generator.bytes);
  }
  const std::int64_t dims[] = {static_cast<std::int64_t>(sums.size())};
  const DataType* type = call.runtime.types.array_of(call.builtin.int64, 1);
  ArrayObject* made = call.ctx.heap->allocate_array(type, dims);
  if (!made) return ctx.out_of_memory();
  std::copy(sums.begin(), sums.end(), reinterpret_cast<std::int64_t*>(made->data));
  return call.give(Value(type, static_cast<const void*>(made)));
}

bool give_names(Call& call, std::vector<const Symbol*> names) {
  std::sort(names.begin(), names.end(), [](const Symbol* a, const Symbol* b) { return a->name < b->name; });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::int64_t dims[] = {static_cast<std::int64_t>(names.size())};
  const DataType* type = call.runtime.types.array_of(call.builtin.symbol, 1);
  ArrayObject* made = call.ctx.heap->allocate_array(type, dims);
  if (!made) return call.ctx.out_of_memory();
  for (std::size_t i = 0; i < names.size(); ++i)
    store_value(*call.ctx.heap, made->data + i * made->element_size, call.builtin.symbol,
                call.runtime.from_symbol(names[i]));
  return call.give(Value(type, static_cast<const void*>(made)));
}

// module_names(m, all): sorted; without `all` only what it exports, and its own name.
bool module_names(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "names", args, count, result);
  if (!call.arity(2)) return false;
  if (args[0].type != call.builtin.module) return ctx.type_error("names", call.builtin.module, args[0]);
  const Module* module = args[0].module;
  module->enter_all();
  std::vector<const Symbol*> names(module->exported_names.begin(), module->exported_names.end());
  if (module->name) names.push_back(module->name);
  if (args[1].bits != 0) {
    for (const auto& [name, binding] : module->bindings)
      if (binding->module == module && (binding->value.defined() || binding->waiting != Binding::none_waiting))
        names.push_back(name);
  }
  return give_names(call, std::move(names));
}

// module_values(m): the names of what a module defines, without the definitions of the library that nobody has asked for.
bool module_values(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "names", args, count, result);
  if (!call.arity(1)) return false;
  if (args[0].type != call.builtin.module) return ctx.type_error("names", call.builtin.module, args[0]);
  std::vector<const Symbol*> names;
  for (const auto& [name, binding] : args[0].module->bindings)
    if (binding->module == args[0].module && binding->value.defined()) names.push_back(name);
  return give_names(call, std::move(names));
}

void gather_names(const Runtime& runtime, const Module* module, std::vector<const Module*>& seen,
                  std::vector<std::string_view>& names) {
  if (std::find(seen.begin(), seen.end(), module) != seen.end()) return;
  seen.push_back(module);
  module->enter_all();
  for (const auto& [name, binding] : module->bindings) {
    if (!binding->value.defined() || name->name.find('#') != std::string::npos) continue;
    names.push_back(name->name);
    if (binding->value.type == runtime.types.builtin().module && binding->value.module != runtime.base &&
        binding->value.module != runtime.core)
      gather_names(runtime, binding->value.module, seen, names);
  }
}

// similar_name(name): the name of the program or of the library that is most like `name`, or "".
bool similar_name(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "similar_name", args, count, result);
  const Symbol* wanted = nullptr;
  if (!call.arity(1) || !call.symbol(0, wanted)) return false;
  std::vector<const Module*> seen;
  std::vector<std::string_view> own, library;
  gather_names(call.runtime, call.runtime.main, seen, own);
  call.runtime.base->enter_all();
  for (const Symbol* name : call.runtime.base->exported_names) library.push_back(name->name);
  for (const auto& [name, binding] : call.runtime.core->bindings)
    if (binding->value.defined() && binding->value.type->is_kind) library.push_back(name->name);
  std::string found = most_similar(wanted->name, own);
  return call.give(found.empty() ? most_similar(wanted->name, library) : found);
}

const NativeInfo methods_natives[] = {
    {"similar_name", similar_name, effect_all, returns_string},
    {"has_method", has_method, effect_all, returns_bool, false, true},
    {"method_parts", method_parts, effect_all, nullptr},
    {"method_count", method_count, effect_all, returns_int},
    {.name = "method_matches", .function = method_matches, .generator_may_call = true},
    {.name = "invoke_method", .function = invoke_method, .calls_method = true},
    {"module_names", module_names, effect_all, nullptr},
    {"module_values", module_values, effect_all, nullptr},
    {"name_of", name_of, effect_throws, returns_symbol},
    {"module_of", module_of, effect_throws, nullptr},
    {"generator_counts", generator_counts, effect_all, nullptr},
};

}  // namespace

void define_method_natives(Runtime& runtime) { define_all(runtime, methods_natives); }

}  // namespace slope::stdlib
