// Runs the command whose path the build gives.
#pragma once

#include <string>
#include <vector>

#include "tests/scripts/process.hpp"

namespace slope::test {

inline ProcessResult run_slope(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), SLOPE_COMMAND);
  return run_process(arguments, input, std::chrono::seconds(60));
}

}  // namespace slope::test
