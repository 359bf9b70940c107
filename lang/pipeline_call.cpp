#include "lang/pipeline_call.hpp"

namespace slope {

void append_elements(Context& ctx, Value tuple, Rooted& to) {
  for (const Field& field : as_data(tuple.type)->fields)
    to.values.push_back(load_field(ctx.runtime->heap, tuple.object, field));
}

bool expect_tuple(Context& ctx, const char* where, Value v) {
  const DataType* d = as_data(v.type);
  return (d && d->is_tuple) || ctx.type_error(where, ctx.runtime->types.builtin().tuple_any, v);
}

Specialization* inferred_call_of(Context& ctx, Value f, Value given_types) {
  Runtime& runtime = *ctx.runtime;
  std::vector<const Type*> types{runtime.is_type_value(f) ? runtime.types.type_of_constant(f) : f.type};
  if (!expect_tuple(ctx, "argument types", given_types)) return nullptr;
  Rooted given(runtime.heap);
  append_elements(ctx, given_types, given);
  for (const Value v : given.values) {
    if (!runtime.is_type_value(v)) {
      ctx.type_error("argument types", runtime.types.builtin().type, v);
      return nullptr;
    }
    types.push_back(v.as_type);
  }
  const DataType* call = runtime.types.tuple(types);
  Specialization* target = runtime.lookup_specialization(call, ctx.world);
  if (!target) {
    ctx.argument_error("no unique method matches the call " + to_string(call));
    return nullptr;
  }
  pipeline_of(ctx).typed_code(ctx, *target);
  return ctx.failed() ? nullptr : target;
}

bool DerivedCall::resolve(Value f, Value xs_tuple) {
  Runtime& runtime = *ctx.runtime;
  if (!expect_tuple(ctx, "gradient", xs_tuple)) return false;
  append_elements(ctx, xs_tuple, values);
  xs = values.values;
  if (f.type == runtime.types.builtin().builtin_function)
    return ctx.argument_error("builtin functions cannot be differentiated directly; wrap the call in a function");
  target = runtime.dispatch(ctx, f, xs.data(), xs.size());
  if (!target) return false;
  const Method& method = *target->method;
  arguments.push_back(f);
  std::size_t fixed = method.is_vararg ? method.arg_count - 1 : xs.size();
  for (std::size_t i = 0; i < fixed; ++i) arguments.push_back(xs[i]);
  if (method.is_vararg) {
    Value rest;
    if (!runtime.new_tuple(ctx, xs.data() + fixed, xs.size() - fixed, rest)) return false;
    values.values.push_back(rest);
    arguments.push_back(rest);
  }
  asked.assign(arguments.size(), 1);
  asked[0] = 0;
  return true;
}

bool DerivedCall::find_shared_memory() {
  Runtime& runtime = *ctx.runtime;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  std::vector<std::size_t> holders;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (tangents.has_shadow(arguments[i].type)) holders.push_back(i);
  bool only_callee = holders.empty() || (holders.size() == 1 && holders[0] == 0);
  if (only_callee) return true;
  diff::MemorySummary effects = pipeline_of(ctx).memory(ctx).of(*target);
  diff::MemoryMask mask = 0;
  for (std::size_t i : holders)
    if (i != 0) mask |= diff::parameter_mask(i);
  if (!((effects.writes | effects.unknown) & mask)) return true;
  std::vector<std::unique_ptr<diff::ShadowMaker>> makers;
  for (std::size_t i : holders) {
    makers.push_back(std::make_unique<diff::ShadowMaker>(ctx));
    Value ignored;
    if (!makers.back()->shadow(arguments[i], ignored)) return false;
  }
  for (std::size_t a = 0; a < holders.size(); ++a)
    for (std::size_t b = a + 1; b < holders.size(); ++b) {
      if (!makers[a]->overlaps(*makers[b])) continue;
      diff::MemoryMask both = diff::parameter_mask(holders[a]) | diff::parameter_mask(holders[b]);
      if (effects.writes & both) {
        shared = true;
        asked[holders[a]] = asked[holders[b]] = 1;
      } else if (effects.unknown & both) {
        stores_forbidden = true;
      }
    }
  diff::ShadowMaker globals(ctx);
  Value ignored;
  diff::MemoryEffects::Globals looked_at = pipeline_of(ctx).globals_of(ctx, *target);
  for (Value v : looked_at.constants)
    if (tangents.has_shadow(v.type) && !globals.shadow(v, ignored)) return false;
  for (const Binding* binding : looked_at.bindings)
    if (binding->value.defined() && tangents.has_shadow(binding->value.type) &&
        !globals.shadow(binding->value, ignored))
      return false;
  for (std::size_t a = 0; a < holders.size(); ++a) {
    if (!makers[a]->overlaps(globals)) continue;
    diff::MemoryMask bit = diff::parameter_mask(holders[a]);
    if (effects.writes & bit)
      return ctx.raise_message(runtime.types.builtin().differentiation_error,
                               "cannot differentiate `" + std::string(target->method->name->name) +
                                   "`: it stores into an argument that it also reads as a global; give it a copy of "
                                   "the argument");
    if (effects.unknown & bit) stores_forbidden = true;
  }
  return true;
}

bool DerivedCall::make_shadows(const std::vector<char>& active) {
  Runtime& runtime = *ctx.runtime;
  diff::ShadowMaker common(ctx);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Value made = runtime.nothing();
    diff::ShadowMaker own(ctx);
    diff::ShadowMaker& maker = shared ? common : own;
    if (active[i] && !maker.shadow(arguments[i], made)) return false;
    if (stores_forbidden) maker.forbid_stores();
    values.values.push_back(made);
    shadows.push_back(made);
  }
  return true;
}

bool DerivedCall::finish(Value cotangents, Value& result) {
  Runtime& runtime = *ctx.runtime;
  Rooted parts(runtime.heap);
  append_elements(ctx, cotangents, parts);
  Rooted finished(runtime.heap);
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    Value made;
    if (!diff::finish_tangent(ctx, arguments[i], shadows[i], parts.values[i], made)) return false;
    if (target->method->is_vararg && i + 1 == arguments.size()) {
      if (as_data(made.type)->is_tuple)
        append_elements(ctx, made, finished);
      else
        finished.values.resize(xs.size(), runtime.nothing());
    } else {
      finished.values.push_back(made);
    }
  }
  return runtime.new_tuple(ctx, finished.values.data(), finished.values.size(), result);
}

std::vector<Value> DerivedCall::shadow_arguments(const std::vector<char>& active) const {
  std::vector<Value> given;
  diff::TangentTypes& tangents = diff::tangent_types(*ctx.runtime);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (active[i] && tangents.has_shadow(arguments[i].type)) given.push_back(shadows[i]);
  return given;
}

namespace {

bool call_base(Context& ctx, const char* name, std::initializer_list<Value> arguments, Value& result) {
  Runtime& runtime = *ctx.runtime;
  return runtime.call(ctx, runtime.base->find(runtime.symbol(name))->value, arguments.begin(), arguments.size(),
                      result);
}

// Adds what is given for memory.
bool into_shadow(Context& ctx, Value shadow, Value given, const Value* told) {
  Value ignored;
  return told ? call_base(ctx, "tell!", {shadow, given, *told}, ignored)
              : call_base(ctx, "accumulate_cotangent!", {shadow, given}, ignored);
}

// Of a value whose type was known only when it was there: its shadow tells whether there is memory in it.
bool dynamic_seed(Context& ctx, const Type* t, Value given, Value shadow, Value& seed, const Value* told) {
  Runtime& runtime = *ctx.runtime;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  if (shadow.type == tangents.dynamic())
    shadow = load_field(runtime.heap, shadow.object, tangents.dynamic()->fields[0]);
  if (shadow.type != runtime.nothing().type && given.type != runtime.nothing().type) {
    if (!into_shadow(ctx, shadow, given, told)) return false;
    if (!call_base(ctx, "numbers_only", {given}, given)) return false;
  }
  Rooted root(runtime.heap);
  root.values.push_back(given);
  if (!tangents.has_cotangent(t)) return true;
  return runtime.new_object(ctx, tangents.dynamic(), &given, 1, seed);
}

// A field of a mutable struct: its numbers lie in the shadow itself, and are added there.
bool seed_field(Context& ctx, const Type* declared, Value given, Value shadow, std::size_t i, const Value* told) {
  Runtime& runtime = *ctx.runtime;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  const Field& place = as_data(shadow.type)->fields[i];
  if (given.type == runtime.nothing().type || place.type == runtime.nothing().type) return true;
  Value held = load_field(runtime.heap, shadow.object, place);
  if (!held.defined()) return ctx.argument_error("a tangent is given for a field that is not assigned");
  Rooted roots(runtime.heap);
  roots.values = {held, given};
  const bool both = tangents.has_shadow(declared) && tangents.has_cotangent(declared);
  Value own = both ? load_field(runtime.heap, held.object, as_data(held.type)->fields[0]) : held;
  Value number = both ? load_field(runtime.heap, held.object, as_data(held.type)->fields[1]) : held;
  roots.values.insert(roots.values.end(), {own, number});
  Value seed;
  if (!seed_of(ctx, declared, given, own, seed, told)) return false;
  if (!tangents.has_cotangent(declared)) return true;
  roots.values.push_back(seed);
  Binding* add = runtime.base->find(runtime.symbol("sum_tangents"));
  Value call[2] = {number, seed};
  Value sum;
  if (!runtime.call(ctx, add->value, call, 2, sum)) return false;
  roots.values.push_back(sum);
  Value parts[2] = {own, sum};
  if (both && !runtime.new_object(ctx, as_data(place.type), parts, 2, sum)) return false;
  store_value(shadow.object->payload() + place.offset, place.type, sum);
  return true;
}

}  // namespace

bool seed_of(Context& ctx, const Type* t, Value given, Value shadow, Value& seed, const Value* told) {
  Runtime& runtime = *ctx.runtime;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  const BuiltinTypes& builtin = runtime.types.builtin();
  bool none = given.type == builtin.nothing;
  if (tangents.is_float(t)) {
    Value converted = none ? runtime.from_float(0.0) : given;
    Binding* convert = runtime.base->find(runtime.symbol("convert"));
    Value call[2] = {runtime.from_type(t), converted};
    if (converted.type == t) {
      seed = converted;
      return true;
    }
    return convert && runtime.call(ctx, convert->value, call, 2, seed);
  }
  seed = runtime.nothing();
  if (!tangents.differentiable(t)) return true;
  if (!is_concrete(t)) return dynamic_seed(ctx, t, given, shadow, seed, told);
  const DataType* d = as_data(t);
  if (d->object_kind == DataType::ObjectKind::array) return none || into_shadow(ctx, shadow, given, told);
  if (d->is_mutable && none) return true;
  const DataType* shape = as_data(given.type);
  if (!none && (shape->fields.size() != d->fields.size() || !(shape->is_tuple || shape->is_named_tuple)))
    return ctx.argument_error("the cotangent of a " + to_string(t) + " is a tuple with " +
                              std::to_string(d->fields.size()) + " entries; found " + to_string(given.type));
  if (d->is_mutable) {
    if (told) {
      Value known;
      if (!call_base(ctx, "is_told", {shadow, given, *told}, known)) return false;
      if (known.bits & 1) return true;
    }
    for (std::size_t i = 0; i < d->fields.size(); ++i)
      if (!seed_field(ctx, d->fields[i].type, load_field(runtime.heap, given.object, shape->fields[i]), shadow, i,
                      told))
        return false;
    return true;
  }
  Rooted parts(runtime.heap);
  for (std::size_t i = 0; i < d->fields.size(); ++i) {
    Value part = none ? given : load_field(runtime.heap, given.object, shape->fields[i]);
    Value part_shadow = runtime.nothing();
    if (as_data(shadow.type)->is_tuple)
      part_shadow = load_field(runtime.heap, shadow.object, as_data(shadow.type)->fields[i]);
    Value part_seed;
    if (!seed_of(ctx, d->fields[i].type, part, part_shadow, part_seed, told)) return false;
    parts.values.push_back(part_seed);
  }
  if (!tangents.has_cotangent(t)) return true;
  return runtime.new_tuple(ctx, parts.values.data(), parts.values.size(), seed);
}

}  // namespace slope
