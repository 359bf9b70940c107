// Cotangents of SSA values. The cotangent of a value is held leaf by leaf (TangentTypes::leaves), never as an
// aggregate, so that arithmetic on leaves needs no packing and SSA construction sees plain floats.
//
// When all uses of a value are in its own block, its cotangent is in a local map while that block is reversed. Every
// other leaf has a slot, zero at the start of the reverse sweep, which promote_slots turns into block arguments.
#include "lang/diff/reverse/reverse.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

void Reverse::find_local_values() {
  local_.assign(primal_->insts.size(), true);
  for (ir::BlockId b = 0; b < primal_->blocks.size(); ++b) {
    const ir::Block& block = primal_->blocks[b];
    auto use = [&](Operand o, bool on_edge) {
      if (o.is_inst() && (on_edge || primal_->inst(o).block != b)) local_[o.index()] = false;
    };
    for (std::uint32_t id : block.insts)
      for (Operand o : primal_->insts[id].operands) use(o, false);
    for (const ir::Edge& edge : block.edges)
      for (Operand o : edge.arguments) use(o, true);
    for (std::uint32_t id : block.parameters) local_[id] = local_[id] && b != 0;
    if (b == exit_)
      for (Operand o : primal_->insts[block.terminator].operands) use(o, true);
  }
}

int Reverse::new_slot(const Type* type, bool is_adjoint) {
  ir::Function& out = reverse_out_ ? *reverse_out_ : *forward_out_;
  int slot = static_cast<int>(out.slots.size());
  out.slots.push_back(runtime_.symbol("#saved"));
  out.slot_types.push_back(type);
  if (is_adjoint) adjoint_slot_list_.push_back(slot);
  return slot;
}

int Reverse::adjoint_slot(std::uint32_t id, std::size_t leaf) {
  std::uint64_t key = std::uint64_t{id} << 16 | leaf;
  auto [at, fresh] = adjoint_slots_.try_emplace(key, -1);
  if (fresh) at->second = new_slot(tangents_.leaves(primal_->insts[id].type)[leaf].type, true);
  return at->second;
}

std::vector<Operand> Reverse::cotangent_of(std::uint32_t id) {
  const auto& leaves = tangents_.leaves(primal_->insts[id].type);
  auto [at, fresh] = adjoints_.try_emplace(id);
  if (fresh) {
    at->second.leaves.resize(leaves.size());
    if (!is_local(id))
      for (std::size_t i = 0; i < leaves.size(); ++i)
        at->second.leaves[i] =
            r_->emit(Op::slot_get, {}, leaves[i].type, static_cast<std::uintptr_t>(adjoint_slot(id, i)));
  }
  return at->second.leaves;
}

std::vector<Operand> Reverse::take_cotangent(std::uint32_t id) {
  std::vector<Operand> result = cotangent_of(id);
  // Outside loops a definition is reversed once: nobody looks at the slot again.
  bool in_loop = forest_.loop_of[primal_->insts[id].block] != no_loop;
  if (in_loop) {
    adjoints_[id].leaves.assign(result.size(), Operand());
  } else {
    adjoints_.erase(id);
  }
  return result;
}

void Reverse::add_cotangent(Operand primal, std::size_t leaf, Operand x) {
  if (!varied(primal) || !x.valid()) return;
  cotangent_of(primal.index());
  Operand& current = adjoints_[primal.index()].leaves[leaf];
  const Type* type = tangents_.leaves(type_of(primal))[leaf].type;
  if (!current.valid()) {
    current = x;
    return;
  }
  current = add_leaves(*r_, current, x, type);
  sums_.push_back(current.index());
}

void Reverse::add_cotangents(Operand primal, const std::vector<Operand>& leaves) {
  for (std::size_t i = 0; i < leaves.size(); ++i) add_cotangent(primal, i, leaves[i]);
}

void Reverse::flush_adjoints() {
  for (auto& [id, adjoint] : adjoints_) {
    if (is_local(id)) continue;
    const auto& leaves = tangents_.leaves(primal_->insts[id].type);
    for (std::size_t i = 0; i < adjoint.leaves.size(); ++i)
      r_->emit(Op::slot_set, {or_zero(*r_, adjoint.leaves[i], leaves[i].type)}, nullptr,
               static_cast<std::uintptr_t>(adjoint_slot(id, i)));
  }
  adjoints_.clear();
}

}  // namespace slope::diff
