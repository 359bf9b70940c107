#include "lang/ir/passes/checked.hpp"
#include "lang/opt/opt.hpp"
#include "lang/runtime/stop_scope.hpp"

namespace slope::opt {

namespace {

void clean(ir::Function& function) {
  ir::remove_dead_insts(function);
  ir::check_after(function, "dead code removal");
  ir::simplify_cfg(function);
  ir::check_after(function, "simplification");
}

}  // namespace

bool optimise(Runtime& runtime, const Context& ctx, ir::Function& function, const OptOptions& options) {
  ir::remove_unreachable_blocks(function);
  ir::simplify_cfg(function);
  ir::check_after(function, "simplification");
  bool promoted = false;
  for (int round = 0; round < 4; ++round) {
    check_stop(ctx);
    bool changed = round == 0 && ir::checked(function, "inlining", inline_calls(runtime, function, options));
    check_stop(ctx);
    changed |= ir::checked(function, "folding", fold(runtime, function));
    changed |= ir::checked(function, "scalar replacement", scalar_replace(runtime, function));
    check_stop(ctx);
    changed |= ir::checked(function, "redundancy elimination", common_subexpressions(runtime, function));
    check_stop(ctx);
    clean(function);
    if (ir::checked(function, "promotion of cells", promote_cells(runtime, function))) changed = promoted = true;
    if (!changed && round > 0) break;
  }
  while (ir::checked(function, "removal of unread tapes", drop_unread_tapes(function))) clean(function);
  ir::checked(function, "hoisting", hoist_invariants(runtime, function));
  ir::checked(function, "skipping of loops with zero cotangents", skip_zero_cotangents(function));
  clean(function);
  ir::compact(function);
  ir::check_after(function, "compaction");
  return promoted;
}

}  // namespace slope::opt
