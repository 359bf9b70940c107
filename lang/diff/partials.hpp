// Derivatives of the floating-point operations, for both modes. Those of arithmetic are here: a cotangent or a tangent
// times each partial. Those of elementary functions are the library's (stdlib/rules/math.slope): the operation is
// differentiated as a call of the function would be.
#pragma once

#include <functional>
#include <optional>

#include "lang/diff/diff.hpp"
#include "lang/ir/build.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::diff {

struct Partials {
  std::function<bool(std::size_t)> active;            // is operand i's wanted?
  std::function<ir::Operand(std::size_t)> value;      // operand i
  std::function<ir::Operand()> result;                // of the operation
  std::function<void(std::size_t, ir::Operand)> add;  // y times the partial for operand i
  std::function<bool(std::size_t)> may_be_infinite;   // operand i, where it is a factor; empty: none is
};

// The function whose @scalar_rule is the derivative of an operation.
std::optional<KnownName> elementary_function(ir::Op op);

// Whether finite numbers may become infinite at `o`: it is a logarithm, a quotient, a power, what a function with a rule
// returned, or is made of such by arithmetic nearby. Beside one of these a test of it costs nothing that could be measured.
bool may_be_infinite(const ir::Function& function, ir::Operand o, int steps = 4);

// False: the operation has none. Not for conversions between floats, nor for elementary functions.
bool emit_partials(ir::Builder& at, Runtime& runtime, const ir::Inst& inst, ir::Operand y, const Partials& partials);

}  // namespace slope::diff
