// Differentiation of typed IR. The essay is at the head of reverse/reverse.cpp.
//
// The tangent of a type has two parts, because memory and values travel in different directions:
//   shadow(T)      goes forward beside the value: accumulators for memory (arrays, mutable structs), with the same
//                  identity as the memory; `Nothing` for types that hold no memory
//   cotangent(T)   goes backward: the cotangent of immutable values; `Nothing` for memory and for data that cannot be
//                  differentiated
// For a type that is known only at run time both are a DynamicTangent (tangent.hpp): a box for the parts that the value
// has. An array's shadow is an array of tangent(element). A user sees tangent(T), the two parts merged: a number, an
// array, a tuple, a named tuple of fields, or nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lang/ir/ir.hpp"
#include "lang/memory/tape.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::diff {

struct Refusal {  // what cannot be differentiated, where, why
  Span span;
  const Method* method = nullptr;
  std::string reason;
  bool of_result = false;     // what the function returns has no gradient, whatever is in it
  bool not_inferred = false;  // its types are not known here; they may be when it runs
};

// Where the transform gets what it does not own: typed primal code with primitives kept, callee derivatives.
class Environment {
 public:
  virtual ~Environment() = default;
  // Typed code of `target`, optimised with calls that have rules left in place. Null: cannot be inferred.
  virtual const ir::Function* primal(Specialization& target) = 0;
  virtual const Type* return_type(const DataType* call_types) = 0;  // inferred; Any when unknown
  // The split derivative of a callee as two specialisations. `active` has one entry an operand (callee first); the
  // answer's may have more set (arguments that the callee writes). forward: (#self#, callee, args…, shadows of active
  // memory…) → Tuple{value, shadow, Any record}; reverse: (#self#, record, cotangent of the value) → Tuple of
  // cotangents, one an operand. They may still be under construction (recursion): only their types are promised. Null
  // with `refusal` otherwise.
  struct Halves {
    Specialization* forward = nullptr;
    Specialization* reverse = nullptr;
    Value forward_callee;
    Value reverse_callee;
    std::vector<char> active;
    const Type* result_type = nullptr;  // of the primal; may be narrower than a call of it says
    std::uint64_t serial = 0;           // no other code has it
    // Memory whose content the reverse half looks at, so that who writes there after the call must have undone it
    // before: parameters and what others hold, as in MemorySummary. All of it while it is being derived.
    std::uint64_t recalled = ~std::uint64_t{0};
    bool recalls_result = true;
    std::shared_ptr<TapeLayout> stack;  // of halves on a stack
  };
  virtual Halves halves(Specialization& callee, const std::vector<char>& active, Refusal& refusal) = 0;
  // Halves of a function that calls itself, whose activations keep what they keep on one tape, its stack, which the
  // caller opens: forward: (…, stack, first free row) → Tuple{value, shadow, first free row}; reverse: (#self#, the row
  // before that, cotangent, stack). None where the callee does not call itself: `refusal` is empty then.
  virtual Halves stacked_halves(Specialization& callee, const std::vector<char>& active, Refusal& refusal) = 0;
  // The forward derivative of a callee (forward.hpp), its parameters as told there.
  struct Tangent {
    Specialization* target = nullptr;
    Value callee;
    std::vector<char> active;
    const Type* result_type = nullptr;
  };
  // In `width` directions at once.
  virtual Tangent tangent(Specialization& callee, const std::vector<char>& active, std::size_t width,
                          Refusal& refusal) = 0;
  // What the rule's builder made for such calls, once (build_rrule). False: it raised.
  virtual bool built_rule(const DataType* call_types, struct BuiltRule& rule) = 0;
  // What a rule's forward step may store into memory from before it that its pullback may read: an address for
  // keep_for_pullback (lang/derive/rule_memory.cpp); 0: nothing. Both types are those of calls.
  virtual std::int64_t memory_of_rule(const DataType* forward_step, const DataType* pullback) = 0;
  virtual class MemoryEffects& memory() = 0;
  // Assigns a global, or stores into what one holds, with or without derivatives in it.
  virtual bool stores_into_globals(Specialization&) { return false; }
  virtual Runtime& runtime() = 0;
  virtual World world() = 0;
  virtual bool check_rules() { return false; }  // what rules return is checked where they return it
};

// Something of the forward sweep that the reverse sweep uses: where it is kept, and why there (`@code_grad`).
struct SavedValue {
  enum class Where : std::uint8_t { value, recomputed, tape, stack };
  Span span;
  std::string what;
  Where where = Where::value;
  std::string why;
};
const char* saved_where(SavedValue::Where where);

// What a derivative consists of, with what must live as long as its code.
struct Derivative {
  std::unique_ptr<ir::Function> combined;  // value and gradient in one function, or the two halves:
  std::unique_ptr<ir::Function> forward;
  std::unique_ptr<ir::Function> reverse;
  std::vector<char> active;  // by parameter of the primal, callee first: asked for, or written by the primal
  std::vector<Edge> edges;
  std::vector<std::shared_ptr<TapeLayout>> layouts;
  std::vector<SavedValue> saved;               // of reverse mode
  std::uint64_t recalled = ~std::uint64_t{0};  // of halves, as there
  bool recalls_result = true;
};

// value_and_gradient as one function: both sweeps together.
// Parameters: #self#, the primal's (callee, args…; a vararg is one tuple), then for each active one with memory its
// shadow, then the seed (the cotangent of the result, a float). Result: Tuple{primal value, Tuple of cotangents, one a
// parameter of the primal}.
bool gradient_function(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                       Derivative& result, Refusal& refusal);

// The split form, for pullbacks that escape and for calls that are not inlined (recursion); parameters as in Halves.
// `stack`, if any: as stacked_halves has them.
bool split_derivative(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                      const std::shared_ptr<TapeLayout>& stack, Derivative& result, Refusal& refusal);

// Forward mode, as forward.hpp says: result.forward and result.active.
bool forward_derivative(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                        std::size_t width, Derivative& result, Refusal& refusal);

const Type* shadow_type(Runtime& runtime, const Type* t);
const Type* cotangent_type(Runtime& runtime, const Type* t);
const Type* tangent_type(Runtime& runtime, const Type* t);

}  // namespace slope::diff
