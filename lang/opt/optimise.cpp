#include "lang/ir/passes/passes.hpp"
#include "lang/opt/opt.hpp"

namespace slope::opt {

void optimise(Runtime& runtime, ir::Function& function, const OptOptions& options) {
  ir::remove_unreachable_blocks(function);
  ir::simplify_cfg(function);
  for (int round = 0; round < 4; ++round) {
    bool changed = round == 0 ? inline_calls(runtime, function, options) : false;
    changed |= fold(runtime, function);
    changed |= scalar_replace(runtime, function);
    changed |= common_subexpressions(runtime, function);
    ir::remove_dead_insts(function);
    ir::simplify_cfg(function);
    if (!changed && round > 0) break;
  }
  hoist_invariants(runtime, function);
  ir::remove_dead_insts(function);
  ir::simplify_cfg(function);
  ir::compact(function);
}

}  // namespace slope::opt
