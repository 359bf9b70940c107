#include "lang/diff/reverse/sweeps.hpp"

namespace slope::diff {

using ir::BlockId;

Flow::Flow(const ir::Function& primal) : cfg(ir::build_cfg(primal)), forest(ir::find_loops(primal, cfg)) {
  for (BlockId b : cfg.order)
    if (primal.insts[primal.blocks[b].terminator].op == ir::Op::ret) exit = b;
  incoming.resize(primal.blocks.size());
  for (BlockId b : cfg.order)
    for (std::size_t e = 0; e < primal.blocks[b].edges.size(); ++e)
      incoming[primal.blocks[b].edges[e].target].push_back({b, e});
  reaches_exit.assign(primal.blocks.size(), false);
  std::vector<BlockId> work;
  if (exit != ir::no_block) {
    work.push_back(exit);
    reaches_exit[exit] = true;
  }
  while (!work.empty()) {
    BlockId b = work.back();
    work.pop_back();
    for (BlockId p : cfg.predecessors[b]) {
      if (!cfg.reachable(p) || reaches_exit[p]) continue;
      reaches_exit[p] = true;
      work.push_back(p);
    }
  }
}

Flow::Decision Flow::decision(const ir::Function& primal, BlockId merge) const {
  const BlockId above = cfg.idom[merge];
  if (incoming[merge].size() != 2 || above == ir::no_block || loop_of(above) != loop_of(merge)) return {};
  const ir::Inst& terminator = primal.insts[primal.blocks[above].terminator];
  if (terminator.op != ir::Op::branch || terminator.aux != 0) return {};
  constexpr std::size_t neither = 2;
  const auto edge_towards = [&](const Incoming& way) -> std::size_t {
    if (way.source == above) return way.edge;
    for (std::size_t e = 0; e < 2; ++e) {
      const BlockId arm = primal.blocks[above].edges[e].target;
      if (incoming[arm].size() == 1 && cfg.dominates(arm, way.source)) return e;
    }
    return neither;
  };
  const std::size_t first = edge_towards(incoming[merge][0]), second = edge_towards(incoming[merge][1]);
  return first + second == 1 && first != neither ? Decision{above, first} : Decision{};
}

bool Flow::inside(std::uint32_t loop, BlockId block) const {
  for (std::uint32_t l = forest.loop_of[block]; l != no_loop; l = forest.loops[l].parent)
    if (l == loop) return true;
  return false;
}

Sweeps::Sweeps(std::unique_ptr<ir::Function> forward, std::unique_ptr<ir::Function> reverse, std::size_t primal_blocks)
    : forward_half(std::move(forward)),
      reverse_half(std::move(reverse)),
      f(*forward_half),
      r(reverse_half ? *reverse_half : *forward_half),
      forward_blocks(primal_blocks, ir::no_block),
      reverse_blocks(primal_blocks, ir::no_block) {}

int new_slot(ir::Builder& at, const Symbol* name, const Type* type) {
  ir::Function& function = at.function();
  function.slots.push_back(name);
  function.slot_types.push_back(type);
  return static_cast<int>(function.slots.size()) - 1;
}

}  // namespace slope::diff
