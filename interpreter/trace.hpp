// The frames that one inst stands for — its own and those it was inlined into; push_trace adds them to the pending
// error's trace.
#pragma once

#include "lang/ir/ir.hpp"
#include "lang/runtime/context.hpp"

namespace slope::interpreter {

std::vector<TraceEntry> trace_of(const ir::Function& function, std::uint32_t inst, const DataType* own = nullptr);
// `own`: the types of the function's arguments (TraceEntry::types), which untyped code does not say.
void push_trace(Context& ctx, const ir::Function& function, std::uint32_t inst, const DataType* own);

}  // namespace slope::interpreter
