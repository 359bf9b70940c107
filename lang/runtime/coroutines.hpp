// Coroutines: what tasks run on (stdlib/tasks). Each has a stack of its own, and one at a time runs, on the thread that
// uses the engine. The one that the host's call runs on, on the thread's stack, is the root. It is always the current
// one between two uses of the engine.
//
// What belongs to a coroutine and not to the engine: its native stack with its limit, and of the Context the world, the
// records of frames, the exceptions of running catch blocks and the tapes. A switch exchanges them. Fuel, time,
// interrupts and the pending error are the engine's. A Stop in any coroutine ends it, and then the use: the root raises
// the Stop again.
//
// Rules that must not be broken:
//  1. A switch happens only in `wait`, `yield` and `sleep`, and only of the engine's own context (may_switch).
//  2. No frame of the host is on the stack of a coroutine that is suspended, but on the root's: the use that the frame
//     belongs to could end before it.
//  3. A stack is freed after its frames have returned. A coroutine that nobody can resume is ended by a Stop that no
//     catch block sees, so that C++ frames on its stack release what they hold.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "lang/runtime/context.hpp"

namespace slope {

class Coroutines final : private SuspendedStacks {
  using Clock = std::chrono::steady_clock;

 public:
  explicit Coroutines(Runtime& runtime);
  ~Coroutines();
  Coroutines(const Coroutines&) = delete;

  // Calls entry(task) when its turn comes first. The function must catch all errors. Null: out of memory, raised.
  CoroutineObject* make(Context& ctx, Value task, Value entry);
  CoroutineObject* current(Context& ctx);  // null: out of memory, raised
  // Adds it to those whose turn will come, `first` or last. False, with an error: it has ended.
  bool schedule(Context& ctx, CoroutineObject* coroutine, bool first);
  // The current one runs again when somebody has scheduled it. False: an error is pending.
  bool wait(Context& ctx);
  bool yield(Context& ctx);
  bool sleep(Context& ctx, double seconds);

  // All that have begun end. Before the interpreter and the code that they run go.
  void close();
  // Where the stack ends when `ctx` runs on a coroutine's stack: sets its limit. False: on the thread's stack.
  bool lend_stack(Context& ctx) const;
  void set_depth(std::size_t bytes) { depth_ = bytes; }     // of each stack; 0: as much as there is
  void set_uses(const std::size_t* uses) { uses_ = uses; }  // of the engine by the host, one inside the other
  // When the time of the engine's use is over, on a steady clock; none: never. What cannot be interrupted asks whether
  // the time that is left suffices (seconds_left). Of the engine's own context: a workspace has times of its own.
  void set_end(std::chrono::steady_clock::time_point end) { end_ = end; }
  void forget_end() { end_ = Clock::time_point::max(); }
  double seconds_left(const Context& ctx) const;  // infinite when there is no limit
  bool on_root() const { return current_ == root_.get(); }
  // Of each that is suspended: the world that it will go on in, and the trace of what it caught.
  void each_state(const std::function<void(World world, const std::vector<TraceEntry>& trace)>& look) const;
  std::size_t alive() const { return alive_.size(); }  // begun and not ended, without the root

 private:
  void trace(Tracer& tracer, CoroutineObject* coroutine) override;
  void after_marking(Tracer& tracer, const Survivors& survivors) override;
  void each(const std::function<void(const void* from, const void* to)>& look) const override;

  bool may_switch(Context& ctx);
  void unschedule(CoroutineObject* coroutine);
  void wake_sleepers();
  bool nap(Context& ctx);  // until the next sleeper's time
  bool next(Context& ctx, Coroutine*& found);
  bool begin(Context& ctx, CoroutineObject* object, Coroutine*& made);
  void reap(Context& ctx);
  void end_one(Context& ctx, Coroutine& coroutine);
  bool switch_to(Context& ctx, Coroutine& to);
  void jump(Coroutine& from, Coroutine& to);
  void arrived(void* context, Coroutine* from);
  bool resumed(Context& ctx);
  [[noreturn]] void run_current();
  Coroutine& after_end(Context& ctx);
  void release(std::unique_ptr<Coroutine> ended);
  friend struct Coroutine;

  Runtime& runtime_;
  std::unique_ptr<Coroutine> root_;
  Clock::time_point end_ = Clock::time_point::max();
  Coroutine* current_;
  Coroutine* reaper_ = nullptr;  // waits for the end of one that it ends
  std::vector<std::unique_ptr<Coroutine>> alive_;
  std::vector<std::unique_ptr<Coroutine>> spare_;  // with their stacks and tapes
  std::vector<Coroutine*> doomed_;                 // nobody can resume them
  std::deque<CoroutineObject*> ready_;
  std::multimap<Clock::time_point, CoroutineObject*> asleep_;
  std::size_t next_look_;  // when so many are alive: for those that nobody can resume
  std::size_t depth_ = 0;
  const std::size_t* uses_ = nullptr;
  int root_key_ = 0;
};

}  // namespace slope
