// The fixpoint of one body: sparse conditional constant propagation (Wegman, Zadeck 1991) over the lattice.
//
// A block is evaluated once control is known to reach it. An instruction is evaluated again only when something it uses
// has changed. Pending blocks are taken in reverse postorder, so that the inputs of a loop are known before the loop.
// Values only grow (apply_value joins with the old value), and one that grows too often is widened. So the loop ends.
//
// What a branch proves. When the condition is a conditional, the blocks that it leads to carry a refinement of the
// subject. (Edges to joins were split before, so each such block belongs to one edge.) A use sees the nearest
// refinement on the way up the dominator tree. The way up takes the only executable predecessor where there is one, so
// that `if x === nothing; error(…) end` refines what follows. That is optimistic: when another edge turns out to be
// executable, the users of refined values are evaluated again.
#include <bit>

#include "lang/infer/engine.hpp"
#include "lang/ir/build.hpp"
#include "lang/support/tuning.hpp"

namespace slope::infer {

namespace {

constexpr std::uint8_t grow_before_widening =
    tuning::value_growth;  // of a value; thrice as often before it is given up
constexpr std::uint8_t parameter_grow_before_widening = tuning::parameter_growth;
constexpr std::uint32_t result_grow_before_widening = tuning::result_growth;

class Solver {
 public:
  Solver(Inference::Impl& impl, Frame& frame) : impl_(impl), lattice_(impl.lattice), frame_(frame) {}

  void run() {
    if (!frame_.blocks[0].executable) enter();
    for (std::size_t word = 0; word < frame_.pending.size();) {
      if (!frame_.pending[word]) {
        ++word;
        continue;
      }
      int bit = std::countr_zero(frame_.pending[word]);
      frame_.pending[word] &= frame_.pending[word] - 1;
      process(frame_.cfg.order[word * 64 + static_cast<std::size_t>(bit)]);
      word = 0;
    }
  }

 private:
  void enter() {
    const std::vector<std::uint32_t>& parameters = frame_.fn->blocks[0].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      frame_.values[parameters[i]] = i < frame_.arguments.size() ? frame_.arguments[i] : lattice_.any();
    reach(ir::no_block, 0);
  }

  void pend(ir::BlockId b) {
    std::uint32_t position = frame_.cfg.position[b];
    frame_.pending[position / 64] |= std::uint64_t{1} << (position % 64);
  }

  void reach(ir::BlockId from, ir::BlockId to) {
    Frame::BlockState& state = frame_.blocks[to];
    if (!state.executable) {
      state.executable = true;
      // A handler is entered from anywhere in its region, as the graph has it, though most of that may never raise.
      state.sole_predecessor = state.is_handler ? Frame::many : from;
      pend(to);
    } else if (state.sole_predecessor != from && state.sole_predecessor != Frame::many) {
      state.sole_predecessor = Frame::many;
      for (std::uint32_t id : frame_.refined_insts) impl_.mark_users(frame_, id);
    }
  }

  void process(ir::BlockId b) {
    check_stop(impl_.ctx);
    const ir::Block& block = frame_.fn->blocks[b];
    if (block.handler != ir::no_block && block.is_loop_header) reach(b, block.handler);  // a loop may be interrupted
    for (std::uint32_t id : block.insts) {
      if (frame_.dirty[id]) {
        frame_.dirty[id] = 0;
        apply(id, block.handler, b);
      }
      if (frame_.values[id]->is_bottom()) return;  // control does not get past it (so far)
    }
    if (block.terminator == ~0u || !frame_.dirty[block.terminator]) return;
    frame_.dirty[block.terminator] = 0;
    terminate(b, block);
  }

  void apply(std::uint32_t id, ir::BlockId handler, ir::BlockId b) {
    Evaluation found = impl_.evaluate(frame_, id);
    frame_.effects[id] |= static_cast<std::uint8_t>(found.effects);
    // Not only what the effects say: calls overflow the stack, allocations exhaust the heap.
    if (handler != ir::no_block) {
      ir::Op op = frame_.fn->insts[id].op;
      bool is_call = op == ir::Op::call || op == ir::Op::call_splat || op == ir::Op::invoke || op == ir::Op::native;
      if (is_call || (found.effects & (effect_throws | effect_allocates))) reach(b, handler);
    }
    apply_value(id, found.value, grow_before_widening);
  }

  void apply_value(std::uint32_t id, Known value, std::uint8_t patience) {
    Known old = frame_.values[id];
    if (value == old) return;
    // A test that was sure while less was known of its subject now says something about it instead.
    bool now_says = value->is_conditional() && old->is_constant() && old->type == impl_.builtin.boolean;
    if (!old->is_bottom() && !now_says) {
      value = lattice_.join(old, value);
      if (value == old) return;
      std::uint8_t growth = ++frame_.growth[id];
      if (growth > patience) {
        impl_.tell_limit(frame_.target, Limit::value_growth, patience);
        value = lattice_.join(old, lattice_.widen(value, growth <= 2 * patience ? 1 : growth <= 3 * patience ? 2 : 3));
      }
      if (value == old) return;
    }
    frame_.values[id] = value;
    impl_.mark_users(frame_, id);
  }

  void take_edge(ir::BlockId b, const ir::Block& block, std::size_t index) {
    const ir::Edge& edge = block.edges[index];
    frame_.blocks[b].executable_edges |= std::uint64_t{1} << (index < 63 ? index : 63);
    const std::vector<std::uint32_t>& parameters = frame_.fn->blocks[edge.target].parameters;
    for (std::size_t i = 0; i < parameters.size() && i < edge.arguments.size(); ++i)
      apply_value(parameters[i], lattice_.without_condition(impl_.view(frame_, edge.arguments[i], b)),
                  parameter_grow_before_widening);
    reach(b, edge.target);
  }

  void refine(ir::BlockId target, std::uint32_t subject, Known known) {
    Frame::BlockState& state = frame_.blocks[target];
    if (state.subject == subject && state.refinement == known) return;
    std::uint32_t before = state.subject;
    state.subject = subject;
    state.refinement = known;
    if (before != ~0u && before != subject) impl_.mark_users(frame_, before);
    if (subject == ~0u) return;
    if (!frame_.refined[subject]) {
      frame_.refined[subject] = 1;
      frame_.refined_insts.push_back(subject);
    }
    impl_.mark_users(frame_, subject);
  }

  void terminate(ir::BlockId b, const ir::Block& block) {
    const ir::Inst& inst = frame_.fn->insts[block.terminator];
    switch (inst.op) {
      case ir::Op::branch:
        branch(b, block, inst);
        break;
      case ir::Op::switch_int: {
        Known value = impl_.view(frame_, inst.operands[0], b);
        if (value->is_bottom()) return;
        if (value->is_constant() && value->value.type == impl_.builtin.int64) {
          std::uint64_t last = block.edges.size() - 1;
          std::uint64_t k = static_cast<std::uint64_t>(value->value.bits);
          take_edge(b, block, k < last ? k : last);
          return;
        }
        for (std::size_t i = 0; i < block.edges.size(); ++i) take_edge(b, block, i);
        break;
      }
      case ir::Op::ret: {
        Known value = impl_.view(frame_, inst.operands[0], b);
        if (value->is_conditional()) value = returned_condition(value);
        Known joined = lattice_.join(frame_.result, value);
        if (joined != frame_.result) {
          if (!frame_.result->is_bottom() && ++frame_.result_growth > result_grow_before_widening) {
            impl_.tell_limit(frame_.target, Limit::result_growth, result_grow_before_widening);
            joined = lattice_.join(frame_.result, lattice_.widen(joined, frame_.result_growth > 8 ? 3 : 1));
          }
          frame_.result = joined;
        }
        break;
      }
      case ir::Op::throw_:
        frame_.effects[block.terminator] |= effect_throws;
        if (block.handler != ir::no_block) reach(b, block.handler);
        break;
      case ir::Op::unreachable:
        break;
      default:
        for (std::size_t i = 0; i < block.edges.size(); ++i) take_edge(b, block, i);
    }
  }

  void branch(ir::BlockId b, const ir::Block& block, const ir::Inst& inst) {
    Known condition = impl_.view(frame_, inst.operands[0], b);
    if (condition->is_bottom()) return;
    if (condition->type != impl_.builtin.boolean) {
      frame_.effects[block.terminator] |= effect_throws;
      if (block.handler != ir::no_block) reach(b, block.handler);
      condition = lattice_.narrow(condition, impl_.builtin.boolean);
      if (condition->is_bottom()) return;
    }
    if (condition->is_constant()) {
      std::size_t taken = condition->value.bits & 1 ? 0 : 1;
      // The other edge may have been taken on the strength of less: both stay executable then, which is true to
      // `values`.
      take_edge(b, block, taken);
      return;
    }
    bool says = condition->is_conditional();
    for (std::size_t i = 0; i < 2; ++i) {
      if (block.edges[0].target != block.edges[1].target)
        refine(block.edges[i].target, says ? condition->subject : ~0u, says ? condition->fields[i] : nullptr);
      take_edge(b, block, i);
    }
  }

  // What the caller learns of its argument from our result.
  Known returned_condition(Known value) {
    const std::vector<std::uint32_t>& parameters = frame_.fn->blocks[0].parameters;
    std::size_t plain = parameters.size() - (frame_.method && frame_.method->is_vararg ? 1 : 0);
    for (std::size_t i = 0; i < plain; ++i)
      if (parameters[i] == value->subject)
        return lattice_.conditional(static_cast<std::uint32_t>(i), value->fields[0], value->fields[1]);
    return lattice_.boolean();
  }

  Inference::Impl& impl_;
  LatticeTable& lattice_;
  Frame& frame_;
};

}  // namespace

void Inference::Impl::solve(Frame& frame) { Solver(*this, frame).run(); }

void Inference::Impl::mark(Frame& frame, std::uint32_t inst) {
  frame.dirty[inst] = 1;
  ir::BlockId b = frame.fn->insts[inst].block;
  if (!frame.blocks[b].executable) return;
  std::uint32_t position = frame.cfg.position[b];
  frame.pending[position / 64] |= std::uint64_t{1} << (position % 64);
}

void Inference::Impl::mark_users(Frame& frame, std::uint32_t inst) {
  for (std::uint32_t i = frame.user_start[inst]; i < frame.user_start[inst + 1]; ++i) mark(frame, frame.users[i]);
}

void Inference::Impl::mark_calls_in_cycle(Frame& frame) {
  for (std::uint32_t id = 0; id < frame.call_index.size(); ++id)
    if (frame.call_index[id] != ~0u && frame.calls[frame.call_index[id]].in_cycle) mark(frame, id);
}

ir::BlockId Inference::Impl::refining_block(const Frame& frame, std::uint32_t inst, ir::BlockId block) const {
  ir::BlockId home = frame.fn->insts[inst].block;
  bool raised =
      false;  // we came from a handler to a block of its region: control may have left before the refinement stands
  for (ir::BlockId b = block; b != home && b != ir::no_block;) {
    const Frame::BlockState& state = frame.blocks[b];
    if (state.subject == inst && !raised) return b;
    ir::BlockId above = state.sole_predecessor < Frame::many ? state.sole_predecessor : frame.cfg.idom[b];
    raised = above != ir::no_block && state.is_handler && frame.fn->blocks[above].handler == b;
    b = above;
  }
  return ir::no_block;
}

Known Inference::Impl::view(Frame& frame, ir::Operand operand, ir::BlockId block) {
  std::uint32_t index = operand.index();
  if (operand.is_constant()) {
    Known& known = frame.constants[index];
    if (!known) {
      Value v = frame.fn->constants[index];
      known = v.defined() ? lattice.constant(v) : lattice.bottom();
    }
    return known;
  }
  if (!frame.refined[index]) return frame.values[index];
  ir::BlockId refined = refining_block(frame, index, block);
  return refined == ir::no_block ? frame.values[index] : frame.blocks[refined].refinement;
}

void split_critical_edges(ir::Function& function) {
  std::vector<std::uint32_t> incoming(function.blocks.size());
  for (const ir::Block& block : function.blocks)
    for (const ir::Edge& edge : block.edges) ++incoming[edge.target];
  if (!function.blocks.empty()) ++incoming[0];  // from the caller
  std::size_t count = function.blocks.size();
  for (ir::BlockId b = 0; b < count; ++b) {
    if (function.blocks[b].terminator == ~0u) continue;
    ir::Inst branch = function.insts[function.blocks[b].terminator];
    if (branch.op != ir::Op::branch) continue;
    for (std::size_t e = 0; e < function.blocks[b].edges.size(); ++e) {
      if (incoming[function.blocks[b].edges[e].target] < 2) continue;
      ir::BlockId middle = static_cast<ir::BlockId>(function.blocks.size());
      ir::Inst jump;
      jump.op = ir::Op::jump;
      jump.span = branch.span;
      jump.scope = branch.scope;
      jump.block = middle;
      ir::Block made;
      made.terminator = static_cast<std::uint32_t>(function.insts.size());
      made.handler = function.blocks[b].handler;
      made.edges.push_back(std::move(function.blocks[b].edges[e]));
      function.insts.push_back(std::move(jump));
      function.blocks.push_back(std::move(made));
      function.blocks[b].edges[e] = ir::Edge{middle, {}};
    }
  }
}

}  // namespace slope::infer
