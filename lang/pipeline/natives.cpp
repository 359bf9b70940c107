// Natives of Core that need the pipeline alone: inferred result types, counts of code.
#include <functional>
#include <unordered_set>

#include "lang/derive/natives/call.hpp"
#include "lang/ir/ir.hpp"
#include "lang/pipeline/impl.hpp"
#include "lang/support/exception_safe.hpp"

namespace slope {

const Type* Pipeline::return_type(Context& ctx, const DataType* call_types) {
  const CollectionPause pause(runtime_.heap);
  if (!ctx.generating) return infer::return_type(runtime_, ctx, call_types, ctx.world, infer_options(ctx));
  // Of the program that wants the code, whose world is another than the generator's, also for what is optimised on the
  // way; what the answer depends on, the code depends on.
  const Restored world(ctx.world, ctx.generating->world);
  infer::InferResult found = infer::infer_call(runtime_, ctx, call_types, ctx.world, infer_options(ctx));
  Source& source = *ctx.generating->source;
  source.min_world = std::max(source.min_world, found.min_world);
  source.max_world = std::min(source.max_world, found.max_world);
  source.edges.insert(source.edges.end(), found.edges.begin(), found.edges.end());
  return found.return_type;
}

namespace {

// return_type(f, types::Tuple) → type; return_type(Tuple{typeof(f), types…}) where there is no f to be had
bool return_type(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count == 1 && ctx.runtime->is_type_value(args[0])) {
    const DataType* call = as_data(args[0].as_type);
    if (!call || !call->is_tuple || call->params.empty() || call->has_free_vars)
      return ctx.argument_error("return_type takes a type Tuple{typeof(f), types...}, found " +
                                to_string(args[0].as_type));
    result = ctx.runtime->from_type(pipeline_of(ctx).return_type(ctx, call));
    return true;
  }
  if (count != 2) return ctx.argument_error("return_type takes a function and a tuple of types");
  std::vector<const Type*> types{ctx.runtime->types.type_of_constant(args[0])};
  if (!ctx.runtime->is_type_value(args[0])) types[0] = args[0].type;
  if (!derive::append_argument_types(ctx, args[1], types)) return false;
  const DataType* const call = ctx.runtime->types.tuple(types);
  const Type* const found = unless_stopped([&] { return pipeline_of(ctx).return_type(ctx, call); });
  if (!found) return ctx.stop();
  result = ctx.runtime->from_type(found);
  return true;
}

// What is called when nothing goes wrong.
void each_callee(const ir::Function& function, const std::function<void(Specialization&)>& look) {
  for (const ir::Block& block : function.blocks) {
    if (block.terminator == ~0u) continue;
    const ir::Op end = function.insts[block.terminator].op;
    if (end == ir::Op::throw_ || end == ir::Op::unreachable) continue;
    for (const std::uint32_t id : block.insts)
      if (function.insts[id].op == ir::Op::invoke) look(*function.insts[id].aux_as<Specialization>());
  }
}

// Of what a method that does not lower leaves, calling it tells. Limits and interrupts are for who asked.
bool goes_on_without(Context& ctx) {
  const bool stopped = ctx.stopped != Stop::none;
  if (!ctx.failed()) return !stopped || ctx.stop();
  const BuiltinTypes& builtin = ctx.runtime->types.builtin();
  if (stopped || ctx.error.type == builtin.interrupt_exception || ctx.error.type == builtin.out_of_memory_error)
    return false;
  ctx.take_error();
  return true;
}

// compile_call(f, types::Tuple) → Bool: whether a method takes a call of these types. Its code is made now, in typed
// form or as machine code as the tier will have it, and that of all that it calls with known types.
bool compile_call(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("compile_call takes a function and a tuple of types");
  Runtime& runtime = *ctx.runtime;
  std::vector<const Type*> types{runtime.is_type_value(args[0]) ? runtime.types.type_of_constant(args[0])
                                                                : args[0].type};
  if (!derive::append_argument_types(ctx, args[1], types)) return false;
  Specialization* const root = runtime.lookup_specialization(runtime.types.tuple(types), ctx.world);
  result = runtime.from_bool(root != nullptr);
  Pipeline& pipeline = pipeline_of(ctx);
  std::vector<Specialization*> work{root};
  std::unordered_set<const Specialization*> known(work.begin(), work.end());
  while (!work.empty()) {
    Specialization* const next = work.back();
    work.pop_back();
    if (!next || next->method->native || next->compile_failed) continue;
    if (--ctx.fuel < 0 || ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
    const CodeInstance* const code = pipeline.typed_code_unless_stopped(ctx, *next);
    if (!goes_on_without(ctx)) return false;
    if (!code || !code->typed) continue;
    // Together with small callees: what has an entry afterwards is not made again.
    std::string why;
    if (pipeline.mode != TierMode::interpret && (next == root || !code->entry.load(std::memory_order_acquire)))
      pipeline.compile(ctx, *next, why);
    if (!goes_on_without(ctx)) return false;
    each_callee(*code->typed, [&](Specialization& callee) {
      if (known.insert(&callee).second) work.push_back(&callee);
    });
  }
  return true;
}

// open_to_methods(names::Symbol...): definitions of these functions of Base in other modules add methods to them.
bool open_to_methods(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  for (std::size_t i = 0; i < count; ++i) {
    if (args[i].type != runtime.types.builtin().symbol) return ctx.argument_error("open_to_methods takes symbols");
    Binding* binding = runtime.base->find(args[i].symbol);
    if (!binding) return ctx.undef_var(args[i].symbol);
    binding->open_to_methods = true;
  }
  result = runtime.nothing();
  return true;
}

// code_counts() → (ended code that is still there, code freed so far, bytes of machine code)
bool code_counts(Context& ctx, const Value*, std::size_t count, Value& result) {
  if (count != 0) return ctx.argument_error("code_counts takes no arguments");
  const Pipeline::CodeCounts counts = pipeline_of(ctx).code_counts();
  Value parts[3];
  std::size_t at = 0;
  for (const std::size_t n : {counts.ended, counts.freed, counts.machine_bytes})
    parts[at++] = ctx.runtime->from_int(static_cast<std::int64_t>(n));
  return ctx.runtime->new_tuple(ctx, parts, at, result);
}

const NativeInfo pipeline_natives[] = {
    {"open_to_methods", open_to_methods, effect_all, nullptr},
    {"compile_call", compile_call, effect_all, nullptr},
    {"return_type", return_type, effect_throws | effect_allocates, nullptr, true},
    {"code_counts", code_counts, effect_all, nullptr},
};

}  // namespace

void define_pipeline_natives(Runtime& runtime) {
  for (const NativeInfo& native : pipeline_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope
