// After the sweeps: insert the code that saves values, turn slots into SSA values, remove the zeros that sums began
// with, and remove tapes that nothing reads.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lang/diff/reverse/reverse.hpp"
#include "lang/ir/passes/checked.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

void Reverse::insert_pending(ir::Function& out) {
  for (BlockId b = 0; b < out.blocks.size(); ++b) {
    std::vector<std::uint32_t> insts;
    if (auto first = pending_start_.find(b); first != pending_start_.end()) {
      // After what the block's rows and tapes are made of: a store at the start of a header needs them.
      bool header = false;
      for (const LoopState& state : loops_)
        if (state.row.valid() && out.inst(state.row).block == b) header = true;
      std::size_t prefix = 0;
      if (header) {
        while (prefix < out.blocks[b].insts.size() && out.insts[out.blocks[b].insts[prefix]].op != Op::slot_set)
          ++prefix;
        ++prefix;
      }
      insts.insert(insts.end(), out.blocks[b].insts.begin(),
                   out.blocks[b].insts.begin() + static_cast<std::ptrdiff_t>(prefix));
      insts.insert(insts.end(), first->second.begin(), first->second.end());
      insts.insert(insts.end(), out.blocks[b].insts.begin() + static_cast<std::ptrdiff_t>(prefix),
                   out.blocks[b].insts.end());
    } else {
      insts = out.blocks[b].insts;
    }
    std::vector<std::uint32_t> complete;
    for (std::uint32_t id : insts) {
      complete.push_back(id);
      if (auto more = pending_after_.find(id); more != pending_after_.end())
        complete.insert(complete.end(), more->second.begin(), more->second.end());
    }
    out.blocks[b].insts = std::move(complete);
  }
}

// Cotangent slots start at zero; then slots become SSA values. A slot read where it was never set is never looked at.
void Reverse::finish_slots(ir::Function& out, BlockId reverse_start, ir::Builder& at) {
  std::vector<std::uint32_t> zeros;
  for (int slot : adjoint_slot_list_) {
    const Type* type = out.slot_types[static_cast<std::size_t>(slot)];
    ir::Inst inst;
    inst.op = Op::slot_set;
    inst.aux = static_cast<std::uintptr_t>(slot);
    inst.block = reverse_start;
    inst.operands = {at.constant(zero_leaf(type))};
    zeros.push_back(static_cast<std::uint32_t>(out.insts.size()));
    out.insts.push_back(std::move(inst));
  }
  std::vector<std::uint32_t>& insts = out.blocks[reverse_start].insts;
  insts.insert(insts.begin(), zeros.begin(), zeros.end());
  std::unordered_map<const Type*, Operand> undefined;
  ir::promote_slots(out, &builtin_, [&](std::uint32_t slot) {
    const Type* type = out.slot_types[slot];
    auto [found, fresh] = undefined.try_emplace(type);
    if (Value value = fresh ? tangents_.stand_ins.of(type) : Value(); value.defined()) {
      found->second = out.constant(value);
    } else if (fresh) {
      ir::Inst inst;
      inst.op = Op::undef;
      inst.type = type;
      inst.block = 0;
      std::uint32_t id = static_cast<std::uint32_t>(out.insts.size());
      out.insts.push_back(std::move(inst));
      out.blocks[0].insts.insert(out.blocks[0].insts.begin(), id);
      found->second = Operand::inst(id);
    }
    return found->second;
  });
  ir::check_after(out, "promotion of slots", ir::Typing::partial);
  drop_zero_terms(out);
  for (ir::Inst& inst : out.insts)
    if (!inst.type && ir::op_info(inst.op).derivative != ir::Derivative::none && inst.op != Op::call &&
        inst.op != Op::get_field)
      inst.type = builtin_.nothing;  // stores and tapes: no result
  ir::simplify_cfg(out);
  ir::remove_dead_insts(out);
}

// A loop that keeps nothing needs no tape. One function with both sweeps sees every use of its tapes.
void Reverse::drop_unread_tapes() {
  ir::Function& out = *forward_out_;
  std::unordered_set<const TapeLayout*> unread;
  for (const auto& layout : layouts) unread.insert(layout.get());
  for (const ir::Block& block : out.blocks)
    for (std::uint32_t id : block.insts)
      if (const ir::Inst& inst = out.insts[id]; inst.op == Op::tape_load || inst.op == Op::tape_store)
        unread.erase(tape_layout_of(inst.aux));
  const Value none = tangents_.stand_ins.of(builtin_.tape);
  std::vector<Operand> replacement(out.insts.size());
  std::unordered_set<std::uint32_t> dropped;
  for (const ir::Block& block : out.blocks)
    for (std::uint32_t id : block.insts)
      if (const ir::Inst& inst = out.insts[id];
          inst.op == Op::tape_open && unread.contains(reinterpret_cast<const TapeLayout*>(inst.aux)))
        dropped.insert(id);
  if (dropped.empty()) return;
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
  for (const LoopState& loop : loops_)
    if (loop.tape != no_value && unread.contains(loop.layout)) saved_.erase(loop.tape);
}

// The first term of a cotangent is added to the zero it starts from: not when that zero is in sight, also through
// blocks that all bring zero. (Only for sums that this transform made; 0.0 + x is not x for x = -0.0, and the primal's
// own sums keep that.)
void Reverse::drop_zero_terms(ir::Function& out) {
  std::unordered_map<std::uint32_t, std::vector<Operand>> brought;  // to block parameters
  for (const ir::Block& block : out.blocks)
    for (const ir::Edge& edge : block.edges)
      for (std::size_t i = 0; i < edge.arguments.size(); ++i)
        brought[out.blocks[edge.target].parameters[i]].push_back(edge.arguments[i]);
  auto is_zero = [&](Operand term) {
    std::vector<Operand> work{term};
    std::unordered_set<std::uint32_t> seen;
    while (!work.empty()) {
      Operand o = work.back();
      work.pop_back();
      if (o.is_constant() && out.constant_value(o).bits == 0) continue;
      if (!o.is_inst()) return false;
      if (!seen.insert(o.index()).second) continue;
      auto known = brought.find(o.index());
      if (known == brought.end() || seen.size() > 64) return false;
      work.insert(work.end(), known->second.begin(), known->second.end());
    }
    return true;
  };
  std::vector<Operand> replacement(out.insts.size());
  bool any = false;
  for (std::uint32_t id : sums_) {
    const ir::Inst& sum = out.insts[id];
    if (sum.op != Op::add_float) continue;
    for (std::size_t i = 0; i < 2 && !replacement[id].valid(); ++i) {
      Operand term = sum.operands[i];
      while (term.is_inst() && replacement[term.index()].valid()) term = replacement[term.index()];
      if (!is_zero(term)) continue;
      replacement[id] = sum.operands[1 - i];
      any = true;
    }
  }
  if (any) ir::replace_all_uses(out, replacement);
}

}  // namespace slope::diff
