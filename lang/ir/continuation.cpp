#include "lang/ir/continuation.hpp"

#include <algorithm>

#include "lang/ir/build.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/passes.hpp"

namespace slope::ir {

namespace {

std::vector<bool> reachable_from(const Function& function, BlockId start) {
  std::vector<bool> seen(function.blocks.size());
  std::vector<BlockId> work{start};
  seen[start] = true;
  while (!work.empty()) {
    const Block& block = function.blocks[work.back()];
    work.pop_back();
    auto visit = [&](BlockId next) {
      if (next == no_block || seen[next]) return;
      seen[next] = true;
      work.push_back(next);
    };
    for (const Edge& edge : block.edges) visit(edge.target);
    visit(block.handler);
  }
  return seen;
}

template <class Visit>
void for_each_operand(const Function& function, const Block& block, Visit visit) {
  for (std::uint32_t id : block.insts)
    for (Operand o : function.insts[id].operands) visit(o);
  if (block.terminator != ~0u)
    for (Operand o : function.insts[block.terminator].operands) visit(o);
  for (const Edge& edge : block.edges)
    for (Operand o : edge.arguments) visit(o);
}

}  // namespace

LiveAtLoop live_at_loop(const Function& function, BlockId header) {
  LiveAtLoop live;
  if (!function.slots.empty()) {
    live.possible = false;
    return live;
  }
  std::vector<bool> region = reachable_from(function, header);
  std::vector<bool> needed(function.insts.size());
  for (BlockId b = 0; b < function.blocks.size(); ++b) {
    if (!region[b]) continue;
    for_each_operand(function, function.blocks[b], [&](Operand o) {
      if (o.is_inst() && !region[function.inst(o).block]) needed[o.index()] = true;
    });
  }
  live.insts = function.blocks[header].parameters;
  for (std::uint32_t id = 0; id < needed.size(); ++id)
    if (needed[id]) live.insts.push_back(id);
  return live;
}

std::unique_ptr<Function> continuation_at_loop(const Function& function, BlockId header) {
  LiveAtLoop live = live_at_loop(function, header);
  if (!live.possible) return nullptr;
  std::unique_ptr<Function> result = function.clone();
  result->name = function.name + " (from loop)";

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
  std::vector<Operand> replacement(result->insts.size() + live.insts.size() + 1);
  std::size_t header_parameters = function.blocks[header].parameters.size();
  std::vector<Operand> arguments;
  for (std::size_t i = 0; i < live.insts.size(); ++i) {
    Operand parameter = builder.add_parameter(0, function.insts[live.insts[i]].type);
    if (i < header_parameters) {
      arguments.push_back(parameter);
    } else {
      replacement[live.insts[i]] = parameter;
    }
  }
  builder.set_block(0);
  builder.jump(renamed(header), arguments);
  remove_unreachable_blocks(*result);
  replacement.resize(result->insts.size());
  replace_all_uses(*result, replacement);
  return result;
}

}  // namespace slope::ir
