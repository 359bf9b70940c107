// Reflection on types.
#include <algorithm>
#include <unordered_set>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

// The nominal type under union_alls, with its fields in terms of its variables.
const DataType* nominal(const Type* t) {
  while (auto* u = as_union_all(t)) t = u->body;
  return as_data(t);
}

bool type_subtract(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "type_subtract", args, count, result);
  const Type *t = nullptr, *without = nullptr;
  if (!call.type(0, t) || !call.type(1, without)) return false;
  TypeTable& types = call.runtime.types;
  if (auto* u = as_union(t)) {
    std::vector<const Type*> kept;
    for (const Type* member : u->members)
      if (!is_subtype(types, member, without)) kept.push_back(member);
    return call.give_type(types.union_of(kept));
  }
  return call.give_type(is_subtype(types, t, without) ? call.builtin.bottom : t);
}

bool type_size(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "sizeof", args, count, result);
  const Type* t = nullptr;
  if (!call.type(0, t)) return false;
  auto* d = as_data(t);
  if (!d || !d->is_concrete)
    return ctx.argument_error("Abstract type " + to_string(t) + " does not have a definite size.");
  return call.give_int(d->size);
}

// The join of a tuple type's element types.
bool tuple_eltype(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "eltype", args, count, result);
  const Type* t = nullptr;
  if (!call.type(0, t)) return false;
  const DataType* d = nominal(t);
  TypeTable& types = call.runtime.types;
  const Type* joined = call.builtin.bottom;
  if (!d || !d->is_tuple) return call.give_type(call.builtin.any);
  for (const Type* p : d->params) {
    auto* rest = as_vararg(p);
    const Type* element = rest ? rest->element : p;
    if (element->has_free_vars) element = call.builtin.any;
    joined = joined == call.builtin.bottom ? element : type_join(types, joined, element);
  }
  return call.give_type(joined);
}

bool tuple_type(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "tuple_type", args, count, result);
  const Type* t = nullptr;
  if (!call.type(0, t)) return false;
  auto* d = as_data(t);
  if (!d || !d->is_named_tuple) return ctx.argument_error("a NamedTuple type is needed");
  return call.give_type(d->params[1]);
}

bool has_fields(Call& call, const Type* t, const DataType*& d) {
  d = nominal(t);
  if (d && !d->is_abstract && d->object_kind == DataType::ObjectKind::fields) return true;
  if (d && !d->is_abstract) return true;
  return call.ctx.argument_error("type does not have a definite number of fields: " + to_string(t));
}

// Of a named tuple's type; its names may be known when the types of its elements are not.
bool named_tuple_names(Call& call, const DataType& d, std::vector<Value>& names) {
  if (!d.fields.empty()) {
    for (const Field& f : d.fields) names.push_back(call.runtime.from_symbol(f.name));
    return true;
  }
  const auto* value = as_value(d.params[0]);
  if (value == nullptr) return call.ctx.argument_error("type does not have a definite number of fields");
  const DataType* tuple = as_data(value->value.type);
  for (const Field& f : tuple->fields) names.push_back(load_field(call.runtime.heap, value->value.object, f));
  return true;
}

bool fieldnames(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "fieldnames", args, count, result);
  const Type* t = nullptr;
  const DataType* d = nullptr;
  if (!call.type(0, t) || !has_fields(call, t, d)) return false;
  std::vector<Value> names;
  if (d->is_tuple) {
    for (std::size_t i = 1; i <= d->params.size(); ++i)
      names.push_back(call.runtime.from_int(static_cast<std::int64_t>(i)));
  } else if (d->is_named_tuple) {
    if (!named_tuple_names(call, *d, names)) return false;
  } else {
    for (const Symbol* name : d->name->field_names) names.push_back(call.runtime.from_symbol(name));
  }
  return call.runtime.new_tuple(ctx, names.data(), names.size(), result);
}

bool fieldcount(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "fieldcount", args, count, result);
  const Type* t = nullptr;
  const DataType* d = nullptr;
  if (!call.type(0, t) || !has_fields(call, t, d)) return false;
  if (d->is_tuple && !d->params.empty() && as_vararg(d->params.back()))
    return ctx.argument_error("type does not have a definite number of fields");
  std::vector<Value> names;
  if (d->is_named_tuple && !named_tuple_names(call, *d, names)) return false;
  std::size_t n = d->is_tuple ? d->params.size() : d->is_named_tuple ? names.size() : d->name->field_names.size();
  return call.give_int(static_cast<std::int64_t>(n));
}

bool fieldtype(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "fieldtype", args, count, result);
  const Type* t = nullptr;
  const DataType* d = nullptr;
  if (!call.arity(2) || !call.type(0, t) || !has_fields(call, t, d)) return false;
  std::int64_t index = 0;
  if (d->is_named_tuple && d->fields.empty()) {
    std::vector<Value> names;
    if (!named_tuple_names(call, *d, names)) return false;
    if (args[1].type != call.builtin.symbol && !call.integer(1, index)) return false;
    for (std::size_t i = 0; i < names.size() && args[1].type == call.builtin.symbol; ++i)
      if (names[i].symbol == args[1].symbol) index = static_cast<std::int64_t>(i) + 1;
    if (index < 1 || index > static_cast<std::int64_t>(names.size())) return ctx.bounds_error(args[0], args[1]);
    const TypeVar* var = as_var(d->params[1]);
    const DataType* bound = as_data(var ? var->upper : d->params[1]);
    const auto at = static_cast<std::size_t>(index - 1);
    const bool is_known = bound && bound->is_tuple && at < bound->params.size() && !as_vararg(bound->params[at]);
    return call.give_type(is_known ? bound->params[at] : call.builtin.any);
  }
  if (args[1].type == call.builtin.symbol) {
    index = d->field_index(args[1].symbol) + 1;
    if (index == 0) return ctx.raise_error("type " + to_string(t) + " has no field " + args[1].symbol->name);
  } else if (!call.integer(1, index)) {
    return false;
  }
  if (d->is_tuple) {
    if (!d->params.empty() && index >= static_cast<std::int64_t>(d->params.size()))
      if (auto* rest = as_vararg(d->params.back())) return call.give_type(rest->element);
    if (index < 1 || index > static_cast<std::int64_t>(d->params.size())) return ctx.bounds_error(args[0], args[1]);
    return call.give_type(d->params[static_cast<std::size_t>(index - 1)]);
  }
  if (index < 1 || index > static_cast<std::int64_t>(d->fields.size())) return ctx.bounds_error(args[0], args[1]);
  return call.give_type(d->fields[static_cast<std::size_t>(index - 1)].type);
}

bool supertype(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "supertype", args, count, result);
  const Type* t = nullptr;
  if (!call.type(0, t)) return false;
  TypeTable& types = call.runtime.types;
  std::vector<const TypeVar*> vars;
  while (auto* u = as_union_all(t)) {
    vars.push_back(u->var);
    t = u->body;
  }
  auto* d = as_data(t);
  if (!d) return ctx.argument_error("a Union has no supertype");
  const Type* super = d->super;
  for (std::size_t i = vars.size(); i-- > 0;) super = super->has_free_vars ? types.union_all(vars[i], super) : super;
  return call.give_type(super);
}

// The type without its parameters: Array of Array{Int64, 1}.
bool type_wrapper(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "type_wrapper", args, count, result);
  const Type* t = nullptr;
  if (!call.type(0, t)) return false;
  const DataType* d = nominal(t);
  return d ? call.give_type(d->name->wrapper) : ctx.argument_error("a Union has no name: " + to_string(t));
}

// type_property(T, k): abstract 1, concrete 2, mutable 3, plain bits 4, singleton 5, struct 6, primitive 7, closure 8,
// of a program, not of the library 9
bool type_property(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "type_property", args, count, result);
  std::int64_t which = 0;
  if (!call.integer(1, which)) return false;
  if (!call.runtime.is_type_value(args[0])) return call.give_bool(false);
  const Type* t = args[0].as_type;
  const DataType* d = which == 2 || which == 4 || which == 5 ? as_data(t) : nominal(t);
  if (!d) return call.give_bool(false);
  switch (which) {
    case 1:
      return call.give_bool(d->is_abstract);
    case 2:
      return call.give_bool(d->is_concrete);
    case 3:
      return call.give_bool(d->is_mutable);
    case 4:
      return call.give_bool(d->is_concrete && d->is_isbits);
    case 5:
      return call.give_bool(d->is_concrete && d->storage == Storage::singleton);
    case 6:
      return call.give_bool(!d->is_abstract && !d->name->is_primitive);
    case 7:
      return call.give_bool(d->name->is_primitive);
    case 8:
      return call.give_bool(d->name->is_closure);
    default: {
      const Module* module = d->name->module;
      while (module && module->parent && module->parent != module) module = module->parent;
      return call.give_bool(module && module != call.runtime.base && module != call.runtime.core);
    }
  }
}

bool type_join_native(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "typejoin", args, count, result);
  const Type *a = nullptr, *b = nullptr;
  return call.type(0, a) && call.type(1, b) && call.give_type(type_join(call.runtime.types, a, b));
}

bool type_intersect(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "typeintersect", args, count, result);
  const Type *a = nullptr, *b = nullptr;
  return call.type(0, a) && call.type(1, b) && call.give_type(intersect(call.runtime.types, a, b));
}

// Whether dispatch prefers a method of signature A to one of signature B.
bool type_more_specific(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "morespecific", args, count, result);
  const Type *a = nullptr, *b = nullptr;
  return call.type(0, a) && call.type(1, b) && call.give_bool(more_specific(call.runtime.types, a, b));
}

bool type_or_variable(Call& call, Value v, const Type*& out) {
  if (!call.runtime.is_type_value(v) && v.type != call.builtin.type_var)
    return call.ctx.type_error("TypeVar", call.builtin.type, v);
  out = v.as_type;
  return true;
}

// type_variable(name, lower, upper): a new variable of types; type_over(variable, T): T for each value of the variable.
bool type_variable(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "TypeVar", args, count, result);
  const Type *lower = nullptr, *upper = nullptr;
  if (!call.arity(3) || !type_or_variable(call, args[1], lower) || !type_or_variable(call, args[2], upper))
    return false;
  if (args[0].type != call.builtin.symbol) return ctx.type_error("TypeVar", call.builtin.symbol, args[0]);
  return call.give_type(call.runtime.types.var(args[0].symbol, lower, upper));
}
bool type_over(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "UnionAll", args, count, result);
  const Type *variable = nullptr, *body = nullptr;
  if (!call.arity(2) || !type_or_variable(call, args[0], variable) || !type_or_variable(call, args[1], body))
    return false;
  if (as_var(variable) == nullptr) return ctx.argument_error("UnionAll takes a TypeVar and a type");
  return call.give_type(call.runtime.types.union_all(as_var(variable), body));
}

// The nominal types directly below T, found among the globals of all modules.
bool type_subtypes(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "subtypes", args, count, result);
  const Type* t = nullptr;
  if (!call.type(0, t)) return false;
  const DataType* wanted = nominal(t);
  Runtime& runtime = call.runtime;
  runtime.define_all_postponed();
  std::vector<const Type*> found;
  std::unordered_set<const TypeName*> seen;
  std::unordered_set<Module*> visited;
  std::vector<Module*> open{runtime.core, runtime.base, runtime.main};
  // Those of a package that is being loaded are not reached from others yet.
  for (const TypeName* name : runtime.types.names()) open.push_back(name->module);
  while (!open.empty()) {
    Module* module = open.back();
    open.pop_back();
    if (!module || !visited.insert(module).second) continue;
    for (const auto& [name, binding] : module->bindings) {
      Value v = binding->value;
      if (!v.defined()) continue;
      if (v.type == call.builtin.module) open.push_back(v.module);
      if (!runtime.is_type_value(v)) continue;
      const DataType* d = nominal(v.as_type);
      if (!d || !d->super || d->super == d || !wanted || d->super->name != wanted->name || d == wanted) continue;
      if (!is_subtype(runtime.types, d->name->wrapper, t) && as_data(t)) continue;
      if (seen.insert(d->name).second) found.push_back(d->name->wrapper);
    }
  }
  std::sort(found.begin(), found.end(), [](const Type* a, const Type* b) { return to_string(a) < to_string(b); });
  const std::int64_t dims[] = {static_cast<std::int64_t>(found.size())};
  const DataType* type = runtime.types.array_of(call.builtin.any, 1);
  ArrayObject* made = runtime.heap.allocate_array(type, dims);
  if (!made) return ctx.out_of_memory();
  for (std::size_t i = 0; i < found.size(); ++i)
    store_value(runtime.heap, made->data + i * made->element_size, call.builtin.any, runtime.from_type(found[i]));
  return call.give(Value(type, static_cast<const void*>(made)));
}

// What makes documentation in Julia, which packages keep to call it: nothing here.
bool atdoc(Context& ctx, const Value*, std::size_t, Value& result) {
  result = ctx.runtime->nothing();
  return true;
}

// Core.kwftype(typeof(f)): the type of what a call of `f` with keywords calls.
bool kwftype(Context& ctx, const Value*, std::size_t, Value& result) {
  Runtime& runtime = *ctx.runtime;
  result = runtime.from_type(runtime.generic_function(runtime.base, runtime.symbol("kwcall")).type);
  return true;
}

// Core.svec(xs...): Julia's simple vectors are tuples here.
bool svec(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return ctx.runtime->new_tuple(ctx, args, count, result);
}

const Type* type_constant(TypeTable& t, const Type* answer) { return t.type_type(answer); }
const Type* argument_type(const Type* t) {
  auto* d = as_data(t);
  return d && d->is_type_of_type && !d->params[0]->has_free_vars ? d->params[0] : nullptr;
}
const Type* joined(TypeTable& t, ArgumentTypes args) {
  const Type* a = args.size() == 2 ? argument_type(args[0]) : nullptr;
  const Type* b = args.size() == 2 ? argument_type(args[1]) : nullptr;
  return a && b ? type_constant(t, type_join(t, a, b)) : t.builtin().type;
}

const NativeInfo types_natives[] = {
    {"type_subtract", type_subtract, effect_throws, nullptr},
    {"type_size", type_size, effect_throws, returns_int},
    {"tuple_eltype", tuple_eltype, effect_throws, nullptr},
    {"tuple_type", tuple_type, effect_throws, nullptr},
    {"fieldnames", fieldnames, effect_throws, nullptr},
    {"fieldcount", fieldcount, effect_throws, returns_int},
    {"fieldtype", fieldtype, effect_throws, nullptr},
    {"supertype", supertype, effect_throws, nullptr},
    {"type_wrapper", type_wrapper, effect_throws, nullptr},
    {"type_property", type_property, effect_throws, returns_bool},
    {"type_join", type_join_native, effect_throws, joined},
    {"type_intersect", type_intersect, effect_throws, nullptr},
    {"type_more_specific", type_more_specific, effect_throws, returns_bool},
    {"type_variable", type_variable, effect_all, nullptr},
    {"type_over", type_over, effect_throws, nullptr},
    {"kwftype", kwftype, effect_none, nullptr},
    {"svec", svec, effect_allocates, nullptr},
    {"atdoc", atdoc, effect_none, nullptr},
    {"atdoc!", atdoc, effect_none, nullptr},
    {"type_subtypes", type_subtypes, effect_all, nullptr, false, true},
};

}  // namespace

void define_type_natives(Runtime& runtime) { define_all(runtime, types_natives); }

}  // namespace slope::stdlib
