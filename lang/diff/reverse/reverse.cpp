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
// What reverse steps need of the forward sweep is in saved.cpp, cotangents are in adjoint.cpp.
//
// Invariants:
//   - At each point of the reverse sweep memory is as it was right after the operation being reversed: the stores that
//     came later have been undone.
//   - The shadow of an object has the object's identity: aliases share it. It is zero where nothing was accumulated.
//   - A cotangent slot is zero whenever its value is not live. Definitions clear it, because in a loop they run again.
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
#include "lang/diff/operations.hpp"
#include "lang/ir/passes/checked.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

Reverse::Reverse(Environment& env, std::unique_ptr<ir::Function> primal, Refusal& refusal)
    : Transform(env, std::move(primal), refusal) {}

bool Reverse::analyse(const std::vector<char>& active) {
  if (!normalise(*primal_, runtime_, refusal_, false)) return false;
  if (!analyse_activity(*primal_, tangents_, env_.memory(), env_.world(), active, &edges, activity_, refusal_))
    return false;
  active_parameters = activity_.active_parameters;
  cfg_ = ir::build_cfg(*primal_);
  forest_ = ir::find_loops(*primal_, cfg_);
  std::size_t blocks = primal_->blocks.size();
  std::size_t insts = primal_->insts.size();
  for (BlockId b : cfg_.order)
    if (primal_->insts[primal_->blocks[b].terminator].op == Op::ret) exit_ = b;
  reaches_exit_.assign(blocks, false);
  std::vector<BlockId> work;
  if (exit_ != ir::no_block) {
    work.push_back(exit_);
    reaches_exit_[exit_] = true;
  }
  while (!work.empty()) {
    BlockId b = work.back();
    work.pop_back();
    for (BlockId p : cfg_.predecessors[b]) {
      if (!cfg_.reachable(p) || reaches_exit_[p]) continue;
      reaches_exit_[p] = true;
      work.push_back(p);
    }
  }
  value_of_.assign(insts, no_value);
  shadow_of_.assign(insts, no_value);
  extra_of_.assign(insts, no_value);
  from_of_.assign(blocks, no_value);
  forward_blocks_.assign(blocks, ir::no_block);
  reverse_blocks_.assign(blocks, ir::no_block);
  find_local_values();
  find_stores();
  find_loop_facts();
  return true;
}

bool Reverse::forward_sweep() {
  ir::Function& out = *forward_out_;
  describe(out, "∇");
  f_ = std::make_unique<ir::Builder>(out);
  for (BlockId b : cfg_.order) forward_blocks_[b] = f_->new_block();
  current_forward_ = 0;
  f_->set_block(0);
  f_->add_parameter(0, builtin_.nothing);  // #self#
  for (std::uint32_t id : primal_->blocks[0].parameters) {
    Operand parameter = f_->add_parameter(0, primal_->insts[id].type);
    parameters_.push_back(parameter);
    value_of_[id] = remember(parameter, primal_->insts[id].type, id);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::uint32_t id = primal_->blocks[0].parameters[i];
    if (active_parameters[i] && tangents_.has_shadow(primal_->insts[id].type))
      set_shadow(id, f_->add_parameter(0, tangents_.shadow(primal_->insts[id].type)));
  }
  for (LoopState& state : loops_) {
    state.forward_row_slot = static_cast<int>(out.slots.size());
    out.slots.push_back(runtime_.symbol("#row"));
    out.slot_types.push_back(builtin_.int64);
    f_->emit(Op::slot_set, {int_constant(*f_, 0)}, nullptr, static_cast<std::uintptr_t>(state.forward_row_slot));
  }

  for (BlockId b : cfg_.order)
    if (BlockId handler = primal_->blocks[b].handler; handler != ir::no_block)
      out.blocks[forward_blocks_[b]].handler = forward_blocks_[handler];
  std::vector<std::size_t> edges_into(primal_->blocks.size(), 0);  // two of one branch count twice
  for (BlockId b : cfg_.order)
    for (const ir::Edge& edge : primal_->blocks[b].edges) ++edges_into[edge.target];
  // Parameters first: edges may go to blocks that are not emitted yet.
  for (BlockId b : cfg_.order) {
    if (b == 0) continue;
    current_forward_ = b;
    f_->set_block(forward_blocks_[b]);
    out.blocks[forward_blocks_[b]].is_loop_header = primal_->blocks[b].is_loop_header;
    for (std::uint32_t id : primal_->blocks[b].parameters)
      value_of_[id] =
          remember(f_->add_parameter(forward_blocks_[b], primal_->insts[id].type), primal_->insts[id].type, id);
    for (std::uint32_t id : primal_->blocks[b].parameters)
      if (activity_.varied[id] && tangents_.has_shadow(primal_->insts[id].type))
        set_shadow(id, f_->add_parameter(forward_blocks_[b], tangents_.shadow(primal_->insts[id].type)));
    std::uint32_t l = forest_.loop_of[b];
    bool is_header = l != no_loop && forest_.loops[l].header == b;
    bool is_handler = !primal_->blocks[b].insts.empty() && primal_->insts[primal_->blocks[b].insts[0]].op == Op::caught;
    if (!is_header && !is_handler && edges_into[b] > 1)
      from_of_[b] = remember(f_->add_parameter(forward_blocks_[b], builtin_.int64), builtin_.int64);
  }

  std::vector<std::int64_t> next_edge(primal_->blocks.size(), 0);
  for (BlockId b : cfg_.order) {
    current_forward_ = b;
    f_->set_block(forward_blocks_[b]);
    const ir::Block& block = primal_->blocks[b];
    for (std::uint32_t l = 0; l < loops_.size(); ++l)
      if (forest_.loops[l].header == b) begin_header(l);
    for (std::uint32_t id : block.insts)
      if (!forward_inst(id)) return false;
    for (std::uint32_t l = 0; l < loops_.size(); ++l)
      if (loops_[l].preheader == b) open_tapes(l);
    const ir::Inst terminator = primal_->insts[block.terminator];
    f_->set_span(terminator.span);
    f_->set_scope(terminator.scope);
    if (terminator.op == Op::ret) continue;  // the caller goes on from here
    std::vector<ir::Edge> edges_out;
    for (const ir::Edge& edge : block.edges) {
      ir::Edge made{forward_blocks_[edge.target], {}};
      for (Operand o : edge.arguments) made.arguments.push_back(forward(o));
      const ir::Block& target = primal_->blocks[edge.target];
      for (std::size_t i = 0; i < edge.arguments.size(); ++i)
        if (shadow_of_[target.parameters[i]] != no_value)
          made.arguments.push_back(shadow_as(edge.arguments[i], primal_->insts[target.parameters[i]].type));
      if (from_of_[edge.target] != no_value) made.arguments.push_back(int_constant(*f_, next_edge[edge.target]++));
      edges_out.push_back(std::move(made));
    }
    switch (terminator.op) {
      case Op::jump:
        f_->jump(edges_out[0].target, edges_out[0].arguments);
        break;
      case Op::branch:
        f_->branch(forward(terminator.operands[0]), edges_out[0].target, edges_out[1].target, edges_out[0].arguments,
                   edges_out[1].arguments);
        break;
      case Op::switch_int:
        f_->switch_int(forward(terminator.operands[0]), edges_out);
        break;
      case Op::throw_:
        f_->raise(forward(terminator.operands[0]));
        break;
      default:
        f_->unreachable();
        break;
    }
  }
  return true;
}

void Reverse::leave_reverse_block(BlockId) {
  flush_adjoints();
  reverse_cache_.clear();
  recomputed_.clear();
  row_cache_.clear();
}

// Between two reverse blocks: cotangents of the target's parameters go to the edge's arguments.
void Reverse::reverse_edge(BlockId source, std::size_t edge,
                           const std::vector<std::vector<Operand>>& parameter_cotangents, BlockId target) {
  const ir::Edge& passed = primal_->blocks[source].edges[edge];
  const std::vector<std::uint32_t>& parameters = primal_->blocks[target].parameters;
  for (std::size_t i = 0; i < passed.arguments.size(); ++i)
    if (!parameter_cotangents[i].empty())
      give_cotangent(passed.arguments[i], primal_->insts[parameters[i]].type, parameter_cotangents[i]);
  leave_reverse_block(source);
  r_->jump(reverse_of(source));
}

bool Reverse::reverse_block(BlockId b) {
  const ir::Block& block = primal_->blocks[b];
  r_->set_block(reverse_of(b));
  for (std::uint32_t l = 0; l < loops_.size(); ++l) {
    if (loops_[l].preheader != b || loops_[l].outermost != l) continue;
    for (LoopState& inner : loops_)
      if (inner.outermost == l) r_->emit(Op::tape_close, {in_reverse(inner.tape)});
  }
  for (auto at = block.insts.rbegin(); at != block.insts.rend(); ++at)
    if (!backward_inst(*at)) return false;
  if (!refusal_.reason.empty()) return false;

  std::vector<std::vector<Operand>> parameter_cotangents;
  if (b != 0)
    for (std::uint32_t id : block.parameters)
      parameter_cotangents.push_back(activity_.varied[id] ? take_cotangent(id) : std::vector<Operand>());

  // Edges into this block, in the order in which the forward sweep numbered them.
  std::vector<std::pair<BlockId, std::size_t>> incoming;
  for (BlockId p : cfg_.order)
    for (std::size_t e = 0; e < primal_->blocks[p].edges.size(); ++e)
      if (primal_->blocks[p].edges[e].target == b) incoming.push_back({p, e});

  if (b == 0) return true;  // the caller finishes
  if (incoming.size() == 1) {
    reverse_edge(incoming[0].first, incoming[0].second, parameter_cotangents, b);
    return true;
  }
  std::vector<ir::Edge> ways;
  for (std::size_t i = 0; i < incoming.size(); ++i) ways.push_back({r_->new_block(), {}});
  std::uint32_t l = forest_.loop_of[b];
  if (l != no_loop && forest_.loops[l].header == b) {
    Operand row = row_in_reverse(l);
    r_->emit(Op::slot_set, {row}, nullptr, static_cast<std::uintptr_t>(loops_[l].row_slot));
    Operand start = loops_[l].start_row == no_value ? int_constant(*r_, 0) : in_reverse(loops_[l].start_row);
    Operand first = r_->emit(Op::eq_int, {row, start}, builtin_.boolean);
    std::size_t entering = incoming[0].first == loops_[l].latch ? 1 : 0;
    leave_reverse_block(b);
    r_->branch(first, ways[entering].target, ways[1 - entering].target);
  } else {
    Operand from = in_reverse(from_of_[b]);
    leave_reverse_block(b);
    if (ways.size() == 2) {
      Operand first = r_->emit(Op::eq_int, {from, int_constant(*r_, 0)}, builtin_.boolean);
      r_->branch(first, ways[0].target, ways[1].target);
    } else {
      r_->switch_int(from, ways);
    }
  }
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    r_->set_block(ways[i].target);
    reverse_edge(incoming[i].first, incoming[i].second, parameter_cotangents, b);
  }
  return true;
}

// `exit`: the reverse function's block from which the sweep starts; seeds are already in the adjoints of the result.
bool Reverse::reverse_sweep(BlockId start) {
  for (auto at = cfg_.order.rbegin(); at != cfg_.order.rend(); ++at)
    if (reaches_exit_[*at]) reverse_blocks_[*at] = r_->new_block();
  r_->set_block(start);
  leave_reverse_block(exit_);
  r_->jump(reverse_of(exit_));
  for (auto at = cfg_.order.rbegin(); at != cfg_.order.rend(); ++at) {
    if (!reaches_exit_[*at]) continue;
    current_reverse_ = *at;
    if (!reverse_block(*at)) return false;
  }
  for (const ir::Loop& loop : forest_.loops) {
    std::uint32_t l = static_cast<std::uint32_t>(&loop - forest_.loops.data());
    if (loops_[l].latch != ir::no_block && reaches_exit_[loops_[l].latch])
      r_->function().blocks[reverse_of(loops_[l].latch)].is_loop_header = true;
  }
  return true;
}

std::vector<Operand> Reverse::argument_cotangents() {
  std::vector<Operand> result;
  const std::vector<std::uint32_t>& parameters = primal_->blocks[0].parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Type* type = primal_->insts[parameters[i]].type;
    if (!active_parameters[i] || !tangents_.has_cotangent(type)) {
      result.push_back(r_->constant(runtime_.nothing()));
      continue;
    }
    result.push_back(pack(*r_, type, cotangent_of(parameters[i])));
  }
  return result;
}

std::unique_ptr<ir::Function> Reverse::combined() {
  forward_out_ = std::make_unique<ir::Function>();
  if (!forward_sweep()) return nullptr;
  ir::Function& out = *forward_out_;
  if (exit_ == ir::no_block) {               // always raises: the forward sweep is all
    f_->add_parameter(0, builtin_.float64);  // callers pass a seed all the same
    insert_pending(out);
    finish_slots(out, 0, *f_);
    return std::move(forward_out_);
  }
  current_forward_ = exit_;
  f_->set_block(forward_blocks_[exit_]);
  Operand primal_result = primal_->insts[primal_->blocks[exit_].terminator].operands[0];
  const Type* result_type = type_of(primal_result);
  if (!tangents_.is_float(result_type) && !tangents_.is_dynamic(result_type)) {
    refusal_ = {primal_->span, primal_->method,
                "the gradient needs a function that returns one floating-point number; this one returns " +
                    to_string(result_type)};
    return nullptr;
  }
  Operand seed = f_->add_parameter(0, tangents_.cotangent(result_type));
  ValueIndex value = remember(forward(primal_result), result_type);
  r_ = std::make_unique<ir::Builder>(out);
  for (LoopState& state : loops_) state.row_slot = state.forward_row_slot;
  BlockId start = r_->new_block();
  f_->jump(start);
  r_->set_block(start);
  add_cotangent(primal_result, 0, seed);
  if (!reverse_sweep(start)) return nullptr;
  std::vector<Operand> cotangents = argument_cotangents();
  std::vector<const Type*> types;
  for (Operand o : cotangents) types.push_back(out.type_of(o, runtime_.types));
  Operand tuple = r_->emit(Op::tuple, cotangents, runtime_.types.tuple(types));
  const Type* pair[] = {result_type, out.inst(tuple).type};
  out.return_type = runtime_.types.tuple(pair);
  r_->ret(r_->emit(Op::tuple, {in_reverse(value), tuple}, out.return_type));
  insert_pending(out);
  finish_slots(out, start, *r_);
  drop_unread_columns();
  return std::move(forward_out_);
}

bool Reverse::may_be_unmade(const ForwardValue& value) const {
  const DataType* d = as_data(value.type);
  // A stand-in takes the place of what can have one: the record's type is concrete then, and is made without a look-up.
  if ((d && d->is_isbits) || tangents_.stand_ins.of(value.type).defined()) return false;
  for (BlockId b = 0; b < forward_blocks_.size(); ++b)
    if (forward_blocks_[b] == value.block) return !cfg_.dominates(b, exit_);
  return true;
}

bool Reverse::split(Derivative& result) {
  split_ = true;
  forward_out_ = std::make_unique<ir::Function>();
  if (!forward_sweep()) return false;
  reverse_out_ = std::make_unique<ir::Function>();
  ir::Function& back = *reverse_out_;
  describe(back, "∇", " (reverse)");
  r_ = std::make_unique<ir::Builder>(back);
  BlockId entry = r_->new_block();
  r_->set_block(entry);
  r_->add_parameter(entry, builtin_.nothing);
  Operand record = r_->add_parameter(entry, builtin_.any);
  const Type* primal_type = primal_->return_type;
  const Type* shadow_type = tangents_.shadow(primal_type) ? tangents_.shadow(primal_type) : builtin_.nothing;
  const Type* seed_type = tangents_.cotangent(primal_type) ? tangents_.cotangent(primal_type) : builtin_.nothing;
  Operand seed = r_->add_parameter(entry, seed_type);
  const Type* parts[] = {primal_type, shadow_type, builtin_.any};
  forward_out_->return_type = runtime_.types.tuple(parts);
  if (exit_ == ir::no_block) {
    insert_pending(*forward_out_);
    ir::Builder at(*forward_out_);
    finish_slots(*forward_out_, 0, at);
    r_->unreachable();
    result.forward = std::move(forward_out_);
    result.reverse = std::move(reverse_out_);
    return true;
  }
  current_forward_ = exit_;
  f_->set_block(forward_blocks_[exit_]);
  for (LoopState& state : loops_) state.row_slot = new_slot(builtin_.int64, false);
  BlockId start = r_->new_block();
  r_->set_block(start);
  Operand primal_result = primal_->insts[primal_->blocks[exit_].terminator].operands[0];
  if (varied(primal_result) && tangents_.has_cotangent(primal_type)) {
    std::vector<Operand> leaves;
    unpack(*r_, primal_type, seed, leaves);
    give_cotangent(primal_result, primal_type, leaves);
  }
  if (!reverse_sweep(start)) return false;
  std::vector<Operand> cotangents = argument_cotangents();
  std::vector<const Type*> types;
  for (Operand o : cotangents) types.push_back(back.type_of(o, runtime_.types));
  back.return_type = runtime_.types.tuple(types);
  r_->ret(r_->emit(Op::tuple, cotangents, back.return_type));

  // The record: what the reverse half asked for, and how many rows each loop made.
  std::vector<Operand> kept;
  std::vector<std::uintptr_t> unmade;
  std::vector<const Type*> kept_types;
  std::vector<const Type*> held_types;  // before boxing
  for (ValueIndex index : recorded_) {
    // A value that is not made on every path goes through a slot of the forward half. A reference that was not made
    // can't stand in a tuple: `nothing` stands for it. What is known only at run time goes into a box, so that the
    // record's type is concrete: it is made and read without a look-up, and that of a recursive function is finite.
    const ForwardValue& value = values_[index];
    const Type* type = may_be_unmade(value) ? builtin_.any : value.type;
    auto slot = static_cast<std::uintptr_t>(forward_out_->slots.size());
    forward_out_->slots.push_back(runtime_.symbol("#kept"));
    forward_out_->slot_types.push_back(type);
    after(value, Op::slot_set, {value.forward}, slot);
    if (type != value.type) unmade.push_back(slot);
    Operand held = f_->emit(Op::slot_get, {}, type, slot);
    const bool box = !is_concrete(type);
    kept.push_back(box ? boxed(*f_, held) : held);
    kept_types.push_back(box ? tangents_.dynamic() : type);
    held_types.push_back(type);
  }
  for (const LoopState& state : loops_) {
    kept.push_back(f_->emit(Op::slot_get, {}, builtin_.int64, static_cast<std::uintptr_t>(state.forward_row_slot)));
    kept_types.push_back(builtin_.int64);
  }
  const Type* record_type = runtime_.types.tuple(kept_types);
  Operand record_value = f_->emit(Op::tuple, kept, record_type);
  Operand shadow_value;
  if (const Type* held = type_of(primal_result);
      !varied(primal_result) && tangents_.has_shadow(held) && env_.memory().of(*primal_).result == 0) {
    // Memory of its own that carries nothing yet: the caller may store into it.
    const Type* made = tangents_.shadow(held);
    const KnownName zero_of = made == tangents_.dynamic() ? KnownName::zero_dynamic_shadow : KnownName::zero_shadow;
    shadow_value = as_shadow(*f_, call_library(*f_, zero_of, {forward(primal_result)}, made), made, shadow_type);
  } else {
    shadow_value = shadow_as(primal_result, primal_type);
  }
  f_->ret(f_->emit(Op::tuple, {forward(primal_result), shadow_value, record_value}, forward_out_->return_type));

  r_->set_block(entry);
  Operand typed_record = r_->emit(Op::refine, {record}, record_type);
  std::size_t field = 0;
  for (ValueIndex index : recorded_) {
    Operand value = r_->emit(Op::field_at, {typed_record}, kept_types[field], field);
    if (held_types[field] != kept_types[field]) value = r_->emit(Op::field_at, {value}, held_types[field], 0);
    BlockId rest = ir::no_block;
    if (const Type* type = values_[index].type; held_types[field] != type) {
      rest = r_->new_block();
      BlockId made = r_->new_block();
      Operand is_made = r_->emit(Op::isa, {value, r_->constant(runtime_.from_type(type))}, builtin_.boolean);
      r_->branch(is_made, made, rest);
      r_->set_block(made);
      value = r_->emit(Op::refine, {value}, type);
    }
    r_->emit(Op::slot_set, {value}, nullptr, static_cast<std::uintptr_t>(values_[index].slot));
    if (rest != ir::no_block) {
      r_->jump(rest);
      r_->set_block(rest);
    }
    ++field;
  }
  for (const LoopState& state : loops_) {
    Operand rows = r_->emit(Op::field_at, {typed_record}, builtin_.int64, field++);
    r_->emit(Op::slot_set, {rows}, nullptr, static_cast<std::uintptr_t>(state.row_slot));
  }
  r_->jump(start);
  insert_pending(*forward_out_);
  std::vector<std::uint32_t> first;
  for (std::uintptr_t slot : unmade) {
    ir::Inst inst;
    inst.op = Op::slot_set;
    inst.aux = slot;
    inst.block = 0;
    inst.operands = {f_->constant(runtime_.nothing())};
    first.push_back(static_cast<std::uint32_t>(forward_out_->insts.size()));
    forward_out_->insts.push_back(std::move(inst));
  }
  std::vector<std::uint32_t>& entry_insts = forward_out_->blocks[0].insts;
  entry_insts.insert(entry_insts.begin(), first.begin(), first.end());
  // Adjoint slots and sums of cotangents are the reverse function's.
  std::vector<int> adjoints;
  std::vector<std::uint32_t> sums;
  adjoints.swap(adjoint_slot_list_);
  sums.swap(sums_);
  ir::Builder at(*forward_out_);
  finish_slots(*forward_out_, 0, at);
  adjoint_slot_list_.swap(adjoints);
  sums_.swap(sums);
  finish_slots(back, start, *r_);
  drop_unread_columns();
  result.forward = std::move(forward_out_);
  result.reverse = std::move(reverse_out_);
  return true;
}

namespace {

bool run(Environment& env, const ir::Function& primal, const std::vector<char>& active, Derivative& result,
         Refusal& refusal, bool as_halves) {
  Reverse reverse(env, primal.clone(), refusal);
  if (!reverse.analyse(active)) return false;
  if (as_halves) {
    if (!reverse.split(result)) return false;
    reverse.tell_recalled(result);
    ir::check_after(*result.forward, "reverse mode (forward half)", ir::Typing::partial);
    ir::check_after(*result.reverse, "reverse mode (reverse half)", ir::Typing::partial);
  } else {
    result.combined = reverse.combined();
    if (!result.combined) return false;
    ir::check_after(*result.combined, "reverse mode (gradient)", ir::Typing::partial);
  }
  result.active = reverse.active_parameters;
  result.edges = std::move(reverse.edges);
  result.layouts = std::move(reverse.layouts);
  result.saved = reverse.saved();
  return true;
}

}  // namespace

bool gradient_function(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                       Derivative& result, Refusal& refusal) {
  return run(env, primal, active, result, refusal, false);
}

bool split_derivative(Environment& env, const ir::Function& primal, const std::vector<char>& active, Derivative& result,
                      Refusal& refusal) {
  return run(env, primal, active, result, refusal, true);
}

}  // namespace slope::diff
