// What ends the reading of a text early, and what it may take meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lang/support/memory_count.hpp"

namespace slope::syntax {

struct ParseOptions {
  std::uint32_t max_nesting = 512;  // deeper nesting is an error, never a crash
  // Not zero: nobody wants the result any more. Parsing ends soon, with an error.
  const std::atomic<std::uint32_t>* interrupt = nullptr;
  // Has what tokens and tree take while they are made. Its limit sets `interrupt`.
  MemoryCount* memory = nullptr;

  bool is_interrupted() const { return interrupt && interrupt->load(std::memory_order_relaxed) != 0; }
};

// What one part of the work has grown to. It is given back at the end.
class Growth {
 public:
  explicit Growth(MemoryCount* memory) : memory_(memory) {}
  void to(std::size_t bytes) {
    if (memory_ == nullptr || bytes <= known_) return;
    counted_.add(*memory_, bytes - known_);
    known_ = bytes;
  }

 private:
  MemoryCount* memory_;
  CountedBytes counted_;
  std::size_t known_ = 0;
};

}  // namespace slope::syntax
