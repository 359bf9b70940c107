// Builtins that only the library's own text may name: what it makes of them is safe because it knows what it gives them.
//
// Machine code and `execute` test what these do as far as they can. But an array that is resized in the middle of a
// derivative, a struct of the library with fields that do not belong together or a made-up record of a derivative would
// make the library's own code go wrong. Scripts have a name for each thing that can be done safely.
#pragma once

#include <string>

#include "lang/runtime/runtime.hpp"

namespace slope::lower {

// Nothing, or why a script may not name it.
std::string refusal(Runtime& runtime, const Binding& binding);

}  // namespace slope::lower
