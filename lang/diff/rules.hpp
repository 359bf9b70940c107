// Which rule of the standard library or the user applies to a call.
#pragma once

#include <vector>

#include "lang/ir/build.hpp"
#include "lang/ir/ir.hpp"
#include "lang/runtime/library_names.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::diff {

enum class RuleKind : std::uint8_t {
  none,
  non_differentiable,  // @non_differentiable: Base.nondifferentiable(f, args…)
  scalar,              // @scalar_rule: Base.scalar_partials(f, Ω, args…) → tuple of partials
  reverse,             // rrule(f, args…) → (value, pullback)
  built,     // build_rrule(Tuple{typeof(f), types of args…}) → what is called as rrule is, without its name
  stateful,  // rule_state, rule_forward!, rule_reverse! (lang/diff/reverse/rules.cpp)
};

// `call_types`: Tuple{typeof(f), args…}. Where rules of several kinds apply, the one that was defined last. The
// lookups' edges are appended, also of rules that were not found: a rule defined later ends what was derived without
// it.
RuleKind find_rule(Runtime& runtime, const DataType* call_types, World world, std::vector<Edge>* edges);

// Types of the call `rule(f, args…)`, with Ω's type after f when the rule is for scalars. Null when Base has no such
// function.
const DataType* rule_call(Runtime& runtime, KnownName rule, const DataType* call_types, bool with_result = false);

// Of a call with keywords, `kwcall(names, f, args…)`: the types of `f(args…)`. Null: it is no such call.
const DataType* positional_call(Runtime& runtime, const DataType* call_types);

// The call `rule(f, args…; names…)` for a call with keywords, with `tangents` before f when there are such. Null: it is no
// such call.
const DataType* keyword_rule_call(Runtime& runtime, KnownName rule, const DataType* call_types,
                                  const Type* tangents = nullptr);

// The method for such a call of a rule, written for that rule. Null: there is none.
const Method* keyword_rule(Runtime& runtime, const DataType* rule_types, World world);
// The method of rrule or frule for a call whose function is the argument at `place`; null for the one for all functions,
// by which ChainRulesCore says that there is no rule: rrule(::Any, ::Vararg{Any}) = nothing.
const Method* written_rule(Runtime& runtime, const DataType* rule_types, std::size_t place, World world);

// Whether the rrule for such calls is one with keywords: it is called with them, and its pullback knows nothing of them.
bool is_keyword_rule(Runtime& runtime, const DataType* call_types, World world);

// Whether a value of the type may hold some memory that carries a derivative twice.
bool may_hold_memory_twice(Runtime& runtime, const Type* type);

// What a builder made. `may_change`: the builder read variables, so that code which has been made of the rule, and runs
// on when one of them is assigned, asks for the rule at each call.
struct BuiltRule {
  Value rule;
  bool may_change = false;
};
ir::Operand built_rule_operand(Runtime& runtime, ir::Builder& at, const BuiltRule& built, const DataType* call_types,
                               bool forward);

// The call build_rrule(types) or build_frule(types). Null when Base has no such function.
const DataType* builder_call(Runtime& runtime, KnownName builder, const DataType* call_types);

// Whether forward mode has a rule of its own for such calls (frule, build_frule): they stay calls then.
bool has_forward_rule(Runtime& runtime, const DataType* call_types, World world, std::vector<Edge>* edges);

// Whether a method is the library's own. What rules of programs get has complex numbers where the transform has pairs.
bool is_of_library(Runtime& runtime, const Method* method);

// The rule of an `invoke`; none for other instructions.
RuleKind rule_of(Runtime& runtime, const ir::Inst& inst, World world);

}  // namespace slope::diff
