// Who may run when: the engine, or its workspaces (workspace.cpp).
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

class WorkspaceGate {
 public:
  void add(WorkspaceRun& run);
  void remove(WorkspaceRun& run);
  bool empty();
  void let_go();
  bool enter(WorkspaceRun& run);  // waits for the engine; false: another thread uses this workspace
  void leave(WorkspaceRun& run);
  void begin_use();  // waits for what runs on other threads
  void end_use();

 private:
  std::mutex mutex_;  // of the list
  std::vector<WorkspaceRun*> runs_;
  std::atomic<const void*> user_{nullptr};  // the thread that uses the engine
};

}  // namespace slope::api::detail
