// Calls: builtins, dispatch, and which tier runs the target.
#include "lang/runtime/call_native.hpp"
#include "lang/runtime/call_sites.hpp"
#include "lang/runtime/call_watch.hpp"
#include "lang/runtime/recorded_run.hpp"
#include "lang/runtime/runtime_impl.hpp"

namespace slope {

namespace {

// A call needs this much native stack at least; more is checked by whoever uses more.
bool stack_is_low(const Context& ctx) {
  char here;
  return &here < ctx.stack_limit;
}

}  // namespace

// What reads or changes anything but its arguments is not for generators.
bool may_generate(Context& ctx, const NativeInfo& native, const Value* args, std::size_t count) {
  if (native.generator_may_call) return true;
  if (native.effects == effect_all) return ctx.refuse_in_generator("call " + std::string(native.name));
  if (!(native.effects & effect_writes)) return true;
  for (std::size_t i = 0; i < count; ++i)
    if (as_data(args[i].type)->is_mutable && !may_change(ctx, args[i])) return false;
  return true;
}

bool Runtime::Impl::call_builtin(Context& ctx, Value callee, const Value* args, std::size_t count, Value& result) {
  if (callee.bits & 1) {
    if (!runtime.hooks().execute_op) return ctx.raise_error("no executor for builtin operations");
    return runtime.hooks().execute_op(ctx, static_cast<unsigned>(callee.bits >> 1), args, count, 0, result);
  }
  auto* info = static_cast<const NativeInfo*>(callee.pointer);
  if (runs_generator(ctx) && !may_generate(ctx, *info, args, count)) return false;
  return call_native(ctx, *info, args, count, result);
}

bool Runtime::call(Context& ctx, Value callee, const Value* args, std::size_t count, Value& result) {
  if (callee.type == types.builtin().builtin_function) return impl_->call_builtin(ctx, callee, args, count, result);
  Specialization* target = dispatch(ctx, callee, args, count);
  return target && call_specialized(ctx, *target, callee, args, count, result);
}

bool Runtime::call_caching(Context& ctx, CallCache& site, Value callee, const Value* args, std::size_t count,
                           Value& result) {
  if (callee.type == types.builtin().builtin_function) return impl_->call_builtin(ctx, callee, args, count, result);
  Specialization* target = site.find(ctx.world, callee, args, count);
  if (!target) {
    target = dispatch(ctx, callee, args, count);
    if (!target) return false;
    insert_counted(site, ctx.world, target, outside_heap);
  }
  return call_specialized(ctx, *target, callee, args, count, result);
}

bool Runtime::call_specialized(Context& ctx, Specialization& target, Value callee, const Value* args, std::size_t count,
                               Value& result) {
  if (stack_is_low(ctx)) return ctx.stack_overflow();
  if (--ctx.fuel < 0 || ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
  if (ctx.calls && !ctx.calls->before_call(target, callee, args, count)) return false;
  auto native_code = [&]() -> BoxedEntry {
    CodeInstance* code = target.current;
    return code && code->valid_in(ctx.world) ? code->boxed.load(std::memory_order_acquire) : nullptr;
  };
  const auto interpreted = [&] {
    return without_exceptions(ctx, "the interpreter",
                              [&] { return interpreter->run(ctx, target, callee, args, count, result); });
  };
  if (runs_generator(ctx)) return interpreted();
  RecordedRun* const recorded = recorded_run(ctx);
  if (recorded) note_call(*recorded, target);
  const auto run_native = [&](BoxedEntry entry) {
    if (recorded) note_code(*recorded, *target.current);
    return entry(&ctx, callee, args, count, &result);
  };
  if (BoxedEntry entry = native_code()) return run_native(entry);
  if (const NativeInfo* native = target.method->native) return call_native(ctx, *native, args, count, result);
  ++target.calls;
  if (tiers && !target.compile_failed && tiers->mode != TierMode::interpret &&
      (tiers->mode == TierMode::compile || target.calls >= tiers->call_threshold)) {
    target.calls = 0;  // should it stay interpreted for now (a limit, an outdated world), it is asked again later
    const bool looked = without_exceptions(ctx, "the compiler", [&] {
      tiers->on_hot(ctx, target);
      return true;
    });
    if (!looked) return false;
    if (BoxedEntry entry = native_code()) return run_native(entry);
  }
  if (!interpreter) return ctx.raise_error("no interpreter");
  return interpreted();
}

}  // namespace slope
