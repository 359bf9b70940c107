// Where the calling thread's stack lies. The system is asked once for each thread: for the main thread it reads and
// scans a file, which would be a sixth of the making of an engine.
#pragma once

namespace slope {

struct ThreadStack {
  const char* low = nullptr;  // both null: the system does not say
  const char* high = nullptr;
};
const ThreadStack& thread_stack();

}  // namespace slope
