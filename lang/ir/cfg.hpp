// Facts about the control-flow graph: predecessors, reverse postorder, dominators (Cooper, Harvey, Kennedy 2001),
// natural loops. Handler edges count as edges from every block of the region. Recomputed, never updated.
#pragma once

#include <vector>

#include "lang/ir/ir.hpp"

namespace slope::ir {

struct Loop {
  BlockId header = no_block;
  std::vector<BlockId> blocks;   // header first
  std::vector<BlockId> latches;  // sources of back edges
  std::uint32_t parent = ~0u;    // index of the enclosing loop
  std::uint32_t depth = 1;
};

struct Cfg {
  std::vector<std::vector<BlockId>> successors;  // edges, then the handler
  std::vector<std::vector<BlockId>> predecessors;
  std::vector<BlockId> order;           // reverse postorder of reachable blocks
  std::vector<std::uint32_t> position;  // in order; ~0 when unreachable
  std::vector<BlockId> idom;            // no_block for the entry and the unreachable
  bool dominates(BlockId a, BlockId b) const;
  bool reachable(BlockId b) const { return position[b] != ~0u; }
};
Cfg build_cfg(const Function& function);

struct LoopForest {
  std::vector<Loop> loops;             // outer before inner
  std::vector<std::uint32_t> loop_of;  // innermost loop of a block, ~0 for none
  bool reducible = true;
};
LoopForest find_loops(const Function& function, const Cfg& cfg);

}  // namespace slope::ir
