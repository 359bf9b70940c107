// A captured variable that is assigned lives in a cell, which a closure and its maker share. Once the closure is inlined
// nobody else sees the cell: then it is a variable like any other, an SSA value, whose type inference finds anew.
//
//   %2 = cell_new                            jump b1(0, 0.0)
//   cell_set %2, 0.0                         b1(%3: Int64, %4: Any) loop:
//   b1: … %5 = cell_get %2           →       …
//       cell_set %2, %6                      jump b1(%7, %6)
//
// Required: the cell is made here, and only read, assigned and asked whether it is assigned. An operand refers to the
// cell that was made last, so a cell that a loop makes is a variable that each turn begins without a value. Where
// exceptions are caught, variables may have to stay slots, and code with slots is not inlined: such functions are left
// alone.
#include <algorithm>

#include "lang/ir/passes/passes.hpp"
#include "lang/opt/opt.hpp"

namespace slope::opt {

using ir::Op;
using ir::Operand;

namespace {

bool accesses_cell(Op op) { return op == Op::cell_get || op == Op::cell_set || op == Op::cell_defined; }

// By instruction: a cell_new that nothing but accesses refer to.
std::vector<bool> private_cells(const ir::Function& function) {
  std::vector<bool> found(function.insts.size(), false);
  for (const ir::Block& block : function.blocks)
    for (std::uint32_t id : block.insts) found[id] = function.insts[id].op == Op::cell_new;
  const auto leaves = [&](Operand o) {
    if (o.is_inst()) found[o.index()] = false;
  };
  for (const ir::Block& block : function.blocks) {
    for (std::uint32_t id : block.insts) {
      const ir::Inst& inst = function.insts[id];
      for (std::size_t i = accesses_cell(inst.op) ? 1 : 0; i < inst.operands.size(); ++i) leaves(inst.operands[i]);
    }
    if (block.terminator != ~0u)
      for (Operand o : function.insts[block.terminator].operands) leaves(o);
    for (const ir::Edge& edge : block.edges)
      for (Operand o : edge.arguments) leaves(o);
  }
  return found;
}

}  // namespace

bool promote_cells(Runtime& runtime, ir::Function& function) {
  if (!function.slots.empty() ||
      std::ranges::any_of(function.blocks, [](const ir::Block& block) { return block.handler != ir::no_block; }))
    return false;
  const std::vector<bool> cells = private_cells(function);
  if (std::ranges::find(cells, true) == cells.end()) return false;
  const BuiltinTypes& builtin = runtime.types.builtin();
  std::vector<std::uintptr_t> slot_of(cells.size(), 0);
  const Symbol* unnamed = runtime.symbol("#captured");
  for (std::size_t id = 0; id < cells.size(); ++id) {
    if (!cells[id]) continue;
    slot_of[id] = function.slots.size();
    function.slots.push_back(unnamed);
    function.slot_types.push_back(builtin.any);
  }
  std::vector<Operand> replacement(function.insts.size());
  for (const ir::Block& block : function.blocks) {
    for (std::uint32_t id : block.insts) {
      ir::Inst& inst = function.insts[id];
      if (inst.op == Op::cell_new && cells[id]) {
        inst.op = inst.operands.empty() ? Op::slot_clear : Op::slot_set;
        inst.aux = slot_of[id];
        continue;
      }
      if (!accesses_cell(inst.op) || !inst.operands[0].is_inst() || !cells[inst.operands[0].index()]) continue;
      const std::uintptr_t slot = slot_of[inst.operands[0].index()];
      inst.operands.erase(inst.operands.begin());
      switch (inst.op) {
        case Op::cell_get:
          function.slots[slot] = inst.aux_as<const Symbol>();  // what an UndefVarError names
          inst.op = Op::slot_get;
          break;
        case Op::cell_set:
          inst.op = Op::slot_set;
          replacement[id] = function.constant(runtime.nothing());
          break;
        default:
          inst.op = Op::slot_defined;
          break;
      }
      inst.aux = slot;
    }
  }
  ir::replace_all_uses(function, replacement);
  ir::promote_slots(function, &builtin);
  return true;
}

}  // namespace slope::opt
