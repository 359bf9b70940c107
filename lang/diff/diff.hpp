// Differentiation of typed IR. The essay is at the head of reverse.cpp.
//
// Tangents of a type split in two, because memory and values travel in different directions:
//   shadow(T)      what runs forward beside the value: same-identity accumulators of memory (arrays, mutable structs);
//                  `Nothing` for what holds no memory
//   cotangent(T)   what runs backward: the cotangent of immutable values; `Nothing` for memory and non-differentiable data
// An array's shadow is an array of tangent(element); a user sees tangent(T): the two merged (number, array, tuple,
// named tuple of fields, nothing).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::diff {

struct Refusal {  // what cannot be differentiated, where, why
  Span span;
  const Method* method = nullptr;
  std::string reason;
};

// Where the transform gets what it does not own: typed primal code with primitives kept, callee derivatives.
class Environment {
 public:
  virtual ~Environment() = default;
  // Typed code of `target`, optimised with calls that have rules left in place. Null: cannot be inferred.
  virtual const ir::Function* primal(Specialization& target) = 0;
  virtual Runtime& runtime() = 0;
  virtual World world() = 0;
};

// value_and_gradient as one function: both sweeps together.
// Parameters: the primal's (callee, args…), then for each argument with memory its shadow (made by the caller with
// Slope's `zero_shadow`, so that identity is kept), then the seed (cotangent of the result).
// Result: tuple (primal value, cotangents of callee and args…).
std::unique_ptr<ir::Function> gradient_function(Environment& env, Specialization& primal, std::span<const bool> active_arguments,
                                                Refusal& refusal);

// The split form, for pullbacks that escape and for calls that are not inlined (recursion):
//   forward: parameters (callee, args…, shadows…) → tuple (value, shadow of value, record)
//   reverse: parameters (record, cotangent of the value) → tuple of cotangents
struct SplitDerivative {
  std::unique_ptr<ir::Function> forward;
  std::unique_ptr<ir::Function> reverse;
  const DataType* record_type = nullptr;
};
bool split_derivative(Environment& env, Specialization& primal, std::span<const bool> active_arguments, SplitDerivative& result,
                      Refusal& refusal);

const Type* shadow_type(Runtime& runtime, const Type* t);
const Type* cotangent_type(Runtime& runtime, const Type* t);
const Type* tangent_type(Runtime& runtime, const Type* t);

}  // namespace slope::diff
