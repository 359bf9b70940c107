// Inference of one function can take seconds. It ends where it stands when the program that asked for it is to stop: what
// was begun is dropped, what is complete stays.
#pragma once

#include <exception>

#include "lang/runtime/context.hpp"
#include "lang/support/exception_safe.hpp"

namespace slope {

// Between check_stop and the outermost unless_stopped. Below a script that runs meanwhile (a generator) it becomes the
// error of that script, like any other exception (call_native.hpp).
struct Stopped final : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

namespace stop_scope {
inline thread_local unsigned depth = 0;  // of unless_stopped; 0: nothing is ended
inline thread_local bool is_held = false;
}  // namespace stop_scope

// `body()`, or what `Result()` is when it was ended. Then the interrupt waits for the next safe point.
template <class Body>
auto unless_stopped(Body&& body) -> decltype(body()) {
  try {
    const Restored depth(stop_scope::depth, stop_scope::depth + 1);
    return body();
  } catch (const Stopped&) {
    if (stop_scope::depth != 0) throw;
    return {};
  }
}

// What must be completed once it has begun: derivatives.
template <class Body>
auto without_stops(Body&& body) -> decltype(body()) {
  const Restored held(stop_scope::is_held, true);
  return body();
}

inline void check_stop(const Context& ctx) {
  if (stop_scope::depth != 0 && !stop_scope::is_held && ctx.interrupt.load(std::memory_order_relaxed)) throw Stopped();
}

}  // namespace slope
