// Names of Julia's Core that the library defines: they mean the same in Core as in Base.
#pragma once

#include <string_view>

namespace slope {

bool is_library_name_of_core(std::string_view name);

}  // namespace slope
