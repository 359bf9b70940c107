// `slope coverage FILE`: which lines of a script, and of the files that it includes, ran.
#pragma once

#include <string>
#include <vector>

#include "slope/hooks.hpp"

namespace slope::repl {

// Runs the command with what follows `coverage`. Returns the exit status.
int run_coverage(int count, char** arguments);

std::string coverage_text(const std::vector<CoverageFile>& files);  // the lines with their counts
std::string coverage_lcov(const std::vector<CoverageFile>& files);  // what genhtml and services for coverage read
std::string coverage_html(const std::vector<CoverageFile>& files);  // one page

}  // namespace slope::repl
