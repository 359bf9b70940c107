// What an op requires of its operands' types.
#pragma once

#include <span>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::infer {

// Whether operands of these types are what a typed op relies on, so that it needs no check at run time.
enum class Fit { holds, unknown, never };
Fit op_fit(Runtime& runtime, const ir::Inst& inst, std::span<const Type* const> operand_types);

}  // namespace slope::infer
