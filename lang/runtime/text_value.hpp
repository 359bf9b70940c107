// The bytes of a text: of a String, or of a SubString of one (stdlib/text/substrings.slope), which shares them.
#pragma once

#include <string_view>

#include "lang/runtime/runtime.hpp"

namespace slope {

// False: it is neither. The bytes stay while `v` does.
bool bytes_of_text(Runtime& runtime, Value v, std::string_view& out);

}  // namespace slope
