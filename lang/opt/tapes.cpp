// What is written to a tape and never read. A derivative keeps what its partial derivatives name; that one of them is
// for an operand without a derivative shows when it is optimised: x of `x / i` is kept for the sake of i alone.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lang/ir/passes/passes.hpp"
#include "lang/opt/opt.hpp"

namespace slope::opt {

using ir::Op;
using ir::Operand;

namespace {

struct TapeUses {
  bool escapes = false;
  std::unordered_set<std::uintptr_t> read;  // Inst::aux of the loads: columns
};

using TapesOpened = std::unordered_map<std::uint32_t, TapeUses>;  // by tape_open

TapesOpened tapes_of(const ir::Function& function) {
  TapesOpened tapes;
  for (const ir::Block& block : function.blocks)
    for (std::uint32_t id : block.insts)
      if (function.insts[id].op == Op::tape_open) tapes.try_emplace(id);
  if (tapes.empty()) return tapes;
  auto escapes = [&](Operand o) {
    if (!o.is_inst()) return;
    if (auto found = tapes.find(o.index()); found != tapes.end()) found->second.escapes = true;
  };
  for (const ir::Block& block : function.blocks) {
    for (std::uint32_t id : block.insts) {
      const ir::Inst& inst = function.insts[id];
      const bool works_on_tape = inst.op == Op::tape_store || inst.op == Op::tape_load || inst.op == Op::tape_reserve ||
                                 inst.op == Op::tape_close;
      for (std::size_t i = works_on_tape ? 1 : 0; i < inst.operands.size(); ++i) escapes(inst.operands[i]);
      if (inst.op != Op::tape_load || !inst.operands[0].is_inst()) continue;
      if (auto found = tapes.find(inst.operands[0].index()); found != tapes.end()) found->second.read.insert(inst.aux);
    }
    for (const ir::Edge& edge : block.edges) std::ranges::for_each(edge.arguments, escapes);
  }
  std::erase_if(tapes, [](const auto& entry) { return entry.second.escapes; });
  return tapes;
}

}  // namespace

bool drop_unread_tapes(ir::Function& function) {
  const TapesOpened tapes = tapes_of(function);
  if (tapes.empty()) return false;
  bool changed = false;
  auto is_unread = [&](std::uint32_t id) {
    const ir::Inst& inst = function.insts[id];
    if (inst.op == Op::tape_open) {
      auto opened = tapes.find(id);
      return opened != tapes.end() && opened->second.read.empty();
    }
    if (inst.op != Op::tape_store && inst.op != Op::tape_reserve && inst.op != Op::tape_close) return false;
    if (!inst.operands[0].is_inst()) return false;
    auto tape = tapes.find(inst.operands[0].index());
    if (tape == tapes.end()) return false;
    return inst.op == Op::tape_store ? !tape->second.read.contains(inst.aux) : tape->second.read.empty();
  };
  for (ir::Block& block : function.blocks) changed |= std::erase_if(block.insts, is_unread) != 0;
  if (changed) ir::remove_dead_insts(function);
  return changed;
}

}  // namespace slope::opt
