// The wall-clock limit: a thread of the engine that interrupts the running script when its time is over. Running code
// pays nothing for it; a use of the engine from outside pays for a lock and a look at the clock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lang/runtime/context.hpp"

namespace slope::api::detail {

class Watchdog {
 public:
  Watchdog(Context& ctx, double seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

  void start();   // a use of the engine begins,
  void finish();  // and is over: what was asked for too late is forgotten

 private:
  using Clock = std::chrono::steady_clock;
  void watch();
  bool tells_runtime() const;  // a workspace has no end that natives ask for

  Context& ctx_;
  const Clock::duration limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;
  bool idle_ = true;  // the thread sleeps until somebody calls
  bool ending_ = false;
  Clock::time_point end_;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace slope::api::detail
