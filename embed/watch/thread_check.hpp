// One engine, one thread at a time: in builds with assertions, when two threads use an engine at once, the process ends
// with a message before they damage its memory. Without assertions this costs nothing.
#pragma once

#ifndef NDEBUG
#include <atomic>
#include <cstdio>
#include <cstdlib>
#endif

namespace slope::api::detail {

class ThreadCheck {
 public:
#ifdef NDEBUG
  void begin() {}
  void inside() const {}
  void end() {}
#else
  void begin() {  // of the outermost use
    const void* nobody = nullptr;
    if (!user_.compare_exchange_strong(nobody, __builtin_thread_pointer())) refuse();
  }
  void inside() const {  // of a use in another
    if (user_.load() != __builtin_thread_pointer()) refuse();
  }
  void end() { user_.store(nullptr); }

 private:
  [[noreturn]] static void refuse() {
    std::fputs(
        "slope: two threads use one engine at the same time. Each needs an engine of its own, or a workspace "
        "(Function::workspace) to call a compiled function\n",
        stderr);
    std::abort();
  }
  std::atomic<const void*> user_{nullptr};
#endif
};

}  // namespace slope::api::detail
