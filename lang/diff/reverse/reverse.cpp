// Reverse mode on typed SSA IR, before LLVM.
//
// Goal: from a typed primal function make one function that computes the value and the gradient, with no closures on
// the heap and no stacks outside loops. When the pullback must outlive the call (recursion, `pullback`), make two
// halves and a record instead.
//
// Steps:
//   1. The primal is brought to a normal form: one return; each loop has one entering edge and one latch.
//   2. The forward sweep is a copy of it, block by block, in which each operation has an augmented step (forward.cpp).
//   3. The reverse sweep has one block for each primal block, with the operations' reverse steps in opposite order
//      (backward.cpp). It goes through the control-flow graph backwards:
//        - a block with several predecessors knows by which edge it was entered (a block argument of the forward
//          sweep);
//        - the forward sweep counts executions of a loop's header in `row`, which is also the index of the loop's tape
//          rows; the reverse sweep leaves the loop when it has undone as many executions.
// reverse.hpp says which type has which part of this.
//
// Invariants:
//   - At each point of the reverse sweep memory is as it was right after the operation being reversed: the stores that
//     came later have been undone.
//   - The shadow of an object has the object's identity: aliases share it. It is zero where nothing was accumulated.
//   - Reverse blocks have no parameters. Everything that passes between them is in slots, which promote_slots turns
//     into SSA values.
//
// Traps:
//   - A value defined in a loop and used after it is read from the loop's last row. So `row` must be decremented only
//     at the very end of the header's reverse block.
//   - Tapes are opened once, before the outermost loop, and closed when the reverse sweep passes that point.
//
// Sources: Innes 2018 (arXiv:1810.07951) for SSA form reverse mode; Moses and Churavy 2020 (Enzyme) for shadows;
// Hascoët and Pascual 2013 (Tapenade) for to-be-recorded analysis.
#include "lang/diff/reverse/reverse.hpp"

#include <algorithm>

#include "lang/diff/normal_form.hpp"
#include "lang/ir/passes/checked.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

Reverse::Reverse(Environment& env, AnalysedPrimal primal, Form form, const std::shared_ptr<TapeLayout>& stack,
                 Refusal& refusal)
    : Transform(env, std::move(primal), refusal),
      flow_(*primal_),
      sweeps_(made("∇"), form == Form::halves ? made("∇", " (reverse)") : nullptr, primal_->blocks.size()),
      f_(sweeps_.f),
      r_(sweeps_.r),
      loops_(*this, *primal_, flow_, sweeps_, stack),
      overwritten_(env, *primal_, flow_.cfg, activity_),
      values_(*this, *primal_, flow_, sweeps_, loops_, overwritten_, refusal),
      adjoints_(*this, *primal_, activity_, flow_, r_),
      extra_of_(primal_->insts.size(), no_value),
      entries_(primal_->blocks.size()) {}

// --- the forward sweep ---

bool Reverse::forward_sweep() {
  ir::Function& out = f_.function();
  for (BlockId b : flow_.cfg.order) sweeps_.forward_blocks[b] = f_.new_block();
  sweeps_.current_forward = 0;
  f_.set_block(0);
  f_.add_parameter(0, builtin_.nothing);  // #self#
  std::vector<Operand> parameters;
  for (std::uint32_t id : primal_->blocks[0].parameters) {
    parameters.push_back(f_.add_parameter(0, primal_->insts[id].type));
    values_.set_copy(id, parameters.back(), primal_->insts[id].type);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::uint32_t id = primal_->blocks[0].parameters[i];
    if (activity_.active_parameters[i] && tangents_.has_shadow(primal_->insts[id].type))
      set_shadow(id, f_.add_parameter(0, tangents_.shadow(primal_->insts[id].type)));
  }
  if (loops_.on_stack()) {
    loops_.stack_in_forward = f_.add_parameter(0, builtin_.tape);
    loops_.begin_stack(f_.add_parameter(0, builtin_.int64));
  }
  loops_.make_row_slots();
  copy_handlers(sweeps_.forward_blocks, out);
  forward_parameters();
  for (BlockId b : flow_.cfg.order)
    if (!forward_block(b)) return false;
  return true;
}

// Of all blocks but the first, before any is filled: edges may go to blocks that are not emitted yet.
void Reverse::forward_parameters() {
  std::vector<std::size_t> edges_into(primal_->blocks.size(), 0);  // two of one branch count twice
  for (BlockId b : flow_.cfg.order)
    for (const ir::Edge& edge : primal_->blocks[b].edges) ++edges_into[edge.target];
  for (BlockId b : flow_.cfg.order) {
    if (b == 0) continue;
    const BlockId made = sweeps_.forward_blocks[b];
    sweeps_.current_forward = b;
    f_.set_block(made);
    f_.function().blocks[made].is_loop_header = primal_->blocks[b].is_loop_header;
    for (std::uint32_t id : primal_->blocks[b].parameters)
      values_.set_copy(id, f_.add_parameter(made, primal_->insts[id].type), primal_->insts[id].type);
    for (std::uint32_t id : primal_->blocks[b].parameters)
      if (activity_.varied[id] && tangents_.has_shadow(primal_->insts[id].type))
        set_shadow(id, f_.add_parameter(made, tangents_.shadow(primal_->insts[id].type)));
    bool is_handler = !primal_->blocks[b].insts.empty() && primal_->insts[primal_->blocks[b].insts[0]].op == Op::caught;
    if (!loops_.is_header(b) && !is_handler && edges_into[b] > 1)
      entries_[b].from = values_.remember(f_.add_parameter(made, builtin_.int64), builtin_.int64);
  }
}

bool Reverse::forward_block(BlockId b) {
  sweeps_.current_forward = b;
  f_.set_block(sweeps_.forward_blocks[b]);
  for (std::uint32_t l = 0; l < loops_.all().size(); ++l)
    if (flow_.forest.loops[l].header == b) loops_.begin_header(l, values_);
  for (std::uint32_t id : primal_->blocks[b].insts)
    if (!forward_inst(id)) return false;
  for (std::uint32_t l = 0; l < loops_.all().size(); ++l)
    if (loops_[l].preheader == b) loops_.open(l, values_);
  forward_terminator(b);
  return true;
}

// What the handler does with what it caught.
CaughtUse Reverse::use_of_caught(Operand box) const {
  std::vector<bool> caught(primal_->insts.size(), false);
  for (const ir::Block& block : primal_->blocks)
    for (std::uint32_t id : block.insts)
      caught[id] = primal_->insts[id].op == Op::cell_get && primal_->insts[id].operands[0] == box;
  return use_of_exception(*primal_, runtime_, std::move(caught));
}

// Where the block that may raise does so, control goes to `edge`, as from here (exceptions.cpp).
void Reverse::raise_to(const ir::Block& block, const ir::Edge& edge) {
  const BlockId here = f_.block();
  const BlockId handler = f_.new_block();
  f_.function().blocks[sweeps_.forward_blocks[block.edges[1].target]].handler = handler;
  f_.set_block(handler);
  const Operand exception = f_.emit(Op::caught, {}, builtin_.any);
  const Operand box = primal_->insts[primal_->blocks[block.edges[0].target].insts[0]].operands[0];
  // A refusal is the derivative's, not the program's: whoever caught it would take another way than the function does.
  call_library(f_, KnownName::check_refused, {exception}, nullptr);
  const CaughtUse use = use_of_caught(box);
  if (use == CaughtUse::content) {  // what a call raised brings no cotangents back
    const ir::Inst& raising = primal_->insts[block.terminator];
    call_library(f_, KnownName::check_caught, {exception, f_.constant(runtime_.from_string(described(raising)))},
                 nullptr);
  }
  // What nobody looks at is not kept: the derivative of this code would have to follow what the exception holds.
  const Operand kept = use == CaughtUse::none ? f_.constant(runtime_.nothing()) : exception;
  f_.emit(Op::cell_set, {values_.forward(box), kept}, builtin_.nothing);
  f_.emit(Op::caught_end, {}, builtin_.nothing);
  f_.jump(edge.target, edge.arguments);
  f_.set_block(here);
}

void Reverse::forward_terminator(BlockId b) {
  const ir::Block& block = primal_->blocks[b];
  const ir::Inst& terminator = primal_->insts[block.terminator];
  f_.set_span(terminator.span);
  f_.set_scope(terminator.scope);
  if (terminator.op == Op::ret) return;  // the caller goes on from here
  std::vector<ir::Edge> edges_out;
  for (const ir::Edge& edge : block.edges) {
    ir::Edge made{sweeps_.forward_blocks[edge.target], {}};
    for (Operand o : edge.arguments) made.arguments.push_back(values_.forward(o));
    const ir::Block& target = primal_->blocks[edge.target];
    for (std::size_t i = 0; i < edge.arguments.size(); ++i)
      if (values_.has_shadow(target.parameters[i]))
        made.arguments.push_back(shadow_as(edge.arguments[i], primal_->insts[target.parameters[i]].type));
    if (Entry& entry = entries_[edge.target]; entry.from != no_value)
      made.arguments.push_back(int_constant(f_, entry.edges++));
    edges_out.push_back(std::move(made));
  }
  switch (terminator.op) {
    case Op::jump:
      f_.jump(edges_out[0].target, edges_out[0].arguments);
      break;
    case Op::branch:
      if (terminator.aux == branch_on_raise) raise_to(block, edges_out[0]);
      f_.branch(values_.forward(terminator.operands[0]), edges_out[0].target, edges_out[1].target,
                edges_out[0].arguments, edges_out[1].arguments);
      break;
    case Op::switch_int:
      f_.switch_int(values_.forward(terminator.operands[0]), edges_out);
      break;
    case Op::throw_:
      f_.raise(values_.forward(terminator.operands[0]));
      break;
    default:
      f_.unreachable();
      break;
  }
}

// --- the reverse sweep ---

void Reverse::leave_reverse_block() {
  adjoints_.leave_block();
  values_.leave_block();
}

// Between two reverse blocks: cotangents of the target's parameters go to the edge's arguments.
void Reverse::reverse_edge(BlockId source, std::size_t edge,
                           const std::vector<std::vector<Operand>>& parameter_cotangents, BlockId target) {
  const ir::Edge& passed = primal_->blocks[source].edges[edge];
  const std::vector<std::uint32_t>& parameters = primal_->blocks[target].parameters;
  for (std::size_t i = 0; i < passed.arguments.size(); ++i)
    if (!parameter_cotangents[i].empty())
      adjoints_.add_as(passed.arguments[i], primal_->insts[parameters[i]].type, parameter_cotangents[i]);
  leave_reverse_block();
  r_.jump(reverse_of(source));
}

// Of the branch that decides by which of two edges `b` is entered, when it is known in the reverse sweep anyway.
Operand Reverse::condition_of(BlockId b) {
  const Flow::Decision decision = flow_.decision(*primal_, b);
  if (decision.branch == ir::no_block) return {};
  return values_.recomputed_in_reverse(primal_->insts[primal_->blocks[decision.branch].terminator].operands[0]);
}

bool Reverse::reverse_block(BlockId b) {
  const ir::Block& block = primal_->blocks[b];
  sweeps_.current_reverse = b;
  r_.set_block(reverse_of(b));
  for (std::uint32_t l = 0; l < loops_.all().size(); ++l)
    if (loops_[l].preheader == b) loops_.close(l, values_);
  for (auto at = block.insts.rbegin(); at != block.insts.rend(); ++at)
    if (!backward_inst(*at)) return false;
  if (!refusal_.reason.empty()) return false;
  if (b == 0) return true;  // the caller finishes

  std::vector<std::vector<Operand>> parameter_cotangents;
  for (std::uint32_t id : block.parameters)
    parameter_cotangents.push_back(activity_.varied[id] ? adjoints_.take(id) : std::vector<Operand>());

  // Edges into this block, in the order in which the forward sweep numbered them.
  const std::vector<Flow::Incoming>& incoming = flow_.incoming[b];
  if (incoming.size() == 1) {
    reverse_edge(incoming[0].source, incoming[0].edge, parameter_cotangents, b);
    return true;
  }
  std::vector<ir::Edge> ways;
  for (std::size_t i = 0; i < incoming.size(); ++i) ways.push_back({r_.new_block(), {}});
  if (loops_.is_header(b)) {
    const LoopState& loop = loops_[flow_.loop_of(b)];
    Operand row = values_.row_in_reverse(flow_.loop_of(b));
    const Operand before = loops_.row_before(flow_.loop_of(b), row);
    r_.emit(Op::slot_set, {before}, nullptr, static_cast<std::uintptr_t>(loop.row_slot));
    const Operand start = loops_.row_at_start(flow_.loop_of(b), values_);
    Operand first = r_.emit(Op::eq_int, {before, start}, builtin_.boolean);
    std::size_t entering = incoming[0].source == loop.latch ? 1 : 0;
    leave_reverse_block();
    r_.branch(first, ways[entering].target, ways[1 - entering].target);
  } else if (const Operand condition = condition_of(b); condition.valid()) {
    const std::size_t of_true = flow_.decision(*primal_, b).edge_of_first;
    leave_reverse_block();
    r_.branch(condition, ways[of_true].target, ways[1 - of_true].target);
  } else {
    Operand from = values_.in_reverse(entries_[b].from);
    leave_reverse_block();
    if (ways.size() == 2) {
      Operand first = r_.emit(Op::eq_int, {from, int_constant(r_, 0)}, builtin_.boolean);
      r_.branch(first, ways[0].target, ways[1].target);
    } else {
      r_.switch_int(from, ways);
    }
  }
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    r_.set_block(ways[i].target);
    reverse_edge(incoming[i].source, incoming[i].edge, parameter_cotangents, b);
  }
  return true;
}

// `start`: the block from which the sweep starts; seeds are already in the adjoints of the result.
bool Reverse::reverse_sweep(BlockId start) {
  const std::vector<BlockId>& order = flow_.cfg.order;
  for (auto at = order.rbegin(); at != order.rend(); ++at)
    if (flow_.reaches_exit[*at]) sweeps_.reverse_blocks[*at] = r_.new_block();
  r_.set_block(start);
  leave_reverse_block();
  r_.jump(reverse_of(flow_.exit));
  for (auto at = order.rbegin(); at != order.rend(); ++at)
    if (flow_.reaches_exit[*at] && !reverse_block(*at)) return false;
  for (const LoopState& loop : loops_.all())
    if (loop.latch != ir::no_block && flow_.reaches_exit[loop.latch])
      r_.function().blocks[reverse_of(loop.latch)].is_loop_header = true;
  return true;
}

// --- the function, or the two halves ---

Operand Reverse::primal_result() const {
  if (flow_.exit == ir::no_block) return {};
  return primal_->insts[primal_->blocks[flow_.exit].terminator].operands[0];
}

std::vector<Operand> Reverse::argument_cotangents() {
  std::vector<Operand> result;
  const std::vector<std::uint32_t>& parameters = primal_->blocks[0].parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Type* type = primal_->insts[parameters[i]].type;
    if (!activity_.active_parameters[i] || !tangents_.has_cotangent(type)) {
      result.push_back(r_.constant(runtime_.nothing()));
      continue;
    }
    result.push_back(pack(r_, type, adjoints_.of(parameters[i])));
  }
  return result;
}

bool Reverse::combined(Derivative& result) {
  if (!forward_sweep()) return false;
  ir::Function& out = *sweeps_.forward_half;
  if (flow_.exit == ir::no_block) {         // always raises: the forward sweep is all
    f_.add_parameter(0, builtin_.float64);  // callers pass a seed all the same
    values_.insert_pending();
    finish_slots(out);
    result.combined = std::move(sweeps_.forward_half);
    return true;
  }
  sweeps_.current_forward = flow_.exit;
  f_.set_block(sweeps_.forward_blocks[flow_.exit]);
  const Type* result_type = type_of(primal_result());
  if (!tangents_.is_float(result_type) && !tangents_.is_dynamic(result_type)) {
    refusal_ = {primal_->span, primal_->method,
                "the gradient needs a function that returns one floating-point number; this one returns " +
                    to_string(result_type),
                true};
    return false;
  }
  Operand seed = f_.add_parameter(0, tangents_.cotangent(result_type));
  ValueIndex value = values_.remember(values_.forward(primal_result()), result_type);
  loops_.make_reverse_row_slots();
  BlockId start = r_.new_block();
  f_.jump(start);
  r_.set_block(start);
  adjoints_.add(primal_result(), 0, seed);
  if (!reverse_sweep(start)) return false;
  std::vector<Operand> cotangents = argument_cotangents();
  std::vector<const Type*> types;
  for (Operand o : cotangents) types.push_back(out.type_of(o, runtime_.types));
  Operand tuple = r_.emit(Op::tuple, cotangents, runtime_.types.tuple(types));
  const Type* pair[] = {result_type, out.inst(tuple).type};
  out.return_type = runtime_.types.tuple(pair);
  r_.ret(r_.emit(Op::tuple, {values_.in_reverse(value), tuple}, out.return_type));
  values_.insert_pending();
  finish_slots(out, start);
  values_.drop_unread();
  result.combined = std::move(sweeps_.forward_half);
  return true;
}

bool Reverse::halves(Derivative& result) {
  if (!forward_sweep()) return false;
  ir::Function& front = *sweeps_.forward_half;
  ir::Function& back = *sweeps_.reverse_half;
  BlockId entry = r_.new_block();
  r_.set_block(entry);
  r_.add_parameter(entry, builtin_.nothing);
  Operand held_record = r_.add_parameter(entry, loops_.on_stack() ? builtin_.int64 : builtin_.any);
  const Type* type = primal_->return_type;
  Operand seed = r_.add_parameter(entry, tangents_.cotangent(type) ? tangents_.cotangent(type) : builtin_.nothing);
  if (loops_.on_stack()) loops_.stack_in_reverse = r_.add_parameter(entry, builtin_.tape);
  const Type* parts[] = {type, shadow_of_returned(), loops_.on_stack() ? builtin_.int64 : builtin_.any};
  front.return_type = runtime_.types.tuple(parts);
  if (flow_.exit == ir::no_block) {
    values_.insert_pending();
    finish_slots(front);
    r_.unreachable();
  } else {
    sweeps_.current_forward = flow_.exit;
    f_.set_block(sweeps_.forward_blocks[flow_.exit]);
    loops_.make_reverse_row_slots();
    BlockId start = r_.new_block();
    r_.set_block(start);
    if (varied(primal_result()) && tangents_.has_cotangent(type)) {
      std::vector<Operand> leaves;
      unpack(r_, type, seed, leaves);
      adjoints_.add_as(primal_result(), type, leaves);
    }
    if (!reverse_sweep(start)) return false;
    std::vector<Operand> cotangents = argument_cotangents();
    std::vector<const Type*> types;
    for (Operand o : cotangents) types.push_back(back.type_of(o, runtime_.types));
    back.return_type = runtime_.types.tuple(types);
    r_.ret(r_.emit(Op::tuple, cotangents, back.return_type));

    const Record record = loops_.on_stack() ? write_frame() : write_record();
    Operand shadow_value = shadow_of_result();
    f_.ret(f_.emit(Op::tuple, {values_.forward(primal_result()), shadow_value, record.made}, front.return_type));
    r_.set_block(entry);
    if (loops_.on_stack())
      read_frame(record, held_record);
    else
      read_record(record, held_record);
    r_.jump(start);
    values_.insert_pending();
    clear_unmade(record);
    finish_slots(front);
    finish_slots(back, start);
    values_.drop_unread();
  }
  overwritten_.report(primal_result(), result);
  result.forward = std::move(sweeps_.forward_half);
  result.reverse = std::move(sweeps_.reverse_half);
  return true;
}

const Type* Reverse::shadow_of_returned() const {
  const Type* shadow = tangents_.shadow(primal_->return_type);
  return shadow ? shadow : builtin_.nothing;
}

Operand Reverse::shadow_of_result() {
  const Operand result = primal_result();
  const Type* held = type_of(result);
  if (varied(result) || !tangents_.has_shadow(held) || env_.memory().of(*primal_).result != 0)
    return shadow_as(result, primal_->return_type);
  // Memory of its own that carries nothing yet: the caller may store into it.
  const Type* made = tangents_.shadow(held);
  return as_shadow(f_, zero_shadow_of(values_.forward(result), made), made, shadow_of_returned());
}

bool Reverse::run(Derivative& result) {
  if (sweeps_.split()) {
    if (!halves(result)) return false;
    ir::check_after(*result.forward, "reverse mode (forward half)", ir::Typing::partial);
    ir::check_after(*result.reverse, "reverse mode (reverse half)", ir::Typing::partial);
  } else {
    if (!combined(result)) return false;
    ir::check_after(*result.combined, "reverse mode (gradient)", ir::Typing::partial);
  }
  result.active = activity_.active_parameters;
  result.edges = std::move(edges_);
  result.layouts = loops_.layouts();
  for (const auto& [id, halves] : halves_of_)
    if (halves.stack) result.layouts.push_back(halves.stack);
  result.saved = values_.report();
  return true;
}

namespace {

bool run(Environment& env, const ir::Function& primal, const std::vector<char>& active, Derivative& result,
         Refusal& refusal, Reverse::Form form, const std::shared_ptr<TapeLayout>& stack = nullptr) {
  std::optional<AnalysedPrimal> known = analysed(env, primal, active, false, refusal);
  return known && Reverse(env, std::move(*known), form, stack, refusal).run(result);
}

}  // namespace

bool gradient_function(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                       Derivative& result, Refusal& refusal) {
  return run(env, primal, active, result, refusal, Reverse::Form::combined);
}

bool split_derivative(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                      const std::shared_ptr<TapeLayout>& stack, Derivative& result, Refusal& refusal) {
  return run(env, primal, active, result, refusal, Reverse::Form::halves, stack);
}

}  // namespace slope::diff
