// Object files for programs without an engine: functions of a script and their derivatives in machine code, with a C
// header and a CMake file (docs/ahead_of_time.md).
#pragma once

#include <string>
#include <vector>

#include "slope/error.hpp"

namespace slope::api::tools {

struct BuildOptions {
  std::vector<std::string> exports;  // "loss(::Vector{Float64}, n::Int64)"
  bool gradient = false;             // of those that return a Float64, with respect to all floating-point arguments
  bool jvp = false;                  // derivatives in a direction, of those that return floating-point numbers
  bool hvp = false;                  // products of the Hessian with a direction, of those that return a Float64
  std::string output;                // path without extension; empty: that of the script
  std::string target;                // as LLVM names it, where this build of Slope has it; empty: this machine
  std::string cpu;                   // "native": this machine's; empty: any of the architecture
};

struct BuildProblem {
  Position position;  // line 0: of the request as a whole
  std::string message;
  std::string excerpt;  // the place, the line, and a caret; may be empty
};

struct BuildReport {
  std::vector<std::string> files;      // that were written
  std::vector<BuildProblem> problems;  // then no file was
};

// Runs the script, so that its constants have their values, and builds. An error: the script failed, or a file could not
// be read or written.
Result<BuildReport> build(const std::string& script, const BuildOptions& options);

}  // namespace slope::api::tools

#ifndef SLOPE_IMPLEMENTATION
namespace slope {
namespace tools = api::tools;
}
#endif
