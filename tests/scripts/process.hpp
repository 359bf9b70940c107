// Runs a program to its end, or to a time limit, and catches what it prints.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace slope::test {

struct ProcessResult {
  int status = -1;  // exit status; -1 when ended by a signal
  int signal = 0;   // the signal that ended it, or 0
  bool timed_out = false;
  std::string out;
  std::string err;
};

// `command[0]` is the program. Standard input holds `input`.
ProcessResult run_process(const std::vector<std::string>& command, const std::string& input,
                          std::chrono::milliseconds limit);

}  // namespace slope::test
