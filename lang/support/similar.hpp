// "Did you mean": the name among several that is most like a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slope {

// The candidate with the least edit distance (insertions, deletions, changes, swaps of neighbours; a change of case
// counts little), of several the first in the alphabet; empty when none is near: a third of the letters may be wrong.
std::string most_similar(std::string_view wanted, const std::vector<std::string_view>& candidates);

}  // namespace slope
