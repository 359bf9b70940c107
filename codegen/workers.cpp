#include "codegen/workers.hpp"

#include <csignal>
#include <cstdlib>

#include <algorithm>

namespace slope::codegen {

void Job::run(Translator& translator) {
  for (std::unique_ptr<Unit>& unit : batch->units()) {
    if (cancelled.load(std::memory_order_relaxed)) break;
    std::unique_ptr<llvm::MemoryBuffer> object = translator.translate(*unit, effort, &cancelled, why);
    if (!object) break;
    objects.push_back({unit.get(), std::move(object)});
  }
  done.store(true, std::memory_order_release);
}

// Never destroyed: a thread may be in the middle of LLVM when the process ends. `stop` runs before LLVM's own
// destructors do, because it is registered later than they are.
Workers& Workers::shared() {
  static Workers* const workers = [] {
    std::atexit([] { shared().stop(); });
    return new Workers();
  }();
  return *workers;
}

bool Workers::want(unsigned threads, std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Signals are for the threads of the host.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (threads_.size() < threads && !stopping_) {
    std::unique_ptr<Translator> translator = Translator::create(why);
    if (!translator) break;
    translators_.push_back(std::move(translator));
    try {
      threads_.emplace_back([this, mine = translators_.back().get()] { work(*mine); });
    } catch (const std::system_error& error) {
      why = error.what();
      break;
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return !threads_.empty() && !stopping_;
}

void Workers::add(std::shared_ptr<Job> job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void Workers::work(Translator& translator) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    std::shared_ptr<Job> job = std::move(waiting_.front());
    waiting_.pop_front();
    running_.push_back(job);
    lock.unlock();
    if (job->cancelled)
      job->done.store(true, std::memory_order_release);
    else
      job->run(translator);
    lock.lock();
    running_.erase(std::find(running_.begin(), running_.end(), job));
    changed_.notify_all();
    lock.unlock();
    job.reset();  // frees it, perhaps, which takes time
    lock.lock();
  }
}

void Workers::finish(Job& job, Translator& translator) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto mine = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& one) { return one.get() == &job; });
  if (mine != waiting_.end()) {
    const std::shared_ptr<Job> taken = std::move(*mine);
    waiting_.erase(mine);
    lock.unlock();
    taken->run(translator);
    return;
  }
  changed_.wait(lock, [&] { return job.done.load(std::memory_order_acquire); });
}

void Workers::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    for (const std::shared_ptr<Job>& job : running_) job->cancelled = 1;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace slope::codegen
