// The macros that lowering itself knows, for tools that look for names.
#pragma once

#include <string_view>

namespace slope::lower {

bool is_builtin_macro(std::string_view name);  // "@inbounds"

}  // namespace slope::lower
