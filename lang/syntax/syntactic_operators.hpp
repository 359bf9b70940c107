// Operators that are the head of an expression instead of a function that is called: `a --> b`.
#pragma once

#include <string_view>

namespace slope::syntax {

bool is_syntactic_operator(std::string_view spelling);

}  // namespace slope::syntax
