// What derivative code says of its instructions to the passes that come after.
#pragma once

#include <cstdint>

namespace slope::ir {

// Inst::aux of a `select` between a cotangent and an exact zero. A zero that is chosen adds nothing to any shadow,
// whatever it is multiplied by: see opt::skip_zero_cotangents.
inline constexpr std::uintptr_t select_of_cotangent = 1;

}  // namespace slope::ir
