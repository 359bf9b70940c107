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
#include <algorithm>
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
    find_assignment();
    find_liveness();
    choose();
    place_parameters();
    rename();
    remove_unreachable_blocks(function_);
    renumber_slots();
  }

 private:
  std::uint32_t flag_of(std::uint32_t slot) const { return slots_ + slot; }

  // 1. state_at_[inst]: Assignment bits before a slot_get or slot_defined.
  void find_assignment() {
    std::size_t count = function_.blocks.size();
    std::vector<std::vector<std::uint8_t>> at_start(count, std::vector<std::uint8_t>(slots_, 0));
    if (count) std::fill(at_start[0].begin(), at_start[0].end(), std::uint8_t{may_be_unassigned});
    state_at_.assign(function_.insts.size(), 0);
    auto flow_into = [](std::vector<std::uint8_t>& to, const std::vector<std::uint8_t>& from) {
      bool changed = false;
      for (std::size_t i = 0; i < to.size(); ++i) {
        changed |= (to[i] | from[i]) != to[i];
        to[i] |= from[i];
      }
      return changed;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (BlockId b : cfg_.order) {
        const Block& block = function_.blocks[b];
        std::vector<std::uint8_t> state = at_start[b];
        std::vector<std::uint8_t> anywhere = state;  // what an exception may carry out
        for (std::uint32_t id : block.insts) {
          const Inst& inst = function_.insts[id];
          if (!is_slot_op(inst.op)) continue;
          std::uint8_t& s = state[inst.aux];
          switch (inst.op) {
            case Op::slot_get:
              state_at_[id] = s;
              if (s) s = may_be_assigned;  // an unassigned one has raised
              break;
            case Op::slot_defined:
              state_at_[id] = s;
              break;
            case Op::slot_set:
              s = may_be_assigned;
              break;
            default:
              s = may_be_unassigned;
              break;
          }
          anywhere[inst.aux] |= s;
        }
        for (const Edge& edge : block.edges) changed |= flow_into(at_start[edge.target], state);
        if (block.handler != no_block) changed |= flow_into(at_start[block.handler], anywhere);
      }
    }
  }

  bool asks_flag(std::uint32_t id) const {
    const Inst& inst = function_.insts[id];
    if (state_at_[id] != (may_be_unassigned | may_be_assigned)) return false;
    return inst.op == Op::slot_defined || (inst.op == Op::slot_get && !undefined_of_);
  }

  // 2.
  void find_liveness() {
    std::size_t count = function_.blocks.size();
    std::vector<std::vector<bool>> used(count, std::vector<bool>(2 * slots_));
    std::vector<std::vector<bool>> assigned(count, std::vector<bool>(2 * slots_));
    wants_flag_.assign(slots_, false);
    for (BlockId b : cfg_.order) {
      for (std::uint32_t id : function_.blocks[b].insts) {
        const Inst& inst = function_.insts[id];
        if (!is_slot_op(inst.op)) continue;
        std::uint32_t slot = static_cast<std::uint32_t>(inst.aux);
        if (inst.op == Op::slot_get && !assigned[b][slot]) used[b][slot] = true;
        if (asks_flag(id)) {
          wants_flag_[slot] = true;
          if (!assigned[b][flag_of(slot)]) used[b][flag_of(slot)] = true;
        }
        if (inst.op == Op::slot_set || inst.op == Op::slot_clear) {
          assigned[b][slot] = true;
          assigned[b][flag_of(slot)] = true;
        }
      }
    }
    live_in_ = std::move(used);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t k = cfg_.order.size(); k-- > 0;) {
        BlockId b = cfg_.order[k];
        const Block& block = function_.blocks[b];
        for (std::uint32_t v = 0; v < 2 * slots_; ++v) {
          if (live_in_[b][v]) continue;
          bool live = block.handler != no_block && live_in_[block.handler][v];
          if (!live && !assigned[b][v])
            live = std::any_of(block.edges.begin(), block.edges.end(),
                               [&](const Edge& edge) { return live_in_[edge.target][v]; });
          if (!live) continue;
          live_in_[b][v] = true;
          changed = true;
        }
      }
    }
  }

  // 3.
  void choose() {
    promoted_.assign(slots_, true);
    for (BlockId b : cfg_.order) {
      BlockId handler = function_.blocks[b].handler;
      if (handler == no_block) continue;
      for (std::uint32_t slot = 0; slot < slots_; ++slot)
        if (live_in_[handler][slot] || live_in_[handler][flag_of(slot)]) promoted_[slot] = false;
    }
    if (builtin_) return;
    // Answers of slot_defined and flags are Bools, which we could not name.
    for (std::uint32_t slot = 0; slot < slots_; ++slot)
      if (wants_flag_[slot]) promoted_[slot] = false;
    for (BlockId b : cfg_.order) {
      for (std::uint32_t id : function_.blocks[b].insts) {
        const Inst& inst = function_.insts[id];
        bool surely_unassigned = inst.op == Op::slot_get && state_at_[id] == may_be_unassigned && !undefined_of_;
        if (inst.op == Op::slot_defined || surely_unassigned) promoted_[inst.aux] = false;
      }
    }
  }

  // 4. parameters_of_[block]: the variables that are parameters there, after the parameters that it had.
  void place_parameters() {
    std::size_t count = function_.blocks.size();
    std::vector<std::vector<BlockId>> frontier(count);
    for (BlockId b : cfg_.order) {
      for (BlockId runner : cfg_.predecessors[b]) {
        while (runner != no_block && runner != cfg_.idom[b]) {
          if (std::find(frontier[runner].begin(), frontier[runner].end(), b) == frontier[runner].end())
            frontier[runner].push_back(b);
          runner = cfg_.idom[runner];
        }
      }
    }
    std::vector<std::vector<BlockId>> assigning(slots_);
    for (BlockId b : cfg_.order)
      for (std::uint32_t id : function_.blocks[b].insts) {
        const Inst& inst = function_.insts[id];
        if (inst.op != Op::slot_set && inst.op != Op::slot_clear) continue;
        if (assigning[inst.aux].empty() || assigning[inst.aux].back() != b) assigning[inst.aux].push_back(b);
      }
    parameters_of_.resize(count);
    for (std::uint32_t slot = 0; slot < slots_; ++slot) {
      if (!promoted_[slot]) continue;
      place(slot, assigning[slot], frontier);
      if (wants_flag_[slot]) place(flag_of(slot), assigning[slot], frontier);
    }
  }

  void place(std::uint32_t variable, const std::vector<BlockId>& assigning,
             const std::vector<std::vector<BlockId>>& frontier) {
    std::vector<bool> placed(function_.blocks.size());
    std::vector<BlockId> work = assigning;
    work.push_back(0);  // unassigned at the entry
    while (!work.empty()) {
      BlockId b = work.back();
      work.pop_back();
      for (BlockId f : frontier[b]) {
        if (placed[f] || !live_in_[f][variable]) continue;
        placed[f] = true;
        work.push_back(f);
        std::uint32_t slot = variable < slots_ ? variable : variable - slots_;
        const Type* type = nullptr;
        if (function_.typed) type = variable < slots_ ? function_.slot_types[slot] : builtin_->boolean;
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
  std::vector<std::vector<bool>> live_in_;
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
