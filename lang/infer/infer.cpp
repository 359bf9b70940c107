// Type inference. Its parts:
//
//   lattice.hpp      what can be known of a value
//   solve.cpp        the fixpoint of one body over its SSA graph
//   transfer.cpp     operations
//   calls.cpp        calls: methods, union splitting, constants
//   rewrite.cpp      typed IR from the fixpoint
//   union_split.cpp  branches on the type of an argument
//   infer.cpp        bodies of callees, recursion, what is published
//
// Each specialisation has one Outcome in an Inference. It comes from the specialisation's CodeInstance when there is
// one for this world. Otherwise it comes from a Frame that is solved when the first call needs it. Frames nest as calls
// do (`stack`).
//
// Recursion:
//   - A call of a specialisation that is on the stack uses that one's outcome so far, which starts at bottom.
//   - The frames from that specialisation to the top of the stack form a cycle. The lowest frame is the head of the
//     cycle.
//   - A frame of a cycle whose body is solved is provisional: its outcome is used, but belongs to the iteration of the
//     head in which it was found (`stamp`).
//   - When the head's body is solved, and an outcome of the cycle has grown meanwhile, the head begins a new iteration.
//     Calls that used unfinished outcomes are evaluated again. This solves each provisional frame once more, starting
//     from its last state. So an iteration costs what the bodies cost, not what the paths through the cycle cost.
//   - When an iteration changes nothing, all outcomes of the cycle are consistent, and are finished together.
//   - Outcomes only grow, and are widened when they grow often. So the iterations end.
//
// The body of a finished outcome is rewritten and passed to `options.on_finished`, which makes the CodeInstance. Later
// inferences start from that.
#include "lang/infer/infer.hpp"

#include <algorithm>
#include <unordered_set>

#include "lang/infer/engine.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/support/tuning.hpp"

namespace slope::infer {

namespace {
constexpr int result_growth_limit = tuning::cycle_turns;
}

Inference::Impl::Impl(Runtime& runtime, Context& ctx, World world, const InferOptions& options)
    : runtime(runtime),
      ctx(ctx),
      world(world),
      options(options),
      lattice(runtime, scratch, options.union_limit),
      builtin(runtime.types.builtin()) {
  scratch.runtime = &runtime;
  scratch.heap = &runtime.heap;
  scratch.world = world;
  scratch.stack_limit = ctx.stack_limit;
}

std::unique_ptr<Frame> Inference::Impl::make_frame(Method* method, std::unique_ptr<ir::Function> body,
                                                   std::vector<Known> arguments,
                                                   std::vector<const Type*> static_params) {
  ++frames_made;
  auto frame = std::make_unique<Frame>();
  frame->method = method;
  frame->arguments = std::move(arguments);
  frame->static_params = std::move(static_params);
  frame->fn = std::move(body);
  ir::Function& fn = *frame->fn;
  split_critical_edges(fn);
  frame->cfg = ir::build_cfg(fn);
  std::size_t count = fn.insts.size();
  frame->values.assign(count, lattice.bottom());
  frame->effects.assign(count, 0);
  frame->dirty.assign(count, 1);
  frame->growth.assign(count, 0);
  frame->refined.assign(count, 0);
  frame->call_index.assign(count, ~0u);
  frame->constants.assign(fn.constants.size(), nullptr);
  frame->blocks.resize(fn.blocks.size());
  for (const ir::Block& block : fn.blocks)
    if (block.handler != ir::no_block) frame->blocks[block.handler].is_handler = true;
  frame->pending.assign((frame->cfg.order.size() + 63) / 64, 0);
  frame->slots.assign(fn.slots.size(), lattice.bottom());
  frame->slot_readers.resize(fn.slots.size());
  frame->slot_growth.assign(fn.slots.size(), 0);
  frame->result = lattice.bottom();

  // Users by counting: first how many of each, then where.
  auto for_each_use = [&](auto visit) {
    for (ir::BlockId b : frame->cfg.order) {
      const ir::Block& block = fn.blocks[b];
      for (std::uint32_t id : block.insts)
        for (ir::Operand o : fn.insts[id].operands) {
          if (!o.is_inst()) continue;
          visit(o.index(), id);
          // typeof(x) === T looks at x as well (transfer.cpp).
          const ir::Inst& made = fn.insts[o.index()];
          if (fn.insts[id].op == ir::Op::egal && made.op == ir::Op::type_of && made.operands[0].is_inst())
            visit(made.operands[0].index(), id);
        }
      if (block.terminator == ~0u) continue;
      for (ir::Operand o : fn.insts[block.terminator].operands)
        if (o.is_inst()) visit(o.index(), block.terminator);
      for (const ir::Edge& edge : block.edges)
        for (ir::Operand o : edge.arguments)
          if (o.is_inst()) visit(o.index(), block.terminator);
    }
  };
  frame->user_start.assign(count + 1, 0);
  for_each_use([&](std::uint32_t used, std::uint32_t) { ++frame->user_start[used + 1]; });
  for (std::size_t i = 0; i < count; ++i) frame->user_start[i + 1] += frame->user_start[i];
  frame->users.resize(frame->user_start[count]);
  std::vector<std::uint32_t> next(frame->user_start.begin(), frame->user_start.end() - 1);
  for_each_use([&](std::uint32_t used, std::uint32_t user) { frame->users[next[used]++] = user; });
  return frame;
}

std::vector<Known> Inference::Impl::entry_arguments(const Specialization& target, std::span<const Known> arguments) {
  const Method& method = *target.method;
  std::vector<Known> result;
  std::span<const Type* const> types = target.types->params;
  const VarargType* open = types.empty() ? nullptr : as_vararg(types.back());
  std::size_t known = types.size() - (open ? 1 : 0);
  auto argument = [&](std::size_t i) {
    if (i < arguments.size() && i < known) return arguments[i];
    if (i < known) return lattice.of_type(types[i]);
    return lattice.of_type(open && !open->element->has_free_vars ? open->element : builtin.any);
  };
  for (std::size_t i = 0; i < method.arg_count; ++i) result.push_back(argument(i));
  if (!method.is_vararg) return result;
  if (open) {
    std::vector<const Type*> rest(
        types.begin() + std::min<std::ptrdiff_t>(method.arg_count, static_cast<std::ptrdiff_t>(types.size()) - 1),
        types.end());
    result.push_back(lattice.of_type(runtime.types.tuple(rest)));
    return result;
  }
  std::vector<Known> rest;
  std::vector<const Type*> rest_types;
  for (std::size_t i = method.arg_count; i < types.size(); ++i) {
    rest.push_back(lattice.without_condition(argument(i)));
    rest_types.push_back(rest.back()->type);
  }
  ir::Inst packing;
  packing.op = ir::Op::tuple;
  result.push_back(lattice.partial(as_data(op_result_type(runtime, packing, rest_types)), rest));
  return result;
}

std::unique_ptr<Frame> Inference::Impl::method_frame(Specialization& target, std::vector<Known> arguments,
                                                     SourceUse use) {
  // In the context of the program: a generator runs under its limits, and can be interrupted.
  Source source = runtime.source(ctx, target, use, world);
  if (!source.code) {
    std::vector<TraceEntry> last = std::move(ctx.last_trace);
    const Value error = ctx.take_error();
    ctx.last_trace = std::move(last);
    if (error.type == builtin.interrupt_exception && ctx.stopped == Stop::none)
      ctx.interrupt.store(interrupt_catchable);
    return nullptr;
  }
  if (use == SourceUse::constant_propagation &&
      source.code->insts.size() > static_cast<std::size_t>(options.constant_call_limit))
    return nullptr;
  std::unique_ptr<Frame> frame =
      make_frame(target.method, source.code->clone(), std::move(arguments), target.static_params);
  frame->target = &target;
  frame->min_world = std::max(frame->min_world, source.min_world);
  frame->max_world = std::min(frame->max_world, source.max_world);
  for (const Edge& edge : source.edges) add_edge(*frame, edge);
  return frame;
}

Outcome* Inference::Impl::outcome_of(Specialization& target, SourceUse use) {
  std::unique_ptr<Outcome>& entry = outcomes[&target];
  if (entry) {
    Outcome& known = *entry;
    if (known.finished) return &known;
    Frame& frame = *known.frame;
    if (frame.on_stack) {
      frame.recursive = true;
      stack.back()->lowest = std::min(stack.back()->lowest, frame.depth);
    } else if (frame.stamp == frame.head->stamp) {
      stack.back()->lowest = std::min(stack.back()->lowest, frame.head->depth);
    } else {
      mark_calls_in_cycle(frame);
      run(frame);
    }
    return &known;
  }
  for (auto it = target.code.rbegin(); it != target.code.rend(); ++it) {
    const CodeInstance& code = **it;
    if (!code.valid_in(world) || !code.return_type) continue;
    entry = std::make_unique<Outcome>();
    entry->target = &target;
    entry->finished = true;
    entry->effects = code.effects;
    entry->min_world = code.min_world;
    entry->max_world = code.max_world;
    entry->result =
        code.constant_result.defined() ? lattice.constant(code.constant_result) : lattice.of_type(code.return_type);
    if (code.tested_argument >= 0)
      entry->result =
          lattice.conditional(static_cast<std::uint32_t>(code.tested_argument), lattice.of_type(code.argument_if_true),
                              lattice.of_type(code.argument_if_false));
    return entry.get();
  }
  std::unique_ptr<Frame> frame =
      limits_reached(target) ? nullptr : method_frame(target, entry_arguments(target, {}), use);
  if (!frame) {
    outcomes.erase(&target);
    return nullptr;
  }
  Outcome* outcome = (outcomes[&target] = std::make_unique<Outcome>()).get();  // lowering may have come back here
  outcome->target = &target;
  outcome->result = lattice.bottom();
  outcome->frame = std::move(frame);
  outcome->frame->outcome = outcome;
  run(*outcome->frame);
  return outcome;
}

void Inference::Impl::summarise(Frame& frame) {
  std::uint32_t effects = effect_none;
  for (ir::BlockId b : frame.cfg.order) {
    if (!frame.blocks[b].executable) continue;
    const ir::Block& block = frame.fn->blocks[b];
    std::uint32_t mask =
        block.handler == ir::no_block ? effect_all : effect_all & ~static_cast<std::uint32_t>(effect_throws);
    for (std::uint32_t id : block.insts) effects |= frame.effects[id] & mask;
    if (block.terminator != ~0u) effects |= frame.effects[block.terminator] & mask;
    for (std::size_t e = 0; e < block.edges.size(); ++e)
      if (frame.edge_executable(b, e) && frame.cfg.position[block.edges[e].target] <= frame.cfg.position[b])
        effects |= effect_diverges;
  }
  if (frame.recursive || frame.lowest < frame.depth) effects |= effect_diverges | effect_throws;  // StackOverflowError
  frame.summary_effects = effects;
}

void Inference::Impl::run(Frame& frame) {
  stack.push_back(&frame);
  frame.depth = frame.lowest = stack.size();
  frame.on_stack = true;
  frame.stamp = ++next_stamp;
  bool grew = false;  // in this iteration
  bool ever_grew = false;
  for (int iteration = 0;; ++iteration) {
    frame.cycle_changed = false;
    check_stop(ctx);
    solve(frame);
    summarise(frame);
    grew = false;
    if (Outcome* outcome = frame.outcome) {
      Known result = frame.result->is_partial() ? lattice.of_type(frame.result->type) : frame.result;
      if (iteration > result_growth_limit) {
        result = lattice.any();
        tell_limit(frame.target, Limit::result_growth, result_growth_limit);
      }
      result = lattice.join(outcome->result, result);
      std::uint32_t effects = outcome->effects | frame.summary_effects;
      grew = result != outcome->result || effects != outcome->effects;
      ever_grew = ever_grew || grew;
      outcome->result = result;
      outcome->effects = effects;
      outcome->min_world = frame.min_world;
      outcome->max_world = frame.max_world;
    }
    if (frame.lowest < frame.depth) break;                 // part of a larger cycle: its head iterates
    if (!frame.recursive && frame.members.empty()) break;  // no cycle
    if (!grew && !frame.cycle_changed) break;              // all of it is stable
    frame.stamp = ++next_stamp;
    mark_calls_in_cycle(frame);
  }
  frame.on_stack = false;
  stack.pop_back();

  if (frame.lowest < frame.depth) {
    Frame& head = *stack[frame.lowest - 1];
    head.cycle_changed = head.cycle_changed || ever_grew || frame.cycle_changed;
    stack.back()->lowest = std::min(stack.back()->lowest, frame.lowest);
    for (Outcome* member : frame.members) {
      if (member->finished) continue;
      member->frame->head = &head;
      member->frame->stamp = member->frame->stamp == frame.stamp ? head.stamp : 0;
      head.members.push_back(member);
    }
    frame.members.clear();
    if (frame.outcome) {
      if (frame.head != &head) head.members.push_back(frame.outcome);
      frame.head = &head;
      frame.stamp = head.stamp;
    }
    return;
  }

  // A frame that was provisional may turn out to depend on nothing unfinished any more; those it was in a cycle with
  // have used what its outcome was.
  if (frame.head && ever_grew) frame.head->cycle_changed = true;
  frame.head = nullptr;

  std::vector<Outcome*> done = std::move(frame.members);
  frame.members.clear();
  // In the order in which they were met: what is optimised first is what the others inline.
  std::unordered_set<const Outcome*> seen;
  std::erase_if(done, [&](const Outcome* member) { return member->finished || !seen.insert(member).second; });
  // What the last iteration did not ask for was found from results that have changed since: it is no result.
  std::erase_if(done, [&](Outcome* member) {
    if (member == frame.outcome || member->frame->stamp == frame.stamp) return false;
    outcomes.erase(member->target);
    return true;
  });
  World min_world = frame.min_world, max_world = frame.max_world;
  for (const Outcome* member : done) {
    min_world = std::max(min_world, member->frame->min_world);
    max_world = std::min(max_world, member->frame->max_world);
  }
  frame.min_world = min_world;
  frame.max_world = max_world;
  if (frame.outcome) done.push_back(frame.outcome);
  for (Outcome* outcome : done) {
    outcome->min_world = outcome->frame->min_world = min_world;
    outcome->max_world = outcome->frame->max_world = max_world;
    outcome->finished = true;
  }
  for (Outcome* outcome : done) {
    if (outcome == requested) continue;  // given back to who asked
    finish(*outcome);
  }
}

InferResult Inference::Impl::result_of(Frame& frame) {
  InferResult result;
  Known value = frame.outcome ? frame.outcome->result : frame.result;
  result.effects = frame.outcome ? frame.outcome->effects : frame.summary_effects;
  result.return_type = value->type;
  // Whatever its effects: who asks next must hear what those heard who asked while it was inferred.
  if (value->is_constant()) result.constant_result = value->value;
  if (value->is_conditional()) {
    result.tested_argument = static_cast<std::int32_t>(value->subject);
    result.argument_if_true = value->fields[0]->type;
    result.argument_if_false = value->fields[1]->type;
  }
  rewrite(*this, frame);
  frame.fn->return_type = result.return_type;
  result.typed = std::move(frame.fn);
  result.min_world = frame.min_world;
  result.max_world = frame.max_world;
  result.edges = std::move(frame.edges);
  return result;
}

void Inference::Impl::finish(Outcome& outcome) {
  std::unique_ptr<Frame> frame = std::move(outcome.frame);
  InferResult result = result_of(*frame);
  frame.reset();
  if (options.on_finished)
    options.on_finished(*outcome.target, std::move(result));
  else
    publish(runtime, *outcome.target, std::move(result));
  // The optimised code may be known more precisely than the body was: callers shall find the same whoever asks first.
  // It may hold in fewer worlds too: a derivative that became part of it is that of this world's functions.
  const CodeInstance* code = outcome.target->current;
  if (!code || !code->valid_in(world)) return;
  outcome.min_world = std::max(outcome.min_world, code->min_world);
  outcome.max_world = std::min(outcome.max_world, code->max_world);
  if (code->return_type && code->return_type != outcome.result->type &&
      is_subtype(runtime.types, code->return_type, outcome.result->type))
    outcome.result = lattice.of_type(code->return_type);
}

Inference::Inference(Runtime& runtime, Context& ctx, World world, const InferOptions& options)
    : impl_(std::make_unique<Impl>(runtime, ctx, world, options)) {}

Inference::~Inference() = default;

InferResult Inference::infer(Specialization& target) {
  Impl& impl = *impl_;
  std::unique_ptr<Frame> frame = impl.method_frame(target, impl.entry_arguments(target, {}), SourceUse::inference);
  if (!frame) return {};
  auto entry = std::make_unique<Outcome>();
  entry->target = &target;
  entry->result = impl.lattice.bottom();
  entry->frame = std::move(frame);
  entry->frame->outcome = entry.get();
  impl.requested = entry.get();
  impl.outcomes[&target] = std::move(entry);
  impl.run(*impl.requested->frame);
  std::unique_ptr<Frame> solved = std::move(impl.requested->frame);
  impl.requested = nullptr;
  return impl.result_of(*solved);
}

InferResult Inference::infer_function(const ir::Function& untyped, std::span<const Type* const> parameter_types) {
  std::vector<Known> arguments;
  for (const Type* t : parameter_types) arguments.push_back(impl_->lattice.of_type(t));
  std::unique_ptr<Frame> frame =
      impl_->make_frame(nullptr, untyped.clone(), std::move(arguments), untyped.static_params);
  impl_->run(*frame);
  return impl_->result_of(*frame);
}

InferResult Inference::reinfer(const ir::Function& partly_typed) {
  std::vector<Known> arguments;
  for (std::uint32_t id : partly_typed.blocks[0].parameters) {
    const Type* t = partly_typed.insts[id].type;
    arguments.push_back(t ? impl_->lattice.of_type(t) : impl_->lattice.any());
  }
  std::unique_ptr<Frame> frame =
      impl_->make_frame(nullptr, partly_typed.clone(), std::move(arguments), partly_typed.static_params);
  frame->partly_typed = true;
  for (std::size_t i = 0; i < partly_typed.slot_types.size(); ++i)
    if (partly_typed.slot_types[i]) frame->slots[i] = impl_->lattice.of_type(partly_typed.slot_types[i]);
  impl_->run(*frame);
  return impl_->result_of(*frame);
}

bool is_runnable(Runtime& runtime, const Specialization& target) {
  return target.method->as_declared != 0 ||
         std::all_of(target.types->params.begin(), target.types->params.end(),
                     [&](const Type* t) { return is_dispatch_type(runtime.types.builtin(), t); });
}

CodeInstance* publish(Runtime& runtime, Specialization& target, InferResult&& result) {
  auto code = std::make_unique<CodeInstance>();
  code->owner = &target;
  code->min_world = result.min_world;
  code->max_world = result.max_world;
  code->return_type = result.return_type;
  code->constant_result = result.constant_result;
  code->tested_argument = result.tested_argument;
  code->argument_if_true = result.argument_if_true;
  code->argument_if_false = result.argument_if_false;
  code->effects = result.effects;
  code->typed = std::move(result.typed);
  code->edges = std::move(result.edges);
  constexpr std::size_t bytes_of_instruction = 384;         // as IR, bytecode and machine code
  constexpr std::size_t bytes_of_edge = sizeof(Edge) + 64;  // with its place among the dependents
  code->counted.add(runtime.outside_heap, sizeof(CodeInstance) + code->edges.size() * bytes_of_edge +
                                              (code->typed ? code->typed->insts.size() * bytes_of_instruction : 0));
  CodeInstance* made = code.get();
  target.code.push_back(std::move(code));
  target.current = made;
  runtime.add_dependent(made);
  return made;
}

InferResult infer_call(Runtime& runtime, Context& ctx, const DataType* call_types, World world,
                       const InferOptions& options) {
  InferResult result;
  result.return_type = runtime.types.builtin().any;
  Inference::Impl impl(runtime, ctx, world, options);
  // As a call in a body of its own would be inferred.
  auto body = std::make_unique<ir::Function>();
  ir::Builder builder(*body);
  builder.set_block(builder.new_block());
  std::vector<ir::Operand> operands;
  std::vector<Known> arguments;
  for (const Type* t : call_types->params) {
    if (as_vararg(t)) return result;
    operands.push_back(builder.add_parameter(0));
    arguments.push_back(impl.lattice.of_type(t));
  }
  if (operands.empty()) return result;
  builder.ret(builder.emit(ir::Op::call, operands));
  std::unique_ptr<Frame> frame = impl.make_frame(nullptr, std::move(body), std::move(arguments), {});
  impl.run(*frame);
  result.return_type = frame->result->type;
  result.effects = frame->summary_effects;
  result.min_world = frame->min_world;
  result.max_world = frame->max_world;
  result.edges = std::move(frame->edges);
  return result;
}

const Type* return_type(Runtime& runtime, Context& ctx, const DataType* call_types, World world,
                        const InferOptions& options) {
  return infer_call(runtime, ctx, call_types, world, options).return_type;
}

}  // namespace slope::infer
