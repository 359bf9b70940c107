// Reverse mode as the user calls it: Core.value_and_gradient_call, and pullbacks in two halves.
#include <algorithm>

#include "lang/derive/kept_memory.hpp"
#include "lang/derive/natives/call.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

namespace {

bool raise_sharing(Context& ctx, const Specialization& target) {
  return ctx.raise_message(ctx.runtime->types.builtin().differentiation_error,
                           "cannot differentiate `" + std::string(target.method->name->name) +
                               "` inside a differentiated function: it stores into memory that two arguments share; "
                               "give it a copy of one");
}

// value_and_gradient_call(f, xs::Tuple) → (value, gradients::Tuple)
bool value_and_gradient_call(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("value_and_gradient_call takes a function and a tuple of arguments");
  Runtime& runtime = *ctx.runtime;
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  const GradientCode* code = derivatives_of(ctx).gradient(ctx, *primal.target, primal.asked);
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
  if (!call_derivative_code(ctx, *code->target, code->callee, given, pair)) {
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

// An error puts back what a level of kept memory has.
class PutBack {
 public:
  PutBack(Context& ctx, std::int64_t level) : ctx_(ctx), level_(level) {}
  ~PutBack() {
    if (level_ != 0 && ctx_.failed()) kept_memory_of(ctx_).put_back(level_);
  }
  PutBack(const PutBack&) = delete;

 private:
  Context& ctx_;
  std::int64_t level_;
};

// pullback_forward(f, xs::Tuple, level::Int) → (value, shadow of value, record, shadows::Tuple, which code the record is
// for). `level`: of memory that keep_memory_of kept; 0: of none.
bool pullback_forward(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 3 || args[2].type != ctx.runtime->types.builtin().int64)
    return ctx.argument_error("pullback_forward takes a function, a tuple of arguments and a level");
  const PutBack put_back(ctx, args[2].bits);
  Runtime& runtime = *ctx.runtime;
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  const Halves* halves = derivatives_of(ctx).halves(ctx, *primal.target, primal.asked);
  if (!halves) return false;
  if (!primal.make_shadows(halves->active)) return false;
  std::vector<Value> given = primal.arguments;
  for (Value v : primal.shadow_arguments(halves->active)) given.push_back(v);
  TapeGuard guard(ctx);
  Value triple;
  if (!call_derivative_code(ctx, *halves->forward, halves->forward_callee, given, triple)) {
    guard.failed = true;
    return false;
  }
  Value shadows;
  if (!runtime.new_tuple(ctx, primal.shadows.data(), primal.shadows.size(), shadows)) return false;
  Rooted parts(runtime.heap);
  append_elements(ctx, triple, parts);
  parts.values.push_back(shadows);
  parts.values.push_back(runtime.from_int(static_cast<std::int64_t>(halves->serial)));
  return runtime.new_tuple(ctx, parts.values.data(), parts.values.size(), result);
}

bool run_reverse_half(Context& ctx, const Value* args, Value& result);

// pullback_reverse(f, xs::Tuple, shadow of value, record, shadows::Tuple, code, cotangent, kept) → gradients::Tuple;
// nothing when the code was made anew since: then the forward half must run again. What take_away_memory gave, `kept`,
// is put back, also after an error.
bool pullback_reverse(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 8) return ctx.argument_error("pullback_reverse takes eight arguments");
  if (!expect_tuple(ctx, "pullback_reverse", args[4])) return false;
  if (args[5].type != ctx.runtime->types.builtin().int64)
    return ctx.type_error("pullback_reverse", ctx.runtime->types.builtin().int64, args[5]);
  if (args[7].type == ctx.runtime->nothing().type) return run_reverse_half(ctx, args, result);
  KeptMemory& memory = kept_memory_of(ctx);
  Rooted unchanged(ctx.runtime->heap);
  unchanged.values.emplace_back();
  if (!memory.keep_unchanged(args[7], unchanged.values[0])) return false;
  const bool ok = run_reverse_half(ctx, args, result);
  return memory.put_back_later(unchanged.values[0]) && memory.put_back_later(args[7]) && ok;
}

bool run_reverse_half(Context& ctx, const Value* args, Value& result) {
  Runtime& runtime = *ctx.runtime;
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1])) return false;
  Rooted shadows(runtime.heap);
  append_elements(ctx, args[4], shadows);
  primal.shadows = shadows.values;
  if (primal.shadows.size() != primal.arguments.size())
    return ctx.argument_error("pullback_reverse: there are not as many shadows as arguments");
  primal.asked[0] = primal.shadows[0].type != runtime.types.builtin().nothing;
  const Halves* halves = derivatives_of(ctx).halves(ctx, *primal.target, primal.asked);
  if (!halves) return false;
  if (static_cast<std::int64_t>(halves->serial) != args[5].bits) {
    result = runtime.nothing();
    return true;
  }
  std::vector<Value> given = {args[3], Value()};
  TangentSeeder seeder(ctx, TangentSeeder::Kind::cotangent);
  if (!seeder.seed(halves->result_type, Value(), args[6], args[2], given[1])) return false;
  shadows.values.push_back(given[1]);
  Value cotangents;
  if (!call_derivative_code(ctx, *halves->reverse, halves->reverse_callee, given, cotangents)) return false;
  return primal.finish(cotangents, result);
}

// pullback_step(f, xs::Tuple), pullback_step(f, xs::Tuple, true) before the forward half: what the two halves are, for
// what differentiates a pullback again (Base.pullback_forward_again): (forward half, reverse half, which that is, seed
// type, active arguments as bits, where a vararg begins).
bool pullback_step(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2 && count != 3) return ctx.argument_error("pullback_step takes a function and a tuple of arguments");
  Runtime& runtime = *ctx.runtime;
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  if (count == 3 && (primal.shared || primal.stores_forbidden)) return raise_sharing(ctx, *primal.target);
  const Halves* halves = derivatives_of(ctx).halves(ctx, *primal.target, primal.asked);
  if (!halves) return false;
  Value parts[6];
  if (!describe_halves(ctx, *primal.target, *halves, parts)) return false;
  return runtime.new_tuple(ctx, parts, 6, result);
}

}  // namespace

bool describe_halves(Context& ctx, const Specialization& target, const Halves& halves, Value (&parts)[6]) {
  Runtime& runtime = *ctx.runtime;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  const Method& method = *target.method;
  if (halves.active.size() > 63)
    return ctx.raise_message(runtime.types.builtin().differentiation_error,
                             "cannot differentiate a pullback of `" + std::string(method.name->name) +
                                 "` again: it has more than 62 arguments");
  std::uint64_t active = 0;
  for (std::size_t i = 0; i < halves.active.size(); ++i)
    if (halves.active[i] && tangents.has_shadow(halves.forward->types->params[i + 1])) active |= std::uint64_t{1} << i;
  parts[0] = halves.forward_callee;
  parts[1] = halves.reverse_callee;
  parts[2] = runtime.from_int(static_cast<std::int64_t>(halves.serial));
  parts[3] = runtime.from_type(tangents.cotangent(halves.result_type));
  parts[4] = runtime.from_int(static_cast<std::int64_t>(active));
  parts[5] = runtime.from_int(method.is_vararg ? static_cast<std::int64_t>(method.arg_count) : 0);
  return true;
}

namespace {

// check_sharing(f, xs::Tuple): raises when what `f` stores into can be reached in two ways, which a derivative inside a
// differentiated function cannot take into account.
bool check_sharing(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("check_sharing takes a function and a tuple of arguments");
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  result = ctx.runtime->nothing();
  return (!primal.shared && !primal.stores_forbidden) || raise_sharing(ctx, *primal.target);
}

// check_apart(f, xs::Tuple): raises when `f` stores into memory that two of its arguments share, as forward mode does.
bool check_apart(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("check_apart takes a function and a tuple of arguments");
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  result = ctx.runtime->nothing();
  return !primal.shared || raise_written_twice(ctx, *primal.target);
}

// share_memory(f, xs::Tuple) → 1: `f` stores into memory that it reaches through several of its arguments; 2: functions
// that it finds when it runs might, or into what it also reaches as a captured variable or a global: then that is
// refused; 0: neither. What it has captured is not told to an inner derivative's callers: shared with that it is refused.
bool share_memory(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("share_memory takes a function and a tuple of arguments");
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  if (primal.asked[0] || (primal.shared && primal.stores_forbidden)) return raise_sharing(ctx, *primal.target);
  result = ctx.runtime->from_int(primal.shared ? 1 : primal.stores_forbidden ? 2 : 0);
  return true;
}

// value_and_gradient_into(f, gs::Tuple, xs::Tuple) → (value, gradients): those of arrays are `gs`. Compiled code calls
// the gradient function itself (lang/derive/operators.cpp) with `gs` as what it accumulates into.
bool value_and_gradient_into(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 3) return ctx.argument_error("value_and_gradient_into takes a function and two tuples");
  Binding* by_copy = library_binding(*ctx.runtime, KnownName::value_and_gradient_by_copy);
  return ctx.runtime->call(ctx, by_copy->value, args, 3, result);
}

// prepare_gradient_call(f, xs::Tuple): the derivative is made now, and its machine code where there is a code
// generator.
bool prepare_gradient_call(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("prepare_gradient_call takes a function and a tuple of arguments");
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1]) || !primal.find_shared_memory()) return false;
  const GradientCode* code = derivatives_of(ctx).gradient(ctx, *primal.target, primal.asked);
  if (!code) return false;
  std::string why;
  if (compiler_of(ctx).mode != TierMode::interpret) compiler_of(ctx).compile(ctx, *code->target, why);
  result = ctx.runtime->nothing();
  return true;
}

// mutates_arguments(f, xs::Tuple) → Bool: whether `f` may store into memory that the caller sees.
bool mutates_arguments(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("mutates_arguments takes a function and a tuple of arguments");
  DerivedCall primal(ctx);
  if (!primal.resolve(args[0], args[1])) return false;
  diff::MemorySummary effects = derivatives_of(ctx).memory(ctx).of(*primal.target);
  result = ctx.runtime->from_bool((effects.writes | effects.unknown) != 0);
  return true;
}

// derivatives_built() → how many derivatives (gradients, halves, forward derivatives) were made so far
bool derivatives_built(Context& ctx, const Value*, std::size_t count, Value& result) {
  if (count != 0) return ctx.argument_error("derivatives_built takes no arguments");
  result = ctx.runtime->from_int(static_cast<std::int64_t>(derivatives_of(ctx).cache.made()));
  return true;
}

// stack_free(f, types::Tuple) → Bool: whether the gradient keeps nothing on a stack that grows as a loop goes
bool stack_free(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("stack_free takes a function and a tuple of types");
  Runtime& runtime = *ctx.runtime;
  std::vector<const Type*> types{runtime.is_type_value(args[0]) ? runtime.types.type_of_constant(args[0])
                                                                : args[0].type};
  if (!append_argument_types(ctx, args[1], types)) return false;
  const DataType* call = runtime.types.tuple(types);
  Specialization* target = runtime.lookup_specialization(call, ctx.world);
  if (!target) return ctx.argument_error("no unique method matches the call " + to_string(call));
  std::vector<char> active(target->method->is_vararg ? target->method->arg_count + 1 : types.size(), 1);
  active[0] = 0;
  const GradientCode* code = derivatives_of(ctx).gradient(ctx, *target, active);
  if (!code) return false;
  const std::vector<diff::SavedValue>* saved = derivatives_of(ctx).cache.saved_of(*code->target);
  result = runtime.from_bool(!saved || std::none_of(saved->begin(), saved->end(), [](const diff::SavedValue& value) {
    return value.where == diff::SavedValue::Where::stack;
  }));
  return true;
}

// derivative_counts() → Vector{Int64}: calls, hits, misses, invalidated, bytes, nanoseconds of gradients, of pullbacks,
// of forward derivatives.
bool derivative_counts(Context& ctx, const Value*, std::size_t, Value& result) {
  std::vector<std::int64_t> numbers;
  derivatives_of(ctx).cache.counts(ctx, numbers);
  const std::int64_t dims[] = {static_cast<std::int64_t>(numbers.size())};
  const DataType* type = ctx.runtime->types.array_of(ctx.runtime->types.builtin().int64, 1);
  ArrayObject* made = ctx.runtime->heap.allocate_array(type, dims);
  if (!made) return ctx.out_of_memory();
  std::copy(numbers.begin(), numbers.end(), reinterpret_cast<std::int64_t*>(made->data));
  result = Value(type, static_cast<const void*>(made));
  return true;
}

const NativeInfo gradient_natives[] = {
    {"stack_free", stack_free, effect_all, nullptr},
    {"derivative_counts", derivative_counts, effect_all, nullptr},
    {"share_memory", share_memory, effect_throws | effect_reads | effect_allocates, gives_int},
    {"check_sharing", check_sharing, effect_throws | effect_reads | effect_allocates, gives_nothing},
    {"check_apart", check_apart, effect_throws | effect_reads | effect_allocates, gives_nothing},
    {"value_and_gradient_into", value_and_gradient_into, effect_all, nullptr},
    {"value_and_gradient_into_apart", value_and_gradient_into, effect_all, nullptr},
    {"prepare_gradient_call", prepare_gradient_call, effect_all, nullptr},
    {"mutates_arguments", mutates_arguments, effect_throws | effect_reads | effect_allocates, gives_bool},
    {"derivatives_built", derivatives_built, effect_reads, gives_int},
    {"value_and_gradient_call", value_and_gradient_call, effect_all, nullptr},
    // The same, for Base.gradient_if_apart: what compiled code makes of them differs (lang/derive/operators.cpp).
    {"value_and_gradient_apart", value_and_gradient_call, effect_all, nullptr},
    {"value_and_gradient_shared", value_and_gradient_call, effect_all, nullptr},
    {"pullback_step", pullback_step, effect_throws | effect_reads | effect_allocates, nullptr},
    {"pullback_forward", pullback_forward, effect_all, nullptr},
    {"pullback_reverse", pullback_reverse, effect_all, nullptr},
};

}  // namespace

void define_gradient_natives(Runtime& runtime) {
  for (const NativeInfo& native : gradient_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
