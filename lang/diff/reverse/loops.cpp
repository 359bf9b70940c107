// What is known of the primal's loops (counters, bounds of the number of rows), and the tapes that they open.
#include <algorithm>

#include "lang/diff/reverse/reverse.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

void Reverse::find_loop_facts() {
  loops_.resize(forest_.loops.size());
  for (std::uint32_t l = 0; l < loops_.size(); ++l) {
    const ir::Loop& loop = forest_.loops[l];
    LoopState& state = loops_[l];
    state.outermost = l;
    while (forest_.loops[state.outermost].parent != no_loop) state.outermost = forest_.loops[state.outermost].parent;
    for (BlockId p : cfg_.predecessors[loop.header]) {
      if (!cfg_.reachable(p)) continue;
      bool inside = std::find(loop.blocks.begin(), loop.blocks.end(), p) != loop.blocks.end();
      (inside ? state.latch : state.preheader) = p;
    }
    layouts.push_back(std::make_shared<TapeLayout>());
    state.layout = layouts.back().get();
    if (state.latch == ir::no_block || state.preheader == ir::no_block) continue;

    // A parameter that starts at a constant and grows by 1: the row within this entry, shifted.
    const ir::Block& header = primal_->blocks[loop.header];
    auto edge_to_header = [&](BlockId from) -> const ir::Edge& {
      for (const ir::Edge& edge : primal_->blocks[from].edges)
        if (edge.target == loop.header) return edge;
      return primal_->blocks[from].edges[0];
    };
    const ir::Edge& entry = edge_to_header(state.preheader);
    const ir::Edge& back = edge_to_header(state.latch);
    auto is_int = [&](Operand o, std::int64_t n) {
      return o.is_constant() && primal_->constant_value(o).identical(runtime_.from_int(n));
    };
    for (std::size_t i = 0; i < header.parameters.size(); ++i) {
      if (!entry.arguments[i].is_constant() || !back.arguments[i].is_inst()) continue;
      Value start = primal_->constant_value(entry.arguments[i]);
      if (start.type != builtin_.int64 || start.bits < 0) continue;
      const ir::Inst& next = primal_->inst(back.arguments[i]);
      if (next.op == Op::add_int && next.operands[0] == Operand::inst(header.parameters[i]) &&
          is_int(next.operands[1], 1))
        state.counter = header.parameters[i], state.counter_start = start.bits;
    }
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
bool Reverse::ends_at_header(const ir::Loop& loop) const {
  for (BlockId b : loop.blocks) {
    if (b == loop.header) continue;
    for (BlockId next : cfg_.successors[b])
      if (reaches_exit_[next] && std::find(loop.blocks.begin(), loop.blocks.end(), next) == loop.blocks.end())
        return false;
  }
  return true;
}

// In the block before the loop: its tape (before the outermost loop, for all inside), and room for the rows to come.
void Reverse::open_tapes(std::uint32_t l) {
  LoopState& state = loops_[l];
  f_->set_span(primal_->insts[primal_->blocks[state.preheader].terminator].span);
  if (state.outermost == l) {
    for (std::uint32_t inner = 0; inner < loops_.size(); ++inner) {
      if (loops_[inner].outermost != l) continue;
      Operand tape = f_->emit(Op::tape_open, {int_constant(*f_, 0)}, builtin_.tape,
                              reinterpret_cast<std::uintptr_t>(loops_[inner].layout));
      loops_[inner].tape = remember(tape, builtin_.tape);
    }
  } else {
    Operand rows = f_->emit(Op::slot_get, {}, builtin_.int64, static_cast<std::uintptr_t>(state.forward_row_slot));
    state.start_row = remember(rows, builtin_.int64);
  }
  Operand bound;
  bool is_last = false;
  if (state.counter != ~0u && ends_at_header(forest_.loops[l]) &&
      find_bound(*primal_, cfg_, forest_.loops[l], state.counter, bound, is_last)) {
    // The header runs once more than the body, and at least once.
    Operand empty = f_->emit(Op::slt_int, {forward(bound), int_constant(*f_, 0)}, builtin_.boolean);
    Operand trips = f_->emit(Op::select, {empty, int_constant(*f_, 0), forward(bound)}, builtin_.int64);
    if (is_last) {  // one more, if any; no overflow: so many rows there are not
      constexpr std::int64_t most = std::int64_t{1} << 62;
      Operand many = f_->emit(Op::slt_int, {int_constant(*f_, most), trips}, builtin_.boolean);
      trips = f_->emit(Op::select, {many, int_constant(*f_, most), trips}, builtin_.int64);
      trips = f_->emit(Op::add_int, {trips, int_constant(*f_, 1)}, builtin_.int64);
    }
    Operand rows = f_->emit(Op::add_int, {trips, int_constant(*f_, 1)}, builtin_.int64);
    if (state.start_row != no_value)
      rows = f_->emit(Op::add_int, {rows, values_[state.start_row].forward}, builtin_.int64);
    f_->emit(Op::tape_reserve, {values_[state.tape].forward, rows}, builtin_.nothing);
    state.known_rows = rows;
  }
}

void Reverse::begin_header(std::uint32_t l) {
  LoopState& state = loops_[l];
  auto slot = static_cast<std::uintptr_t>(state.forward_row_slot);
  state.row = f_->emit(Op::slot_get, {}, builtin_.int64, slot);
  Operand next = f_->emit(Op::add_int, {state.row, int_constant(*f_, 1)}, builtin_.int64);
  if (!state.known_rows.valid()) f_->emit(Op::tape_reserve, {values_[state.tape].forward, next}, builtin_.nothing);
  f_->emit(Op::slot_set, {next}, nullptr, slot);
}

}  // namespace slope::diff
