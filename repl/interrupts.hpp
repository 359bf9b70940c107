// ^C stops the running script, not the command. A second one, before the first had an effect, ends the process.
#pragma once

#include "slope/engine.hpp"

namespace slope::repl {

// While an object of this class lives, SIGINT interrupts `engine`.
class InterruptGuard {
 public:
  explicit InterruptGuard(Engine& engine);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
};

// Whether SIGINT came since the last question; for the time when no script runs.
bool take_interrupt();

}  // namespace slope::repl
