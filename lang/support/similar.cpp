#include "lang/support/similar.hpp"

#include <algorithm>
#include <cctype>

namespace slope {

namespace {

// In halves: a change of case is half an edit. Optimal string alignment over three rows.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = 2 * j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = 2 * i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : lower(a[i - 1]) == lower(b[j - 1]) ? 1 : 2;
      row[j] = std::min({last[j] + 2, row[j - 1] + 2, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 2);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string most_similar(std::string_view wanted, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t longest = 60;
  if (wanted.size() < 3 || wanted.size() > longest) return "";
  std::size_t least = 2 * (wanted.size() <= 3 ? 1 : (wanted.size() + 1) / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    if (candidate == wanted || candidate.size() < 2 || candidate.size() > longest) continue;
    const std::size_t found = distance(wanted, candidate);
    if (found < least || (found == least && !best.empty() && candidate < best)) {
      least = found;
      best = candidate;
    }
  }
  return std::string(best);
}

}  // namespace slope
