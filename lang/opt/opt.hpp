// Optimisation of typed IR before differentiation and code generation. It does what LLVM cannot do (dispatch, immutable
// aggregates, small calls of Slope methods, unions), so that library code over intrinsics costs nothing.
#pragma once

#include <functional>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/tuning.hpp"

namespace slope::opt {

struct OptOptions {
  int inline_budget = tuning::inline_budget;
  int inline_total = tuning::inline_total;
  int self_recursion_depth = tuning::inline_self_depth;
  int self_recursion_budget = tuning::inline_self_budget;
  const Specialization* self = nullptr;  // whose code this is
  // Not a derivative. What opens tapes stays a call in it: when that fails it closes them, and no others, whoever
  // catches the error.
  bool is_ordinary = false;
  std::function<bool(const ir::Inst&)> is_primitive;  // for differentiation: calls that stay calls
  // Typed code of a callee, or null (not inferred, or still being inferred).
  std::function<const ir::Function*(Specialization&)> callee;
};

// To a fixed point of a few rounds: inline · fold (constants, branches) · scalar replacement of immutable structs,
// tuples and closures (also through block parameters) · CSE · captured variables · loop-invariant lengths · dead code.
// True when types can be found that were not known before (promote_cells): infer the function again.
// It ends (stop_scope.hpp) when the program that runs in `ctx` and asked for the code is to stop.
bool optimise(Runtime& runtime, const Context& ctx, ir::Function& function, const OptOptions& options);

// The passes; true when they changed something.
bool inline_calls(Runtime& runtime, ir::Function& function, const OptOptions& options);
// Puts `body`, the code of `target`, in place of the call `id`, with its handlers and variables. The call runs once at
// most, in a block with a handler.
void inline_with_handlers(Runtime& runtime, ir::Function& function, std::uint32_t id, const ir::Function& body,
                          const Specialization& target);
bool fold(Runtime& runtime, ir::Function& function);
bool scalar_replace(Runtime& runtime, ir::Function& function);
bool common_subexpressions(Runtime& runtime, ir::Function& function);
bool promote_cells(Runtime& runtime, ir::Function& function);  // captured variables that nobody else sees any more
bool drop_unread_tapes(ir::Function& function);
bool skip_zero_cotangents(ir::Function& function);  // loops that have nothing to add
bool hoist_invariants(Runtime& runtime, ir::Function& function);

}  // namespace slope::opt
