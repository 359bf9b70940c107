// The engine of a notebook, on a thread of its own with a large stack. The other thread, which talks to the notebook, waits
// while a cell runs, and hears there what the cell prints and shows: each library is used on one thread alone.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "slope/tools.hpp"

namespace slope::repl {

enum class Stream : unsigned char { out, err };

class Listener {
 public:
  virtual ~Listener() = default;
  virtual void printed(Stream stream, const std::string& text) = 0;
  virtual void shown(const tools::Forms& forms) = 0;
  // A line with its end; nothing: it was interrupted. Throws where the notebook takes no input.
  virtual std::optional<std::string> read_line() = 0;
};

class Session {
 public:
  Session();
  Session(const Session&) = delete;

  // Runs `work` on the engine's thread. The listener is told on this thread, until the work is done.
  void use(const std::function<void(Engine&)>& work, Listener& listener);
  // What is running, if anything. From any thread.
  void interrupt();
  bool is_reading() const { return reading_; }  // a line is waited for

 private:
  struct Event {
    bool is_text = true;
    Stream stream = Stream::out;
    std::string text;
    tools::Forms forms;
  };
  struct Line {
    std::optional<std::string> text;
    std::exception_ptr problem;
  };

  static void* run_thread(void* session);
  [[noreturn]] void serve();
  std::unique_ptr<Engine> make_engine();
  void print(Stream stream, std::string_view text);
  std::string read_line();
  void answer_reader(Listener& listener, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(Engine&)>* work_ = nullptr;
  bool done_ = false;
  std::vector<Event> events_;
  std::size_t event_bytes_ = 0;
  bool wants_line_ = false;
  std::optional<Line> line_;
  std::atomic<bool> reading_ = false;
  std::mutex running_mutex_;  // an interrupt meets the work it was meant for
  Engine* running_ = nullptr;
  bool interrupted_ = false;
};

}  // namespace slope::repl
