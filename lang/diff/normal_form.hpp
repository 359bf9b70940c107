// The form that the transforms need: one `ret`; each loop entered by one edge and with one latch. Irreducible graphs
// are refused. In reverse mode a `try` has edges to its handler like any others (exceptions.cpp).
#pragma once

#include "lang/diff/diff.hpp"
#include "lang/diff/memory.hpp"

namespace slope::diff {

// `memory`: of reverse mode; null: forward mode, which leaves handlers as they are.
bool normalise(ir::Function& function, Runtime& runtime, World world, Refusal& refusal, MemoryEffects* memory);

// The aux of a branch that is never taken to its first edge: where the block of its second edge raises, control goes
// there, with the exception in the Box that the first instruction of that block reads.
inline constexpr std::uintptr_t branch_on_raise = 1;
// Ends what an inner derivative left open where its exception is caught; in forward mode too.
void close_kept_levels(ir::Function& function, Runtime& runtime);
// What is done with an exception: nothing; its type is looked at, or it is raised again; what it holds is looked at.
enum class CaughtUse : std::uint8_t { none, kind, content };
CaughtUse use_of_exception(const ir::Function& function, Runtime& runtime, std::vector<bool> values);  // by instruction
void follow_exceptions(ir::Function& function, Runtime& runtime, World world, MemoryEffects& memory);
// Whether it is Base.caught_call, for calls in a `try` that may store something before they raise.
bool is_caught_call(Runtime& runtime, const Specialization& target);
// Whether its code is differentiated in a `try` although it has a rule.
bool goes_without_rule_in_try(Runtime& runtime, const Specialization& callee, World world);

}  // namespace slope::diff
