// What a call costs besides its work: where it allocates, and where it looks methods up at run time. The report is in
// words: the line of the inspected function, the line in the library where the cost arises, and one change that would
// help.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lang/infer/infer.hpp"

namespace slope::infer {

struct CostSite {
  std::vector<Span> way;  // from the line of the function asked about to the place itself
  std::string what;       // the expression at the first of these
  std::string reason;
  std::string advice;
  bool in_loop = false;
  bool always = false;  // every call comes there (in a loop: every turn); otherwise only some do
};

// What the walks ask about functions. Null: nothing is known of it.
struct CostSource {
  std::function<const ir::Function*(Specialization& target)> optimised;
};

// Places where memory of the heap may be taken, in the optimised code of `target` and what it calls, once a function.
// What happens on the way to an error is left out, and what lies in scratch memory because it does not outlive the
// call.
std::vector<CostSite> allocations(Runtime& runtime, Specialization& target, const CostSource& source);
// Calls whose method is looked up when they run.
std::vector<CostSite> dynamic_calls(Runtime& runtime, Specialization& target, const CostSource& source);

// As the prompt prints them.
std::string costs_text(Runtime& runtime, const Specialization& target, const std::vector<CostSite>& sites, bool dynamic,
                       bool color);

}  // namespace slope::infer
