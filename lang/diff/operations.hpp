// How reverse mode treats each operation. The activity analysis and the transform both read this one list.
#pragma once

#include <string>

#include "lang/diff/diff.hpp"
#include "lang/diff/rules.hpp"

namespace slope::diff {

enum class Treatment : std::uint8_t {
  inert,    // no derivative flows through; copied as it is
  value,    // the result varies when an operand does (arithmetic, aggregates, loads, aliases)
  store,    // writes operand `value` into operand 0
  call,     // by a rule or by the callee's own derivative
  refused,  // cannot be differentiated when an operand varies
};

Treatment classify(const ir::Inst& inst, RuleKind rule);
// The same, knowing the operands' types too.
Treatment treatment_of(const ir::Function& function, const ir::Inst& inst, RuleKind rule, Runtime& runtime);
// What flows in from a path on which a variable was not assigned.
bool is_undefined(const ir::Function& function, ir::Operand o, Runtime& runtime);
// Core.array_forget(a, i): the element is unassigned again.
bool forgets_element(const ir::Inst& inst);
// Core.zero_shadows or Core.constant_shadow, in a derivative that is differentiated again: memory that starts at zero.
bool makes_shadows(const ir::Inst& inst);
// Core.value_and_gradient_call or Core.jvp_call, which was not expanded (lang/derive/operators.cpp).
bool is_operator(const ir::Inst& inst);
// Core.call_derivative, or an operator that was not expanded: a call whose target is found when it runs.
bool calls_what_it_is_given(const ir::Inst& inst);
// The call of a forward half of a derivative: always differentiated (TangentTypes::is_forward_half).
bool makes_record(const ir::Function& function, const ir::Inst& inst, Runtime& runtime);
// The standard library's functions that stand for such calls, where their types are not known.
bool makes_record(Value callee, Runtime& runtime);
bool reads_record(Value callee, Runtime& runtime);
// A record that leads to memory by a tape.
bool holds_tape(const Type* type, Runtime& runtime);
// The call of a reverse half whose record holds a tape, or is not known: always differentiated too, since that tape has
// columns for tangents, and stays open longer.
bool takes_record(const ir::Function& function, const ir::Inst& inst, Runtime& runtime);
// What a derivative that is differentiated again puts back its memory by (lang/derive/kept_memory.hpp).
// Only keeps memory for a reverse sweep: what it is given is neither looked at nor handed on.
bool keeps_for_reverse(const ir::Function& function, const ir::Inst& inst, Runtime& runtime);
// Puts back what a call changed, and gives what was there (Reverse::keep_changed_memory).
bool exchanges_memory(const ir::Function& function, const ir::Inst& inst, Runtime& runtime);
bool puts_back_memory(const ir::Function& function, const ir::Inst& inst, Runtime& runtime);
// A derivative puts back by it what a place of its first argument held, or makes it zero.
bool restores_memory(Value callee, Runtime& runtime);
// One of the standard library's functions that builtins of derivatives are differentiated as (derivatives_again.slope).
bool is_written_out(Value callee, Runtime& runtime);
// What a call whose target is found at run time calls, when that is no operand: a builtin, or an operator's function.
Value implied_callee(const ir::Inst& inst, Runtime& runtime);
// What Core.dynamic_forward and the like are told of a call's operands, callee first, is two bits each: whether it may
// carry a derivative, and whether it may be made of the text of what does. The last stand for all from there on.
inline constexpr std::size_t dynamic_call_bits = 30;
inline std::uint64_t dynamic_call_bit(std::size_t i) {
  return std::uint64_t{1} << (i < dynamic_call_bits ? i : dynamic_call_bits);
}
inline std::uint64_t dynamic_text_bit(std::size_t i) { return dynamic_call_bit(i) << (dynamic_call_bits + 1); }
// A call whose target is found at run time: also the reading and writing of fields of what is not known.
bool is_dynamic_call(const ir::Function& function, const ir::Inst& inst, Runtime& runtime);
std::string why_refused(const ir::Inst& inst, Runtime& runtime);

// `t[i]` with an index known only at run time, of a tuple whose elements all have one type, which has either a
// cotangent or a shadow: that type; else null.
const Type* indexed_element(const ir::Function& function, const ir::Inst& inst, Runtime& runtime);

// A refusal at the user's own line: an instruction that was inlined from the standard library counts as the call of it.
Refusal refusal_at(const ir::Function& function, const ir::Inst& inst, Runtime& runtime, std::string reason);

}  // namespace slope::diff
