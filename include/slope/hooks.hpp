// What a host can watch: lines as they run, coverage, allocations. Each is asked for when the engine is made, in
// Options; an engine without costs nothing. Profiles: slope/profile.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "slope/engine.hpp"

namespace slope::api {

// Options::on_line: a function comes to a line, or back to it from another one.
struct LineStep {
  std::string_view function;  // "top-level scope" outside of functions
  std::string_view file;
  std::uint32_t line = 0;
};

// Options::on_allocation: an object, or the memory of an array that does not lie in its object.
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
  std::uint64_t count = 0;  // how often an activation came to it from another line, or began there; 0: it did not run
};
struct CoverageFile {
  std::string file;
  std::vector<CoverageLine>
      lines;  // those with code: of top-level statements that ran, and of all functions; ascending
};
// Of the host's scripts so far, files in the order in which they were given. An error when the engine was made without
// Options::coverage.
Result<std::vector<CoverageFile>> coverage(Engine& engine);

}  // namespace slope::api
