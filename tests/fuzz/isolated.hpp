// Runs a piece of C++ in a process of its own, with limits, and reports how it ended.
//
// What is tried here may crash, hang or grow. The child says on a shared page what it is about to do, so that the parent
// knows what ended it and can go on behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace slope::test {

// Memory that parent and child share.
struct Page {
  std::uint64_t step = 0;      // the number of the last attempt that was begun
  std::uint64_t attempts = 0;  // begun in all
  std::uint64_t findings = 0;  // that the child itself found
  char text[1 << 16] = {};     // what it is, as source text

  void begin(std::uint64_t number, std::string_view what);
};

struct Ending {
  int signal = 0;  // that ended the child; 0: none
  int status = 0;  // exit status
  bool late = false;
  std::uint64_t peak_bytes = 0;  // of resident memory

  bool well() const { return signal == 0 && status == 0 && !late; }
  std::string text() const;
};

struct ProcessLimits {
  double seconds = 60;
  std::size_t address_space = std::size_t{4} << 30;  // 0: none, as sanitizers need
};

// The page outlives calls: the next child finds there what the last one wrote.
Page& shared_page();

Ending isolated(const ProcessLimits& limits, const std::function<void(Page&)>& body);

}  // namespace slope::test
