// Loops with more than one entry, brought to one: what is differentiated again may have such.
#pragma once

#include "lang/diff/diff.hpp"

namespace slope::diff {

// False, with nothing changed, when a `try` is in the way.
bool make_reducible(ir::Function& function, Runtime& runtime);

}  // namespace slope::diff
