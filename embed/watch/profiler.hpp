// Samples of what the engine's thread is doing, taken by a signal handler on that thread.
//
// A timer on the monotonic clock sends the signal. The handler reads the thread's processor time, and takes no sample
// when the thread has slept. It walks Context::frames (lang/runtime/frames.hpp), copies methods and positions into
// memory that was allocated before, and records the interrupted instruction. Everything that needs memory or locks
// (lines, names, the place of a machine instruction) is looked up when the profile is stopped.
#pragma once

#include <signal.h>

#include <ctime>
#include <memory>
#include <vector>

#include "embed/engine_state.hpp"
#include "slope/profile.hpp"

namespace slope::api::detail {

class Profiler {
 public:
  Profiler(EngineState& engine, const ProfileOptions& options);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  bool start(std::string& why);
  bool is_on_this_thread() const;
  Profile stop();

 private:
  struct Frame {
    const Method* method;
    Span span;
    bool compiled;
  };
  struct Sample {
    const void* instruction;
    std::uintptr_t function;  // of the innermost record; 0: no function runs
    std::size_t first;        // in frames_, innermost first
    std::uint32_t count;
    std::uint32_t of_innermost;  // so many of them belong to the innermost record
    bool compiling;
    bool collecting;
  };
  class Resolver;
  static void on_signal(int, siginfo_t* info, void* context);
  void take(const void* instruction);
  void stop_timer();

  EngineState& engine_;
  double interval_;
  std::unique_ptr<Frame[]> frames_;
  std::size_t frame_count_ = 0;
  std::size_t most_frames_;
  std::unique_ptr<Sample[]> samples_;
  std::size_t sample_count_ = 0;
  std::size_t most_samples_;
  std::uint64_t lost_ = 0;
  std::int64_t last_time_ = 0;  // nanoseconds of the thread's processor time
  long thread_ = 0;
  timer_t timer_{};
  bool has_timer_ = false;  // the system's first one may have the number 0
  bool runs_ = false;
};

}  // namespace slope::api::detail
