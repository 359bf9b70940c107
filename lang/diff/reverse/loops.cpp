// What is known of the primal's loops (counters, bounds of the number of rows), and the tapes that they open.
#include "lang/diff/reverse/loops.hpp"

#include <algorithm>
#include <unordered_set>

#include "lang/diff/reverse/saved.hpp"
#include "lang/ir/passes/passes.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

LoopTapes::LoopTapes(TangentCode& code, const ir::Function& primal, const Flow& flow, Sweeps& sweeps,
                     std::shared_ptr<TapeLayout> stack)
    : code_(code),
      primal_(primal),
      flow_(flow),
      sweeps_(sweeps),
      runtime_(code.runtime()),
      builtin_(runtime_.types.builtin()),
      loops_(flow.forest.loops.size()),
      stack_(std::move(stack)) {
  if (stack_) layouts_.push_back(stack_);
  for (std::uint32_t l = 0; l < loops_.size(); ++l) {
    const ir::Loop& loop = flow.forest.loops[l];
    LoopState& state = loops_[l];
    state.outermost = l;
    while (flow.forest.loops[state.outermost].parent != no_loop)
      state.outermost = flow.forest.loops[state.outermost].parent;
    for (BlockId p : flow.cfg.predecessors[loop.header]) {
      if (!flow.cfg.reachable(p)) continue;
      bool inside = std::find(loop.blocks.begin(), loop.blocks.end(), p) != loop.blocks.end();
      (inside ? state.latch : state.preheader) = p;
    }
    if (!stack_) layouts_.push_back(std::make_shared<TapeLayout>());
    state.layout = layouts_.back().get();
    if (stack_) state.link = add_column(l, builtin_.int64);
    // The row of a stack is no number of the iteration.
    if (!stack_ && state.latch != ir::no_block && state.preheader != ir::no_block) find_counter(l);
  }
}

bool LoopTapes::is_header(BlockId block) const {
  const std::uint32_t l = flow_.loop_of(block);
  return l != no_loop && flow_.forest.loops[l].header == block;
}

// A parameter that starts at a constant and grows by 1: the row within this entry, shifted.
void LoopTapes::find_counter(std::uint32_t l) {
  LoopState& state = loops_[l];
  const ir::Block& header = primal_.blocks[flow_.forest.loops[l].header];
  auto edge_to_header = [&](BlockId from) -> const ir::Edge& {
    for (const ir::Edge& edge : primal_.blocks[from].edges)
      if (edge.target == flow_.forest.loops[l].header) return edge;
    return primal_.blocks[from].edges[0];
  };
  const ir::Edge& entry = edge_to_header(state.preheader);
  const ir::Edge& back = edge_to_header(state.latch);
  auto is_int = [&](Operand o, std::int64_t n) {
    return o.is_constant() && primal_.constant_value(o).identical(runtime_.from_int(n));
  };
  for (std::size_t i = 0; i < header.parameters.size(); ++i) {
    if (!entry.arguments[i].is_constant() || !back.arguments[i].is_inst()) continue;
    Value start = primal_.constant_value(entry.arguments[i]);
    if (start.type != builtin_.int64 || start.bits < 0) continue;
    const ir::Inst& next = primal_.inst(back.arguments[i]);
    if (next.op == Op::add_int && next.operands[0] == Operand::inst(header.parameters[i]) &&
        is_int(next.operands[1], 1))
      state.counter = header.parameters[i], state.counter_start = start.bits;
  }
}

namespace {

// `is_last`: the counter reaches the bound, as in a range's loop.
bool find_bound(const ir::Function& primal, const ir::Cfg& cfg, const ir::Loop& loop, std::uint32_t counter,
                Operand& bound, bool& is_last) {
  // The header's own test of the counter against something made before the loop.
  const ir::Block& header = primal.blocks[loop.header];
  if (primal.insts[header.terminator].op != Op::branch) return false;
  Operand condition = primal.insts[header.terminator].operands[0];
  if (!condition.is_inst()) return false;
  const ir::Inst& test = primal.inst(condition);
  auto outside = [&](Operand o) {
    if (o.is_constant()) return true;
    BlockId made = primal.inst(o).block;
    return made != loop.header && cfg.dominates(made, loop.header) &&
           std::find(loop.blocks.begin(), loop.blocks.end(), made) == loop.blocks.end();
  };
  Operand c = Operand::inst(counter);
  if ((test.op == Op::slt_int || test.op == Op::ult_int) && test.operands[0] == c && outside(test.operands[1])) {
    bound = test.operands[1];
    return true;
  }
  if (test.op == Op::sle_int && test.operands[1] == c && outside(test.operands[0])) {  // n <= k: done
    bound = test.operands[0];
    return true;
  }
  if (test.op == Op::slt_int && test.operands[1] == c && outside(test.operands[0])) {  // last < k: done
    bound = test.operands[0];
    is_last = true;
    return true;
  }
  return false;
}

}  // namespace

// Does it end at its header's test alone? One that is left in the middle may have a bound that it never comes near.
bool LoopTapes::ends_at_header(const ir::Loop& loop) const {
  for (BlockId b : loop.blocks) {
    if (b == loop.header) continue;
    for (BlockId next : flow_.cfg.successors[b])
      if (flow_.reaches_exit[next] && std::find(loop.blocks.begin(), loop.blocks.end(), next) == loop.blocks.end())
        return false;
  }
  return true;
}

void LoopTapes::make_row_slots() {
  ir::Builder& f = sweeps_.f;
  for (LoopState& state : loops_) {
    state.forward_row_slot = new_slot(f, runtime_.symbol("#row"), builtin_.int64);
    f.emit(Op::slot_set, {code_.int_constant(f, stack_ ? -1 : 0)}, nullptr,
           static_cast<std::uintptr_t>(state.forward_row_slot));
  }
}

void LoopTapes::make_reverse_row_slots() {
  for (LoopState& state : loops_)
    state.row_slot =
        sweeps_.split() ? new_slot(sweeps_.r, runtime_.symbol("#saved"), builtin_.int64) : state.forward_row_slot;
}

void LoopTapes::open(std::uint32_t l, SavedValues& values) {
  ir::Builder& f = sweeps_.f;
  LoopState& state = loops_[l];
  f.set_span(primal_.insts[primal_.blocks[state.preheader].terminator].span);
  if (state.outermost == l) {
    if (stack_) return;
    for (LoopState& inner : loops_) {
      if (inner.outermost != l) continue;
      Operand tape = f.emit(Op::tape_open, {code_.int_constant(f, 0)}, builtin_.tape,
                            reinterpret_cast<std::uintptr_t>(inner.layout));
      inner.tape = values.remember(tape, builtin_.tape);
    }
  } else {
    Operand rows = f.emit(Op::slot_get, {}, builtin_.int64, static_cast<std::uintptr_t>(state.forward_row_slot));
    state.start_row = values.remember(rows, builtin_.int64);
  }
  Operand bound;
  bool is_last = false;
  if (state.counter != ~0u && ends_at_header(flow_.forest.loops[l]) &&
      find_bound(primal_, flow_.cfg, flow_.forest.loops[l], state.counter, bound, is_last)) {
    // The header runs once more than the body, and at least once.
    auto constant = [&](std::int64_t n) { return code_.int_constant(f, n); };
    Operand empty = f.emit(Op::slt_int, {values.forward(bound), constant(0)}, builtin_.boolean);
    Operand trips = f.emit(Op::select, {empty, constant(0), values.forward(bound)}, builtin_.int64);
    if (is_last) {  // one more, if any; no overflow: so many rows there are not
      constexpr std::int64_t most = std::int64_t{1} << 62;
      Operand many = f.emit(Op::slt_int, {constant(most), trips}, builtin_.boolean);
      trips = f.emit(Op::select, {many, constant(most), trips}, builtin_.int64);
      trips = f.emit(Op::add_int, {trips, constant(1)}, builtin_.int64);
    }
    Operand rows = f.emit(Op::add_int, {trips, constant(1)}, builtin_.int64);
    if (state.start_row != no_value)
      rows = f.emit(Op::add_int, {rows, values[state.start_row].forward}, builtin_.int64);
    f.emit(Op::tape_reserve, {values[state.tape].forward, rows}, builtin_.nothing);
    state.known_rows = rows;
  }
}

void LoopTapes::close(std::uint32_t l, SavedValues& values) {
  if (stack_ || loops_[l].outermost != l) return;
  for (const LoopState& inner : loops_)
    if (inner.outermost == l) sweeps_.r.emit(Op::tape_close, {values.in_reverse(inner.tape)});
}

void LoopTapes::begin_header(std::uint32_t l, const SavedValues& values) {
  ir::Builder& f = sweeps_.f;
  LoopState& state = loops_[l];
  auto slot = static_cast<std::uintptr_t>(state.forward_row_slot);
  if (stack_) {
    // Code that is inserted at the header's start goes after the first store into a slot (SavedValues::insert_pending).
    const Operand before = f.emit(Op::slot_get, {}, builtin_.int64, slot);
    state.row = push_row();
    f.emit(Op::tape_store, {stack_in_forward, state.row, before}, nullptr,
           tape_aux(stack_.get(), static_cast<std::uintptr_t>(state.link)));
    f.emit(Op::slot_set, {state.row}, nullptr, slot);
    return;
  }
  state.row = f.emit(Op::slot_get, {}, builtin_.int64, slot);
  Operand next = f.emit(Op::add_int, {state.row, code_.int_constant(f, 1)}, builtin_.int64);
  if (!state.known_rows.valid()) f.emit(Op::tape_reserve, {values[state.tape].forward, next}, builtin_.nothing);
  f.emit(Op::slot_set, {next}, nullptr, slot);
}

// --- the stack ---

void LoopTapes::begin_stack(Operand first_free) {
  free_row_slot_ = new_slot(sweeps_.f, runtime_.symbol("#free_row"), builtin_.int64);
  set_free_row(first_free);
}

Operand LoopTapes::free_row() {
  return sweeps_.f.emit(Op::slot_get, {}, builtin_.int64, static_cast<std::uintptr_t>(free_row_slot_));
}

void LoopTapes::set_free_row(Operand row) {
  sweeps_.f.emit(Op::slot_set, {row}, nullptr, static_cast<std::uintptr_t>(free_row_slot_));
}

Operand LoopTapes::push_row() {
  ir::Builder& f = sweeps_.f;
  const Operand row = free_row();
  const Operand next = f.emit(Op::add_int, {row, code_.int_constant(f, 1)}, builtin_.int64);
  f.emit(Op::tape_reserve, {stack_in_forward, next}, builtin_.nothing);
  set_free_row(next);
  return row;
}

Operand LoopTapes::row_before(std::uint32_t loop, Operand row) {
  if (!stack_) return row;
  return sweeps_.r.emit(Op::tape_load, {stack_in_reverse, row}, builtin_.int64,
                        tape_aux(stack_.get(), static_cast<std::uintptr_t>(loops_[loop].link)));
}

Operand LoopTapes::row_at_start(std::uint32_t loop, SavedValues& values) {
  if (loops_[loop].start_row != no_value) return values.in_reverse(loops_[loop].start_row);
  return code_.int_constant(sweeps_.r, stack_ ? -1 : 0);
}

int LoopTapes::add_column(std::uint32_t kind, const Type* type) {
  if (stack_) {
    std::vector<int>& known = stack_columns_[type];
    std::size_t& used = stack_columns_of_kind_[{kind, type}];
    if (used == known.size()) {
      known.push_back(static_cast<int>(stack_->columns.size()));
      stack_->columns.push_back(type);
    }
    return known[used++];
  }
  std::vector<const Type*>& columns = loops_[kind].layout->columns;
  columns.push_back(type);
  return static_cast<int>(columns.size()) - 1;
}

std::vector<ValueIndex> LoopTapes::drop_unread() {
  ir::Function& out = *sweeps_.forward_half;
  std::unordered_set<const TapeLayout*> unread;
  for (const auto& layout : layouts_) unread.insert(layout.get());
  for (const ir::Block& block : out.blocks)
    for (std::uint32_t id : block.insts)
      if (const ir::Inst& inst = out.insts[id]; inst.op == Op::tape_load || inst.op == Op::tape_store)
        unread.erase(tape_layout_of(inst.aux));
  const Value none = code_.types().stand_ins.of(builtin_.tape);
  std::vector<Operand> replacement(out.insts.size());
  std::unordered_set<std::uint32_t> dropped;
  for (const ir::Block& block : out.blocks)
    for (std::uint32_t id : block.insts)
      if (const ir::Inst& inst = out.insts[id];
          inst.op == Op::tape_open && unread.contains(reinterpret_cast<const TapeLayout*>(inst.aux)))
        dropped.insert(id);
  if (dropped.empty()) return {};
  // Parameters of blocks that get nothing but these, or nothing.
  std::unordered_map<std::uint32_t, std::vector<Operand>> brought;
  for (const ir::Block& block : out.blocks)
    for (const ir::Edge& edge : block.edges)
      for (std::size_t i = 0; i < edge.arguments.size(); ++i)
        if (std::uint32_t parameter = out.blocks[edge.target].parameters[i];
            out.insts[parameter].type == builtin_.tape) {
          brought[parameter].push_back(edge.arguments[i]);
          dropped.insert(parameter);
        }
  auto is_dropped = [&](Operand o) {
    return o.is_constant() || dropped.contains(o.index()) || out.inst(o).op == Op::undef;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [parameter, operands] : brought)
      if (dropped.contains(parameter) && !std::ranges::all_of(operands, is_dropped))
        changed = dropped.erase(parameter) != 0;
  }
  for (ir::Block& block : out.blocks)
    std::erase_if(block.insts, [&](std::uint32_t id) {
      const ir::Inst& inst = out.insts[id];
      if (inst.op == Op::tape_reserve || inst.op == Op::tape_close) return is_dropped(inst.operands[0]);
      if (inst.op != Op::tape_open || !dropped.contains(id)) return false;
      replacement[id] = out.constant(none);
      return true;
    });
  ir::replace_all_uses(out, replacement);
  std::vector<ValueIndex> tapes;
  for (const LoopState& loop : loops_)
    if (loop.tape != no_value && unread.contains(loop.layout)) tapes.push_back(loop.tape);
  return tapes;
}

}  // namespace slope::diff
