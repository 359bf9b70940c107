// On-stack replacement: the rest of a running activation as a function of its own. Because the IR is SSA, the state of
// an activation at the head of a loop is the values that are live there; the continuation takes them as arguments.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lang/ir/ir.hpp"

namespace slope::ir {

// The insts whose values the code from `header` on needs: header's parameters first, then what is defined before it, in
// inst order. Not `possible` when the function keeps state in slots.
struct LiveAtLoop {
  bool possible = true;
  std::vector<std::uint32_t> insts;
};
LiveAtLoop live_at_loop(const Function& function, BlockId header);

// Ends the name of every continuation.
inline constexpr std::string_view loop_suffix = " (from loop)";

// Entry: (#self# = nothing, live values…), then a jump to `header`. Untyped when `function` is.
std::unique_ptr<Function> continuation_at_loop(const Function& function, BlockId header);

}  // namespace slope::ir
