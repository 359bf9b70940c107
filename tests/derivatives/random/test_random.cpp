// Derivatives of random programs (programs.slope): what writer.slope writes from the templates of templates.slope, checked
// by checker.slope. The command runs them, so that a program that crashes or hangs is a failure with its number, and the
// numbers found interpreted are compared with those of compiled code. The programs depend on nothing but their number.
//
//   SLOPE_RANDOM_PROGRAMS=2000 SLOPE_RANDOM_FIRST=100 SLOPE_RANDOM_COMPILED=200 slope_test_derivatives_random
//
// SLOPE_RANDOM_TIER=compile compiles all of the compiled programs, not only what runs often. A program takes some 0.25 s
// of a processor interpreted and 2 s compiled: nearly all of it derives and compiles the program's own code, so larger
// processes do not make it faster.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scripts/process.hpp"

namespace {

unsigned number_from(const char* variable, unsigned otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : otherwise;
}

// Values and derivatives of one program, in the order in which they were found.
using Numbers = std::vector<double>;

struct Run {
  std::map<unsigned, Numbers> programs;  // those that were finished
  std::string wrong;                     // what was reported
};

// Programs `first` to `last`. One that ends the process is reported, and the others are run in another process.
Run run_programs(unsigned first, unsigned last, const std::string& tier) {
  Run run;
  while (first <= last) {
    const auto process = slope::test::run_process(
        {SLOPE_COMMAND, "--tier=" + tier, SLOPE_SOURCE_DIR "/tests/derivatives/random/programs.slope",
         std::to_string(first), std::to_string(last)},
        "", std::chrono::seconds(100 + 10 * (last - first)));
    unsigned begun = first;
    std::istringstream lines(process.err);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string mark;
      if (!(words >> mark >> begun) || mark != "=") continue;
      if (lines.eof()) break;  // begun, not finished
      Numbers& numbers = run.programs[begun];
      for (double number = 0; words >> number;) numbers.push_back(number);
    }
    if (process.status == 0) {
      if (process.out.find("\nwrong: ") != std::string::npos) run.wrong += process.out;
      break;
    }
    run.wrong += "program " + std::to_string(begun) + " ended the process: " +
                 (process.timed_out
                      ? "it hangs"
                      : "status " + std::to_string(process.status) + ", signal " + std::to_string(process.signal)) +
                 "\n" + process.out +
                 process.err.substr(process.err.size() - std::min<std::size_t>(process.err.size(), 600));
    first = begun + 1;
  }
  return run;
}

constexpr unsigned programs_per_process = 20;

}  // namespace

TEST_CASE("derivatives of random programs agree with differences and with each other, and spoil no memory") {
  const unsigned first = number_from("SLOPE_RANDOM_FIRST", 1);
  const unsigned count = number_from("SLOPE_RANDOM_PROGRAMS", 30);
  const unsigned compiled = number_from("SLOPE_RANDOM_COMPILED", 3);
  const char* tier = std::getenv("SLOPE_RANDOM_TIER");
  for (unsigned at = first; at < first + count; at += programs_per_process) {
    const unsigned last = std::min(at + programs_per_process, first + count) - 1;
    const Run interpreted = run_programs(at, last, "interpret");
    INFO(interpreted.wrong);
    CHECK(interpreted.wrong == "");
    if (at - first >= compiled) continue;
    const Run other = run_programs(at, std::min(last, first + compiled - 1), tier ? tier : SLOPE_LAST_TIER);
    INFO(other.wrong);
    CHECK(other.wrong == "");
    for (const auto& [number, numbers] : other.programs) {
      const auto same = interpreted.programs.find(number);
      if (same == interpreted.programs.end()) continue;
      INFO("program " << number);
      REQUIRE(numbers.size() == same->second.size());
      for (std::size_t i = 0; i < numbers.size(); ++i)
        CHECK(std::abs(numbers[i] - same->second[i]) <= 2e-4 * (1 + std::abs(numbers[i])));
    }
  }
}
