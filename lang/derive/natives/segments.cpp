// The segments of a function (lang/derive/segments.hpp) as stdlib/derivatives/limited_memory.slope calls them, and the
// limit of memory that they run under.
#include <algorithm>

#include "lang/derive/natives/call.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

namespace {

// Which call, and whether it can be made piece by piece: (f, xs::Tuple, …).
bool resolve_whole(const Value* args, DerivedCall& call) {
  return call.resolve(args[0], args[1]) && call.find_shared_memory();
}

// segment_parameters(f, xs::Tuple) → what segments are given: the function, its arguments as its code has them.
bool segment_parameters(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("segment_parameters takes a function and a tuple of arguments");
  DerivedCall call(ctx);
  if (!resolve_whole(args, call)) return false;
  if (call.shared || call.stores_forbidden)
    return ctx.raise_message(ctx.runtime->types.builtin().differentiation_error,
                             "cannot differentiate `" + std::string(call.target->method->name->name) +
                                 "` with `memory`: it stores into memory that can be reached in two ways; give it a "
                                 "copy");
  return ctx.runtime->new_tuple(ctx, call.arguments.data(), call.arguments.size(), result);
}

// segment_vararg(f, xs::Tuple) → whether the last parameter is the tuple of a vararg
bool segment_vararg(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("segment_vararg takes a function and a tuple of arguments");
  DerivedCall call(ctx);
  if (!call.resolve(args[0], args[1])) return false;
  result = ctx.runtime->from_bool(call.target->method->is_vararg);
  return true;
}

// segment_loops(f, xs::Tuple) → a tuple: of each loop which is around it, 0: none
bool segment_loops(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("segment_loops takes a function and a tuple of arguments");
  DerivedCall call(ctx);
  if (!call.resolve(args[0], args[1])) return false;
  std::vector<Value> parents;
  for (const std::int64_t parent : derivatives_of(ctx).segments.loops(ctx, *call.target))
    parents.push_back(ctx.runtime->from_int(parent));
  return ctx.runtime->new_tuple(ctx, parents.data(), parents.size(), result);
}

// segment(f, xs::Tuple, loop::Int, within::Bool) → that segment, for the functions below
bool segment(Context& ctx, const Value* args, std::size_t count, Value& result) {
  const BuiltinTypes& builtin = ctx.runtime->types.builtin();
  if (count != 4 || args[2].type != builtin.int64 || args[3].type != builtin.boolean || args[2].bits < 0)
    return ctx.argument_error("segment takes a function, a tuple of arguments, a number and a Bool");
  DerivedCall call(ctx);
  if (!call.resolve(args[0], args[1])) return false;
  const Synthetic* made = derivatives_of(ctx).segments.segment(
      ctx, *call.target, static_cast<std::size_t>(args[2].bits), (args[3].bits & 1) != 0);
  if (ctx.failed()) return false;
  result = made ? made->callee : ctx.runtime->nothing();
  return true;
}

// Both halves of a segment, with one shadow for what several parameters reach.
const Halves* halves_of_segment(Context& ctx, const Value* args, DerivedCall& call) {
  if (!call.resolve(args[0], args[1])) return nullptr;
  call.shared = true;
  const std::vector<char>* active = derivatives_of(ctx).segments.active(*call.target);
  if (!active || active->size() != call.asked.size()) {
    ctx.argument_error("this takes a segment that was made before");
    return nullptr;
  }
  call.asked = *active;
  return derivatives_of(ctx).halves(ctx, *call.target, call.asked);
}

bool run_forward(Context& ctx, DerivedCall& call, const Halves& halves, Value& triple) {
  if (!call.make_shadows(halves.active)) return false;
  std::vector<Value> given = call.arguments;
  diff::TangentTypes& tangents = diff::tangent_types(*ctx.runtime);
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const Type* declared = call.target->types->params[i];
    if (!halves.active[i] || !tangents.has_shadow(declared)) continue;
    given.push_back(call.shadows[i]);
    if (tangents.shadow(declared) != tangents.dynamic()) continue;
    Value boxed = call.shadows[i];
    if (!ctx.runtime->new_object(ctx, tangents.dynamic(), &boxed, 1, given.back())) return false;
    call.values.values.push_back(given.back());
  }
  return call_derivative_code(ctx, *halves.forward, halves.forward_callee, given, triple);
}

// segment_forward(segment, arguments::Tuple) → (value, its shadow, record, shadows::Tuple, the record's code)
bool segment_forward(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("segment_forward takes a segment and a tuple of arguments");
  DerivedCall call(ctx);
  const Halves* halves = halves_of_segment(ctx, args, call);
  if (!halves) return false;
  TapeGuard guard(ctx);
  Value triple;
  if (!run_forward(ctx, call, *halves, triple)) {
    guard.failed = true;
    return false;
  }
  Rooted parts(ctx.runtime->heap);
  append_elements(ctx, triple, parts);
  parts.values.resize(4);
  if (!ctx.runtime->new_tuple(ctx, call.shadows.data(), call.shadows.size(), parts.values[3])) return false;
  parts.values.push_back(ctx.runtime->from_int(static_cast<std::int64_t>(halves->serial)));
  return ctx.runtime->new_tuple(ctx, parts.values.data(), parts.values.size(), result);
}

// segment_bytes(segment, arguments::Tuple) → how much memory the forward half takes: tapes, and what it allocates. It
// leaves memory as the call does.
bool segment_bytes(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("segment_bytes takes a segment and a tuple of arguments");
  DerivedCall call(ctx);
  const Halves* halves = halves_of_segment(ctx, args, call);
  if (!halves) return false;
  TapeGuard guard(ctx);
  guard.failed = true;  // nobody runs the other half
  const std::uint64_t peak = ctx.tapes->peak();
  ctx.tapes->set_peak(0);
  const std::uint64_t open = ctx.tapes->peak();
  const std::uint64_t allocated = ctx.runtime->heap.statistics().allocated_bytes;
  Value triple;
  const bool ok = run_forward(ctx, call, *halves, triple);
  const std::uint64_t bytes = ctx.tapes->peak() - open + ctx.runtime->heap.statistics().allocated_bytes - allocated;
  result = ctx.runtime->from_int(static_cast<std::int64_t>(bytes));
  ctx.tapes->set_peak(std::max(peak, ctx.tapes->peak()));
  return ok;
}

// Adds the cotangents that are known of the parameters at the end of the segment to their shadows; those of numbers are
// left in `numbers`.
bool add_cotangents(Context& ctx, TangentSeeder& seeder, const DerivedCall& call, Value cotangents, Rooted& numbers) {
  Rooted given(ctx.runtime->heap);
  append_elements(ctx, cotangents, given);
  numbers.values.assign(call.arguments.size(), ctx.runtime->nothing());
  if (given.values.size() + 2 > call.arguments.size())
    return ctx.argument_error("segment_reverse: more cotangents than there are parameters");
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    if (given.values[i].type == ctx.runtime->nothing().type) continue;
    const Value argument = call.arguments[i + 2];
    Value number;
    if (!seeder.seed(argument.type, argument, given.values[i], call.shadows[i + 2], number)) return false;
    numbers.values[i + 2] = number;
  }
  return true;
}

// segment_reverse(segment, arguments::Tuple, what segment_forward gave, cotangent of its value, those of the first
// parameters after it::Tuple) → the cotangents of the arguments, as users see them
bool segment_reverse(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 5) return ctx.argument_error("segment_reverse takes five arguments");
  if (!expect_tuple(ctx, "segment_reverse", args[2]) || !expect_tuple(ctx, "segment_reverse", args[4])) return false;
  Runtime& runtime = *ctx.runtime;
  DerivedCall call(ctx);
  const Halves* halves = halves_of_segment(ctx, args, call);
  if (!halves) return false;
  Rooted made(runtime.heap);
  append_elements(ctx, args[2], made);
  if (made.values.size() != 5 || made.values[4].type != runtime.types.builtin().int64 ||
      static_cast<std::uint64_t>(made.values[4].bits) != halves->serial ||
      !expect_tuple(ctx, "segment_reverse", made.values[3]))
    return ctx.failed() ? false
                        : ctx.argument_error("segment_reverse takes what segment_forward gave for this segment");
  Rooted shadows(runtime.heap);
  append_elements(ctx, made.values[3], shadows);
  call.shadows = shadows.values;
  if (call.shadows.size() != call.arguments.size())
    return ctx.argument_error("segment_reverse: there are not as many shadows as arguments");
  TangentSeeder seeder(ctx, TangentSeeder::Kind::cotangent);
  std::vector<Value> given = {made.values[2], Value()};
  Rooted numbers(runtime.heap);
  if (!seeder.seed(halves->result_type, made.values[0], args[3], made.values[1], given[1])) return false;
  made.values.push_back(given[1]);
  if (!add_cotangents(ctx, seeder, call, args[4], numbers)) return false;
  Value cotangents;
  if (!call_derivative_code(ctx, *halves->reverse, halves->reverse_callee, given, cotangents)) return false;
  Rooted parts(runtime.heap);
  append_elements(ctx, cotangents, parts);
  const Type* box = diff::tangent_types(runtime).dynamic();
  for (Value& part : parts.values)
    if (part.type == box) part = load_field(runtime.heap, part.object, as_data(box)->fields[0]);
  const Value sum = library_value(runtime, KnownName::sum_tangents);
  for (std::size_t i = 0; i < parts.values.size() && i < numbers.values.size(); ++i) {
    if (numbers.values[i].type == runtime.nothing().type) continue;
    const Value both[2] = {parts.values[i], numbers.values[i]};
    if (!runtime.call(ctx, sum, both, 2, parts.values[i])) return false;
  }
  if (!runtime.new_tuple(ctx, parts.values.data(), parts.values.size(), cotangents)) return false;
  return call.finish(cotangents, result);
}

// begin_memory_limit(bytes::Int) → what end_memory_limit takes. Meanwhile memory beyond it is an OutOfMemoryError that
// can be caught, but where the host's limit is less.
bool begin_memory_limit(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || args[0].type != ctx.runtime->types.builtin().int64 || args[0].bits < 0)
    return ctx.argument_error("begin_memory_limit takes a number of bytes");
  const Value before[2] = {ctx.runtime->from_int(static_cast<std::int64_t>(
                               ctx.tapes->begin_shared_limit(static_cast<std::uint64_t>(args[0].bits)))),
                           ctx.runtime->from_bool(ctx.heap_is_limited)};
  const bool was_limited = ctx.heap_is_limited;
  if (ctx.tapes->shared_limit_holds()) ctx.heap_is_limited = false;
  if (ctx.runtime->new_tuple(ctx, before, 2, result)) return true;
  ctx.tapes->end_shared_limit(static_cast<std::uint64_t>(before[0].bits));  // not even that fits: nobody will end it
  ctx.heap_is_limited = was_limited;
  return false;
}

bool end_memory_limit(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || !expect_tuple(ctx, "end_memory_limit", args[0]) || as_data(args[0].type)->fields.size() != 2)
    return ctx.failed() ? false : ctx.argument_error("end_memory_limit takes what begin_memory_limit gave");
  Rooted before(ctx.runtime->heap);
  append_elements(ctx, args[0], before);
  const BuiltinTypes& builtin = ctx.runtime->types.builtin();
  if (before.values[0].type != builtin.int64 || before.values[1].type != builtin.boolean)
    return ctx.argument_error("end_memory_limit takes what begin_memory_limit gave");
  ctx.tapes->end_shared_limit(static_cast<std::uint64_t>(before.values[0].bits));
  ctx.heap_is_limited = (before.values[1].bits & 1) != 0;
  result = ctx.runtime->nothing();
  return true;
}

constexpr std::uint32_t asks_segments = effect_throws | effect_reads | effect_allocates;

const NativeInfo segment_natives[] = {
    {"segment_parameters", segment_parameters, asks_segments, nullptr},
    {"segment_vararg", segment_vararg, asks_segments, nullptr},
    {"segment_loops", segment_loops, asks_segments, nullptr},
    {"segment", segment, asks_segments, nullptr},
    {"segment_forward", segment_forward, effect_all, nullptr},
    {"segment_bytes", segment_bytes, effect_all, nullptr},
    {"segment_reverse", segment_reverse, effect_all, nullptr},
    {"begin_memory_limit", begin_memory_limit, effect_all, nullptr},
    {"end_memory_limit", end_memory_limit, effect_all, nullptr},
};

}  // namespace

void define_segment_natives(Runtime& runtime) {
  for (const NativeInfo& native : segment_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
