// Small passes on the instruction pool: replacing, dropping, renumbering.
#include <algorithm>
#include <unordered_map>

#include "lang/ir/passes/passes.hpp"

namespace slope::ir {

namespace {

// Calls `visit` on every operand of every instruction that stands in a block, and on the edges' arguments.
template <class Visit>
void for_each_use(Function& function, Visit visit) {
  for (Block& block : function.blocks) {
    for (std::uint32_t id : block.insts)
      for (Operand& o : function.insts[id].operands) visit(o);
    if (block.terminator != ~0u)
      for (Operand& o : function.insts[block.terminator].operands) visit(o);
    for (Edge& edge : block.edges)
      for (Operand& o : edge.arguments) visit(o);
  }
}

}  // namespace

void replace_all_uses(Function& function, const std::vector<Operand>& replacement) {
  auto follow = [&](Operand o) {
    for (std::size_t steps = 0; o.is_inst() && o.index() < replacement.size() && replacement[o.index()].valid();
         ++steps) {
      if (steps > replacement.size()) break;  // a cycle: values that nothing defines, in unreachable code
      o = replacement[o.index()];
    }
    return o;
  };
  for_each_use(function, [&](Operand& o) { o = follow(o); });
}

void remove_unreachable_blocks(Function& function) {
  if (function.blocks.empty()) return;
  std::vector<bool> reached(function.blocks.size());
  std::vector<BlockId> work{0};
  reached[0] = true;
  auto visit = [&](BlockId b) {
    if (b == no_block || reached[b]) return;
    reached[b] = true;
    work.push_back(b);
  };
  while (!work.empty()) {
    const Block& block = function.blocks[work.back()];
    work.pop_back();
    for (const Edge& edge : block.edges) visit(edge.target);
    visit(block.handler);
  }
  std::vector<BlockId> renamed(function.blocks.size(), no_block);
  BlockId count = 0;
  for (BlockId b = 0; b < function.blocks.size(); ++b)
    if (reached[b]) renamed[b] = count++;
  if (count == function.blocks.size()) return;
  for (Inst& inst : function.insts)
    if (inst.block != no_block) inst.block = renamed[inst.block];
  for (BlockId b = 0; b < renamed.size(); ++b) {
    if (renamed[b] == no_block) continue;
    Block& block = function.blocks[b];
    for (Edge& edge : block.edges) edge.target = renamed[edge.target];
    if (block.handler != no_block) block.handler = renamed[block.handler];
    if (renamed[b] != b) function.blocks[renamed[b]] = std::move(block);
  }
  function.blocks.resize(count);
}

void remove_dead_insts(Function& function) {
  std::vector<bool> live(function.insts.size());
  std::vector<std::uint32_t> work;
  auto mark = [&](Operand o) {
    if (!o.is_inst() || live[o.index()]) return;
    live[o.index()] = true;
    work.push_back(o.index());
  };
  // Where a parameter's values come from: the arguments of the edges into its block.
  std::vector<std::vector<std::pair<BlockId, std::uint32_t>>> incoming(function.blocks.size());
  std::vector<std::uint32_t> position(function.insts.size());
  for (BlockId b = 0; b < function.blocks.size(); ++b) {
    const Block& block = function.blocks[b];
    for (std::uint32_t e = 0; e < block.edges.size(); ++e) incoming[block.edges[e].target].emplace_back(b, e);
    for (std::uint32_t i = 0; i < block.parameters.size(); ++i) position[block.parameters[i]] = i;
    for (std::uint32_t id : block.insts)
      if (!is_removable(function.insts[id])) mark(Operand::inst(id));
    if (block.terminator != ~0u) mark(Operand::inst(block.terminator));
  }
  if (!function.blocks.empty())
    for (std::uint32_t id : function.blocks[0].parameters) mark(Operand::inst(id));
  while (!work.empty()) {
    std::uint32_t id = work.back();
    work.pop_back();
    const Inst& inst = function.insts[id];
    for (Operand o : inst.operands) mark(o);
    if (inst.op != Op::parameter || inst.block == no_block) continue;
    for (auto [b, e] : incoming[inst.block]) {
      const std::vector<Operand>& arguments = function.blocks[b].edges[e].arguments;
      if (position[id] < arguments.size()) mark(arguments[position[id]]);
    }
  }
  for (Block& block : function.blocks) {
    for (Edge& edge : block.edges) {
      const std::vector<std::uint32_t>& parameters = function.blocks[edge.target].parameters;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < edge.arguments.size() && i < parameters.size(); ++i)
        if (live[parameters[i]]) edge.arguments[kept++] = edge.arguments[i];
      edge.arguments.resize(kept);
    }
  }
  for (Block& block : function.blocks) {
    auto dead = [&](std::uint32_t id) { return !live[id]; };
    std::erase_if(block.parameters, dead);
    std::erase_if(block.insts, dead);
  }
}

void compact(Function& function) {
  std::vector<std::uint32_t> renamed(function.insts.size(), ~0u);
  std::vector<Inst> insts;
  auto keep = [&](std::uint32_t& id, BlockId b) {
    renamed[id] = static_cast<std::uint32_t>(insts.size());
    insts.push_back(std::move(function.insts[id]));
    insts.back().block = b;
    id = renamed[id];
  };
  for (BlockId b = 0; b < function.blocks.size(); ++b) {
    Block& block = function.blocks[b];
    for (std::uint32_t& id : block.parameters) keep(id, b);
    for (std::uint32_t& id : block.insts) keep(id, b);
    if (block.terminator != ~0u) keep(block.terminator, b);
  }
  function.insts = std::move(insts);
  Constants constants;
  std::unordered_multimap<std::uint64_t, std::uint32_t> known;  // by bits
  auto find_or_add = [&](Value v) {
    const auto key = static_cast<std::uint64_t>(v.bits);
    for (auto [at, end] = known.equal_range(key); at != end; ++at)
      if (constants[at->second].identical(v)) return at->second;
    constants.add(v);
    const auto id = static_cast<std::uint32_t>(constants.size() - 1);
    known.emplace(key, id);
    return id;
  };
  std::vector<std::uint32_t> constant_renamed(function.constants.size(), ~0u);
  for_each_use(function, [&](Operand& o) {
    if (o.is_inst()) {
      o = Operand::inst(renamed[o.index()]);
    } else if (o.is_constant()) {
      std::uint32_t& id = constant_renamed[o.index()];
      if (id == ~0u) id = find_or_add(function.constants[o.index()]);
      o = Operand::constant(id);
    }
  });
  function.constants = std::move(constants);
}

std::size_t byte_count(const Function& function) {
  std::size_t bytes = sizeof(function) + function.constants.size() * sizeof(Value);
  for (const Inst& inst : function.insts) bytes += sizeof(inst) + inst.operands.size() * sizeof(Operand);
  for (const Block& block : function.blocks) {
    bytes += sizeof(block) + (block.insts.size() + block.parameters.size()) * sizeof(std::uint32_t);
    for (const Edge& edge : block.edges) bytes += sizeof(edge) + edge.arguments.size() * sizeof(Operand);
  }
  return bytes;
}

}  // namespace slope::ir
