#include "lang/support/dump.hpp"

#include <cstdlib>

namespace slope {

bool dump_wants(std::string_view stage) {
  const char* list = std::getenv("SLOPE_DUMP");
  if (!list) return false;
  std::string_view rest = list;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    if (rest.substr(0, comma) == stage) return true;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace slope
