#include "embed/watch/profiler.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

#include "embed/functions/frame_entries.hpp"
#include "lang/runtime/call_text.hpp"

namespace slope::api::detail {

namespace {

// Deeper stacks lose their outermost frames.
constexpr std::uint32_t most_depth = 2000;

// The profiler of this thread, for the handler. Written with the signal blocked or before the timer runs.
thread_local Profiler* of_this_thread = nullptr;

// The action for SIGPROF belongs to the process: the first profiler takes it, the last gives it back.
struct SignalAction {
  std::mutex mutex;
  int users = 0;
  struct sigaction before {};
};
SignalAction& signal_action() {
  static SignalAction action;
  return action;
}

std::int64_t thread_time() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

const void* instruction_of([[maybe_unused]] const ucontext_t& context) {
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(context.uc_mcontext.pc);
#else
  return nullptr;
#endif
}

}  // namespace

Profiler::Profiler(EngineState& engine, const ProfileOptions& options)
    : engine_(engine),
      interval_(options.interval),
      most_frames_(options.memory / 10 * 9 / sizeof(Frame)),
      most_samples_(options.memory / 10 / sizeof(Sample)) {}

Profiler::~Profiler() { stop_timer(); }

bool Profiler::is_on_this_thread() const { return thread_ == syscall(SYS_gettid); }

bool Profiler::start(std::string& why) {
  if (of_this_thread) {
    why = "a profile is being taken on this thread already";
    return false;
  }
  if (!(interval_ >= 1e-6 && interval_ <= 10)) {
    why = "ProfileOptions::interval: expected 1e-6 to 10 seconds, found " + std::to_string(interval_);
    return false;
  }
  if (most_samples_ == 0 || most_frames_ < most_depth) {
    why = "ProfileOptions::memory: expected at least 1 MiB, found " + std::to_string(most_frames_ * sizeof(Frame)) +
          " bytes";
    return false;
  }
  frames_ = std::make_unique_for_overwrite<Frame[]>(most_frames_);
  samples_ = std::make_unique_for_overwrite<Sample[]>(most_samples_);
  thread_ = syscall(SYS_gettid);
  last_time_ = thread_time();
  of_this_thread = this;
  {
    SignalAction& action = signal_action();
    const std::lock_guard<std::mutex> lock(action.mutex);
    if (action.users++ == 0) {
      struct sigaction mine {};
      mine.sa_sigaction = on_signal;
      mine.sa_flags = SA_SIGINFO | SA_RESTART;
      sigemptyset(&mine.sa_mask);
      sigaction(SIGPROF, &mine, &action.before);
    }
  }
  runs_ = true;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = static_cast<pid_t>(thread_);
  has_timer_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  bool made = has_timer_;
  if (made) {
    itimerspec every{};
    every.it_interval.tv_sec = static_cast<time_t>(interval_);
    every.it_interval.tv_nsec = static_cast<long>((interval_ - static_cast<double>(every.it_interval.tv_sec)) * 1e9);
    every.it_value = every.it_interval;
    made = timer_settime(timer_, 0, &every, nullptr) == 0;
  }
  if (!made) {
    why = "the system gives no timer for samples";
    stop_timer();
  }
  return made;
}

void Profiler::stop_timer() {
  if (!runs_) return;
  runs_ = false;
  if (has_timer_) timer_delete(timer_);
  of_this_thread = nullptr;  // of a signal that is on its way
  SignalAction& action = signal_action();
  const std::lock_guard<std::mutex> lock(action.mutex);
  // A signal that is still pending must not meet the default action, which ends the process.
  if (--action.users == 0) {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPROF, &ignore, nullptr);
    sigaction(SIGPROF, &action.before, nullptr);
  }
}

void Profiler::on_signal(int, siginfo_t*, void* context) {
  if (Profiler* profiler = of_this_thread) profiler->take(instruction_of(*static_cast<const ucontext_t*>(context)));
}

// In the handler: nothing here takes memory or locks.
void Profiler::take(const void* instruction) {
  const std::int64_t now = thread_time();
  if (static_cast<double>(now - last_time_) < 0.5e9 * interval_) return;  // the thread slept
  last_time_ = now;
  if (sample_count_ == most_samples_ || most_frames_ - frame_count_ < most_depth) {
    ++lost_;
    return;
  }
  Sample& sample = samples_[sample_count_];
  const FrameRecord* record = engine_.ctx.frames;
  sample = {instruction,
            record ? record->function : 0,
            frame_count_,
            0,
            0,
            engine_.runtime.compiles,
            engine_.runtime.heap.is_collecting()};
  const FrameRecord* const innermost = record;
  const std::size_t last = frame_count_ + most_depth;
  for (; record && frame_count_ < last; record = record->caller) {
    const bool compiled = record->is_machine_code();
    visit_entries(*record, [&](const Method* method, Span span) {
      if (frame_count_ < last) frames_[frame_count_++] = {method, span, compiled};
    });
    if (record == innermost) sample.of_innermost = static_cast<std::uint32_t>(frame_count_ - sample.first);
  }
  sample.count = static_cast<std::uint32_t>(frame_count_ - sample.first);
  ++sample_count_;
}

// From samples to names and lines.
class Profiler::Resolver {
 public:
  Resolver(EngineState& engine, Profile& profile) : engine_(engine), profile_(profile) {}

  void add(const Sample& sample, const Frame* frames) {
    std::vector<std::uint32_t> stack;  // innermost first
    if (sample.collecting) stack.push_back(part("[garbage collector]"));
    if (sample.compiling) stack.push_back(part("[compiler]"));
    std::uint32_t from = 0;
    const Located& at = locate(sample.instruction);
    if (!at.frames.empty()) {
      stack.insert(stack.end(), at.frames.begin(), at.frames.end());
      // A function without a record of its own, or at its very begin or end, lies above the innermost record's.
      if (at.function == sample.function) from = sample.of_innermost;
    }
    for (std::uint32_t i = from; i < sample.count; ++i) stack.push_back(frame(frames[i]));
    std::reverse(stack.begin(), stack.end());
    auto [known, is_new] = stacks_.try_emplace(std::move(stack), static_cast<std::uint32_t>(profile_.stacks.size()));
    if (is_new) profile_.stacks.push_back({known->first, 0});
    ++profile_.stacks[known->second].samples;
    profile_.sequence.push_back(known->second);
  }

 private:
  struct Located {
    std::uintptr_t function = 0;
    std::vector<std::uint32_t> frames;
  };

  const Located& locate(const void* instruction) {
    auto [known, is_new] = located_.try_emplace(instruction);
    std::vector<CodePlace> places;
    if (!is_new || !engine_.generator || !engine_.generator->locate(instruction, known->second.function, places))
      return known->second;
    for (CodePlace& place : places)
      known->second.frames.push_back(intern(std::move(place.function), std::move(place.file), place.line, true));
    return known->second;
  }
  std::uint32_t frame(const Frame& f) {
    const auto key = std::make_tuple(f.method, f.span.file, f.span.begin, f.compiled);
    auto [known, is_new] = by_span_.try_emplace(key, 0u);
    if (is_new) {
      const SourceMap& sources = engine_.runtime.sources;
      known->second =
          intern(frame_name(f.method), sources.file(f.span.file).name(), sources.line_of(f.span), f.compiled);
    }
    return known->second;
  }
  std::uint32_t part(const char* name) { return intern(name, "", 0, false); }
  std::uint32_t intern(std::string function, std::string file, std::uint32_t line, bool compiled) {
    auto [known, is_new] = frames_.try_emplace(std::make_tuple(function, file, line, compiled),
                                               static_cast<std::uint32_t>(profile_.frames.size()));
    if (is_new) {
      const bool library = file.starts_with("Base/") || file == "<host function>";
      profile_.frames.push_back({std::move(function), std::move(file), line, compiled, library});
    }
    return known->second;
  }

  EngineState& engine_;
  Profile& profile_;
  std::map<const void*, Located> located_;
  std::map<std::tuple<const Method*, FileId, std::uint32_t, bool>, std::uint32_t> by_span_;
  std::map<std::tuple<std::string, std::string, std::uint32_t, bool>, std::uint32_t> frames_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> stacks_;
};

Profile Profiler::stop() {
  stop_timer();
  Profile profile;
  profile.samples = sample_count_;
  profile.lost = lost_;
  profile.interval = interval_;
  Resolver resolver(engine_, profile);
  for (std::size_t i = 0; i < sample_count_; ++i) resolver.add(samples_[i], frames_.get() + samples_[i].first);
  return profile;
}

}  // namespace slope::api::detail

namespace slope::api {

using detail::Access;
using detail::EngineState;

Result<void> start_profile(Engine& engine, const ProfileOptions& options) {
  if (const Error* why = Access::unusable(engine)) return *why;
  EngineState& state = Access::state(engine);
  if (!state.options.profile)
    return detail::engine_error("the engine keeps no records for profiles: make it with Options::profile");
  if (state.profiler) return detail::engine_error("a profile of this engine is being taken already");
  auto profiler = std::make_unique<detail::Profiler>(state, options);
  std::string why;
  if (!profiler->start(why)) return detail::engine_error(std::move(why));
  state.profiler = std::move(profiler);
  return {};
}

Result<Profile> stop_profile(Engine& engine) {
  if (const Error* why = Access::unusable(engine)) return *why;
  EngineState& state = Access::state(engine);
  if (!state.profiler) return detail::engine_error("no profile of this engine was started");
  if (!state.profiler->is_on_this_thread())
    return detail::engine_error("a profile is stopped on the thread that it was started on");
  auto profiler = std::move(state.profiler);
  return profiler->stop();
}

}  // namespace slope::api
