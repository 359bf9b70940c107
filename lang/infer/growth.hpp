// Recursion whose argument types grow: f(x) that calls f((x,)), views of views, lists as types. Whatever follows calls
// through the program would make ever new specialisations, where running code only makes those that it reaches.
#pragma once

#include <span>

#include "lang/runtime/method.hpp"

namespace slope::infer {

// `stack`: the specialisations that are followed now, outermost first. Whether a call of `target` goes on such a
// recursion, which is then left to be followed when it runs.
bool types_grow(std::span<const Specialization* const> stack, const Specialization& target);

}  // namespace slope::infer
