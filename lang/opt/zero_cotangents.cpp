// Loops of a reverse sweep whose cotangent is an exact zero. The reverse sweep of `best = min(best, d)` gives the
// cotangent to one operand and zero to the other, and then runs through the loop that computed d:
//
//   c = select(best < d, 0, s)
//   for i …                x̄[i] = x̄[i] + c * p[i]
//
// Of a thousand such loops in a minimum one has something to add. Here the others are not entered:
//
//   branch (best < d)      after the loop, or into it
//
// Goal: a loop that, given the zero, stores nothing but what was there, and leaves nothing that was not known before
// it.
// Invariants: only selects that derivative code has marked count (ir::select_of_cotangent); for them zero times
// anything is zero, infinite numbers too (docs/derivatives.md). In the loop each value is found to be zero, or another
// value that was there before (its root: a + zero is a), or neither. Assumptions about parameters of the loop's blocks
// are optimistic and given up until they hold.
// Steps: (1) of each loop with one entry, which is a jump, and one exit, the values in it; (2) whether each
// instruction only reads, or stores what it has loaded from the same place; (3) what is used after the loop: zero, a
// root from outside, or a counter that left the loop by `counter == bound`; (4) the branch.
#include <algorithm>
#include <optional>

#include "lang/ir/cfg.hpp"
#include "lang/ir/passes/cotangents.hpp"
#include "lang/opt/opt.hpp"

namespace slope::opt {

using ir::BlockId;
using ir::Op;
using ir::Operand;

namespace {

bool is_zero_constant(const ir::Function& function, Operand o) {
  if (!o.is_constant()) return false;
  const Value v = function.constant_value(o);
  const DataType* type = as_data(v.type);
  return type && type->is_isbits && type->fields.empty() && v.bits == 0;
}

bool is_marked(const ir::Inst& inst) { return inst.op == Op::select && inst.aux == ir::select_of_cotangent; }

// A condition, and on which side of it cotangents are zero.
struct Case {
  Operand condition;
  bool when_true = false;
  friend bool operator==(const Case&, const Case&) = default;
};

// Of a select that chooses between zero and something else.
std::optional<Case> case_of(const ir::Function& function, const ir::Inst& inst) {
  if (inst.op != Op::select || !inst.operands[0].is_inst()) return {};
  const bool first = is_zero_constant(function, inst.operands[1]),
             second = is_zero_constant(function, inst.operands[2]);
  if (first == second) return {};
  return Case{inst.operands[0], first};
}

class ZeroLoop {
 public:
  ZeroLoop(ir::Function& function, const ir::Cfg& cfg, const ir::Loop& loop, Case given)
      : function_(function), cfg_(cfg), loop_(loop), given_(given), inside_(function.blocks.size()) {
    for (BlockId b : loop.blocks) inside_[b] = true;
    for (BlockId b : cfg.order)
      if (inside_[b]) order_.push_back(b);
  }

  bool skip() {
    if (!find_entry() || !find_exit()) return false;
    find_values();
    if (!uses_zero_ || !stores_nothing_new()) return false;
    std::vector<Operand> arguments;
    for (Operand o : exit().arguments) arguments.push_back(after_none(o));
    const std::vector<std::uint32_t> outside = used_outside();
    if (!outside.empty() && cfg_.predecessors[exit().target].size() != 1) return false;
    std::vector<Operand> more;
    for (std::uint32_t id : outside) more.push_back(after_none(Operand::inst(id)));
    auto is_unknown = [](Operand o) { return !o.valid(); };
    if (std::ranges::any_of(arguments, is_unknown) || std::ranges::any_of(more, is_unknown)) return false;
    for (std::size_t i = 0; i < outside.size(); ++i) {
      hand_on(outside[i]);
      arguments.push_back(more[i]);
    }
    branch(std::move(arguments));
    return true;
  }

 private:
  // What is known of a value when the cotangent is zero.
  struct Known {
    enum Kind : std::uint8_t { anything, zero, equal } kind = anything;  // anything: not looked at yet
    Operand root;                                                        // equal: to which value
    friend bool operator==(const Known&, const Known&) = default;
  };

  ir::Edge& exit() { return function_.blocks[exit_block_].edges[exit_edge_]; }
  bool is_inside(Operand o) const { return o.is_inst() && inside_[function_.inst(o).block]; }

  bool find_entry() {
    before_ = ir::no_block;
    for (BlockId p : cfg_.predecessors[loop_.header]) {
      if (inside_[p] || !cfg_.reachable(p)) continue;
      if (before_ != ir::no_block) return false;
      before_ = p;
    }
    if (before_ == ir::no_block) return false;
    const ir::Block& block = function_.blocks[before_];
    if (function_.insts[block.terminator].op != Op::jump || block.edges[0].target != loop_.header) return false;
    return cfg_.dominates(function_.inst(given_.condition).block, before_) &&
           std::ranges::all_of(loop_.blocks, [&](BlockId b) { return function_.blocks[b].handler == block.handler; });
  }
  bool find_exit() {
    exit_block_ = ir::no_block;
    for (BlockId b : loop_.blocks) {
      const ir::Block& block = function_.blocks[b];
      if (block.edges.empty()) return false;  // returns or raises
      for (std::size_t i = 0; i < block.edges.size(); ++i) {
        if (inside_[block.edges[i].target]) continue;
        if (exit_block_ != ir::no_block) return false;
        exit_block_ = b;
        exit_edge_ = i;
      }
    }
    return exit_block_ != ir::no_block && function_.blocks[exit().target].handler == function_.blocks[before_].handler;
  }

  // --- values -------------------------------------------------------------------------------------------------------

  Known known_of(Operand o) {
    if (is_inside(o)) return known_[o.index()];
    if (is_zero_constant(function_, o)) return {Known::zero, {}};
    if (o.is_inst()) {
      const ir::Inst& inst = function_.inst(o);
      std::optional<Case> own = is_marked(inst) ? case_of(function_, inst) : std::nullopt;
      if (own && *own == given_ && cfg_.dominates(inst.block, before_)) {
        uses_zero_ = true;
        return {Known::zero, {}};
      }
    }
    return {Known::equal, o};
  }
  static Known meet(const Known& a, const Known& b, Operand self) {
    if (a.kind == Known::anything) return b;
    if (b.kind == Known::anything || a == b) return a;
    return {Known::equal, self};
  }
  Known known_of(const ir::Inst& inst, Operand self) {
    auto is = [&](std::size_t i, Known::Kind kind) { return known_of(inst.operands[i]).kind == kind; };
    auto sum = [&](const Known& a, const Known& b, bool subtracted) -> Known {
      if (a.kind == Known::anything || b.kind == Known::anything) return {};
      if (b.kind == Known::zero) return a;
      return a.kind == Known::zero && !subtracted ? b : Known{Known::equal, self};
    };
    switch (inst.op) {
      case Op::neg_float:
        return is(0, Known::equal) ? Known{Known::equal, self} : known_of(inst.operands[0]);
      case Op::mul_float:
        if (is(0, Known::zero) || is(1, Known::zero)) return {Known::zero, {}};
        return is(0, Known::anything) || is(1, Known::anything) ? Known{} : Known{Known::equal, self};
      case Op::div_float:
        return is(0, Known::equal) ? Known{Known::equal, self} : known_of(inst.operands[0]);
      case Op::add_float:
      case Op::sub_float:
        return sum(known_of(inst.operands[0]), known_of(inst.operands[1]), inst.op == Op::sub_float);
      case Op::muladd_float:
      case Op::fma_float:
        return is(0, Known::zero) || is(1, Known::zero) ? known_of(inst.operands[2]) : Known{Known::equal, self};
      case Op::select:
        return meet(known_of(inst.operands[1]), known_of(inst.operands[2]), self);
      default:
        return {Known::equal, self};
    }
  }
  Known known_of_parameter(BlockId b, std::size_t place, Operand self) {
    Known known;
    for (BlockId from : cfg_.predecessors[b])
      for (const ir::Edge& edge : function_.blocks[from].edges)
        if (edge.target == b) known = meet(known, known_of(edge.arguments[place]), self);
    return known;
  }
  // From above: each value goes from anything to zero or a root, and from there to itself.
  void find_values() {
    known_.assign(function_.insts.size(), {});
    for (bool changed = true; changed;) {
      changed = false;
      auto lower = [&](std::uint32_t id, Known known) {
        const Operand self = Operand::inst(id);
        if (known_[id].kind != Known::anything && known_[id] != known) known = {Known::equal, self};
        changed |= known_[id] != known;
        known_[id] = known;
      };
      for (BlockId b : order_) {
        const ir::Block& block = function_.blocks[b];
        for (std::size_t i = 0; i < block.parameters.size(); ++i)
          lower(block.parameters[i], known_of_parameter(b, i, Operand::inst(block.parameters[i])));
        for (std::uint32_t id : block.insts) lower(id, known_of(function_.insts[id], Operand::inst(id)));
      }
    }
  }

  // --- effects ------------------------------------------------------------------------------------------------------

  bool stores_nothing_new() {
    for (BlockId b : loop_.blocks)
      for (std::uint32_t id : function_.blocks[b].insts) {
        const ir::Inst& inst = function_.insts[id];
        if (inst.op == Op::array_set ? !stores_what_was_there(inst)
                                     : (ir::op_effects(inst) & ~std::uint32_t{effect_reads}) != 0)
          return false;
      }
    return true;
  }
  // No memory changes in the loop then, so it does not matter when it was loaded.
  bool stores_what_was_there(const ir::Inst& store) {
    const Known known = known_of(store.operands[1]);
    if (known.kind != Known::equal || !is_inside(known.root)) return false;
    const ir::Inst& load = function_.inst(known.root);
    return load.op == Op::array_get && load.operands[0] == store.operands[0] && load.operands[1] == store.operands[2];
  }

  // --- after the loop -----------------------------------------------------------------------------------------------

  // What a value has after the loop was not entered; not valid when that is not known.
  Operand after_none(Operand o) {
    if (!is_inside(o)) return o;
    const Known& known = known_[o.index()];
    if (known.kind == Known::zero) return function_.constant(Value(function_.inst(o).type, std::int64_t{0}));
    if (known.kind == Known::equal && !is_inside(known.root)) return known.root;
    const ir::Block& block = function_.blocks[exit_block_];
    const ir::Inst& terminator = function_.insts[block.terminator];
    if (terminator.op != Op::branch || exit_edge_ != 0 || !is_inside(terminator.operands[0])) return {};
    const ir::Inst& test = function_.inst(terminator.operands[0]);
    if (test.op != Op::eq_int) return {};
    for (std::size_t i = 0; i < 2; ++i)
      if (test.operands[i] == o && !is_inside(test.operands[1 - i])) return test.operands[1 - i];
    return {};
  }
  std::vector<std::uint32_t> used_outside() {
    std::vector<std::uint32_t> found;
    auto note = [&](Operand o) {
      if (is_inside(o) && std::ranges::find(found, o.index()) == found.end()) found.push_back(o.index());
    };
    for (BlockId b : cfg_.order) {
      if (inside_[b]) continue;
      const ir::Block& block = function_.blocks[b];
      for (std::uint32_t id : block.insts) std::ranges::for_each(function_.insts[id].operands, note);
      std::ranges::for_each(function_.insts[block.terminator].operands, note);
      for (const ir::Edge& edge : block.edges) std::ranges::for_each(edge.arguments, note);
    }
    return found;
  }
  // Makes `id` a parameter of the block after the loop.
  void hand_on(std::uint32_t id) {
    const BlockId after = exit().target;
    const auto parameter = static_cast<std::uint32_t>(function_.insts.size());
    ir::Inst inst;
    inst.op = Op::parameter;
    inst.type = function_.insts[id].type;
    inst.span = function_.insts[id].span;
    inst.scope = function_.insts[id].scope;
    inst.block = after;
    function_.insts.push_back(inst);
    auto replace = [&](Operand& o) {
      if (o.is_inst() && o.index() == id) o = Operand::inst(parameter);
    };
    for (BlockId b : cfg_.order) {
      if (inside_[b]) continue;
      ir::Block& block = function_.blocks[b];
      for (std::uint32_t other : block.insts) std::ranges::for_each(function_.insts[other].operands, replace);
      std::ranges::for_each(function_.insts[block.terminator].operands, replace);
      for (ir::Edge& edge : block.edges) std::ranges::for_each(edge.arguments, replace);
    }
    function_.blocks[after].parameters.push_back(parameter);
    exit().arguments.push_back(Operand::inst(id));
  }
  void branch(std::vector<Operand> arguments) {
    ir::Block& block = function_.blocks[before_];
    ir::Inst& terminator = function_.insts[block.terminator];
    terminator.op = Op::branch;
    terminator.operands = {given_.condition};
    const ir::Edge past{exit().target, std::move(arguments)};
    block.edges.insert(given_.when_true ? block.edges.begin() : block.edges.end(), past);
  }

  ir::Function& function_;
  const ir::Cfg& cfg_;
  const ir::Loop& loop_;
  Case given_;
  std::vector<bool> inside_;
  std::vector<BlockId> order_;  // of the loop's blocks
  BlockId before_ = ir::no_block, exit_block_ = ir::no_block;
  std::size_t exit_edge_ = 0;
  std::vector<Known> known_;  // by inst
  bool uses_zero_ = false;
};

// The cases of marked selects that a loop's instructions name.
std::vector<Case> cases_in(const ir::Function& function, const ir::Loop& loop) {
  std::vector<Case> cases;
  for (BlockId b : loop.blocks)
    for (std::uint32_t id : function.blocks[b].insts)
      for (Operand o : function.insts[id].operands) {
        if (!o.is_inst() || !is_marked(function.inst(o))) continue;
        std::optional<Case> found = case_of(function, function.inst(o));
        if (found && std::ranges::find(cases, *found) == cases.end()) cases.push_back(*found);
      }
  return cases;
}

}  // namespace

bool skip_zero_cotangents(ir::Function& function) {
  if (std::ranges::none_of(function.insts, is_marked)) return false;
  const ir::Cfg cfg = ir::build_cfg(function);
  const ir::LoopForest forest = ir::find_loops(function, cfg);
  std::vector<std::vector<Case>> skipped(forest.loops.size());  // by loop; of the loops around it, too
  bool any = false;
  for (std::size_t i = 0; i < forest.loops.size(); ++i) {  // outer ones first
    const ir::Loop& loop = forest.loops[i];
    if (loop.parent != ~0u) skipped[i] = skipped[loop.parent];
    for (Case given : cases_in(function, loop)) {
      if (std::ranges::find(skipped[i], given) != skipped[i].end()) continue;
      if (!ZeroLoop(function, cfg, loop, given).skip()) continue;
      skipped[i].push_back(given);
      any = true;
      break;
    }
  }
  // Once is enough: the derivative of what is skipped is skipped with it.
  for (ir::Inst& inst : function.insts)
    if (is_marked(inst)) inst.aux = 0;
  return any;
}

}  // namespace slope::opt
