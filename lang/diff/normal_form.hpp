// The shape that the reverse transform wants: one `ret`; each loop entered by one edge and with one latch. Irreducible
// graphs and handlers are refused.
#pragma once

#include "lang/diff/diff.hpp"

namespace slope::diff {

bool normalise(ir::Function& function, Runtime& runtime, Refusal& refusal);

}  // namespace slope::diff
