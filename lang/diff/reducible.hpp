// Rewrites loops with more than one entry into loops with one. Code that is differentiated again may have such loops.
#pragma once

#include "lang/diff/diff.hpp"

namespace slope::diff {

// False, with nothing changed, when a `try` is in the way.
bool make_reducible(ir::Function& function, Runtime& runtime);

}  // namespace slope::diff
