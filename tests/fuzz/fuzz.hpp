// What the fuzz targets share: the command line, and how a target reports what it finds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace slope::test {

struct FuzzOptions {
  std::uint64_t seed = 1;
  double seconds = 0;        // 0: no limit; a target ends when it is through
  std::uint64_t count = 0;   // attempts for each name or in all; 0: the target's own
  std::string only;          // a regular expression for names
  std::string tier = "all";  // interpret, compile, auto
  std::string text;          // one input instead of made ones
  double patience = 1;       // how many times the allowed lateness is allowed: a test on any machine is no clock
  bool verbose = false;
  bool here = false;  // in this process, for a debugger
};

struct FuzzReport {
  std::uint64_t attempts = 0;
  std::vector<std::string> findings;
};

struct FuzzTarget {
  const char* name;
  const char* what;
  FuzzReport (*run)(const FuzzOptions& options);
};

FuzzReport fuzz_arguments(const FuzzOptions& options);
FuzzReport fuzz_hostile(const FuzzOptions& options);
FuzzReport fuzz_faults(const FuzzOptions& options);
FuzzReport fuzz_grammar(const FuzzOptions& options);
FuzzReport fuzz_kept_data(const FuzzOptions& options);
FuzzReport fuzz_inputs(const FuzzOptions& options);
FuzzReport fuzz_soak(const FuzzOptions& options);

}  // namespace slope::test
