// Which rule of the standard library or the user applies to a call.
#pragma once

#include <vector>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::diff {

enum class RuleKind : std::uint8_t {
  none,
  non_differentiable,  // @non_differentiable: Base.nondifferentiable(f, args…)
  scalar,              // @scalar_rule: Base.scalar_partials(f, Ω, args…) → tuple of partials
  reverse,             // rrule(f, args…) → (value, pullback)
};

// `call_types`: Tuple{typeof(f), args…}. The lookups' edges are appended, also of rules that were not found: a rule
// defined later ends what was derived without it.
RuleKind find_rule(Runtime& runtime, const DataType* call_types, World world, std::vector<Edge>* edges);

// The rule of an `invoke`; none for other instructions.
RuleKind rule_of(Runtime& runtime, const ir::Inst& inst, World world);

}  // namespace slope::diff
