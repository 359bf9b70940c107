// `slope profile --memory`: what a script allocates, by line and type.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "slope/hooks.hpp"

namespace slope::repl {

class AllocationSites {
 public:
  void note(const Allocation& allocation);  // Options::on_allocation
  std::string table() const;

 private:
  struct Site {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
  };
  std::map<std::pair<std::pair<std::string, unsigned>, std::string>, Site> sites_;  // by file and line, and type
};

}  // namespace slope::repl
