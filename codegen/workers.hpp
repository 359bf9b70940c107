// Threads that translate: what a function calls next to run in machine code is made while the engine goes on in the
// interpreter. They belong to the process, and all its engines share them.
//
// An engine emits a batch on its own thread, since that reads the engine's types and typed code, and hands over modules
// that refer to nothing of the engine (unit.hpp). A worker makes the objects; the engine links and publishes them when it
// next comes to a point where it would have compiled. An engine that no longer wants a batch cancels it and forgets
// it: whoever holds the job last frees it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "codegen/batch.hpp"
#include "codegen/translator.hpp"

namespace slope::codegen {

// What is to be translated, and then what came of it. `done` says whose it is: before the worker's, then the engine's.
struct Job {
  std::unique_ptr<Batch> batch;
  Effort effort;
  std::shared_ptr<ObjectCache> cache;  // that effort.cache points to
  std::vector<UnitObject> objects;     // fewer than units: it failed, and `why` says how
  std::string why;
  std::atomic<std::uint32_t> cancelled{0};
  std::atomic<bool> done{false};

  void run(Translator& translator);  // on any thread
  // By the engine. A worker may be the last to hold the job, and machine code is freed on the engine's thread only.
  void cancel() {
    cancelled = 1;
    batch->drop_result();
  }
  bool failed() const { return objects.size() < batch->units().size(); }
};

class Workers {
 public:
  static Workers& shared();
  // At least so many threads from now on. False with `why`: there are none.
  bool want(unsigned threads, std::string& why);
  void add(std::shared_ptr<Job> job);
  // Waits until the job is done; one that no thread has begun is taken out of the queue and done here.
  void finish(Job& job, Translator& translator);

 private:
  Workers() = default;
  void work(Translator& translator);
  void stop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::vector<std::shared_ptr<Job>> running_;
  std::vector<std::thread> threads_;
  std::vector<std::unique_ptr<Translator>> translators_;
  bool stopping_ = false;
};

}  // namespace slope::codegen
