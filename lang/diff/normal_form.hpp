// The form that the transforms need: one `ret`; each loop entered by one edge and with one latch. Irreducible graphs
// are refused. Reverse mode accepts a `try` as long as nothing is thrown in it: its handlers raise.
#pragma once

#include "lang/diff/diff.hpp"

namespace slope::diff {

bool normalise(ir::Function& function, Runtime& runtime, Refusal& refusal, bool forward_mode);

}  // namespace slope::diff
