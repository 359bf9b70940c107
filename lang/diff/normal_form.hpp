// The shape that the transforms want: one `ret`; each loop entered by one edge and with one latch. Irreducible graphs
// are refused. In reverse mode a `try` goes through as long as nothing is thrown in it: its handlers raise.
#pragma once

#include "lang/diff/diff.hpp"

namespace slope::diff {

bool normalise(ir::Function& function, Runtime& runtime, Refusal& refusal, bool forward_mode);

}  // namespace slope::diff
