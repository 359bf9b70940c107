// A test script: Slope code with what it must print written beside the line that prints it.
//
//   println(1 + 2)          # expect: 3
//   println(rand())         # expect match: 0\.\d+        (regular expression for the whole line)
//   error("no")             # expect error: no            (standard error contains it; exit status 1)
//   warn()                  # expect stderr: careful      (standard error contains it; exit status as else)
//
// or all of it in a block of comment lines that ends the script (tests/conformance/expect writes it)
//
//   # expected output:
//   # 3
//
// A comment line that begins with `#>` goes on with the expectation above it; what follows `#>` is appended as it is:
//
//   println(1:3, " ", 4)    # expect: 1:3
//   #> 4
//
// The lines of standard output must be the `expect:` texts in order, neither more nor fewer; a script that expects only
// errors may print what it likes. A script that expects nothing, or has a line of more than 160 columns, is an error.
// Comment lines at the head may hold
//
//   # prints nothing        it ends well and its standard output is empty
//   # args: a b             arguments of the script
//   # options: --x          options of the command
//   # stdin: text           a line of standard input
//   # tiers: compile auto   only these
//   # tolerance: 1e-9       numbers may differ so much, relatively, from the expectation and between the tiers
//   # output: varies        the tiers may print different things
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/scripts/process.hpp"

namespace slope::test {

struct Expectation {
  std::size_t line = 0;  // in the script, 1-based
  std::string text;
  bool is_pattern = false;
};

struct Script {
  std::vector<Expectation> output;
  std::vector<Expectation> errors;   // `expect error:`
  std::vector<Expectation> notices;  // `expect stderr:`
  std::vector<std::string> arguments;
  std::vector<std::string> options;
  std::string input;
  std::vector<std::string> tiers;  // empty: all
  double tolerance = 0;
  bool output_varies = false;
  bool prints_nothing = false;
  std::vector<std::string> faults;  // of the script itself, a line of text each
};

inline constexpr std::size_t max_columns = 160;

Script read_script(std::string_view text);

// What is wrong with the script, or with the result of a run; nothing when it is as the script says.
std::optional<std::string> check_result(const Script& script, const ProcessResult& result);

// Whether two lines or texts are the same; numbers in them may differ by the relative (below 1, absolute) tolerance.
bool same_text(std::string_view a, std::string_view b, double tolerance);

std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace slope::test
