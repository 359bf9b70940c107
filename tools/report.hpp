// What must fail when a call runs, found by inference alone: a walk through the code of the call and of all that it calls
// in the program. For `@report` and `slope check`.
#pragma once

#include <vector>

#include "tools/checks.hpp"

namespace slope::api::tools {

struct ReportOptions {
  bool lookups = false;          // also calls whose method is looked up when they run
  bool undefined_names = false;  // also globals without a value
};

struct Reported {
  Fault fault;
  std::vector<Span> way;  // the calls that lead there, the outermost first
};

// Places of the program only: what fails inside of the library is a fault of the program's call.
std::vector<Reported> report(detail::EngineState& engine, Specialization& target, const ReportOptions& options);

}  // namespace slope::api::tools
