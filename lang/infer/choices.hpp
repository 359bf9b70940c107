// How many methods inference looks at for one call of arguments of inexact types, and prepares code for.
#pragma once

#include <cstddef>

namespace slope::infer {

// Methods of a program, or types below an abstract one: each is a test and, when it is small, a copy of its body.
inline constexpr std::size_t most_choices = 8;
// Instructions of a method for an abstract type that is prepared for each type below it.
inline constexpr std::size_t largest_choice = 60;

}  // namespace slope::infer
