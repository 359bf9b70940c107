// The bounds of the calling thread's stack. The system is asked once for each thread, because for the main thread it
// reads and scans a file. That would take a sixth of the time of making an engine. Who switches stacks says so.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace slope {

struct ThreadStack {
  const char* low = nullptr;  // both null: the system does not say
  const char* high = nullptr;
};
const ThreadStack& thread_stack();

// The thread goes on another stack of its: a coroutine's, or with nullptr the one that the system gave it.
void use_stack(const ThreadStack* stack);

// Recursion over trees stops at this address: a share of what the thread's stack has left below the caller, so that
// what walks the same tree afterwards has room too. Null where the system does not say how large the stack is.
const char* recursion_limit(std::size_t share);

// Below the caller; a great deal where the system does not say.
inline std::size_t stack_left() {
  const ThreadStack& stack = thread_stack();
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  if (here < stack.low || here > stack.high) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(here - stack.low);
}

// Calls it on a thread of its own that has so many bytes of stack; here where no thread can be had.
void on_larger_stack(std::size_t bytes, void (*call)(void* data), void* data);

// What `f` returns, which needs `bytes` of stack: pure walks over deep structures, on whatever thread and from however
// deep a recursion. `f` must not use the engine's heap, because a collection would not see the other stack.
template <class F>
auto with_stack(std::size_t bytes, F&& f) -> std::invoke_result_t<F> {
  if (stack_left() >= bytes) return std::forward<F>(f)();
  using Result = std::invoke_result_t<F>;
  if constexpr (std::is_void_v<Result>) {
    on_larger_stack(
        bytes, [](void* data) { (*static_cast<std::remove_reference_t<F>*>(data))(); }, &f);
  } else {
    struct Job {
      std::remove_reference_t<F>& f;
      std::optional<Result> result;
    } job{f, std::nullopt};
    on_larger_stack(
        bytes,
        [](void* data) {
          Job& given = *static_cast<Job*>(data);
          given.result.emplace(given.f());
        },
        &job);
    return std::move(*job.result);
  }
}

inline bool is_below(const char* limit) { return static_cast<const char*>(__builtin_frame_address(0)) < limit; }

}  // namespace slope
