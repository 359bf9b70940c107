// The dispatch loop.
//
// Rules that must not be broken:
//  1. Registers are in this function's own native frame, which the collector scans conservatively. A value that only a
//     std::vector holds is not safe across a call.
//  2. A function that returns false has set ctx.error. On failure control goes to `raise`. It finds the handler of the
//     block, or adds the frame to the trace and leaves it.
//  3. A register is written after the operation has succeeded: an operation that fails leaves its destination
//     unchanged.
#include <alloca.h>

#include <atomic>

#include "interpreter/bytecode.hpp"
#include "interpreter/interpreter.hpp"
#include "interpreter/trace.hpp"
#include "lang/ir/continuation.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/runtime/call_native.hpp"
#include "lang/runtime/call_text.hpp"
#include "lang/runtime/library_names.hpp"
#include "lang/runtime/recorded_run.hpp"

namespace slope::interpreter {

namespace {

using ir::Op;

class Vm final : public Interpreter {
 public:
  explicit Vm(Runtime& runtime) : runtime_(runtime), builtin_(runtime.types.builtin()) {
    root_key_ = runtime_.heap.add_root_tracer([this](Tracer& tracer) {
      for (const Running* at = running_; at; at = at->outer)
        for (Value v : at->function->constants.held()) tracer.value(v);
    });
  }
  // The calls that are running in this context, the innermost first; those of machine code have no frame here.
  std::vector<TraceEntry> running_calls(const Context& ctx) const {
    constexpr std::size_t most = 1000;
    std::vector<TraceEntry> trace;
    for (const Running* at = running_; at && trace.size() < most; at = at->outer) {
      if (at->stack != ctx.stack_limit || !at->calling) continue;
      const std::vector<TraceEntry> entries = trace_of(*at->function, at->calling->inst, at->types);
      trace.insert(trace.end(), entries.begin(), entries.end());
    }
    return trace;
  }
  ~Vm() override { runtime_.heap.remove_root_tracer(root_key_); }

  bool run(Context& ctx, Specialization& target, Value callee, const Value* args, std::size_t count,
           Value& result) override;
  bool run_toplevel(Context& ctx, const ir::Function& body, Value& result) override;
  std::vector<const ir::Function*> running() const override {
    std::vector<const ir::Function*> functions;
    for (const Running* at = running_; at; at = at->outer) functions.push_back(at->function);
    return functions;
  }

 private:
  // An activation, in the list of all. They end in another order than they began in where coroutines switch.
  struct Running {
    Running(Running*& first, const ir::Function* f, const DataType* t, const char* on)
        : function(f), types(t), stack(on), outer(first), link(&first) {
      if (outer) outer->link = &outer;
      first = this;
    }
    ~Running() {
      *link = outer;
      if (outer) outer->link = link;
    }
    Running(const Running&) = delete;
    const ir::Function* function;
    const DataType* types;                 // TraceEntry::types
    const char* stack;                     // the end of the stack it is on
    const Instruction* calling = nullptr;  // the call that it is in
    Running* outer;
    Running** link;  // what points here
  };
  struct Frame {
    const Bytecode& code;
    Specialization* target;
    const std::vector<const Type*>* static_params;
    Value* registers;
    std::size_t caught_base;
    std::uint32_t back_edges = 0;
    Running* running = nullptr;
    FrameRecord record = {};          // when records are kept: of lang/runtime/frames.hpp
    std::uint64_t observed_last = 0;  // the observer's word
  };
  // Runs it, with a record where the engine keeps them, or a LoanWatch wants to know where things are stored.
  bool activate(Context& ctx, Frame& frame, Value& result);
  std::vector<TraceEntry> running_trace(const Frame& frame) const;

  const Bytecode& bytecode(const ir::Function& function) {
    if (!function.interpreter_code.code) function.interpreter_code.code = emit(function);
    return *static_cast<const Bytecode*>(function.interpreter_code.code.get());
  }
  // `watched`: each instruction is noted in the frame's record, and told to the observer if there is one.
  template <bool watched>
  bool execute(Context& ctx, Frame& frame, Value& result);
  bool call(Context& ctx, const Bytecode& code, const Instruction& at, Value* argv, Value& result);
  bool call_splat(Context& ctx, const Value* operands, std::size_t count, std::uint64_t mask, Value& result);
  // Something of the type that can be passed on and put into aggregates; nobody looks at it.
  Value arbitrary(const Type* type) {
    const DataType* d = as_data(type);
    if (!d || !d->is_concrete) return runtime_.nothing();
    switch (d->storage) {
      case Storage::singleton:
        return d->instance;
      case Storage::aggregate:
        return Value(d, runtime_.heap.allocate(d, d->size));
      default:
        return Value(d, std::int64_t{0});
    }
  }
  enum class Replaced { no, returned, failed };
  Replaced replace_on_stack(Context& ctx, Frame& frame, LoopCode& loop, Value& result);
  static void count_back_edges(Frame& frame);
  bool stack_is_low(const Context& ctx, std::size_t frame_bytes) const {
    const char* here = static_cast<const char*>(__builtin_frame_address(0));
    return here - frame_bytes < ctx.stack_limit;
  }

  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  Running* running_ = nullptr;
  int root_key_ = 0;
};

bool Vm::run(Context& ctx, Specialization& target, Value callee, const Value* args, std::size_t count, Value& result) {
  const ir::Function* function = nullptr;
  std::shared_ptr<ir::Function> generated;  // may be dropped while it runs
  // A generator's own steps are checked one by one: typed code has some of them folded away.
  // Observers want every step as well, where there is untyped code (a derivative has none).
  const bool as_written = runs_generator(ctx) || (runtime_.observer && target.method->body);
  if (CodeInstance* current = target.current;
      current && current->typed && current->valid_in(ctx.world) && !as_written) {
    function = current->typed.get();
    if (RecordedRun* const run = recorded_run(ctx)) note_code(*run, *current);
  } else if (target.method->generator) {
    generated = runtime_.source(ctx, target, SourceUse::interpreter, ctx.world).code;
    function = generated.get();
  } else {
    function = runtime_.method_ir(ctx, *target.method);
  }
  if (!function) return false;
  const Bytecode& code = bytecode(*function);
  std::size_t frame_bytes = code.frame_size() * sizeof(Value);
  if (stack_is_low(ctx, frame_bytes)) return ctx.stack_overflow();
  Value* registers = static_cast<Value*>(alloca(frame_bytes));
  for (std::uint32_t slot = 0; slot < code.slot_count; ++slot) registers[code.register_count + slot] = Value();

  registers[code.parameters[0]] = callee;
  const Method& method = *target.method;
  std::size_t fixed = method.is_vararg ? method.arg_count - 1 : count;
  for (std::size_t i = 0; i < fixed; ++i) registers[code.parameters[i + 1]] = args[i];
  if (method.is_vararg) {
    Value rest;
    if (!runtime_.new_tuple(ctx, args + fixed, count - fixed, rest)) return false;
    registers[code.parameters[fixed + 1]] = rest;
  }
  Frame frame{code, &target, &target.static_params, registers, ctx.caught.size()};
  bool ok = activate(ctx, frame, result);
  target.calls += frame.back_edges / 16;
  if (code.uses_catch) ctx.caught.resize(frame.caught_base);
  return ok;
}

bool Vm::run_toplevel(Context& ctx, const ir::Function& body, Value& result) {
  static const std::vector<const Type*> no_static_params;
  const Bytecode& code = bytecode(body);
  std::size_t frame_bytes = code.frame_size() * sizeof(Value);
  if (stack_is_low(ctx, frame_bytes)) return ctx.stack_overflow();
  Value* registers = static_cast<Value*>(alloca(frame_bytes));
  for (std::uint32_t slot = 0; slot < code.slot_count; ++slot) registers[code.register_count + slot] = Value();
  for (std::uint32_t parameter : code.parameters) registers[parameter] = runtime_.nothing();
  Frame frame{code, nullptr, &no_static_params, registers, ctx.caught.size()};
  bool ok = activate(ctx, frame, result);
  if (code.uses_catch) ctx.caught.resize(frame.caught_base);
  if (runtime_.tiers) runtime_.tiers->toplevel_ended(body);
  return ok;
}

// Where a frame with a record stands, and its callers.
std::vector<TraceEntry> Vm::running_trace(const Frame& frame) const {
  constexpr std::size_t most = 64;
  std::vector<TraceEntry> trace;
  for (const FrameRecord* record = &frame.record; record && record->site && trace.size() < most;
       record = record->caller) {
    std::vector<TraceEntry> entries;
    if (record->is_machine_code()) {
      entries = static_cast<const TraceSite*>(record->site)->entries;
    } else {
      entries = trace_of(*reinterpret_cast<const ir::Function*>(record->function),
                         static_cast<const Instruction*>(record->site)->inst);
    }
    trace.insert(trace.end(), entries.begin(), entries.end());
  }
  return trace;
}

bool Vm::activate(Context& ctx, Frame& frame, Value& result) {
  Running running(running_, frame.code.function, frame.target ? frame.target->types : nullptr, ctx.stack_limit);
  frame.running = &running;
  bool ok;
  if (!runtime_.records_frames && !ctx.loans) {
    ok = execute<false>(ctx, frame, result);
  } else {
    frame.record = {ctx.frames, reinterpret_cast<std::uintptr_t>(frame.code.function), nullptr};
    std::atomic_signal_fence(std::memory_order_release);
    ctx.frames = &frame.record;
    ok = execute<true>(ctx, frame, result);
    ctx.frames = frame.record.caller;
    std::atomic_signal_fence(std::memory_order_release);
  }
  return ok;
}

bool Vm::call(Context& ctx, const Bytecode& code, const Instruction& at, Value* argv, Value& result) {
  auto& sites = const_cast<Bytecode&>(code).call_sites;
  CallCache& site = sites[at.aux];
  std::size_t count = at.operand_count - 1u;
  if (argv[0].type == builtin_.builtin_function) return runtime_.call(ctx, argv[0], argv + 1, count, result);
  Specialization* target = site.find(ctx.world, argv[0], argv + 1, count);
  if (!target) {
    target = runtime_.dispatch(ctx, argv[0], argv + 1, count);
    if (!target) return false;
    sites.counted_by = &runtime_.outside_heap;
    insert_counted(site, ctx.world, target, runtime_.outside_heap);
  }
  return runtime_.call_specialized(ctx, *target, argv[0], argv + 1, count, result);
}

// Flattens splatted operands (tuples and vectors directly, anything else through Base.splat_values, which returns a
// tuple).
bool Vm::call_splat(Context& ctx, const Value* operands, std::size_t count, std::uint64_t mask, Value& result) {
  Rooted flat(runtime_.heap);
  for (std::size_t i = 1; i < count; ++i) {
    Value v = operands[i];
    if (!(mask >> i & 1)) {
      flat.values.push_back(v);
      continue;
    }
    const DataType* type = as_data(v.type);
    if (!type->is_tuple) {
      Binding* splat = library_binding(runtime_, KnownName::splat_values);
      if (!splat || !splat->value.defined()) return ctx.undef_var(runtime_.symbol("splat_values"));
      if (!runtime_.call(ctx, splat->value, &v, 1, v)) return false;
      type = as_data(v.type);
      if (!type->is_tuple) return ctx.type_error("splat", builtin_.tuple_any, v);
    }
    for (std::size_t k = 0; k < type->fields.size(); ++k)
      flat.values.push_back(load_field(runtime_.heap, v.object, type->fields[k]));
  }
  return runtime_.call(ctx, operands[0], flat.values.data(), flat.values.size(), result);
}

Vm::Replaced Vm::replace_on_stack(Context& ctx, Frame& frame, LoopCode& loop, Value& result) {
  const Bytecode& code = frame.code;
  if (runs_generator(ctx) || !runtime_.tiers || runtime_.tiers->mode == TierMode::interpret || !loop.possible ||
      ctx.caught.size() != frame.caught_base)
    return Replaced::no;
  if (!loop.asked) {
    loop.asked = true;
    ir::LiveAtLoop live = ir::live_at_loop(*code.function, loop.header);
    loop.possible = live.possible;
    for (std::uint32_t id : live.insts) loop.live.push_back(code.register_of[id]);
    if (!loop.possible) return Replaced::no;
  }
  Value* live = static_cast<Value*>(alloca((loop.live.size() + 1) * sizeof(Value)));
  for (std::size_t i = 0; i < loop.live.size(); ++i) live[i] = frame.registers[loop.live[i]];
  bool later = false;
  CodeInstance* rest =
      runtime_.tiers->on_hot_loop(ctx, *code.function, frame.target, loop.header, live, loop.live.size(), later);
  BoxedEntry entry = rest ? rest->boxed.load(std::memory_order_acquire) : nullptr;
  if (!entry) {
    loop.possible = later;
    return Replaced::no;
  }
  if (RecordedRun* const run = recorded_run(ctx)) note_code(*run, *rest);
  std::shared_ptr<void> alive = rest->native_owner;
  // One activation, one record: the machine code has its own.
  if (runtime_.records_frames) ctx.frames = frame.record.caller;
  const bool ok = entry(&ctx, runtime_.nothing(), live, loop.live.size(), &result);
  if (runtime_.records_frames) ctx.frames = &frame.record;
  return ok ? Replaced::returned : Replaced::failed;
}

// A loop that is replaced counts as well, so that the next call of the function is compiled from its start.
void Vm::count_back_edges(Frame& frame) {
  if (frame.target) frame.target->calls += frame.back_edges / 16;
  frame.back_edges = 0;
}

// Long because it is the dispatch loop: the state of a frame (`pc`, operands, registers) stays in local variables, and
// each operation that runs often has its fast path here.
template <bool watched>
bool Vm::execute(Context& ctx, Frame& frame, Value& result) {
  const Bytecode& code = frame.code;
  Value* const registers = frame.registers;
  const Value* const bases[2] = {registers, code.function->constants.data()};
  Value* const slots = registers + code.register_count;
  Value* const scratch = slots + code.slot_count;
  const std::uint32_t* const operand_pool = code.operands.data();
  const Type* const int64 = builtin_.int64;
  const Type* const float64 = builtin_.float64;
  const Type* const boolean = builtin_.boolean;
  const std::uint32_t loop_threshold = runtime_.tiers ? runtime_.tiers->loop_threshold : ~0u;
  const Instruction* pc = code.code.data();
  const EdgeCode* edge = nullptr;

#define OPERAND(n) (bases[operands[n] >> 31][operands[n] & 0x7fffffffu])
#define BOTH(t) (OPERAND(0).type == (t) && OPERAND(1).type == (t))
#define INT_OP(expression)                                                            \
  if (BOTH(int64)) {                                                                  \
    std::int64_t a = OPERAND(0).bits;                                                 \
    std::int64_t b = OPERAND(1).bits;                                                 \
    registers[pc->destination] = Value(int64, static_cast<std::int64_t>(expression)); \
    ++pc;                                                                             \
    continue;                                                                         \
  }                                                                                   \
  goto generic
#define INT_TEST(expression)                                               \
  if (BOTH(int64)) {                                                       \
    std::int64_t a = OPERAND(0).bits;                                      \
    std::int64_t b = OPERAND(1).bits;                                      \
    registers[pc->destination] = Value(boolean, std::int64_t{expression}); \
    ++pc;                                                                  \
    continue;                                                              \
  }                                                                        \
  goto generic
#define FLOAT_OP(expression)                                 \
  if (BOTH(float64)) {                                       \
    double a = OPERAND(0).float64;                           \
    double b = OPERAND(1).float64;                           \
    registers[pc->destination] = Value(float64, expression); \
    ++pc;                                                    \
    continue;                                                \
  }                                                          \
  goto generic
#define FLOAT_TEST(expression)                                             \
  if (BOTH(float64)) {                                                     \
    double a = OPERAND(0).float64;                                         \
    double b = OPERAND(1).float64;                                         \
    registers[pc->destination] = Value(boolean, std::int64_t{expression}); \
    ++pc;                                                                  \
    continue;                                                              \
  }                                                                        \
  goto generic
#define WRAP(x) static_cast<std::uint64_t>(x)

  for (;;) {
    const std::uint32_t* operands = operand_pool + pc->first_operand;
    if constexpr (watched) {
      const_cast<const void* volatile&>(frame.record.site) = pc;
      if (runtime_.observer) runtime_.observer->at(ctx, *code.function, pc->inst, frame.observed_last);
    }
    switch (pc->op) {
      case Op::add_int:
        INT_OP(WRAP(a) + WRAP(b));
      case Op::sub_int:
        INT_OP(WRAP(a) - WRAP(b));
      case Op::mul_int:
        INT_OP(WRAP(a) * WRAP(b));
      case Op::and_int:
        INT_OP(a & b);
      case Op::or_int:
        INT_OP(a | b);
      case Op::slt_int:
        INT_TEST(a < b);
      case Op::sle_int:
        INT_TEST(a <= b);
      case Op::eq_int:
        INT_TEST(a == b);
      case Op::ne_int:
        INT_TEST(a != b);
      case Op::ult_int:
        INT_TEST(WRAP(a) < WRAP(b));
      case Op::add_float:
        FLOAT_OP(a + b);
      case Op::sub_float:
        FLOAT_OP(a - b);
      case Op::mul_float:
        FLOAT_OP(a * b);
      case Op::div_float:
        FLOAT_OP(a / b);
      case Op::lt_float:
        FLOAT_TEST(a < b);
      case Op::le_float:
        FLOAT_TEST(a <= b);
      case Op::eq_float:
        FLOAT_TEST(a == b);

      case Op::undef:
        registers[pc->destination] = arbitrary(code.function->insts[pc->inst].type);
        ++pc;
        continue;
      case Op::refine:
        registers[pc->destination] = OPERAND(0);
        ++pc;
        continue;
      case Op::type_of:
        registers[pc->destination] = runtime_.from_type(OPERAND(0).type);
        ++pc;
        continue;
      case Op::static_param: {
        const Type* parameter = (*frame.static_params)[pc->aux];
        if (as_var(parameter)) {
          ctx.undef_var(as_var(parameter)->name);
          goto raise;
        }
        const ValueType* value = as_value(parameter);
        registers[pc->destination] = value ? value->value : runtime_.from_type(parameter);
        ++pc;
        continue;
      }
      case Op::select: {
        Value condition = OPERAND(0);
        if (condition.type != boolean) goto generic;
        registers[pc->destination] = condition.bits ? OPERAND(1) : OPERAND(2);
        ++pc;
        continue;
      }
      case Op::slot_get: {
        Value v = slots[pc->aux];
        if (!v.defined()) {
          ctx.undef_var(code.function->slots[pc->aux]);
          goto raise;
        }
        registers[pc->destination] = v;
        ++pc;
        continue;
      }
      case Op::slot_set:
        slots[pc->aux] = OPERAND(0);
        ++pc;
        continue;
      case Op::slot_clear:
        slots[pc->aux] = Value();
        ++pc;
        continue;
      case Op::slot_defined:
        registers[pc->destination] = Value(boolean, std::int64_t{slots[pc->aux].defined()});
        ++pc;
        continue;
      case Op::load_global: {
        const Binding* binding = reinterpret_cast<const Binding*>(pc->aux);
        if (!binding->value.defined()) {
          // A name used before anything defined it may have come to mean another module's export since.
          Binding* now = runtime_.resolve(binding->module, binding->name);
          if (!now || !now->value.defined()) {
            ctx.undef_var(binding->name);
            goto raise;
          }
          binding = now;
        }
        if (ctx.generating) note_read(*ctx.generating, *binding);
        registers[pc->destination] = binding->value;
        ++pc;
        continue;
      }
      case Op::global_defined: {
        const Binding* binding = reinterpret_cast<const Binding*>(pc->aux);
        Binding* now = binding->value.defined() ? nullptr : runtime_.resolve(binding->module, binding->name);
        bool defined = binding->value.defined() || (now && now->value.defined());
        registers[pc->destination] = Value(boolean, std::int64_t{defined});
        ++pc;
        continue;
      }
      case Op::caught:
        registers[pc->destination] = ctx.caught.back();
        ++pc;
        continue;
      case Op::caught_end:
        if (ctx.caught.size() > frame.caught_base) ctx.caught.pop_back();
        ++pc;
        continue;

      case Op::call:
      case Op::invoke:
      case Op::native:
      case Op::call_splat: {
        for (std::uint32_t i = 0; i < pc->operand_count; ++i) scratch[i] = OPERAND(i);
        Value v;
        bool ok;
        frame.running->calling = pc;
        if (pc->op == Op::call) {
          ok = call(ctx, code, *pc, scratch, v);
        } else if (pc->op == Op::invoke) {
          ok = runtime_.call_specialized(ctx, *reinterpret_cast<Specialization*>(pc->aux), scratch[0], scratch + 1,
                                         pc->operand_count - 1u, v);
        } else if (pc->op == Op::native) {
          const NativeInfo& native = *reinterpret_cast<const NativeInfo*>(pc->aux);
          ok = (!runs_generator(ctx) || may_generate(ctx, native, scratch, pc->operand_count)) &&
               call_native(ctx, native, scratch, pc->operand_count, v);
        } else {
          ok = call_splat(ctx, scratch, pc->operand_count, pc->aux, v);
        }
        if (!ok) goto raise;
        registers[pc->destination] = v;
        ++pc;
        continue;
      }

      case Op::branch: {
        Value condition = OPERAND(0);
        if (condition.type != boolean) {
          ctx.type_error("if", boolean, condition);
          goto raise;
        }
        edge = &code.edges[pc->aux + (condition.bits ? 0 : 1)];
        goto take_edge;
      }
      case Op::jump:
      case Op::switch_int: {
        std::size_t which = 0;
        if (pc->op == Op::switch_int) {
          Value k = OPERAND(0);
          std::size_t last = code.function->blocks[code.function->insts[pc->inst].block].edges.size() - 1;
          which = k.bits >= 0 && static_cast<std::size_t>(k.bits) < last ? static_cast<std::size_t>(k.bits) : last;
        }
        edge = &code.edges[pc->aux + which];
        goto take_edge;
      }
      case Op::ret:
        result = OPERAND(0);
        return true;
      case Op::throw_:
        ctx.raise(OPERAND(0));
        goto raise;
      case Op::unreachable:
        ctx.raise_error("internal error: unreachable code was reached in " + code.function->name);
        goto raise;

      default:
        goto generic;
    }

  take_edge : {
    const Move* moves = code.moves.data() + edge->first_move;
    for (std::uint32_t i = 0; i < edge->move_count; ++i)
      registers[moves[i].destination] = bases[moves[i].source >> 31][moves[i].source & 0x7fffffffu];
    pc = code.code.data() + edge->target_pc;
    if (edge->loop == ~0u) continue;
    // Back edges of loops are safe points here, calls are in Runtime::call_specialized.
    if (--ctx.fuel < 0 || ctx.interrupt.load(std::memory_order_relaxed)) {
      ctx.stop();
      goto raise;
    }
    ++frame.back_edges;
    if (frame.back_edges < loop_threshold) continue;
    count_back_edges(frame);
    switch (replace_on_stack(ctx, frame, const_cast<Bytecode&>(code).loops[edge->loop], result)) {
      case Replaced::returned:
        return true;
      case Replaced::failed:
        return false;  // the native continuation has the handlers and left its trace
      case Replaced::no:
        break;
    }
    continue;
  }

  generic : {
    for (std::uint32_t i = 0; i < pc->operand_count; ++i) scratch[i] = OPERAND(i);
    if constexpr (watched) {
      if (ctx.loans && ir::stores_value(pc->op) &&
          !ir::may_store(ctx, pc->op, scratch, pc->operand_count, pc->aux, running_trace(frame)))
        goto raise;
    }
    Value v;
    if (!ir::execute(ctx, pc->op, scratch, pc->operand_count, pc->aux, v)) goto raise;
    if (pc->destination != ~0u) registers[pc->destination] = v;
    ++pc;
    continue;
  }

  raise : {
    push_trace(ctx, *code.function, pc->inst, frame.target ? frame.target->types : nullptr);
    const BlockRange& range = code.range_of(static_cast<std::uint32_t>(pc - code.code.data()));
    if (range.handler_pc == ~0u || ctx.stopped != Stop::none) return false;
    ctx.caught.resize(frame.caught_base + range.catch_depth);
    ctx.caught.push_back(ctx.take_error());
    pc = code.code.data() + range.handler_pc;
    continue;
  }
  }
#undef OPERAND
#undef BOTH
#undef INT_OP
#undef INT_TEST
#undef FLOAT_OP
#undef FLOAT_TEST
#undef WRAP
}

}  // namespace

// running_calls(): the calls that are running, as a trace of an error prints them.
static bool running_calls(Context& ctx, const Value*, std::size_t count, Value& result) {
  if (count != 0) return ctx.argument_error("running_calls takes no arguments");
  Runtime& runtime = *ctx.runtime;
  const std::vector<TraceEntry> trace = static_cast<const Vm&>(*runtime.interpreter).running_calls(ctx);
  const KeptMethods::Pause pause(runtime.kept_methods);
  result = runtime.from_string(trace_text(runtime, trace));
  return result.defined() || ctx.out_of_memory();
}

static const Type* running_calls_type(TypeTable& types, std::span<const Type* const>) { return types.builtin().string; }

static const NativeInfo running_calls_native = {"running_calls", running_calls, effect_all, running_calls_type};

std::unique_ptr<Interpreter> make_interpreter(Runtime& runtime) {
  runtime.define_native(runtime.core, &running_calls_native);
  return std::make_unique<Vm>(runtime);
}

}  // namespace slope::interpreter
