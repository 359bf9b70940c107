// Derivatives of the floating-point operations, for both modes: a cotangent or a tangent times each partial.
#pragma once

#include <functional>

#include "lang/diff/diff.hpp"
#include "lang/ir/build.hpp"

namespace slope::diff {

struct Partials {
  std::function<bool(std::size_t)> active;            // is operand i's wanted?
  std::function<ir::Operand(std::size_t)> value;      // operand i
  std::function<ir::Operand()> result;                // of the operation
  std::function<void(std::size_t, ir::Operand)> add;  // y times the partial for operand i
};

// False: the operation has none. Not for conversions between floats.
bool emit_partials(ir::Builder& at, Runtime& runtime, const ir::Inst& inst, ir::Operand y, const Partials& partials);

}  // namespace slope::diff
