// The bounds of the calling thread's stack. The system is asked once for each thread, because for the main thread it
// reads and scans a file. That would take a sixth of the time of making an engine.
#pragma once

namespace slope {

struct ThreadStack {
  const char* low = nullptr;  // both null: the system does not say
  const char* high = nullptr;
};
const ThreadStack& thread_stack();

}  // namespace slope
