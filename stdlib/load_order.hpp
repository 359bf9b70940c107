// base.slope names the files of the standard library in the order in which they are loaded. It holds nothing but
// includes and comments, so it is read line by line.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace slope::stdlib {

inline std::vector<std::string_view> load_order(std::string_view base) {
  std::vector<std::string_view> names;
  while (!base.empty()) {
    const std::string_view line = base.substr(0, base.find('\n'));
    base.remove_prefix(std::min(base.size(), line.size() + 1));
    constexpr std::string_view call = "include(\"";
    if (line.starts_with(call)) names.push_back(line.substr(call.size(), line.find('"', call.size()) - call.size()));
  }
  return names;
}

}  // namespace slope::stdlib
