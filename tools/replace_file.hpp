// Beside slope/tools.hpp, for files that cannot see the public values.
#pragma once

#include <string>
#include <string_view>

namespace slope::api::tools {

// Writes a file as a whole: the old one stays as it was when that fails. Returns why it failed; empty: it is written.
std::string replace_file(const std::string& path, std::string_view text);

}  // namespace slope::api::tools
