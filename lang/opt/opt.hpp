// Optimisation of typed IR before differentiation and code generation: what LLVM can't do (dispatch, immutable aggregates,
// small calls to Slope methods, unions), so that stdlib code over intrinsics costs nothing.
#pragma once

#include <functional>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::opt {

struct OptOptions {
  int inline_budget = 120;         // insts of a callee that is inlined without @inline
  int inline_total = 6000;         // insts of a caller after which only tiny callees are inlined
  int self_recursion_depth = 2;    // how often a function is inlined into itself
  bool keep_primitives = false;    // for differentiation: calls for which `is_primitive` holds stay calls
  std::function<bool(const ir::Function&, const ir::Inst&)> is_primitive;
  // Typed code of a callee, or null (not inferred, or still being inferred).
  std::function<const ir::Function*(Specialization&)> callee;
};

// In order: inline · fold (constants, branches) · SROA of immutable structs, tuples, closures (also through block
// parameters) · union splitting · CSE · loop-invariant bounds and loads · dead code; to a fixed point of at most 4 rounds.
void optimise(Runtime& runtime, ir::Function& function, const OptOptions& options);

bool inline_calls(Runtime& runtime, ir::Function& function, const OptOptions& options);
bool fold(Runtime& runtime, ir::Function& function);
bool scalar_replace(Runtime& runtime, ir::Function& function);
bool common_subexpressions(Runtime& runtime, ir::Function& function);

}  // namespace slope::opt
