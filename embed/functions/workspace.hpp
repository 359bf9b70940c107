// Decides who may run: the engine, or its workspaces (workspace.cpp).
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

namespace slope::api::detail {

// A workspace as the gate sees it.
class WorkspaceRun {
 public:
  virtual ~WorkspaceRun() = default;
  virtual void let_go() = 0;                 // the engine ends
  std::atomic<const void*> runner{nullptr};  // the thread that runs it
};

// Workspaces come and go all the time, the engine seldom: where the kernel has membarrier(2), the engine's side pays
// for both sides' order and a workspace enters with plain loads and stores (asymmetric Dekker).
class WorkspaceGate {
 public:
  void add(WorkspaceRun& run);
  void remove(WorkspaceRun& run);
  bool empty();
  void let_go();
  // `self`: this thread. False: another thread uses this workspace, or the engine.
  bool enter_at_once(WorkspaceRun& run, const void* self) {
    if (!claim(run, self)) return false;
    const void* user = user_.load(std::memory_order_acquire);
    if (!user || user == self) [[likely]]
      return true;
    leave(run);
    return false;
  }
  bool enter(WorkspaceRun& run);  // waits for the engine; false: another thread uses this workspace
  void leave(WorkspaceRun& run) { run.runner.store(nullptr, std::memory_order_release); }
  void begin_use();  // waits for what runs on other threads
  void end_use();

 private:
  // Builds with assertions, and kernels without membarrier, find a second thread for certain.
  bool claim(WorkspaceRun& run, const void* self) const {
#ifdef NDEBUG
    if (is_asymmetric_) [[likely]] {
      if (run.runner.load(std::memory_order_relaxed)) return false;
      run.runner.store(self, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return true;
    }
#endif
    const void* nobody = nullptr;
    return run.runner.compare_exchange_strong(nobody, self);
  }
  bool is_asymmetric_ = false;
  const void* home_ = nullptr;  // the thread that made the first workspace; others say that there are others
  std::atomic<bool> other_threads_{false};
  std::mutex mutex_;  // of the list
  std::vector<WorkspaceRun*> runs_;
  std::atomic<const void*> user_{nullptr};  // the thread that uses the engine
};

}  // namespace slope::api::detail
