// SSA construction: Cytron et al. 1991, with pruning by liveness. Parameters are inserted where the iterated dominance
// frontier of a slot's assignments meets its liveness. Then one walk over the dominator tree renames.
//
// Each slot is two variables: its value, and a flag "is assigned". The flag exists only where a read may see both an
// assigned and an unassigned slot. The steps:
//   1. forward: for each read, whether the slot may be unassigned there, and whether it may be assigned (Assignment)
//   2. backward: liveness of values, and of the flags that step 1 requires
//   3. a slot whose value or flag is live into a handler stays a slot: an exception may come from between two
//      assignments, which edges of blocks cannot express
//   4. parameters, renaming
//
// Steps 1 to 4 are done for 64 slots at a time, a bit each in one word a block: a reverse sweep has a slot for nearly
// each of its values, and as many blocks.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "lang/ir/passes/passes.hpp"

namespace slope::ir {

namespace {

enum Assignment : std::uint8_t { may_be_unassigned = 1, may_be_assigned = 2 };

bool is_slot_op(Op op) {
  return op == Op::slot_get || op == Op::slot_set || op == Op::slot_defined || op == Op::slot_clear;
}

class Promotion {
 public:
  Promotion(Function& function, const BuiltinTypes* builtin, const std::function<Operand(std::uint32_t)>& undefined_of)
      : function_(function),
        builtin_(builtin),
        undefined_of_(undefined_of),
        slots_(static_cast<std::uint32_t>(function.slots.size())),
        cfg_(build_cfg(function)) {}

  void run() {
    find_frontier();
    collect_accesses();
    state_at_.assign(function_.insts.size(), 0);
    wants_flag_.assign(slots_, false);
    promoted_.assign(slots_, true);
    parameters_of_.resize(function_.blocks.size());
    placed_.assign(function_.blocks.size(), 0);
    effects_.resize(function_.blocks.size());
    for (std::size_t group = 0; group < accesses_.size(); ++group) {
      find_assignment(group);
      find_liveness(group);
      choose(group);
      place_parameters(group);
    }
    rename();
    remove_unreachable_blocks(function_);
    renumber_slots();
  }

 private:
  using Word = std::uint64_t;  // a bit for each slot of a group
  static constexpr std::uint32_t group_size = 64;
  static Word bit_of(std::uint32_t slot) { return Word{1} << (slot % group_size); }

  std::uint32_t flag_of(std::uint32_t slot) const { return slots_ + slot; }

  struct Access {
    BlockId block;
    std::uint32_t inst;
  };
  // accesses_[group]: of the slots of a group, in the order of blocks.
  void collect_accesses() {
    accesses_.resize((slots_ + group_size - 1) / group_size);
    for (BlockId b : cfg_.order)
      for (std::uint32_t id : function_.blocks[b].insts)
        if (const Inst& inst = function_.insts[id]; is_slot_op(inst.op))
          accesses_[inst.aux / group_size].push_back({b, id});
  }

  // What a block does to the slots of a group.
  struct Effects {
    Word touched = 0;   // read by slot_get, assigned or cleared
    Word changed = 0;   // assigned or cleared
    Word assigned = 0;  // at its end: the last of these was an assignment,
    Word read = 0;      // a slot_get,
    Word cleared = 0;   // or neither
    Word ever_assigned = 0;
    Word ever_cleared = 0;
  };
  static void note(Effects& effects, Op op, Word bit) {
    if (op == Op::slot_defined) return;
    effects.touched |= bit;
    effects.assigned &= ~bit;
    effects.read &= ~bit;
    effects.cleared &= ~bit;
    if (op == Op::slot_get) {
      effects.read |= bit;
    } else {
      effects.changed |= bit;
      (op == Op::slot_set ? effects.assigned : effects.cleared) |= bit;
      (op == Op::slot_set ? effects.ever_assigned : effects.ever_cleared) |= bit;
    }
  }

  struct State {  // Assignment bits
    Word unassigned = 0;
    Word assigned = 0;
    bool add(const State& more) {
      const State before = *this;
      unassigned |= more.unassigned;
      assigned |= more.assigned;
      return before.unassigned != unassigned || before.assigned != assigned;
    }
  };

  // 1. state_at_[inst]: Assignment bits before a slot_get or slot_defined.
  void find_assignment(std::size_t group) {
    for (BlockId b : cfg_.order) effects_[b] = {};
    for (const Access& access : accesses_[group]) {
      const Inst& inst = function_.insts[access.inst];
      note(effects_[access.block], inst.op, bit_of(static_cast<std::uint32_t>(inst.aux)));
    }
    std::vector<State> at_start(function_.blocks.size());
    at_start[0].unassigned = ~Word{0};
    for (bool changed = true; changed;) {
      changed = false;
      for (BlockId b : cfg_.order) {
        const Block& block = function_.blocks[b];
        const Effects& effects = effects_[b];
        const State start = at_start[b];
        const Word read = start.unassigned | start.assigned | effects.changed;  // an unassigned one has raised
        const State end = {(start.unassigned & ~effects.touched) | effects.cleared,
                           (start.assigned & ~effects.touched) | effects.assigned | (effects.read & read)};
        for (const Edge& edge : block.edges) changed |= at_start[edge.target].add(end);
        if (block.handler == no_block) continue;
        const Word reads = effects.touched & ~effects.changed;
        changed |= at_start[block.handler].add(  // what an exception may carry out
            {start.unassigned | effects.ever_cleared,
             start.assigned | effects.ever_assigned | (reads & read) | (effects.read & effects.changed)});
      }
    }
    note_states(group, at_start);
  }

  void note_states(std::size_t group, std::vector<State>& at_start) {
    for (const Access& access : accesses_[group]) {  // in their order: the state goes on as they do
      const Inst& inst = function_.insts[access.inst];
      const Word bit = bit_of(static_cast<std::uint32_t>(inst.aux));
      State& state = at_start[access.block];
      if (inst.op == Op::slot_get || inst.op == Op::slot_defined)
        state_at_[access.inst] = static_cast<std::uint8_t>((state.unassigned & bit ? may_be_unassigned : 0) |
                                                           (state.assigned & bit ? may_be_assigned : 0));
      if (inst.op == Op::slot_defined || (inst.op == Op::slot_get && !state_at_[access.inst])) continue;
      state.unassigned &= ~bit;
      state.assigned &= ~bit;
      (inst.op == Op::slot_clear ? state.unassigned : state.assigned) |= bit;
    }
  }

  bool asks_flag(std::uint32_t id) const {
    const Inst& inst = function_.insts[id];
    if (state_at_[id] != (may_be_unassigned | may_be_assigned)) return false;
    return inst.op == Op::slot_defined || (inst.op == Op::slot_get && !undefined_of_);
  }

  struct Live {
    Word values = 0;
    Word flags = 0;
    bool operator==(const Live&) const = default;
  };

  // 2.
  void find_liveness(std::size_t group) {
    live_in_.assign(function_.blocks.size(), {});
    std::vector<Word> assigned(function_.blocks.size(), 0);
    for (const Access& access : accesses_[group]) {
      const Inst& inst = function_.insts[access.inst];
      const Word bit = bit_of(static_cast<std::uint32_t>(inst.aux));
      const Word unassigned = bit & ~assigned[access.block];
      if (inst.op == Op::slot_get) live_in_[access.block].values |= unassigned;
      if (asks_flag(access.inst)) {
        wants_flag_[inst.aux] = true;
        live_in_[access.block].flags |= unassigned;
      }
      if (inst.op == Op::slot_set || inst.op == Op::slot_clear) assigned[access.block] |= bit;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t k = cfg_.order.size(); k-- > 0;) {
        const BlockId b = cfg_.order[k];
        const Block& block = function_.blocks[b];
        Live after;
        for (const Edge& edge : block.edges) {
          after.values |= live_in_[edge.target].values;
          after.flags |= live_in_[edge.target].flags;
        }
        Live live = live_in_[b];
        live.values |= after.values & ~assigned[b];
        live.flags |= after.flags & ~assigned[b];
        if (block.handler != no_block) {
          live.values |= live_in_[block.handler].values;
          live.flags |= live_in_[block.handler].flags;
        }
        changed |= live != live_in_[b];
        live_in_[b] = live;
      }
    }
  }

  // The slots of a group: [first, last).
  std::pair<std::uint32_t, std::uint32_t> slots_of(std::size_t group) const {
    const auto first = static_cast<std::uint32_t>(group) * group_size;
    return {first, std::min(slots_, first + group_size)};
  }

  // 3.
  void choose(std::size_t group) {
    const auto [first, last] = slots_of(group);
    Word handled = 0;
    for (BlockId b : cfg_.order)
      if (const BlockId handler = function_.blocks[b].handler; handler != no_block)
        handled |= live_in_[handler].values | live_in_[handler].flags;
    for (std::uint32_t slot = first; slot < last; ++slot)
      if (handled & bit_of(slot)) promoted_[slot] = false;
    if (builtin_) return;
    // Answers of slot_defined and flags are Bools, which we could not name.
    for (std::uint32_t slot = first; slot < last; ++slot)
      if (wants_flag_[slot]) promoted_[slot] = false;
    for (const Access& access : accesses_[group]) {
      const Inst& inst = function_.insts[access.inst];
      bool surely_unassigned = inst.op == Op::slot_get && state_at_[access.inst] == may_be_unassigned && !undefined_of_;
      if (inst.op == Op::slot_defined || surely_unassigned) promoted_[inst.aux] = false;
    }
  }

  void find_frontier() {
    frontier_.resize(function_.blocks.size());
    for (BlockId b : cfg_.order) {
      for (BlockId runner : cfg_.predecessors[b]) {
        while (runner != no_block && runner != cfg_.idom[b]) {
          if (frontier_[runner].empty() || frontier_[runner].back() != b) frontier_[runner].push_back(b);
          runner = cfg_.idom[runner];
        }
      }
    }
  }

  // 4. parameters_of_[block]: the variables that are parameters there, after the parameters that it had.
  void place_parameters(std::size_t group) {
    const auto [first, last] = slots_of(group);
    std::vector<std::vector<BlockId>> assigning(group_size);
    for (const Access& access : accesses_[group]) {
      const Inst& inst = function_.insts[access.inst];
      if (inst.op != Op::slot_set && inst.op != Op::slot_clear) continue;
      std::vector<BlockId>& blocks = assigning[inst.aux % group_size];
      if (blocks.empty() || blocks.back() != access.block) blocks.push_back(access.block);
    }
    for (std::uint32_t slot = first; slot < last; ++slot) {
      if (!promoted_[slot]) continue;
      place(slot, assigning[slot % group_size]);
      if (wants_flag_[slot]) place(flag_of(slot), assigning[slot % group_size]);
    }
  }

  void place(std::uint32_t variable, const std::vector<BlockId>& assigning) {
    const bool is_flag = variable >= slots_;
    const std::uint32_t slot = is_flag ? variable - slots_ : variable;
    const Word bit = bit_of(slot);
    std::vector<BlockId> work = assigning;
    work.push_back(0);  // unassigned at the entry
    while (!work.empty()) {
      BlockId b = work.back();
      work.pop_back();
      for (BlockId f : frontier_[b]) {
        const Live& live = live_in_[f];
        if (placed_[f] == variable + 1 || !((is_flag ? live.flags : live.values) & bit)) continue;
        placed_[f] = variable + 1;
        work.push_back(f);
        const Type* type = nullptr;
        if (function_.typed) type = is_flag ? builtin_->boolean : function_.slot_types[slot];
        Inst inst;
        inst.op = Op::parameter;
        inst.type = type;
        inst.block = f;
        if (!function_.blocks[f].insts.empty()) inst.scope = function_.insts[function_.blocks[f].insts[0]].scope;
        parameters_of_[f].emplace_back(variable, static_cast<std::uint32_t>(function_.insts.size()));
        function_.insts.push_back(std::move(inst));
      }
    }
  }

  Operand boolean(bool b) { return function_.constant(Value(builtin_->boolean, std::int64_t{b})); }
  Operand undefined(std::uint32_t slot) { return undefined_of_ ? undefined_of_(slot) : function_.constant(Value()); }

  Operand current(std::uint32_t variable) {
    Operand& o = current_[variable];
    if (!o.valid()) o = variable < slots_ ? undefined(variable) : boolean(false);
    return o;
  }

  void assign(std::uint32_t variable, Operand o) {
    undo_.emplace_back(variable, current_[variable]);
    current_[variable] = o;
  }

  Operand resolve(Operand o) const {
    while (o.is_inst() && replacement_[o.index()].valid()) o = replacement_[o.index()];
    return o;
  }

  void rename() {
    std::vector<std::vector<BlockId>> children(function_.blocks.size());
    for (BlockId b : cfg_.order)
      if (cfg_.idom[b] != no_block) children[cfg_.idom[b]].push_back(b);
    current_.assign(2 * slots_, Operand{});
    replacement_.assign(function_.insts.size(), Operand{});
    struct Visit {
      BlockId block;
      std::size_t next_child;
      std::size_t undo_mark;
    };
    std::vector<Visit> stack;
    auto enter = [&](BlockId b) {
      std::size_t mark = undo_.size();
      rename_block(b);
      stack.push_back({b, 0, mark});
    };
    enter(0);
    while (!stack.empty()) {
      Visit& visit = stack.back();
      if (visit.next_child < children[visit.block].size()) {
        enter(children[visit.block][visit.next_child++]);
        continue;
      }
      for (; undo_.size() > visit.undo_mark; undo_.pop_back()) current_[undo_.back().first] = undo_.back().second;
      stack.pop_back();
    }
    // Only now are all values known that go around loops.
    replace_all_uses(function_, replacement_);
  }

  void rename_block(BlockId b) {
    for (auto [variable, id] : parameters_of_[b]) {
      function_.blocks[b].parameters.push_back(id);
      assign(variable, Operand::inst(id));
    }
    std::vector<std::uint32_t> kept;
    std::vector<std::uint32_t> insts = std::move(function_.blocks[b].insts);
    for (std::uint32_t id : insts) {
      Inst& inst = function_.insts[id];
      if (!is_slot_op(inst.op) || !promoted_[inst.aux]) {
        kept.push_back(id);
        continue;
      }
      std::uint32_t slot = static_cast<std::uint32_t>(inst.aux);
      switch (inst.op) {
        case Op::slot_get: {
          Operand value = current(slot);
          bool checked = (state_at_[id] & may_be_unassigned) && !undefined_of_;
          Operand flag;
          if (checked) flag = state_at_[id] & may_be_assigned ? current(flag_of(slot)) : boolean(false);
          if (checked && flag != boolean(true)) {
            Inst& read = function_.insts[id];  // becomes the check
            read.op = Op::check_defined;
            read.operands = {flag};
            read.aux = reinterpret_cast<std::uintptr_t>(function_.slots[slot]);
            read.type = function_.typed ? builtin_->nothing : nullptr;
            kept.push_back(id);
            if (flag == boolean(false)) {
              end_here(b, std::move(kept));
              return;
            }
            assign(flag_of(slot), boolean(true));
          }
          replacement_[id] = value;
          break;
        }
        case Op::slot_defined:
          replacement_[id] = state_at_[id] == (may_be_unassigned | may_be_assigned)
                                 ? current(flag_of(slot))
                                 : boolean(state_at_[id] == may_be_assigned);
          break;
        case Op::slot_set: {
          Operand value = resolve(inst.operands[0]);
          replacement_[id] = value;
          assign(slot, value);
          if (wants_flag_[slot]) assign(flag_of(slot), boolean(true));
          break;
        }
        default:
          assign(slot, Operand{});
          if (wants_flag_[slot]) assign(flag_of(slot), Operand{});
          break;
      }
    }
    function_.blocks[b].insts = std::move(kept);
    for (std::size_t e = 0; e < function_.blocks[b].edges.size(); ++e)
      for (auto [variable, id] : parameters_of_[function_.blocks[b].edges[e].target])
        function_.blocks[b].edges[e].arguments.push_back(current(variable));
  }

  // The last of `kept` always raises: nothing comes after it.
  void end_here(BlockId b, std::vector<std::uint32_t> kept) {
    Block& block = function_.blocks[b];
    block.insts = std::move(kept);
    block.edges.clear();
    Inst& end = function_.insts[block.terminator];
    end.op = Op::unreachable;
    end.operands.clear();
  }

  void renumber_slots() {
    std::vector<std::uint32_t> renamed(slots_);
    std::vector<const Symbol*> names;
    std::vector<const Type*> types;
    for (std::uint32_t slot = 0; slot < slots_; ++slot) {
      if (promoted_[slot]) continue;
      renamed[slot] = static_cast<std::uint32_t>(names.size());
      names.push_back(function_.slots[slot]);
      if (slot < function_.slot_types.size()) types.push_back(function_.slot_types[slot]);
    }
    for (const Block& block : function_.blocks)
      for (std::uint32_t id : block.insts)
        if (is_slot_op(function_.insts[id].op)) function_.insts[id].aux = renamed[function_.insts[id].aux];
    function_.slots = std::move(names);
    function_.slot_types = std::move(types);
  }

  Function& function_;
  const BuiltinTypes* builtin_;
  const std::function<Operand(std::uint32_t)>& undefined_of_;
  std::uint32_t slots_;
  Cfg cfg_;
  std::vector<std::uint8_t> state_at_;
  std::vector<bool> wants_flag_;
  std::vector<bool> promoted_;
  std::vector<std::vector<Access>> accesses_;
  std::vector<std::vector<BlockId>> frontier_;  // by block: where its dominance ends
  std::vector<Effects> effects_;                // by block, of the group at hand
  std::vector<Live> live_in_;                   // likewise
  std::vector<std::uint32_t> placed_;           // by block: 1 + the variable that was last made a parameter there
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> parameters_of_;
  std::vector<Operand> current_;
  std::vector<std::pair<std::uint32_t, Operand>> undo_;
  std::vector<Operand> replacement_;
};

}  // namespace

void promote_slots(Function& function, const BuiltinTypes* builtin,
                   const std::function<Operand(std::uint32_t slot)>& undefined_of) {
  remove_unreachable_blocks(function);
  if (function.slots.empty() || function.blocks.empty()) return;
  Promotion(function, builtin, undefined_of).run();
}

}  // namespace slope::ir
