// The bounds of the calling thread's stack. The system is asked once for each thread, because for the main thread it
// reads and scans a file. That would take a sixth of the time of making an engine.
#pragma once

#include <cstddef>

namespace slope {

struct ThreadStack {
  const char* low = nullptr;  // both null: the system does not say
  const char* high = nullptr;
};
const ThreadStack& thread_stack();

// Recursion over trees stops at this address: a share of what the thread's stack has left below the caller, so that
// what walks the same tree afterwards has room too. Null where the system does not say how large the stack is.
const char* recursion_limit(std::size_t share);

inline bool is_below(const char* limit) { return static_cast<const char*>(__builtin_frame_address(0)) < limit; }

}  // namespace slope
