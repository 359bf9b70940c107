// Natives of Core that need the whole pipeline: gradients of values, pullbacks, inspection, inferred result types.
#include "lang/diff/tangent.hpp"
#include "lang/pipeline_impl.hpp"

namespace slope {

namespace {

Pipeline& pipeline_of(Context& ctx) { return *static_cast<Pipeline*>(ctx.runtime->tiers); }

// The elements of a tuple, appended to what the collector sees: taking one out may allocate, and so collect.
void append_elements(Context& ctx, Value tuple, Rooted& to) {
  for (const Field& field : as_data(tuple.type)->fields)
    to.values.push_back(load_field(ctx.runtime->heap, tuple.object, field));
}

bool expect_tuple(Context& ctx, const char* where, Value v) {
  const DataType* d = as_data(v.type);
  return (d && d->is_tuple) || ctx.type_error(where, ctx.runtime->types.builtin().tuple_any, v);
}

// A call that is to be differentiated: the method it goes to, its arguments as the method's IR has them, their shadows.
struct Primal {
  explicit Primal(Context& context) : ctx(context), values(context.runtime->heap) {}

  bool resolve(Value f, Value xs_tuple) {
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

  // Memory that can be reached in more than one way. The same array given as two arguments is two arguments, each with
  // a shadow of its own, as long as the function stores nothing into it. When it does, what is written through one is
  // read through the other: then all that reach it are active and share one shadow, which is what each is told.
  bool find_shared_memory() {
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

  // One shadow an argument, nothing for those without.
  bool make_shadows(const std::vector<char>& active) {
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

  // Cotangents (one an argument) → what the user sees, as a tuple; for xs alone, or for f first.
  bool finish(Value cotangents, Value& result, bool with_callee = false) {
    Runtime& runtime = *ctx.runtime;
    Rooted parts(runtime.heap);
    append_elements(ctx, cotangents, parts);
    Rooted finished(runtime.heap);
    for (std::size_t i = with_callee ? 0 : 1; i < arguments.size(); ++i) {
      Value made;
      if (!diff::finish_tangent(ctx, arguments[i], shadows[i], parts.values[i], made)) return false;
      if (target->method->is_vararg && i + 1 == arguments.size()) {
        if (as_data(made.type)->is_tuple)
          append_elements(ctx, made, finished);
        else
          finished.values.resize(xs.size() + (with_callee ? 1 : 0), runtime.nothing());
      } else {
        finished.values.push_back(made);
      }
    }
    return runtime.new_tuple(ctx, finished.values.data(), finished.values.size(), result);
  }

  std::vector<Value> shadow_arguments(const std::vector<char>& active) const {
    std::vector<Value> given;
    diff::TangentTypes& tangents = diff::tangent_types(*ctx.runtime);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (active[i] && tangents.has_shadow(arguments[i].type)) given.push_back(shadows[i]);
    return given;
  }

  Context& ctx;
  Rooted values;  // keeps everything below alive
  std::vector<Value> xs;
  Specialization* target = nullptr;
  std::vector<Value> arguments;
  std::vector<Value> shadows;
  std::vector<char> asked;
  bool shared = false;            // one shadow for what several arguments reach
  bool stores_forbidden = false;  // would be shared, if it is found to be written
};

// Tapes that an error left open are free again.
struct TapeGuard {
  explicit TapeGuard(Context& context) : ctx(context), mark(context.tapes ? context.tapes->mark() : 0) {}
  ~TapeGuard() {
    if (failed && ctx.tapes) ctx.tapes->release_since(mark);
  }
  Context& ctx;
  std::uint64_t mark;
  bool failed = false;
};

// value_and_gradient_call(f, xs::Tuple) → (value, gradients::Tuple)
bool value_and_gradient_call(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("value_and_gradient_call takes a function and a tuple of arguments");
  Runtime& runtime = *ctx.runtime;
  Primal primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  const Pipeline::GradientCode* code = pipeline_of(ctx).gradient_code(ctx, *primal.target, primal.asked);
  if (!code) return false;
  if (!primal.make_shadows(code->active)) return false;
  std::vector<Value> given = primal.arguments;
  for (Value v : primal.shadow_arguments(code->active)) given.push_back(v);
  const Type* seed = code->target->types->params.back();
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  Value one = runtime.from_float(1.0);
  if (seed == tangents.dynamic()) {
    if (!runtime.new_object(ctx, tangents.dynamic(), &one, 1, one)) return false;
    primal.values.values.push_back(one);
  } else if (seed == runtime.types.builtin().float32) {
    one.type = seed;
    one.bits = 0;
    one.float32 = 1.0f;
  }
  given.push_back(one);
  TapeGuard guard(ctx);
  Value pair;
  if (!runtime.call_specialized(ctx, *code->target, code->callee, given.data(), given.size(), pair)) {
    guard.failed = true;
    return false;
  }
  Rooted parts(ctx.runtime->heap);
  append_elements(ctx, pair, parts);
  if (!tangents.is_float(parts.values[0].type))
    return ctx.raise_message(runtime.types.builtin().differentiation_error,
                             "cannot differentiate `" + std::string(primal.target->method->name->name) +
                                 "`: the gradient needs a function that returns one floating-point number; this one "
                                 "returned a value of type " +
                                 to_string(parts.values[0].type));
  Value both[2] = {parts.values[0], Value()};
  if (!primal.finish(parts.values[1], both[1])) return false;
  return runtime.new_tuple(ctx, both, 2, result);
}

// pullback_forward(f, xs::Tuple) → (value, shadow of value, record, shadows::Tuple, which code the record is for)
bool pullback_forward(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("pullback_forward takes a function and a tuple of arguments");
  Runtime& runtime = *ctx.runtime;
  Primal primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  const diff::Environment::Halves* halves = pipeline_of(ctx).halves(ctx, *primal.target, primal.asked);
  if (!halves) return false;
  if (!primal.make_shadows(halves->active)) return false;
  std::vector<Value> given = primal.arguments;
  for (Value v : primal.shadow_arguments(halves->active)) given.push_back(v);
  TapeGuard guard(ctx);
  Value triple;
  if (!runtime.call_specialized(ctx, *halves->forward, halves->forward_callee, given.data(), given.size(), triple)) {
    guard.failed = true;
    return false;
  }
  Value shadows;
  if (!runtime.new_tuple(ctx, primal.shadows.data(), primal.shadows.size(), shadows)) return false;
  Rooted parts(runtime.heap);
  append_elements(ctx, triple, parts);
  parts.values.push_back(shadows);
  parts.values.push_back(runtime.from_int(reinterpret_cast<std::intptr_t>(halves->reverse)));
  return runtime.new_tuple(ctx, parts.values.data(), parts.values.size(), result);
}

bool seed_of(Context& ctx, const Type* t, Value given, Value shadow, Value& seed);

// The same where the value's type was known only when it was there: its shadow tells whether there is memory in it.
bool dynamic_seed(Context& ctx, const Type* t, Value given, Value shadow, Value& seed) {
  Runtime& runtime = *ctx.runtime;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  if (shadow.type == tangents.dynamic())
    shadow = load_field(runtime.heap, shadow.object, tangents.dynamic()->fields[0]);
  if (as_data(shadow.type)->object_kind == DataType::ObjectKind::array) {
    Binding* accumulate = runtime.base->find(runtime.symbol("accumulate_cotangent!"));
    Value call[2] = {shadow, given};
    Value ignored;
    if (given.type != runtime.nothing().type && !runtime.call(ctx, accumulate->value, call, 2, ignored)) return false;
    given = runtime.nothing();
  } else if (shadow.type != runtime.nothing().type) {
    return ctx.argument_error("a pullback of a function whose result type is not inferred (" + to_string(t) +
                              ") takes numbers and arrays only");
  }
  if (!tangents.has_cotangent(t)) return true;
  return runtime.new_object(ctx, tangents.dynamic(), &given, 1, seed);
}

// The cotangent that a pullback is given, split: numbers into the seed, arrays into the value's shadow.
bool seed_of(Context& ctx, const Type* t, Value given, Value shadow, Value& seed) {
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
  if (!is_concrete(t)) return dynamic_seed(ctx, t, given, shadow, seed);
  const DataType* d = as_data(t);
  if (d->object_kind == DataType::ObjectKind::array) {
    if (none) return true;
    Binding* accumulate = runtime.base->find(runtime.symbol("accumulate_cotangent!"));
    Value call[2] = {shadow, given};
    Value ignored;
    return accumulate && runtime.call(ctx, accumulate->value, call, 2, ignored);
  }
  if (d->is_mutable)
    return none || ctx.argument_error("the cotangent of a mutable struct cannot be given to a pullback; use nothing");
  const DataType* shape = as_data(given.type);
  if (!none && (shape->fields.size() != d->fields.size() || !(shape->is_tuple || shape->is_named_tuple)))
    return ctx.argument_error("the cotangent of a " + to_string(t) + " is a tuple with " +
                              std::to_string(d->fields.size()) + " entries; found " + to_string(given.type));
  Rooted parts(runtime.heap);
  for (std::size_t i = 0; i < d->fields.size(); ++i) {
    Value part = none ? given : load_field(runtime.heap, given.object, shape->fields[i]);
    Value part_shadow = runtime.nothing();
    if (as_data(shadow.type)->is_tuple)
      part_shadow = load_field(runtime.heap, shadow.object, as_data(shadow.type)->fields[i]);
    Value part_seed;
    if (!seed_of(ctx, d->fields[i].type, part, part_shadow, part_seed)) return false;
    parts.values.push_back(part_seed);
  }
  if (!tangents.has_cotangent(t)) return true;
  return runtime.new_tuple(ctx, parts.values.data(), parts.values.size(), seed);
}

// pullback_reverse(f, xs::Tuple, shadow of value, record, shadows::Tuple, code, cotangent) → gradients::Tuple; nothing
// when the code was made anew since: then the forward half must run again.
bool pullback_reverse(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 7) return ctx.argument_error("pullback_reverse takes seven arguments");
  Runtime& runtime = *ctx.runtime;
  Primal primal(ctx);
  if (!primal.resolve(args[0], args[1])) return false;
  Rooted shadows(runtime.heap);
  append_elements(ctx, args[4], shadows);
  primal.shadows = shadows.values;
  primal.asked[0] = primal.shadows[0].type != runtime.types.builtin().nothing;
  const diff::Environment::Halves* halves = pipeline_of(ctx).halves(ctx, *primal.target, primal.asked);
  if (!halves) return false;
  if (reinterpret_cast<std::intptr_t>(halves->reverse) != args[5].bits) {
    result = runtime.nothing();
    return true;
  }
  Value given[2] = {args[3], Value()};
  if (!seed_of(
          ctx,
          halves->forward->current->return_type ? as_data(halves->forward->current->return_type)->params[0] : nullptr,
          args[6], args[2], given[1]))
    return false;
  Value cotangents;
  if (!runtime.call_specialized(ctx, *halves->reverse, halves->reverse_callee, given, 2, cotangents)) return false;
  return primal.finish(cotangents, result);
}

// Tangents of values as a user writes them (numbers, arrays, tuples; `nothing` for none), in two parts each.
struct Directions {
  explicit Directions(Context& context) : ctx(context), values(context.runtime->heap) {}

  bool read(const std::vector<Value>& of, const std::vector<Value>& given, std::vector<char>& active) {
    diff::TangentTypes& tangents = diff::tangent_types(*ctx.runtime);
    diff::ShadowMaker maker(ctx);
    for (std::size_t i = 0; i < of.size(); ++i) {
      Value shadow = ctx.runtime->nothing();
      Value tangent = ctx.runtime->nothing();
      if (given[i].type == ctx.runtime->nothing().type) active[i] = 0;
      if (active[i]) {
        if (!maker.shadow(of[i], shadow)) return false;
        values.values.push_back(shadow);
        if (!seed_of(ctx, of[i].type, given[i], shadow, tangent)) return false;
        values.values.push_back(tangent);
        if (tangents.has_shadow(of[i].type)) shadows.push_back(shadow);
        if (tangents.has_cotangent(of[i].type)) numbers.push_back(tangent);
      }
    }
    return true;
  }

  Context& ctx;
  Rooted values;
  std::vector<Value> shadows;
  std::vector<Value> numbers;
};

// A method's arguments as given by the user → as its IR has them: a vararg is one tuple.
bool pack_rest(Context& ctx, const Method& method, std::vector<Value>& arguments, Rooted& roots) {
  if (!method.is_vararg) return true;
  std::size_t fixed = method.arg_count;
  Value rest;
  if (!ctx.runtime->new_tuple(ctx, arguments.data() + fixed, arguments.size() - fixed, rest)) return false;
  roots.values.push_back(rest);
  arguments.resize(fixed);
  arguments.push_back(rest);
  return true;
}

bool directions_of(Context& ctx, Primal& primal, Value given, Directions& directions) {
  if (!expect_tuple(ctx, "jvp", given)) return false;
  std::size_t before = directions.values.values.size();
  append_elements(ctx, given, directions.values);
  std::vector<Value> dxs(directions.values.values.begin() + static_cast<std::ptrdiff_t>(before),
                         directions.values.values.end());
  if (dxs.size() != primal.xs.size())
    return ctx.argument_error("as many tangents as arguments are wanted: " + std::to_string(primal.xs.size()) +
                              "; found " + std::to_string(dxs.size()));
  dxs.insert(dxs.begin(), ctx.runtime->nothing());
  if (!pack_rest(ctx, *primal.target->method, dxs, directions.values)) return false;
  return directions.read(primal.arguments, dxs, primal.asked);
}

// jvp_call(f, xs::Tuple, tangents::Tuple) → (value, tangent of the value)
bool jvp_call(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 3) return ctx.argument_error("jvp_call takes a function, arguments and tangents");
  Runtime& runtime = *ctx.runtime;
  Primal primal(ctx);
  Directions directions(ctx);
  if (!primal.resolve(args[0], args[1]) || !directions_of(ctx, primal, args[2], directions)) return false;
  const diff::Environment::Tangent* code = pipeline_of(ctx).tangent(ctx, *primal.target, primal.asked);
  if (!code) return false;
  for (std::size_t i = 0; i < primal.asked.size(); ++i)
    if (code->active[i] && !primal.asked[i])
      return ctx.argument_error("an argument is stored into and has no tangent; give it one (zeros)");
  std::vector<Value> given = primal.arguments;
  given.insert(given.end(), directions.shadows.begin(), directions.shadows.end());
  given.insert(given.end(), directions.numbers.begin(), directions.numbers.end());
  TapeGuard guard(ctx);
  Value triple;
  if (!runtime.call_specialized(ctx, *code->target, code->callee, given.data(), given.size(), triple)) {
    guard.failed = true;
    return false;
  }
  primal.values.values.push_back(triple);
  Rooted rooted(runtime.heap);
  append_elements(ctx, triple, rooted);
  std::vector<Value> parts = rooted.values;
  Value both[2] = {parts[0], Value()};
  if (!diff::finish_tangent(ctx, parts[0], parts[1], parts[2], both[1])) return false;
  primal.values.values.push_back(both[1]);
  return runtime.new_tuple(ctx, both, 2, result);
}

// gradient_jvp_call(f, xs::Tuple, tangents::Tuple, with_f::Bool) → (value, gradients, derivative of the gradients in
// that direction); with_f: the gradients begin with that of what `f` captured, if it can have one. The gradient
// function is made once and its forward derivative once, whatever the direction.
bool gradient_jvp_call(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 4)
    return ctx.argument_error(
        "gradient_jvp_call takes a function, arguments, tangents and whether the function counts");
  Runtime& runtime = *ctx.runtime;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  Primal primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  bool with_callee = (args[3].bits & 1) && tangents.differentiable(args[0].type);
  if (with_callee) primal.asked[0] = 1;
  const Pipeline::GradientCode* gradient = pipeline_of(ctx).gradient_code(ctx, *primal.target, primal.asked);
  if (!gradient || !primal.make_shadows(gradient->active)) return false;
  if (!tangents.is_float(gradient->target->types->params.back()))
    return ctx.raise_message(runtime.types.builtin().differentiation_error,
                             "cannot differentiate `" + std::string(primal.target->method->name->name) +
                                 "` twice: the type of its result is not inferred");
  Directions directions(ctx);
  std::vector<char> active = gradient->active;
  primal.asked.assign(active.begin(), active.end());
  primal.asked[0] = 0;
  if (!directions_of(ctx, primal, args[2], directions)) return false;
  // The gradient function's own arguments: #self#, the primal's, the accumulators, the seed.
  std::vector<Value> given{gradient->callee};
  std::vector<char> wanted{0};
  given.insert(given.end(), primal.arguments.begin(), primal.arguments.end());
  wanted.insert(wanted.end(), primal.asked.begin(), primal.asked.end());
  std::vector<Value> second = directions.shadows;
  std::vector<Value> shadows_of_shadows(primal.arguments.size(), runtime.nothing());
  diff::ShadowMaker maker(ctx);
  for (std::size_t i = 0; i < primal.arguments.size(); ++i) {
    if (!active[i] || !tangents.has_shadow(primal.arguments[i].type)) continue;
    given.push_back(primal.shadows[i]);
    wanted.push_back(1);
    if (!maker.shadow(primal.shadows[i], shadows_of_shadows[i])) return false;
    primal.values.values.push_back(shadows_of_shadows[i]);
    second.push_back(shadows_of_shadows[i]);
  }
  Value one(gradient->target->types->params.back(), 1.0);
  if (one.type == runtime.types.builtin().float32) {
    one.bits = 0;
    one.float32 = 1.0f;
  }
  given.push_back(one);
  wanted.push_back(0);
  const diff::Environment::Tangent* code = pipeline_of(ctx).tangent(ctx, *gradient->target, wanted);
  if (!code) return false;
  if (code->active != wanted)
    return ctx.argument_error("an argument is stored into and has no tangent; give it one (zeros)");
  given.insert(given.end(), second.begin(), second.end());
  given.insert(given.end(), directions.numbers.begin(), directions.numbers.end());
  TapeGuard guard(ctx);
  Value triple;
  if (!runtime.call_specialized(ctx, *code->target, code->callee, given.data(), given.size(), triple)) {
    guard.failed = true;
    return false;
  }
  primal.values.values.push_back(triple);
  Rooted rooted(runtime.heap);
  append_elements(ctx, triple, rooted);
  std::vector<Value> parts = rooted.values;
  append_elements(ctx, parts[0], rooted);
  std::vector<Value> value_and_cotangents(rooted.values.begin() + 3, rooted.values.end());
  Value all[3] = {value_and_cotangents[0], Value(), Value()};
  if (!primal.finish(value_and_cotangents[1], all[1], with_callee)) return false;
  primal.values.values.push_back(all[1]);
  // Their tangents have the shape of cotangents again; `nothing` where there is none.
  std::vector<Value> none(primal.arguments.size(), runtime.nothing());
  Value moved;
  if (!runtime.new_tuple(ctx, none.data(), none.size(), moved)) return false;
  if (as_data(parts[2].type)->is_tuple) {
    append_elements(ctx, parts[2], rooted);
    Value of_cotangents = rooted.values.back();
    if (as_data(of_cotangents.type)->is_tuple) moved = of_cotangents;
  }
  primal.values.values.push_back(moved);
  primal.shadows = shadows_of_shadows;
  if (!primal.finish(moved, all[2], with_callee)) return false;
  primal.values.values.push_back(all[2]);
  return runtime.new_tuple(ctx, all, 3, result);
}

bool argument_types(Context& ctx, Value tuple, std::vector<const Type*>& types) {
  if (!expect_tuple(ctx, "argument types", tuple)) return false;
  Rooted given(ctx.runtime->heap);
  append_elements(ctx, tuple, given);
  for (Value v : given.values) {
    if (!ctx.runtime->is_type_value(v)) return ctx.type_error("argument types", ctx.runtime->types.builtin().type, v);
    types.push_back(v.as_type);
  }
  return true;
}

// return_type(f, types::Tuple) → type
bool return_type(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("return_type takes a function and a tuple of types");
  std::vector<const Type*> types{ctx.runtime->types.type_of_constant(args[0])};
  if (!ctx.runtime->is_type_value(args[0])) types[0] = args[0].type;
  if (!argument_types(ctx, args[1], types)) return false;
  result = ctx.runtime->from_type(pipeline_of(ctx).return_type(ctx, ctx.runtime->types.tuple(types)));
  return true;
}

// inspect_code(view::Symbol, f, types::Tuple, color::Bool) → String
bool inspect_code(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const BuiltinTypes& builtin = runtime.types.builtin();
  if (count != 4)
    return ctx.argument_error("inspect_code takes a view, a function, a tuple of types and whether to colour");
  if (args[0].type != builtin.symbol) return ctx.type_error("inspect_code", builtin.symbol, args[0]);
  static const std::pair<const char*, Pipeline::View> views[] = {
      {"lowered", Pipeline::View::lowered},   {"typed", Pipeline::View::typed}, {"warntype", Pipeline::View::warntype},
      {"gradient", Pipeline::View::gradient}, {"llvm", Pipeline::View::llvm},   {"native", Pipeline::View::native}};
  std::vector<const Type*> types;
  if (!argument_types(ctx, args[2], types)) return false;
  for (auto [name, view] : views) {
    if (args[0].symbol->name != name) continue;
    std::string text;
    if (!pipeline_of(ctx).inspect(ctx, args[1], types, view, args[3].bits != 0, text)) return false;
    result = runtime.from_string(text);
    return result.defined() || ctx.out_of_memory();
  }
  return ctx.argument_error("no such view of code: " + args[0].symbol->name);
}

// open_to_methods(name::Symbol): definitions of Base's function `name` in other modules add methods to it.
bool open_to_methods(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (count != 1 || args[0].type != runtime.types.builtin().symbol)
    return ctx.argument_error("open_to_methods takes a symbol");
  Binding* binding = runtime.base->find(args[0].symbol);
  if (!binding) return ctx.undef_var(args[0].symbol);
  binding->open_to_methods = true;
  result = runtime.nothing();
  return true;
}

const NativeInfo natives[] = {
    {"open_to_methods", open_to_methods, effect_all, nullptr},
    {"value_and_gradient_call", value_and_gradient_call, effect_all, nullptr},
    {"pullback_forward", pullback_forward, effect_all, nullptr},
    {"pullback_reverse", pullback_reverse, effect_all, nullptr},
    {"jvp_call", jvp_call, effect_all, nullptr},
    {"gradient_jvp_call", gradient_jvp_call, effect_all, nullptr},
    {"return_type", return_type, effect_throws | effect_allocates, nullptr, true},
    {"inspect_code", inspect_code, effect_all, nullptr},
};

}  // namespace

void define_pipeline_natives(Runtime& runtime) {
  diff::define_tangent_natives(runtime);
  define_dynamic_natives(runtime);
  for (const NativeInfo& native : natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope
