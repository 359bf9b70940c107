// Stacks are mapped memory of which only the touched pages are there, with a page below that cannot be touched.
// Boost.Context saves the registers on the stack that is left, so that the address it gives is where the collector
// begins to look.
#include "lang/runtime/coroutines.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <limits>
#include <thread>

#include "lang/runtime/call_watch.hpp"
#include "lang/runtime/context_tapes.hpp"
#include "lang/runtime/recorded_run.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/address_space.hpp"
#include "lang/support/exception_safe.hpp"
#include "lang/support/thread_stack.hpp"
#include "lang/support/tuning.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace slope {

namespace {

constexpr std::size_t page = 4096;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t stack_bytes =
    8 * tuning::coroutine_stack;  // frames are larger: a program goes as deep as it does elsewhere
#else
constexpr std::size_t stack_bytes = tuning::coroutine_stack;
#endif
constexpr std::size_t counted_bytes = tuning::coroutine_counted;
// So many are alive before the first look for those that nobody can resume: the heap does not see what stacks take.
constexpr std::size_t least_look = 1024;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t outermost_bytes = 64 * 1024;  // of a stack: what enter and run_current may take
#endif
static_assert(stack_bytes % page == 0 && stack_bytes > 2 * tuning::native_stack_reserve);

}  // namespace

struct Coroutine {
  enum class Alarm : std::uint8_t { none, deadlock };

  explicit Coroutine(Coroutines& owner) : all(owner) {}
  ~Coroutine() {
    forget_frames();
    if (low) munmap(low, stack_bytes);
#if defined(__SANITIZE_THREAD__)
    if (fiber && low) __tsan_destroy_fiber(fiber);
#endif
  }
  Coroutine(const Coroutine&) = delete;

  bool map() {
    if (!has_address_space(stack_bytes + address_reserve)) return false;
    void* memory = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return false;
    low = static_cast<char*>(memory);
    high = low + stack_bytes;
    bounds = {low + page, high};
    return mprotect(low, page, PROT_NONE) == 0;
  }
  // The outermost frames never return. Those inside have, and the marks of the whole stack would take megabytes.
  void forget_frames() {
#if defined(__SANITIZE_ADDRESS__)
    if (low) __asan_unpoison_memory_region(high - outermost_bytes, outermost_bytes);
#endif
  }
  static void enter(boost::context::detail::transfer_t transfer);
  void exchange(Context& ctx) {
    std::swap(stack_limit, ctx.stack_limit);
    std::swap(world, ctx.world);
    std::swap(frames, ctx.frames);
    std::swap(tapes, ctx.tapes);
    std::swap(caught, ctx.caught);
    std::swap(last_trace, ctx.last_trace);
    const void* base = ctx.heap->stack_base();
    ctx.heap->set_stack_base(stack_base);
    stack_base = base;
  }

  Coroutines& all;
  CoroutineObject* object = nullptr;  // of the root: null before somebody asks
  void* at = nullptr;                 // where it is suspended; null: it runs
  char* low = nullptr;                // its own stack; the root has none
  char* high = nullptr;
  ThreadStack bounds;
  std::size_t index = 0;  // in Coroutines::alive_
  bool has_ended = false;
  bool is_doomed = false;
  Alarm alarm = Alarm::none;  // why the root runs although nobody scheduled it
  std::size_t uses = 0;       // when it was resumed
  // Of the context, while it is suspended.
  const char* stack_limit = nullptr;
  const void* stack_base = nullptr;
  World world = 0;
  FrameRecord* frames = nullptr;
  TapePool* tapes = nullptr;
  std::vector<Value> caught;
  std::vector<TraceEntry> last_trace;
  std::unique_ptr<ContextTapes> own_tapes;
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  const void* known_low = nullptr;  // of the root: learnt when it is left
  std::size_t known_size = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* fiber = nullptr;
#endif
};

Coroutines::Coroutines(Runtime& runtime)
    : runtime_(runtime), root_(std::make_unique<Coroutine>(*this)), current_(root_.get()), next_look_(least_look) {
  runtime.heap.set_suspended(this);
  root_key_ = runtime.heap.add_root_tracer([this](Tracer& tracer) {
    for (const Coroutine* held : {static_cast<const Coroutine*>(root_.get()), static_cast<const Coroutine*>(current_),
                                  static_cast<const Coroutine*>(reaper_)}) {
      if (!held) continue;
      tracer.object(held->object);
      for (Value v : held->caught) tracer.value(v);
    }
    if (root_->at) tracer.conservative(root_->at, root_->stack_base);
    for (const Coroutine* doomed : doomed_) tracer.object(doomed->object);
    for (CoroutineObject* ready : ready_) tracer.object(ready);
    for (const auto& [due, sleeper] : asleep_) tracer.object(sleeper);
  });
}

Coroutines::~Coroutines() {
  close();
  runtime_.heap.remove_root_tracer(root_key_);
  runtime_.heap.set_suspended(nullptr);
}

// --- the collector ---

void Coroutines::trace(Tracer& tracer, CoroutineObject* object) {
  const Coroutine* coroutine = object->running;
  if (!coroutine || coroutine == root_.get() || !coroutine->at) return;
  tracer.conservative(coroutine->at, coroutine->high);
  for (Value v : coroutine->caught) tracer.value(v);
}

void Coroutines::after_marking(Tracer& tracer, const Survivors& survivors) {
  for (const auto& coroutine : alive_) {
    if (coroutine->is_doomed || survivors.alive(coroutine->object)) continue;
    coroutine->is_doomed = true;
    doomed_.push_back(coroutine.get());
  }
  for (const Coroutine* doomed : doomed_) tracer.object(doomed->object);
}

void Coroutines::each(const std::function<void(const void* from, const void* to)>& look) const {
  const auto look_at = [&](const Coroutine& suspended, const void* high) {
    if (suspended.at) look(suspended.at, high);
    look(suspended.caught.data(), suspended.caught.data() + suspended.caught.size());
  };
  look_at(*root_, root_->stack_base);
  for (const auto& coroutine : alive_) look_at(*coroutine, coroutine->high);
}

void Coroutines::each_state(const std::function<void(World, const std::vector<TraceEntry>&)>& look) const {
  look(root_->world, root_->last_trace);
  for (const auto& coroutine : alive_) look(coroutine->world, coroutine->last_trace);
}

// --- who runs next ---

CoroutineObject* Coroutines::make(Context& ctx, Value task, Value entry) {
  const DataType* type = runtime_.types.builtin().coroutine;
  auto* made = static_cast<CoroutineObject*>(ctx.heap->allocate(type, sizeof(CoroutineObject) - sizeof(Object)));
  if (!made) {
    ctx.out_of_memory();
    return nullptr;
  }
  made->task = task;
  made->entry = entry;
  return made;
}

CoroutineObject* Coroutines::current(Context& ctx) {
  if (!current_->object) {
    current_->object = make(ctx, runtime_.nothing(), runtime_.nothing());
    if (!current_->object) return nullptr;
    current_->object->running = current_;
    current_->object->state = CoroutineObject::State::alive;
  }
  return current_->object;
}

bool Coroutines::schedule(Context& ctx, CoroutineObject* coroutine, bool first) {
  if (coroutine->state == CoroutineObject::State::ended) return ctx.raise_error("schedule: Task not runnable");
  unschedule(coroutine);
  coroutine->waits = CoroutineObject::Waits::ready;
  if (first) {
    ready_.push_front(coroutine);
  } else {
    ready_.push_back(coroutine);
  }
  return true;
}

void Coroutines::unschedule(CoroutineObject* coroutine) {
  if (coroutine->waits == CoroutineObject::Waits::ready) std::erase(ready_, coroutine);
  if (coroutine->waits == CoroutineObject::Waits::asleep)
    std::erase_if(asleep_, [&](const auto& entry) { return entry.second == coroutine; });
  coroutine->waits = CoroutineObject::Waits::no;
}

void Coroutines::wake_sleepers() {
  if (asleep_.empty()) return;
  const Clock::time_point now = Clock::now();
  while (!asleep_.empty() && asleep_.begin()->first <= now) {
    CoroutineObject* sleeper = asleep_.begin()->second;
    asleep_.erase(asleep_.begin());
    sleeper->waits = CoroutineObject::Waits::ready;
    ready_.push_back(sleeper);
  }
}

// In short naps: the host may want to stop it.
bool Coroutines::nap(Context& ctx) {
  for (;;) {
    const Clock::time_point now = Clock::now(), due = asleep_.begin()->first;
    if (due <= now) return true;
    std::this_thread::sleep_for(std::min<Clock::duration>(due - now, std::chrono::milliseconds(10)));
    if (ctx.interrupt.load(std::memory_order_relaxed)) return false;
  }
}

// Null: nobody is ready. False: an error is pending.
bool Coroutines::next(Context& ctx, Coroutine*& found) {
  found = nullptr;
  wake_sleepers();
  if (ready_.empty()) return true;
  CoroutineObject* object = ready_.front();
  if (object->state == CoroutineObject::State::fresh) {
    if (!begin(ctx, object, found)) return false;
  } else {
    found = object->running;
  }
  ready_.pop_front();
  object->waits = CoroutineObject::Waits::no;
  return true;
}

bool Coroutines::may_switch(Context& ctx) {
  if (ctx.stopped != Stop::none) return ctx.stop();
  if (&ctx != &runtime_.context || ctx.shared) return ctx.raise_error("a workspace's function cannot wait for tasks");
  if (runs_generator(ctx)) return ctx.refuse_in_generator("wait for tasks");
  if (ctx.calls)
    return ctx.raise_error(
        "a function that is being differentiated cannot wait for tasks: wait outside of it, and pass in the result");
  if (ctx.heap->is_paused())
    return ctx.raise_error("code that runs while functions are compiled cannot wait for tasks");
  if (current_ != root_.get() && uses_ && *uses_ != current_->uses)
    return ctx.raise_error(
        "a task cannot wait for others inside a function of the host that uses the engine: let the function return "
        "before");
  return true;
}

bool Coroutines::wait(Context& ctx) {
  if (!may_switch(ctx)) return false;
  if (alive_.size() >= next_look_) {
    ctx.heap->collect();
    reap(ctx);
    next_look_ = std::max(least_look, 2 * alive_.size());
  }
  if (!doomed_.empty()) reap(ctx);
  if (!current(ctx)) return false;
  Coroutine* to = nullptr;
  if (!next(ctx, to)) return false;
  while (!to && !asleep_.empty()) {
    if (!nap(ctx)) {
      to = root_.get();  // which sees why
      break;
    }
    if (!next(ctx, to)) return false;
  }
  if (!to) {
    to = root_.get();
    to->alarm = Coroutine::Alarm::deadlock;
  }
  return to == current_ ? resumed(ctx) : switch_to(ctx, *to);
}

bool Coroutines::yield(Context& ctx) {
  if (!may_switch(ctx)) return false;
  CoroutineObject* self = current(ctx);
  if (!self || !schedule(ctx, self, false)) return false;
  if (wait(ctx)) return true;
  unschedule(self);
  return false;
}

bool Coroutines::sleep(Context& ctx, double seconds) {
  if (!may_switch(ctx)) return false;
  CoroutineObject* self = current(ctx);
  if (!self) return false;
  const std::chrono::duration<double> span(std::min(seconds, 1e8));
  asleep_.emplace(Clock::now() + std::chrono::duration_cast<Clock::duration>(span), self);
  self->waits = CoroutineObject::Waits::asleep;
  if (wait(ctx)) return true;
  unschedule(self);
  return false;
}

// --- switches ---

bool Coroutines::begin(Context& ctx, CoroutineObject* object, Coroutine*& made) {
  std::unique_ptr<Coroutine> coroutine;
  if (!spare_.empty()) {
    coroutine = std::move(spare_.back());
    spare_.pop_back();
  } else {
    coroutine = std::make_unique<Coroutine>(*this);
    if (!coroutine->map()) return ctx.out_of_memory();
    coroutine->own_tapes = std::make_unique<ContextTapes>(ctx);
    coroutine->own_tapes->pool()->set_limit(root_->tapes ? root_->tapes->limit() : ctx.tapes->limit());
#if defined(__SANITIZE_THREAD__)
    coroutine->fiber = __tsan_create_fiber(0);
#endif
  }
  make_room_for_one(alive_);
  make_room_for_one(doomed_);
  runtime_.outside_heap.add(counted_bytes);
  coroutine->object = object;
  coroutine->stack_base = coroutine->high;
  coroutine->stack_limit = coroutine->low + page + tuning::native_stack_reserve;
  if (depth_ != 0) coroutine->stack_limit = std::max<const char*>(coroutine->stack_limit, coroutine->high - depth_);
  coroutine->world = runtime_.world();
  coroutine->frames = nullptr;
  coroutine->tapes = coroutine->own_tapes->pool();
  coroutine->at = boost::context::detail::make_fcontext(coroutine->high, stack_bytes - page, &Coroutine::enter);
  object->running = coroutine.get();
  object->state = CoroutineObject::State::alive;
  made = coroutine.get();
  coroutine->index = alive_.size();
  alive_.push_back(std::move(coroutine));
  return true;
}

bool Coroutines::switch_to(Context& ctx, Coroutine& to) {
  if (to.object && to.object->waits != CoroutineObject::Waits::no) unschedule(to.object);
  Coroutine& from = *current_;
  from.exchange(ctx);
  jump(from, to);
  return resumed(ctx);
}

// `from` holds what was the context's. Returns when somebody jumps back to it.
void Coroutines::jump(Coroutine& from, Coroutine& to) {
  to.exchange(runtime_.context);
  to.uses = uses_ ? *uses_ : 0;
  current_ = &to;
  use_stack(to.low ? &to.bounds : nullptr);
  void* at = std::exchange(to.at, nullptr);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(from.has_ended ? nullptr : &from.fake_stack, to.low ? to.low : to.known_low,
                                 to.low ? stack_bytes : to.known_size);
#endif
#if defined(__SANITIZE_THREAD__)
  if (!from.low) from.fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.fiber, 0);
#endif
  const boost::context::detail::transfer_t back = boost::context::detail::jump_fcontext(at, &from);
  arrived(back.fctx, static_cast<Coroutine*>(back.data));
}

// On the stack of the current one, which `from` has just resumed.
void Coroutines::arrived(void* context, Coroutine* from) {
#if defined(__SANITIZE_ADDRESS__)
  const void* low = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(current_->fake_stack, &low, &size);
  current_->fake_stack = nullptr;
  if (!from->low) from->known_low = low, from->known_size = size;
#endif
  from->at = context;
  if (!from->has_ended) return;
  const std::size_t index = from->index;
  std::unique_ptr<Coroutine> ended = std::move(alive_[index]);
  if (index + 1 != alive_.size()) {
    alive_[index] = std::move(alive_.back());
    alive_[index]->index = index;
  }
  alive_.pop_back();
  release(std::move(ended));
}

void Coroutines::release(std::unique_ptr<Coroutine> ended) {
  runtime_.outside_heap.remove(counted_bytes);
  if (spare_.size() >= tuning::coroutine_spare) return;
  ended->forget_frames();
  ended->object = nullptr;
  ended->at = nullptr;
  ended->has_ended = ended->is_doomed = false;
  ended->caught.clear();
  ended->last_trace.clear();
  spare_.push_back(std::move(ended));
}

// What the current one finds when it runs again. False: an error is pending.
bool Coroutines::resumed(Context& ctx) {
  if (ctx.stopped != Stop::none) return ctx.failed() ? false : ctx.stop();
  const Coroutine::Alarm alarm = std::exchange(current_->alarm, Coroutine::Alarm::none);
  if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
  if (alarm == Coroutine::Alarm::deadlock)
    return ctx.raise_error("deadlock: every task waits for another one, so that none can go on");
  return true;
}

void Coroutine::enter(boost::context::detail::transfer_t transfer) {
  auto* from = static_cast<Coroutine*>(transfer.data);
  Coroutines& all = from->all;
  all.arrived(transfer.fctx, from);
  all.run_current();
}

void Coroutines::run_current() {
  Context& ctx = runtime_.context;
  Coroutine& self = *current_;
  {
    Value task = self.object->task, result;
    if (resumed(ctx) && !runtime_.call(ctx, self.object->entry, &task, 1, result) && ctx.stopped == Stop::none)
      ctx.take_error();
  }
  self.has_ended = true;
  self.object->state = CoroutineObject::State::ended;
  self.object->running = nullptr;
  self.caught.clear();
  Coroutine& to = after_end(ctx);
  if (&to != reaper_ && to.object && to.object->waits != CoroutineObject::Waits::no) unschedule(to.object);
  self.exchange(ctx);
  jump(self, to);
  std::abort();  // nobody resumes what has ended
}

Coroutine& Coroutines::after_end(Context& ctx) {
  if (current_->is_doomed) return *reaper_;
  if (ctx.stopped != Stop::none) return *root_;
  Coroutine* to = nullptr;
  while (next(ctx, to)) {
    if (to) return *to;
    if (asleep_.empty()) {
      root_->alarm = Coroutine::Alarm::deadlock;
      return *root_;
    }
    if (!nap(ctx)) return *root_;  // which sees why
  }
  ctx.take_error();  // no memory for another stack
  root_->alarm = Coroutine::Alarm::deadlock;
  return *root_;
}

// --- ends ---

void Coroutines::reap(Context& ctx) {
  while (!doomed_.empty()) {
    Coroutine* one = doomed_.back();
    doomed_.pop_back();
    end_one(ctx, *one);
  }
}

// Its frames return, with an error that no catch block sees.
void Coroutines::end_one(Context& ctx, Coroutine& coroutine) {
  Coroutine* const before = std::exchange(reaper_, current_);
  const Stop stopped = std::exchange(ctx.stopped, Stop::interrupt);
  coroutine.is_doomed = true;
  Coroutine& from = *current_;
  from.exchange(ctx);
  jump(from, coroutine);
  ctx.stopped = stopped;
  ctx.error = Value();
  ctx.trace.clear();
  reaper_ = before;
}

void Coroutines::close() {
  Context& ctx = runtime_.context;
  if (current_ != root_.get()) return;
  if (!alive_.empty()) runtime_.enter_thread(ctx);
  ready_.clear();
  asleep_.clear();
  doomed_.clear();
  while (!alive_.empty()) end_one(ctx, *alive_.back());
  spare_.clear();
}

bool Coroutines::lend_stack(Context& ctx) const {
  if (current_ == root_.get()) return false;
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  if (here < current_->low || here >= current_->high) return false;
  if (&ctx == &runtime_.context) return true;  // it has them
  ctx.stack_limit = runtime_.context.stack_limit;
  ctx.heap->set_stack_base(current_->high);
  return true;
}

double Coroutines::seconds_left(const Context& ctx) const {
  if (&ctx != &runtime_.context || end_ == Clock::time_point::max()) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(end_ - Clock::now()).count();
}

}  // namespace slope
