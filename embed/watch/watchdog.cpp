#include "embed/watch/watchdog.hpp"

#include <algorithm>

#include "lang/runtime/coroutines.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::api::detail {

namespace {

constexpr double longest = 1e9;  // seconds; the clock's own range is not much larger

}  // namespace

Watchdog::Watchdog(Context& ctx, double seconds)
    : ctx_(ctx),
      limit_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, longest)))),
      thread_([this] { watch(); }) {}

bool Watchdog::tells_runtime() const { return ctx_.runtime && &ctx_ == &ctx_.runtime->context; }

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::start() {
  bool sleeps = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    end_ = Clock::now() + limit_;
    running_ = true;
    if (tells_runtime()) ctx_.runtime->coroutines->set_end(end_);
    sleeps = idle_;
    idle_ = false;
  }
  if (sleeps) changed_.notify_one();
}

void Watchdog::finish() {
  std::lock_guard<std::mutex> lock(mutex_);
  running_ = false;
  if (tells_runtime()) ctx_.runtime->coroutines->forget_end();
  std::uint32_t late = interrupt_timeout;
  ctx_.interrupt.compare_exchange_strong(late, no_interrupt);
}

// Uses that follow each other quickly do not wake the thread: it looks again when the time of the last one that it
// knows of would be over.
void Watchdog::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    if (idle_) {
      changed_.wait(lock);
      continue;
    }
    const Clock::time_point end = end_;
    changed_.wait_until(lock, end);
    if (ending_ || Clock::now() < end || end_ > end) continue;
    std::uint32_t none = no_interrupt;
    if (running_) ctx_.interrupt.compare_exchange_strong(none, interrupt_timeout);
    idle_ = true;
  }
}

}  // namespace slope::api::detail
