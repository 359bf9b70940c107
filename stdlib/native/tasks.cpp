// What tasks (stdlib/tasks) need of the runtime: coroutines.
#include "lang/runtime/capabilities.hpp"
#include "lang/runtime/coroutines.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

bool coroutine_of(Call& call, std::size_t i, CoroutineObject*& out) {
  if (i >= call.count()) return call.missing(i);
  if (call[i].type != call.builtin.coroutine) return call.mismatch(call.builtin.coroutine, call[i]);
  out = static_cast<CoroutineObject*>(call[i].object);
  return true;
}

bool give(Call& call, CoroutineObject* coroutine) {
  return coroutine && call.give(Value(call.builtin.coroutine, static_cast<const void*>(coroutine)));
}

// coroutine_make(task, entry): will call entry(task).
bool coroutine_make(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "coroutine_make", args, count, result);
  if (ctx.shared) return ctx.raise_error("a workspace's function cannot make tasks");
  return call.arity(2) && give(call, call.runtime.coroutines->make(ctx, call[0], call[1]));
}

bool coroutine_current(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "current_task", args, count, result);
  if (ctx.shared) return ctx.raise_error("a workspace's function runs in no task");
  return call.arity(0) && give(call, call.runtime.coroutines->current(ctx));
}

// coroutine_task(coroutine): its task; of that which the main program runs on, `nothing` before one was set.
bool coroutine_task(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "current_task", args, count, result);
  CoroutineObject* coroutine = nullptr;
  return call.arity(1) && coroutine_of(call, 0, coroutine) && call.give(coroutine->task);
}

bool coroutine_set_task(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "current_task", args, count, result);
  CoroutineObject* coroutine = nullptr;
  if (!call.arity(2) || !coroutine_of(call, 0, coroutine)) return false;
  coroutine->task = call[1];
  return call.give(call[1]);
}

// coroutine_schedule(coroutine, first): its turn will come, before or after that of the others.
bool coroutine_schedule(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "schedule", args, count, result);
  CoroutineObject* coroutine = nullptr;
  bool first = false;
  return call.arity(2) && coroutine_of(call, 0, coroutine) && call.boolean(1, first) &&
         call.runtime.coroutines->schedule(ctx, coroutine, first) && call.give_nothing();
}

// Whether it is among those whose turn will come.
bool coroutine_is_ready(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "schedule", args, count, result);
  CoroutineObject* coroutine = nullptr;
  return call.arity(1) && coroutine_of(call, 0, coroutine) &&
         call.give_bool(coroutine->waits == CoroutineObject::Waits::ready);
}

bool coroutine_wait(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "wait", args, count, result);
  return call.arity(0) && call.runtime.coroutines->wait(ctx) && call.give_nothing();
}

bool coroutine_yield(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "yield", args, count, result);
  return call.arity(0) && call.runtime.coroutines->yield(ctx) && call.give_nothing();
}

bool coroutine_sleep(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "sleep", args, count, result);
  double seconds = 0;
  if (!call.floating(0, seconds)) return false;
  if (!(seconds >= 0)) return ctx.argument_error("cannot sleep for " + std::to_string(seconds) + " seconds");
  return may_use(ctx, call.runtime.capabilities.time, "waiting", "time") &&
         call.runtime.coroutines->sleep(ctx, seconds) && call.give_nothing();
}

// The frames of the exception that was caught last, as an uncaught one prints them; "" when there are none.
bool caught_trace(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "caught_trace", args, count, result);
  if (!call.arity(0)) return false;
  const std::vector<TraceEntry> trace = ctx.last_trace;
  const KeptMethods::Pause pause(call.runtime.kept_methods);
  std::string text = call.runtime.describe_error(ctx, call.builtin.interrupt_exception->instance, trace);
  while (text.ends_with('\n')) text.pop_back();
  const std::size_t at = text.find("\nStacktrace:");
  return call.give(at == std::string::npos ? std::string_view() : std::string_view(text).substr(at + 1));
}

const Type* returns_coroutine(TypeTable& t, ArgumentTypes) { return t.builtin().coroutine; }

const NativeInfo task_natives[] = {
    {"coroutine_make", coroutine_make, effect_all, returns_coroutine},
    {"coroutine_current", coroutine_current, effect_all, returns_coroutine},
    {"coroutine_task", coroutine_task, effect_all, nullptr},
    {"coroutine_set_task", coroutine_set_task, effect_all, nullptr},
    {"coroutine_schedule", coroutine_schedule, effect_all, returns_nothing},
    {"coroutine_is_ready", coroutine_is_ready, effect_all, returns_bool},
    {"coroutine_wait", coroutine_wait, effect_all, returns_nothing},
    {"coroutine_yield", coroutine_yield, effect_all, returns_nothing},
    {"caught_trace", caught_trace, effect_all, returns_string},
    {"coroutine_sleep", coroutine_sleep, effect_all, returns_nothing},
};

}  // namespace

void define_task_natives(Runtime& runtime) { define_all(runtime, task_natives); }

}  // namespace slope::stdlib
