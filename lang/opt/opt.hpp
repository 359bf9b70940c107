// Optimisation of typed IR before differentiation and code generation. It does what LLVM cannot do (dispatch, immutable
// aggregates, small calls of Slope methods, unions), so that library code over intrinsics costs nothing.
#pragma once

#include <functional>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::opt {

struct OptOptions {
  int inline_budget = 120;                            // insts of a callee that is inlined without @inline
  int inline_total = 6000;                            // insts of a caller after which only tiny callees are inlined
  int self_recursion_depth = 2;                       // how often a function is inlined into itself
  int self_recursion_budget = 60;                     // insts of a function that may be inlined into itself
  const Specialization* self = nullptr;               // whose code this is
  std::function<bool(const ir::Inst&)> is_primitive;  // for differentiation: calls that stay calls
  // Typed code of a callee, or null (not inferred, or still being inferred).
  std::function<const ir::Function*(Specialization&)> callee;
};

// To a fixed point of a few rounds: inline · fold (constants, branches) · scalar replacement of immutable structs,
// tuples and closures (also through block parameters) · CSE · loop-invariant lengths · dead code.
void optimise(Runtime& runtime, ir::Function& function, const OptOptions& options);

// The passes; true when they changed something.
bool inline_calls(Runtime& runtime, ir::Function& function, const OptOptions& options);
bool fold(Runtime& runtime, ir::Function& function);
bool scalar_replace(Runtime& runtime, ir::Function& function);
bool common_subexpressions(Runtime& runtime, ir::Function& function);
bool hoist_invariants(Runtime& runtime, ir::Function& function);

}  // namespace slope::opt
