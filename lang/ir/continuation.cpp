#include "lang/ir/continuation.hpp"

#include <algorithm>

#include "lang/ir/build.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/passes/passes.hpp"

namespace slope::ir {

namespace {

// For each inst the blocks that use its result; an edge's arguments are used in the block that the edge leaves.
std::vector<std::vector<BlockId>> blocks_using(const Function& function) {
  std::vector<std::vector<BlockId>> users(function.insts.size());
  for (BlockId b = 0; b < function.blocks.size(); ++b) {
    const Block& block = function.blocks[b];
    auto use = [&](Operand o) {
      if (o.is_inst() && (users[o.index()].empty() || users[o.index()].back() != b)) users[o.index()].push_back(b);
    };
    for (std::uint32_t id : block.insts)
      for (Operand o : function.insts[id].operands) use(o);
    if (block.terminator != ~0u)
      for (Operand o : function.insts[block.terminator].operands) use(o);
    for (const Edge& edge : block.edges)
      for (Operand o : edge.arguments) use(o);
  }
  return users;
}

// Blocks that control can reach from `start` without entering `barrier` again.
std::vector<bool> reachable_without(const Cfg& cfg, BlockId start, BlockId barrier) {
  std::vector<bool> seen(cfg.successors.size());
  std::vector<BlockId> work{start};
  seen[start] = true;
  while (!work.empty()) {
    BlockId block = work.back();
    work.pop_back();
    for (BlockId next : cfg.successors[block]) {
      if (next == barrier || seen[next]) continue;
      seen[next] = true;
      work.push_back(next);
    }
  }
  return seen;
}

// Gives `inst` a home in a new slot, set after its definition and read before each use, so that a second definition can
// reach the same uses; promote_slots makes SSA of it again.
void demote_to_slot(Function& function, std::uint32_t id, std::uint32_t slot, BlockId entry) {
  Operand value = Operand::inst(id);
  auto make = [&](Op op, std::vector<Operand> operands, BlockId block) {
    Inst inst;
    inst.op = op;
    inst.type = function.insts[id].type;
    inst.operands = std::move(operands);
    inst.aux = slot;
    inst.span = function.insts[id].span;
    inst.block = block;
    function.insts.push_back(std::move(inst));
    return static_cast<std::uint32_t>(function.insts.size() - 1);
  };
  for (BlockId b = 0; b < function.blocks.size(); ++b) {
    if (b == entry) continue;
    std::vector<std::uint32_t> rewritten;
    const std::vector<std::uint32_t> original = function.blocks[b].insts;
    auto read_here = [&] {
      std::uint32_t get = make(Op::slot_get, {}, b);
      rewritten.push_back(get);
      return Operand::inst(get);
    };
    auto replace_in = [&](std::vector<Operand>& operands) {
      if (std::find(operands.begin(), operands.end(), value) == operands.end()) return;
      Operand read = read_here();
      std::replace(operands.begin(), operands.end(), value, read);
    };
    if (function.insts[id].op == Op::parameter && function.insts[id].block == b)
      rewritten.push_back(make(Op::slot_set, {value}, b));
    for (std::uint32_t other : original) {
      std::vector<Operand> operands = function.insts[other].operands;
      replace_in(operands);
      function.insts[other].operands = std::move(operands);
      rewritten.push_back(other);
      if (other == id) rewritten.push_back(make(Op::slot_set, {value}, b));
    }
    if (std::uint32_t terminator = function.blocks[b].terminator; terminator != ~0u) {
      std::vector<Operand> operands = function.insts[terminator].operands;
      replace_in(operands);
      function.insts[terminator].operands = std::move(operands);
    }
    for (std::size_t e = 0; e < function.blocks[b].edges.size(); ++e) replace_in(function.blocks[b].edges[e].arguments);
    function.blocks[b].insts = std::move(rewritten);
  }
}

}  // namespace

LiveAtLoop live_at_loop(const Function& function, BlockId header) {
  LiveAtLoop live;
  if (!function.slots.empty()) {
    live.possible = false;
    return live;
  }
  Cfg cfg = build_cfg(function);
  std::vector<std::vector<BlockId>> users = blocks_using(function);
  live.insts = function.blocks[header].parameters;
  for (std::uint32_t id = 0; id < function.insts.size(); ++id) {
    BlockId definition = function.insts[id].block;
    if (users[id].empty() || definition == no_block || definition == header || !cfg.reachable(definition) ||
        !cfg.dominates(definition, header))
      continue;
    std::vector<bool> region = reachable_without(cfg, header, definition);
    if (std::any_of(users[id].begin(), users[id].end(), [&](BlockId b) { return region[b]; })) live.insts.push_back(id);
  }
  return live;
}

std::unique_ptr<Function> continuation_at_loop(const Function& function, BlockId header) {
  LiveAtLoop live = live_at_loop(function, header);
  if (!live.possible) return nullptr;
  std::unique_ptr<Function> result = function.clone();
  result->name = function.name;
  result->name += loop_suffix;

  // The old entry becomes an ordinary block; the new one is swapped into position 0.
  Builder builder(*result);
  BlockId entry = builder.new_block();
  std::swap(result->blocks[0], result->blocks[entry]);
  auto renamed = [&](BlockId b) { return b == 0 ? entry : b == entry ? 0 : b; };
  for (Block& block : result->blocks) {
    for (Edge& edge : block.edges) edge.target = renamed(edge.target);
    if (block.handler != no_block) block.handler = renamed(block.handler);
  }
  for (Inst& inst : result->insts)
    if (inst.block != no_block) inst.block = renamed(inst.block);

  builder.add_parameter(0);  // #self#
  builder.set_block(0);
  std::size_t header_parameters = function.blocks[header].parameters.size();
  std::vector<Operand> arguments;
  std::vector<Operand> incoming;
  for (std::uint32_t id : live.insts) incoming.push_back(builder.add_parameter(0, function.insts[id].type));
  for (std::size_t i = 0; i < live.insts.size(); ++i) {
    if (i < header_parameters) {
      arguments.push_back(incoming[i]);
      continue;
    }
    std::uint32_t slot = static_cast<std::uint32_t>(result->slots.size());
    result->slots.push_back(nullptr);
    if (result->typed) result->slot_types.push_back(function.insts[live.insts[i]].type);
    demote_to_slot(*result, live.insts[i], slot, 0);
    builder.emit(Op::slot_set, {incoming[i]}, nullptr, slot);
  }
  builder.jump(renamed(header), arguments);
  remove_unreachable_blocks(*result);
  promote_slots(*result);
  return result;
}

}  // namespace slope::ir
