// What people write who know another language, and what it is here: help for syntax errors.
#pragma once

#include <string>
#include <string_view>

namespace slope::syntax {

// A statement that is the name `first` alone, and behind it, on the same line, the word `found` (empty: no word).
// Empty when nothing is to be said.
std::string foreign_help(std::string_view first, std::string_view found);

// An operator without an operand. Empty when nothing is to be said.
std::string foreign_operator_help(std::string_view text);

}  // namespace slope::syntax
