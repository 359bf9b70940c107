// Texts of types that may be long.
#pragma once

#include <string>

#include "lang/types/type.hpp"

namespace slope {

// What to_string gives, or its beginning: after `most` bytes parts are "…".
std::string beginning_of_text(const Type* t, std::size_t most);

}  // namespace slope
