#include "repl/allocation_sites.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace slope::repl {

namespace {

std::string bytes_text(std::uint64_t bytes) {
  char text[32];
  const auto value = static_cast<double>(bytes);
  if (bytes < 10'000)
    std::snprintf(text, sizeof text, "%8llu B  ", static_cast<unsigned long long>(bytes));
  else if (value < 1e7)
    std::snprintf(text, sizeof text, "%8.1f KiB", value / 1024);
  else
    std::snprintf(text, sizeof text, "%8.1f MiB", value / (1024 * 1024));
  return text;
}

}  // namespace

void AllocationSites::note(const Allocation& allocation) {
  const Position at = allocation.position();
  Site& site = sites_[{{at.file, at.line}, allocation.type()}];
  site.bytes += allocation.bytes();
  ++site.count;
}

std::string AllocationSites::table() const {
  std::vector<std::pair<std::pair<std::pair<std::string, unsigned>, std::string>, Site>> order(sites_.begin(),
                                                                                               sites_.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  std::uint64_t bytes = 0, count = 0;
  for (const auto& [key, site] : order) bytes += site.bytes, count += site.count;
  std::string total = bytes_text(bytes);
  total.erase(0, total.find_first_not_of(' '));
  while (total.ends_with(' ')) total.pop_back();
  std::string text = total + " in " + std::to_string(count) + (count == 1 ? " allocation" : " allocations") + "\n";
  if (order.empty()) return text;
  text += "\n       bytes       count  type, line\n";
  constexpr std::size_t most_rows = 40;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == most_rows) {
      text += "  … " + std::to_string(order.size() - most_rows) + " more\n";
      break;
    }
    const auto& [key, site] = order[i];
    const auto& [place, type] = key;
    char number[32];
    std::snprintf(number, sizeof number, "%12llu", static_cast<unsigned long long>(site.count));
    text +=
        bytes_text(site.bytes) + number + "  " + type + "  " +
        (place.second ? place.first + ":" + std::to_string(place.second) : "no line of the script: loading, parsing") +
        "\n";
  }
  return text;
}

}  // namespace slope::repl
