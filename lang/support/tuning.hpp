// The constants of tuning.def, by name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slope::tuning {

#define SLOPE_TUNING(type, name, value, reason) inline constexpr type name = value;
#include "lang/support/tuning.def"
#undef SLOPE_TUNING

}  // namespace slope::tuning
