// What a gradient keeps for its reverse sweep, as a table for people: `@code_grad`.
#pragma once

#include <string>
#include <vector>

#include "lang/diff/diff.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::explain {

// `name`: of the call. Null: nothing is kept.
std::string kept_table(Runtime& runtime, const std::string& name, const std::vector<diff::SavedValue>* saved);

}  // namespace slope::explain
