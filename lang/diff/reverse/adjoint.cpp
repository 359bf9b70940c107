// Cotangents of SSA values. The cotangent of a value is held leaf by leaf (TangentTypes::leaves), never as an
// aggregate, so that arithmetic on leaves needs no packing and SSA construction sees plain floats.
//
// When all uses of a value are in its own block, its cotangent is in a local map while that block is reversed. Every
// other leaf has a slot, zero at the start of the reverse sweep, which promote_slots turns into block arguments.
#include "lang/diff/reverse/adjoint.hpp"

#include <unordered_set>

#include "lang/ir/passes/passes.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

Adjoints::Adjoints(TangentCode& code, const ir::Function& primal, const Activity& activity, const Flow& flow,
                   ir::Builder& at)
    : code_(code), primal_(primal), activity_(activity), flow_(flow), at_(at), local_(primal.insts.size(), true) {
  for (ir::BlockId b = 0; b < primal.blocks.size(); ++b) {
    const ir::Block& block = primal.blocks[b];
    auto use = [&](Operand o, bool on_edge) {
      if (o.is_inst() && (on_edge || primal.inst(o).block != b)) local_[o.index()] = false;
    };
    for (std::uint32_t id : block.insts)
      for (Operand o : primal.insts[id].operands) use(o, false);
    for (const ir::Edge& edge : block.edges)
      for (Operand o : edge.arguments) use(o, true);
    for (std::uint32_t id : block.parameters) local_[id] = local_[id] && b != 0;
    if (b == flow.exit)
      for (Operand o : primal.insts[block.terminator].operands) use(o, true);
  }
}

int Adjoints::slot(std::uint32_t id, std::size_t leaf) {
  std::uint64_t key = std::uint64_t{id} << 16 | leaf;
  auto [found, fresh] = slots_.try_emplace(key, -1);
  if (fresh) {
    const Type* type = code_.types().leaves(primal_.insts[id].type)[leaf].type;
    found->second = new_slot(at_, code_.runtime().symbol("#saved"), type);
    slot_list_.push_back(found->second);
  }
  return found->second;
}

std::vector<Operand> Adjoints::of(std::uint32_t id) {
  const auto& leaves = code_.types().leaves(primal_.insts[id].type);
  auto [found, fresh] = current_.try_emplace(id);
  if (fresh) {
    found->second.resize(leaves.size());
    if (!is_local(id))
      for (std::size_t i = 0; i < leaves.size(); ++i)
        found->second[i] = at_.emit(Op::slot_get, {}, leaves[i].type, static_cast<std::uintptr_t>(slot(id, i)));
  }
  return found->second;
}

std::vector<Operand> Adjoints::take(std::uint32_t id) {
  std::vector<Operand> result = of(id);
  // Outside loops a definition is reversed once: nobody looks at the slot again.
  bool in_loop = flow_.loop_of(primal_.insts[id].block) != no_loop;
  if (in_loop) {
    current_[id].assign(result.size(), Operand());
  } else {
    current_.erase(id);
  }
  return result;
}

void Adjoints::add(Operand primal, std::size_t leaf, Operand x) {
  if (!activity_.carries(primal) || !x.valid()) return;
  of(primal.index());
  Operand& current = current_[primal.index()][leaf];
  const Type* type = code_.types().leaves(primal_.inst(primal).type)[leaf].type;
  if (!current.valid()) {
    current = x;
    return;
  }
  current = code_.add_leaves(at_, current, x, type);
  sums_.push_back(current.index());
}

void Adjoints::add(Operand primal, const std::vector<Operand>& leaves) {
  for (std::size_t i = 0; i < leaves.size(); ++i) add(primal, i, leaves[i]);
}

void Adjoints::add_as(Operand primal, const Type* seen_as, const std::vector<Operand>& leaves) {
  if (activity_.carries(primal)) add(primal, code_.convert_leaves(at_, seen_as, leaves, primal_.inst(primal).type));
}

void Adjoints::leave_block() {
  for (auto& [id, held] : current_) {
    if (is_local(id)) continue;
    const auto& leaves = code_.types().leaves(primal_.insts[id].type);
    for (std::size_t i = 0; i < held.size(); ++i)
      at_.emit(Op::slot_set, {code_.or_zero(at_, held[i], leaves[i].type)}, nullptr,
               static_cast<std::uintptr_t>(slot(id, i)));
  }
  current_.clear();
}

void Adjoints::start_at_zero(ir::BlockId start) {
  ir::Function& out = at_.function();
  std::vector<std::uint32_t> zeros;
  for (int slot : slot_list_) {
    ir::Inst inst;
    inst.op = Op::slot_set;
    inst.aux = static_cast<std::uintptr_t>(slot);
    inst.block = start;
    inst.operands = {code_.zero(at_, out.slot_types[static_cast<std::size_t>(slot)])};
    zeros.push_back(static_cast<std::uint32_t>(out.insts.size()));
    out.insts.push_back(std::move(inst));
  }
  std::vector<std::uint32_t>& insts = out.blocks[start].insts;
  insts.insert(insts.begin(), zeros.begin(), zeros.end());
}

// The first term of a cotangent is added to the zero it starts from: not when that zero is in sight, also through
// blocks that all bring zero. (Only for sums that this transform made; 0.0 + x is not x for x = -0.0, and the primal's
// own sums keep that.)
void Adjoints::drop_zero_terms() {
  ir::Function& out = at_.function();
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
