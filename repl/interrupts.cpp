#include "repl/interrupts.hpp"

#include <signal.h>

#include <atomic>

namespace slope::repl {

namespace {

// A signal handler can reach nothing but variables of the process. The command has one engine.
std::atomic<Engine*> running = nullptr;
std::atomic<int> unanswered = 0;

void on_interrupt(int) {
  Engine* engine = running.load();
  if (unanswered.fetch_add(1) > 0 && engine) {
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
    return;
  }
  if (engine) engine->interrupt(Interrupt::exception);
}

}  // namespace

InterruptGuard::InterruptGuard(Engine& engine) {
  unanswered = 0;
  running = &engine;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: reading from a terminal ends too
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() { running = nullptr; }

bool take_interrupt() { return unanswered.exchange(0) != 0; }

}  // namespace slope::repl
