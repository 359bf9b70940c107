// Names of Unicode characters as LaTeX and Julia's prompt have them: \alpha is α.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slope::repl {

// The character of a name with its backslash; empty when there is none.
std::string latex_character(std::string_view name);
// The names that begin so, sorted.
std::vector<std::string> latex_names(std::string_view prefix);

}  // namespace slope::repl
