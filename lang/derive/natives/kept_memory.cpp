// What derivative code calls to keep memory and to put it back (kept_memory.hpp).
#include "lang/derive/kept_memory.hpp"

#include "lang/derive/derivatives.hpp"
#include "lang/derive/natives/call.hpp"
#include "lang/diff/operations.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

namespace {

// What lies there, if code has this address.
const Stores* stores_at(Context& ctx, Value address) {
  const SharedAccess access(ctx);
  const auto* stores = reinterpret_cast<const Stores*>(address.bits);
  const bool is_known = address.type == ctx.runtime->types.builtin().int64 && derivatives_of(ctx).stores.knows(stores);
  return is_known ? stores : nullptr;
}

bool begin_keeping(Context& ctx, const Value* args, std::size_t count, bool within, Value& result) {
  const Stores* stores = count < 1 ? nullptr : stores_at(ctx, args[0]);
  if (!stores) return ctx.argument_error("keep_memory takes an address and arguments");
  KeptMemory& memory = kept_memory_of(ctx);
  result = ctx.runtime->from_int(memory.open(within));
  memory.keep(*stores, args + 1, count - 1, count - 1);
  return true;
}

// keep_memory(stores, arguments…) → a level. The arguments as the method has them.
bool keep_memory(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return begin_keeping(ctx, args, count, false, result);
}
// The same in a derivative that is differentiated again.
bool keep_memory_within(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return begin_keeping(ctx, args, count, true, result);
}

// next_kept_level() → the level that will be opened next, for put_back_memory where an exception is caught
// (lang/diff/exceptions.cpp). Called before a `try`.
bool next_kept_level(Context& ctx, const Value*, std::size_t, Value& result) {
  if (ctx.kept_memory) kept_memory_of(ctx).forget_lost_numbers();
  result = ctx.runtime->from_int(static_cast<std::int64_t>(KeptMemory::depth(ctx)) + 1);
  return true;
}

// put_back_memory(level): all is as it was when the level was opened.
bool put_back_memory(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || args[0].type != ctx.runtime->types.builtin().int64)
    return ctx.argument_error("put_back_memory takes a level");
  result = ctx.runtime->nothing();
  return kept_memory_of(ctx).put_back(args[0].bits) || ctx.out_of_memory();
}

// check_kept_numbers(level): before put_back_memory where an exception is caught in differentiated code.
bool check_kept_numbers(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || args[0].type != ctx.runtime->types.builtin().int64)
    return ctx.argument_error("check_kept_numbers takes a level");
  result = ctx.runtime->nothing();
  KeptMemory& memory = kept_memory_of(ctx);
  const bool lost = memory.has_lost_numbers(args[0].bits);
  memory.forget_lost_numbers();
  if (!lost && !memory.changed_numbers(args[0].bits)) return true;
  if (!memory.put_back(args[0].bits)) return ctx.out_of_memory();
  return ctx.raise_message(ctx.runtime->types.builtin().differentiation_error,
                           "cannot differentiate: an exception is caught that comes out of a gradient, which may "
                           "have overwritten numbers from before it");
}

// keep_memory_of(f, xs::Tuple) → a level, for what the call f(xs...) may store into; 0: nothing
bool keep_memory_of(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("keep_memory_of takes a function and a tuple of arguments");
  Runtime& runtime = *ctx.runtime;
  result = runtime.from_int(0);
  const DataType* given = as_data(args[1].type);
  if (args[0].type == runtime.types.builtin().builtin_function || !given || !given->is_tuple) return true;
  Rooted arguments(runtime.heap);
  arguments.values.push_back(args[0]);
  for (const Field& field : given->fields) arguments.values.push_back(load_field(runtime.heap, args[1].object, field));
  Specialization* target = compiler_of(ctx).synthetic_of(args[0]);
  if (!target)
    target = runtime.dispatch_specialized(ctx, args[0], arguments.values.data() + 1, arguments.values.size() - 1);
  if (!target) return false;
  const Stores& stores = derivatives_of(ctx).stores.of(ctx, *target);
  if (!stores.any() && !stores.calls_unknown) return true;
  KeptMemory& memory = kept_memory_of(ctx);
  const std::size_t all = arguments.values.size();
  const std::size_t fixed = target->method->is_vararg ? target->method->arg_count : all;
  // A pullback leaves memory as its function does: for a derivative around it that is a store like others.
  if (memory.is_open()) memory.keep(stores, arguments.values.data(), all, fixed);
  result = runtime.from_int(memory.open(true));
  if (derivatives_of(ctx).segments.active(*target)) memory.keep_tangents(result.bits);
  memory.keep(stores, arguments.values.data(), all, fixed);
  return true;
}

// `watches`: also what the calls change that this one finds when it runs.
bool keep_before(Context& ctx, const Value* args, std::size_t count, bool watches, Value& result) {
  if (count < 2 || args[0].type != ctx.runtime->types.builtin().int64)
    return ctx.argument_error("memory_before takes an Int and a call");
  result = ctx.runtime->nothing();
  if (args[1].type == ctx.runtime->types.builtin().builtin_function) return true;
  Specialization* target = compiler_of(ctx).synthetic_of(args[1]);
  if (!target) target = ctx.runtime->dispatch_specialized(ctx, args[1], args + 2, count - 2);
  if (!target) return false;
  const Stores& stores = derivatives_of(ctx).stores.of(ctx, *target);
  if (ctx.failed()) return false;
  if (!(stores.any() || (watches && stores.calls_unknown))) return true;
  if (!watches && stores.calls_unknown && stores.any_type) return true;
  const std::size_t fixed = target->method->is_vararg ? target->method->arg_count : count;
  KeptMemory& memory = kept_memory_of(ctx);
  if (watches && stores.calls_unknown) {
    result = ctx.runtime->from_int(memory.open_watch(args + 1, count - 1, args[0].bits));
    memory.keep(stores, args + 1, count - 1, fixed);
    return true;
  }
  return memory.keep_before(stores, args + 1, count - 1, fixed, args[0].bits, result) || ctx.out_of_memory();
}

// memory_before(active::Int, f, xs...) → copies of what the call f(xs...) may change (KeptMemory::keep_before)
bool memory_before(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return keep_before(ctx, args, count, false, result);
}
// watch_changes(active::Int, f, xs...) → the same, or a level, for changes_since after the call
bool watch_changes(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return keep_before(ctx, args, count, true, result);
}
// changes_since(watched) → copies of what was there before the call, of what it may have changed
bool changes_since(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("changes_since takes what watch_changes gave");
  result = args[0];
  return args[0].type != ctx.runtime->types.builtin().int64 || kept_memory_of(ctx).close_watch(args[0].bits, result) ||
         ctx.out_of_memory();
}

// tangents_before(active::Int, ḟ, ẋs...) → copies of the tangents of what memory_before(active, f, xs...) copies
bool tangents_before(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count < 2 || args[0].type != ctx.runtime->types.builtin().int64)
    return ctx.argument_error("tangents_before takes an Int and tangents");
  return kept_memory_of(ctx).keep_tangents_before(args + 1, count - 1, args[0].bits, result) || ctx.out_of_memory();
}

// expect_numbers_as_kept(kept): of what memory_before gave, what carries a derivative has not changed since.
bool expect_numbers_as_kept(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("expect_numbers_as_kept takes what memory_before gave");
  result = ctx.runtime->nothing();
  if (kept_memory_of(ctx).holds_numbers_of(args[0])) return !ctx.failed();
  return ctx.raise_message(ctx.runtime->types.builtin().differentiation_error,
                           "cannot differentiate: in a derivative of a derivative, numbers are overwritten that the "
                           "reverse sweep of the inner one looks at and that carry no derivative there");
}

bool take_away(Context& ctx, const Value* args, std::size_t count, bool also_left, Value& result) {
  if (count != 3 || args[0].type != ctx.runtime->types.builtin().int64)
    return ctx.argument_error("take_away_memory takes a level, a value and arguments");
  return kept_memory_of(ctx).take_away(args[0].bits, args[1], args[2], also_left, result) || ctx.out_of_memory();
}
// take_away_memory(level, value, arguments) → what was kept, for put_back_later; nothing
bool take_away_memory(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return take_away(ctx, args, count, false, result);
}
// The same, with what is left to the level around it, which keeps that too.
bool take_away_all(Context& ctx, const Value* args, std::size_t count, Value& result) {
  return take_away(ctx, args, count, true, result);
}

// exchange_memory(level): put_back_memory, and what was there, for put_back_later; nothing when that is nothing
bool exchange_memory(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || args[0].type != ctx.runtime->types.builtin().int64)
    return ctx.argument_error("exchange_memory takes a level");
  return kept_memory_of(ctx).exchange(args[0].bits, result) || ctx.out_of_memory();
}

bool put_back_later(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("put_back_later takes what take_away_memory gave");
  result = ctx.runtime->nothing();
  return kept_memory_of(ctx).put_back_later(args[0]);
}

// open_level_for(taken) → a level: an exception puts back what take_away_memory gave; close_level(level): nothing did.
bool open_level_for(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("open_level_for takes what take_away_memory gave");
  std::int64_t level = 0;
  if (!kept_memory_of(ctx).open_for(args[0], level)) return false;
  result = ctx.runtime->from_int(level);
  return true;
}
bool close_level(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || args[0].type != ctx.runtime->types.builtin().int64)
    return ctx.argument_error("close_level takes a level");
  kept_memory_of(ctx).close(args[0].bits);
  result = ctx.runtime->nothing();
  return true;
}

// exchange_later(taken): put_back_later, and what was there; nothing when that is nothing
bool exchange_later(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("exchange_later takes what exchange_memory gave");
  return kept_memory_of(ctx).exchange_later(args[0], result);
}

// keep_unchanged(taken) → of what take_away_memory or exchange_memory gave: what the call left as it was, with what
// it holds now, for put_back_later; nothing
bool keep_unchanged(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("keep_unchanged takes what take_away_memory gave");
  return kept_memory_of(ctx).keep_unchanged(args[0], result);
}

// watch_calls(on::Bool): whether calls are told to what is kept, in code that runs as it is.
bool watch_calls(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || args[0].type != ctx.runtime->types.builtin().boolean)
    return ctx.argument_error("watch_calls takes a Bool");
  result = ctx.runtime->nothing();
  KeptMemory& memory = kept_memory_of(ctx);
  ctx.calls = args[0].bits & 1 && memory.is_open() ? &memory : nullptr;
  return true;
}

constexpr std::uint32_t on_memory = effect_throws | effect_reads | effect_writes;

const NativeInfo kept_memory_natives[] = {
    {"keep_memory", keep_memory, on_memory, gives_int, false, false, true},
    {"keep_memory_within", keep_memory_within, on_memory, gives_int, false, false, true},
    {"next_kept_level", next_kept_level, effect_reads, gives_int, false, false, true},
    {"check_kept_numbers", check_kept_numbers, on_memory, gives_nothing, false, false, true},
    {"put_back_memory", put_back_memory, on_memory, gives_nothing, false, false, true},
    {"keep_memory_of", keep_memory_of, on_memory | effect_allocates, gives_int},
    {"memory_before", memory_before, on_memory | effect_allocates, nullptr},
    {"watch_changes", watch_changes, on_memory | effect_allocates, nullptr},
    {"changes_since", changes_since, on_memory | effect_allocates, nullptr},
    {"expect_numbers_as_kept", expect_numbers_as_kept, on_memory, gives_nothing},
    {"tangents_before", tangents_before, on_memory | effect_allocates, nullptr},
    {"take_away_memory", take_away_memory, on_memory | effect_allocates, nullptr},
    {"take_away_all", take_away_all, on_memory | effect_allocates, nullptr},
    {"exchange_memory", exchange_memory, on_memory | effect_allocates, nullptr},
    {"put_back_later", put_back_later, on_memory, gives_nothing},
    {"open_level_for", open_level_for, on_memory, gives_int},
    {"close_level", close_level, on_memory, gives_nothing, false, false, true},
    {"exchange_later", exchange_later, on_memory | effect_allocates, nullptr},
    {"keep_unchanged", keep_unchanged, on_memory | effect_allocates, nullptr},
    {"watch_calls", watch_calls, on_memory, gives_nothing, false, false, true},
};

}  // namespace

void define_kept_memory_natives(Runtime& runtime) {
  for (const NativeInfo& native : kept_memory_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
