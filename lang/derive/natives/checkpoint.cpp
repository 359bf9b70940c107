// What decides whether a checkpointed call is run again in the reverse sweep (Base.checkpoint), or differentiated like
// any other call:
//
//   recomputable         in code that is not differentiated: both are the same
//   recomputable_once    in a derivative
//   recomputable_again   in a derivative of a derivative: what the call overwrites has tangents there, which nothing
//                        puts back before the call is run again
//
// The transform replaces each by the next (lang/diff/normal_form.cpp).
#include "lang/derive/kept_memory.hpp"
#include "lang/derive/natives/call.hpp"

namespace slope::derive {

bool may_recompute(Context& ctx, Specialization& target, bool again) {
  diff::TangentTypes& tangents = diff::tangent_types(*ctx.runtime);
  const Stores& stores = derivatives_of(ctx).stores.of(ctx, target);
  if (stores.any() && (again || !stores.only_numbers(tangents))) return false;
  const CodeInstance* code = target.current;
  if (!code || !code->return_type || !tangents.has_shadow(code->return_type)) return true;
  // The rule knows the shadow of a result that is an argument which the function may overwrite, of no other old memory.
  const diff::MemorySummary effects = derivatives_of(ctx).memory(ctx).of(target);
  const diff::MemoryMask given_back = effects.result & ~diff::global_memory;
  const DataType* result = as_data(code->return_type);
  const bool is_array = result && result->is_concrete && result->object_kind == DataType::ObjectKind::array;
  return given_back == 0 || (is_array && (given_back & ~effects.writes) == 0);
}

namespace {

bool recomputable(Context& ctx, const Value*, std::size_t, Value& result) {
  result = ctx.runtime->from_bool(true);
  return true;
}

bool answer(Context& ctx, const Value* args, std::size_t count, bool again, Value& result) {
  if (count != 2) return ctx.argument_error("recomputable takes a function and a tuple of arguments");
  result = ctx.runtime->from_bool(true);
  if (args[0].type == ctx.runtime->types.builtin().builtin_function) return true;
  DerivedCall call(ctx);
  if (!call.resolve(args[0], args[1])) return false;
  result = ctx.runtime->from_bool(may_recompute(ctx, *call.target, again));
  return !ctx.failed();
}

// recomputable_once(f, xs::Tuple) → Bool
bool recomputable_once(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return answer(ctx, args, count, false, result);
}
bool recomputable_again(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return answer(ctx, args, count, true, result);
}

// keep_seen(f, xs::Tuple) → (copies, number): of what the call `f(xs...)` may look at, for when it is run again
// (KeptMemory::keep_seen).
bool keep_seen(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2 || !as_data(args[1].type) || !as_data(args[1].type)->is_tuple)
    return ctx.argument_error("keep_seen takes a function and a tuple of arguments");
  Runtime& runtime = *ctx.runtime;
  Rooted parts(runtime.heap);
  std::vector<Value> roots{args[0], args[1]};
  if (args[0].type != runtime.types.builtin().builtin_function) {
    DerivedCall call(ctx);
    if (!call.resolve(args[0], args[1])) return false;
    const std::vector<Value> names = derivatives_of(ctx).stores.names_of(ctx, *call.target);
    if (ctx.failed()) return false;
    roots.insert(roots.end(), names.begin(), names.end());
  }
  parts.values = {runtime.nothing(), runtime.nothing()};
  std::uint64_t others = 0;
  if (!kept_memory_of(ctx).keep_seen(roots, parts.values[0], others)) return ctx.out_of_memory();
  parts.values[1] = runtime.from_int(static_cast<std::int64_t>(others));
  return runtime.new_tuple(ctx, parts.values.data(), 2, result);
}

// took_only_numbers(taken) → Bool: whether all that take_away_memory gave is of objects that hold only numbers.
bool took_only_numbers(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || !as_data(args[0].type))
    return ctx.argument_error("took_only_numbers takes what take_away_memory gave");
  result = ctx.runtime->from_bool(kept_memory_of(ctx).took_only_numbers(args[0]));
  return !ctx.failed();
}

constexpr std::uint32_t asks = effect_throws | effect_reads | effect_allocates;

const NativeInfo checkpoint_natives[] = {
    {"recomputable", recomputable, effect_reads, gives_bool, false, false, true},
    {"recomputable_once", recomputable_once, asks, gives_bool},
    {"recomputable_again", recomputable_again, asks, gives_bool},
    {"keep_seen", keep_seen, asks, nullptr},
    {"took_only_numbers", took_only_numbers, asks, gives_bool},
};

}  // namespace

void define_checkpoint_natives(Runtime& runtime) {
  for (const NativeInfo& native : checkpoint_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
