// Adds the frames that one inst stands for — its own and those it was inlined into — to the pending error's trace.
#pragma once

#include "lang/ir/ir.hpp"
#include "lang/runtime/context.hpp"

namespace slope::interpreter {

void push_trace(Context& ctx, const ir::Function& function, std::uint32_t inst);

}  // namespace slope::interpreter
