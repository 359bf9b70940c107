// Dominance of values: a dominates b when everything that a computes is available in b. Control may leave a block with
// a handler before the block computed anything. So for the dominator tree such a block is two nodes: `in`, with the
// edge to the handler, and `out`, with the edges of its terminator. Without handlers this is ordinary dominance.
#include "lang/ir/cfg.hpp"

#include <algorithm>

namespace slope::ir {

namespace {

constexpr std::uint32_t none = ~0u;

std::vector<BlockId> reverse_postorder(const std::vector<std::vector<BlockId>>& successors) {
  std::vector<BlockId> order;
  if (successors.empty()) return order;
  struct Visit {
    BlockId block;
    std::size_t
        left;  // successors not yet visited; from the last to the first, so that the first comes next in the order
  };
  std::vector<bool> seen(successors.size());
  std::vector<Visit> stack{{0, successors[0].size()}};
  seen[0] = true;
  while (!stack.empty()) {
    Visit& visit = stack.back();
    if (visit.left == 0) {
      order.push_back(visit.block);
      stack.pop_back();
      continue;
    }
    BlockId next = successors[visit.block][--visit.left];
    if (seen[next]) continue;
    seen[next] = true;
    stack.push_back({next, successors[next].size()});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, on the split graph. Node 2k is the `in` and 2k+1 the
// `out` of the k-th block of the order, so that a dominator always has the smaller number.
void compute_dominators(const Function& function, Cfg& cfg) {
  std::size_t count = cfg.order.size();
  std::vector<std::vector<std::uint32_t>> predecessors(2 * count);
  for (std::uint32_t k = 0; k < count; ++k) {
    const Block& block = function.blocks[cfg.order[k]];
    predecessors[2 * k + 1].push_back(2 * k);
    for (const Edge& edge : block.edges) predecessors[2 * cfg.position[edge.target]].push_back(2 * k + 1);
    if (block.handler != no_block) predecessors[2 * cfg.position[block.handler]].push_back(2 * k);
  }
  std::vector<std::uint32_t> idom(2 * count, none);
  if (count) idom[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t node = 1; node < 2 * count; ++node) {
      std::uint32_t best = none;
      for (std::uint32_t p : predecessors[node]) {
        if (idom[p] == none) continue;
        if (best == none) {
          best = p;
          continue;
        }
        std::uint32_t other = p;
        while (best != other) {
          while (best > other) best = idom[best];
          while (other > best) other = idom[other];
        }
      }
      if (best == idom[node]) continue;
      idom[node] = best;
      changed = true;
    }
  }
  cfg.idom.assign(function.blocks.size(), no_block);
  for (std::uint32_t k = 1; k < count; ++k) {
    std::uint32_t node = idom[2 * k];
    while (node != 0 && node % 2 == 0) node = idom[node];  // only an `out` has values to give
    // The entry's `in` alone dominates what an exception in the entry leads to: nothing is available there, but the
    // entry's parameters are, and the tree wants a root.
    cfg.idom[cfg.order[k]] = cfg.order[node / 2];
  }
}

}  // namespace

bool Cfg::dominates(BlockId a, BlockId b) const {
  if (!reachable(a) || !reachable(b)) return false;
  while (position[b] > position[a]) b = idom[b];
  return a == b;
}

Cfg build_cfg(const Function& function) {
  Cfg cfg;
  std::size_t count = function.blocks.size();
  cfg.successors.resize(count);
  cfg.predecessors.resize(count);
  for (BlockId b = 0; b < count; ++b) {
    for (const Edge& edge : function.blocks[b].edges) cfg.successors[b].push_back(edge.target);
    if (function.blocks[b].handler != no_block) cfg.successors[b].push_back(function.blocks[b].handler);
  }
  cfg.order = reverse_postorder(cfg.successors);
  cfg.position.assign(count, none);
  for (std::uint32_t k = 0; k < cfg.order.size(); ++k) cfg.position[cfg.order[k]] = k;
  for (BlockId b : cfg.order) {
    for (BlockId next : cfg.successors[b]) {
      std::vector<BlockId>& list = cfg.predecessors[next];
      if (list.empty() || list.back() != b) list.push_back(b);  // two edges of one block make one predecessor
    }
  }
  compute_dominators(function, cfg);
  return cfg;
}

LoopForest find_loops(const Function& function, const Cfg& cfg) {
  LoopForest forest;
  forest.loop_of.assign(function.blocks.size(), none);
  // Headers in reverse postorder: an outer loop's header comes before the headers inside it.
  for (BlockId header : cfg.order) {
    Loop loop;
    loop.header = header;
    for (BlockId p : cfg.predecessors[header]) {
      if (cfg.position[p] < cfg.position[header]) continue;
      if (cfg.dominates(header, p)) {
        loop.latches.push_back(p);
      } else {
        forest.reducible = false;
      }
    }
    if (loop.latches.empty()) continue;
    std::vector<bool> inside(function.blocks.size());
    inside[header] = true;
    loop.blocks.push_back(header);
    std::vector<BlockId> work = loop.latches;
    while (!work.empty()) {
      BlockId b = work.back();
      work.pop_back();
      if (inside[b]) continue;
      inside[b] = true;
      loop.blocks.push_back(b);
      for (BlockId p : cfg.predecessors[b]) work.push_back(p);
    }
    std::sort(loop.blocks.begin() + 1, loop.blocks.end(),
              [&](BlockId a, BlockId b) { return cfg.position[a] < cfg.position[b]; });
    loop.parent = forest.loop_of[header];
    loop.depth = loop.parent == none ? 1 : forest.loops[loop.parent].depth + 1;
    std::uint32_t index = static_cast<std::uint32_t>(forest.loops.size());
    for (BlockId b : loop.blocks) forest.loop_of[b] = index;
    forest.loops.push_back(std::move(loop));
  }
  return forest;
}

}  // namespace slope::ir
