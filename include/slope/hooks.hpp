// What a host can watch: lines as they run, coverage, allocations. Each is an option of the engine (Options); an engine
// without it pays nothing. Profiles: slope/profile.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "slope/engine.hpp"

namespace slope::api {

// Options::on_line: a function reaches a line, or returns to it from another one.
struct LineStep {
  std::string_view function;  // "top-level scope" outside of functions
  std::string_view file;
  std::uint32_t line = 0;
};

// Options::on_allocation: an object, or the memory of an array that is outside its object.
class Allocation {
 public:
  std::size_t bytes() const { return bytes_; }
  std::string type() const;   // "Vector{Float64}"
  Position position() const;  // in the host's scripts; line 0 where none of them runs

 private:
  friend class detail::EngineState;
  detail::EngineState* engine_ = nullptr;
  const void* type_ = nullptr;
  std::size_t bytes_ = 0;
};

struct CoverageLine {
  std::uint32_t line = 0;
  std::uint64_t count = 0;  // how often an activation reached it from another line, or began there; 0: it did not run
};
struct CoverageFile {
  std::string file;
  std::vector<CoverageLine>
      lines;  // those with code: of top-level statements that ran, and of all functions; ascending
};
// The coverage of the host's scripts so far; files in the order in which the host passed them. Returns an error when
// the engine was made without Options::coverage.
Result<std::vector<CoverageFile>> coverage(Engine& engine);

}  // namespace slope::api
