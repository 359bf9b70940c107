// Workspaces: a compiled function on several threads.
//
// Machine code reaches everything that it changes through its context. A workspace has a context of its own, with a
// heap and tapes. What workspaces share with the engine:
//  - the engine's tables (types, methods, names), which slow paths read under Runtime::shared (SharedAccess);
//  - the objects on the engine's heap that the code refers to: constants, and arrays in globals.
//
// Shared objects are only read (NativeCheck::shares). Nothing from a workspace's heap is stored into them. They are not
// collected while a workspace may read them:
//  - the engine's heap is paused as long as workspaces exist and nobody uses the engine (EngineState::end_use);
//  - a use of the engine waits until no workspace runs on another thread, and a workspace waits while another thread
//    uses the engine: WorkspaceGate.
#include <algorithm>
#if defined(__linux__) && __has_include(<linux/membarrier.h>) && !defined(__SANITIZE_THREAD__)
#define SLOPE_MEMBARRIER 1
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "embed/functions/slope_function.hpp"
#include "embed/host/native_check.hpp"
#include "lang/runtime/context_tapes.hpp"

namespace slope::api::detail {

class SlopeWorkspace final : public WorkspaceState, public WorkspaceRun {
 public:
  explicit SlopeWorkspace(std::shared_ptr<SlopeFunction> made_by)
      : function_(std::move(made_by)),
        engine_(function_->engine_),
        handles_(engine_.handles),
        heap_(engine_.runtime.types),
        direct_(function_->found_.direct),
        world_(function_->found_.world),
        held_(engine_.runtime.kept_methods.hold(world_)) {
    ctx_.runtime = &engine_.runtime;
    ctx_.heap = &heap_;
    ctx_.world = world_;
    ctx_.shared = &engine_.runtime.shared;
    ctx_.depth_is_limited = engine_.ctx.depth_is_limited;
    ctx_.heap_is_limited = engine_.ctx.heap_is_limited;
    tapes_ = std::make_unique<ContextTapes>(ctx_);
    ctx_.tapes = tapes_->pool();
    if (ctx_.heap_is_limited) ctx_.tapes->set_heap_limit(engine_.options.heap_limit);
    if (engine_.tape_limit() != 0) ctx_.tapes->set_limit(engine_.tape_limit());
    if (std::ranges::any_of(function_->parameters_, is_array))
      lent_ = std::make_unique<LentArrays>(engine_, function_->parameters_, 2, &heap_);
    if (engine_.options.time_limit > 0) watchdog_ = std::make_unique<Watchdog>(ctx_, engine_.options.time_limit);
    of_function = function_.get();
    is_unlimited_ = !ctx_.depth_is_limited && !watchdog_;
    if (!function_->has_shapes_) gradient_at_once = flat_gradient;
    heap_.hold_slices();
    engine_.runtime.other_heaps.fetch_add(1);
    engine_.gate.add(*this);
    engine_.gate.enter(*this);  // the engine's collector must not be at work on another thread
    engine_.runtime.heap.hold_slices();
    engine_.gate.leave(*this);
  }
  ~SlopeWorkspace() override {
    if (!handles_->engine()) return;
    engine_.gate.enter(*this);  // the machine code that it held is the engine's to free
    let_go();
    engine_.gate.remove(*this);
    engine_.runtime.heap.release_slices();
    engine_.runtime.other_heaps.fetch_sub(1);
  }

  bool call(const Datum* arguments, Datum& result) override {
    LoweredArguments lowered;
    if (function_->has_shapes_) {
      std::string why = argument_misfit(function_->given_, arguments);
      if (why.empty()) why = lowered.lower(function_->given_, arguments, nullptr);
      if (!why.empty()) return refuse("call of `" + function_->name_ + "`, " + why, ErrorKind::conversion);
      arguments = lowered.data.data();
    }
    const Run run(*this);
    if (!run.ok()) return false;
    Lending lending(lent_.get());
    Words words;
    give_words(function_->parameters_, arguments, lent_.get(), words);
    std::uint64_t returned[2];
    if (!lending.ends(direct_.entry(&ctx_, words.data(), returned))) return fail();
    result.kind = function_->result_;
    result.integer = static_cast<std::int64_t>(returned[0]);
    return true;
  }

  // The road of all gradients but the first of functions of numbers and vectors. What holds from call to call is asked
  // once: find_at_once().
  static AtOnce flat_gradient(WorkspaceState& workspace, const FlatArgument* arguments, const FlatTarget* targets,
                              double& value) {
    auto& self = static_cast<SlopeWorkspace&>(workspace);
    const void* thread = __builtin_thread_pointer();
    const auto* here = static_cast<const char*>(__builtin_frame_address(0));
    if (self.at_once_on_ != thread || !self.is_on_known_stack(here) || !self.engine_.gate.enter_at_once(self, thread))
        [[unlikely]]
      return AtOnce::otherwise;
    self.ctx_.fuel = self.engine_.fuel_of_use();
    const flat::Outcome outcome = self.last_gradient_(arguments, targets, value);
    if (outcome != flat::Outcome::done || self.ctx_.stopped != Stop::none) [[unlikely]]
      return self.flat_gradient_ended(outcome);
    self.engine_.gate.leave(self);
    return AtOnce::done;
  }
  [[gnu::noinline, gnu::cold]] AtOnce flat_gradient_ended(flat::Outcome outcome) {
    if (outcome == flat::Outcome::failed) fail();
    if (lent_ && (outcome == flat::Outcome::failed || outcome == flat::Outcome::shared)) lent_->take_back();
    finish();
    engine_.gate.leave(*this);
    return detail::at_once(outcome);
  }

  // The C interface comes here at once, C++ with what flat_gradient did not take.
  bool gradient(const Datum* arguments, const GradientTarget* targets, double& value) override {
    const std::vector<Kind>& parameters = function_->parameters_;
    if (gradient_at_once && at_once_on_) {
      const AtOnce went =
          detail::gradient_at_once<WorkspaceState>(*this, flat_gradient, parameters, arguments, targets, value);
      if (went != AtOnce::otherwise) return went == AtOnce::done;
    }
    LoweredArguments lowered;
    std::string why = gradient_misfit(function_->given_, arguments, targets);
    if (function_->has_shapes_ && why.empty()) {
      why = argument_misfit(function_->given_, arguments);
      if (why.empty()) why = lowered.lower(function_->given_, arguments, targets);
      arguments = lowered.data.data();
      targets = lowered.targets.data();
    }
    if (!why.empty()) return refuse("gradient of `" + function_->name_ + "`, " + why, ErrorKind::conversion);
    const Run run(*this);
    if (!run.ok()) return false;
    const GradientPlan* plan = gradient_for(targets);
    if (!plan) return false;
    last_gradient_ = FlatGradient(plan->direct.gradient, ctx_, lent_.get());
    find_at_once();
    Lending lending(lent_.get());
    return lending.ends(plan->run(ctx_, parameters, lent_.get(), arguments, targets, value)) || fail();
  }

  Error take_error() override { return std::move(error_); }
  void interrupt() override { ctx_.interrupt.store(interrupt_final, std::memory_order_relaxed); }

  void let_go() override {  // the engine ends
    direct_ = DirectCode();
    last_gradient_ = FlatGradient();
    find_at_once();
    gradients_.clear();
  }

 private:
  // A call or gradient of this workspace.
  class Run {
   public:
    explicit Run(SlopeWorkspace& workspace) : workspace_(workspace) {
      if (!workspace.handles_->engine()) {
        workspace.refuse("the engine of the function `" + workspace.function_->name_ + "` is gone");
        return;
      }
      if (!workspace.engine_.gate.enter(workspace)) {
        workspace.refuse("the workspace is in use: each thread needs its own");
        return;
      }
      ok_ = true;
      workspace.start();
    }
    ~Run() {
      if (!ok_) return;
      workspace_.finish();
      workspace_.engine_.gate.leave(workspace_);
    }
    Run(const Run&) = delete;
    bool ok() const { return ok_; }

   private:
    SlopeWorkspace& workspace_;
    bool ok_ = false;
  };

  void start() {
    const char* here = static_cast<const char*>(__builtin_frame_address(0));
    if (thread_ != __builtin_thread_pointer() || !is_on_known_stack(here)) {
      thread_ = __builtin_thread_pointer();
      engine_.runtime.enter_thread(ctx_);
      thread_limit_ = ctx_.stack_limit;
      find_at_once();
    }
    ctx_.fuel = engine_.fuel_of_use();
    if (ctx_.depth_is_limited) {
      const auto left = static_cast<std::size_t>(here - thread_limit_);
      ctx_.stack_limit = engine_.options.stack_limit < left ? here - engine_.options.stack_limit : thread_limit_;
    }
    if (watchdog_) watchdog_->start();
  }
  // A task may call the host, on a stack of its own.
  bool is_on_known_stack(const char* here) const { return thread_limit_ < here && here < heap_.stack_base(); }
  // After what it looks at has changed.
  void find_at_once() { at_once_on_ = last_gradient_.run && is_unlimited_ ? thread_ : nullptr; }
  void finish() {
    if (ctx_.stopped != Stop::none) ctx_.go_on();
    if (watchdog_) watchdog_->finish();
  }

  bool refuse(std::string message, ErrorKind kind = ErrorKind::engine) {
    error_ = engine_error(std::move(message), kind);
    return false;
  }
  bool fail() {
    const SharedAccess shared(ctx_);
    error_ = engine_.failure(ctx_);
    return false;
  }

  // Made by the function when it is asked for the first time; the same for all its workspaces.
  const GradientPlan* gradient_for(const GradientTarget* targets) {
    const std::size_t count = function_->parameters_.size();
    for (const auto& known : gradients_)
      if (known->is_for(count, targets)) return known.get();
    const SharedAccess shared(ctx_);
    if (function_->found_.world != world_) {
      refuse("the function `" + function_->name_ + "` was refreshed: make a new workspace");
      return nullptr;
    }
    engine_.borrow_thread();
    const World world = std::exchange(engine_.ctx.world, world_);
    const GradientPlan* found = function_->gradient_plan(targets);
    const bool keeps_apart = found && stays_within(*found);
    engine_.ctx.world = world;
    if (!found) {
      error_ = function_->take_error();
      return nullptr;
    }
    if (!keeps_apart) return nullptr;
    if (found->road != Road::words) {
      refuse("the gradient of `" + function_->name_ + "` is not native", ErrorKind::not_native);
      return nullptr;
    }
    gradients_.push_back(found->shared_from_this());
    return gradients_.back().get();
  }

  // Rules run in the gradient, which may do what the function itself does not: store into what they captured, into
  // what a global holds, assign a global.
  bool stays_within(const GradientPlan& plan) {
    if (plan.road != Road::words) return true;
    Specialization& target = *plan.code.target;
    const diff::MemorySummary memory = engine_.pipeline->memory(engine_.ctx).of(target);
    // Memory without derivatives in it, too: counters, keys.
    const derive::Stores& stores = engine_.pipeline->derivatives().stores.of(engine_.ctx, target);
    const bool writes =
        ((memory.writes | memory.stored | memory.unknown | stores.arguments) & diff::global_memory) != 0;
    NativeCheck check(*engine_.pipeline, engine_.ctx);
    if (!writes && !check.assigns_global(target)) return true;
    refuse("the gradient of `" + function_->name_ +
               "` cannot have workspaces: a rule in it writes to what globals hold, or to what it keeps between calls",
           ErrorKind::not_native);
    error_.position = engine_.position_of(check.where.file != 0 ? check.where : function_->found_.target->method->span);
    return false;
  }

  std::shared_ptr<SlopeFunction> function_;
  EngineState& engine_;
  std::shared_ptr<HandleTable> handles_;
  Heap heap_;
  Context ctx_;
  std::unique_ptr<ContextTapes> tapes_;
  std::unique_ptr<LentArrays> lent_;
  std::unique_ptr<Watchdog> watchdog_;
  DirectCode direct_;
  std::vector<std::shared_ptr<const GradientPlan>> gradients_;
  FlatGradient last_gradient_;  // of them
  bool is_unlimited_ = false;   // but by fuel and memory
  World world_;
  KeptMethods::Hold held_;  // of that world
  Error error_;
  const void* thread_ = nullptr;
  const void* at_once_on_ = nullptr;  // the thread on which gradients take flat_gradient; null: none does
  const char* thread_limit_ = nullptr;
};

namespace {

#ifdef SLOPE_MEMBARRIER
bool can_order_other_threads() {
  return syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}
void order_other_threads() { syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }
#else  // ThreadSanitizer sees no order in what the kernel does
bool can_order_other_threads() { return false; }
void order_other_threads() {}
#endif

}  // namespace

void WorkspaceGate::add(WorkspaceRun& run) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (runs_.empty()) {
    is_asymmetric_ = can_order_other_threads();
    home_ = __builtin_thread_pointer();
    other_threads_ = false;
  }
  runs_.push_back(&run);
}

void WorkspaceGate::remove(WorkspaceRun& run) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase(runs_, &run);
}

bool WorkspaceGate::empty() {
  std::lock_guard<std::mutex> lock(mutex_);
  return runs_.empty();
}

void WorkspaceGate::let_go() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (WorkspaceRun* run : runs_) run->let_go();
}

// Each side says that it comes, then looks for the other: one of them sees the other. Both in sequentially consistent
// order, or the engine's side orders both.
bool WorkspaceGate::enter(WorkspaceRun& run) {
  const void* self = __builtin_thread_pointer();
  if (self != home_ && !other_threads_) other_threads_ = true;
  while (true) {
    if (!claim(run, self)) return false;
    const void* user = user_.load();
    if (!user || user == self) return true;
    leave(run);
    while (user_.load() == user) std::this_thread::yield();
  }
}

void WorkspaceGate::begin_use() {
  const void* self = __builtin_thread_pointer();
  user_.store(self);
  std::lock_guard<std::mutex> lock(mutex_);
  // A workspace's first call on a thread goes through enter(), which says so before it looks for the engine.
  if (is_asymmetric_ && !runs_.empty() && (other_threads_ || self != home_)) order_other_threads();
  for (WorkspaceRun* run : runs_) {
    for (const void* runner = run->runner.load(); runner && runner != self; runner = run->runner.load())
      std::this_thread::yield();
  }
}

void WorkspaceGate::end_use() { user_.store(nullptr); }

std::unique_ptr<WorkspaceState> SlopeFunction::make_workspace() {
  if (!alive()) return nullptr;
  Entry entry(engine_, found_.world);
  if (!found_.direct.entry) {
    refuse("`" + name_ + "` cannot have workspaces: it is not native code of numbers and spans with a number as result",
           ErrorKind::not_native);
    return nullptr;
  }
  NativeCheck check(*engine_.pipeline, engine_.ctx);
  check.for_workspace = true;
  std::string why;
  if (!check.passes(*found_.target)) {
    refuse("`" + name_ + "` cannot have workspaces: " + check.why, ErrorKind::not_native);
    error_.position = engine_.position_of(check.where);
    return nullptr;
  }
  const diff::MemorySummary memory = engine_.pipeline->memory(engine_.ctx).of(*found_.target);
  if (((memory.writes | memory.stored | memory.unknown) & diff::global_memory) != 0) {
    refuse("`" + name_ + "` cannot have workspaces: it writes to what globals hold", ErrorKind::not_native);
    error_.position = engine_.position_of(found_.target->method->span);
    return nullptr;
  }
  engine_.has_workspaces();
  return std::make_unique<SlopeWorkspace>(shared_from_this());
}

}  // namespace slope::api::detail
