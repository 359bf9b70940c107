#include "repl/kernel/session.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "repl/process.hpp"

namespace slope::repl {

namespace {
constexpr std::size_t most_waiting = std::size_t{1} << 20;  // bytes of output; who prints more waits
constexpr auto pause = std::chrono::milliseconds(20);       // what is printed meanwhile is one message
}  // namespace

Session::Session() {
  pthread_t thread;
  if (!start_on_large_stack(thread, run_thread, this)) throw std::runtime_error("no thread can be made");
  pthread_detach(thread);
}

void* Session::run_thread(void* session) { static_cast<Session*>(session)->serve(); }

std::unique_ptr<Engine> Session::make_engine() {
  Options options;
  options.cache = cache_folder();
  options.capabilities = Capabilities::all();
  options.output = [this](std::string_view text) { print(Stream::out, text); };
  options.error_output = [this](std::string_view text) { print(Stream::err, text); };
  auto engine = std::make_unique<Engine>(options);
  tools::set_color(*engine, true);
  tools::FrontEnd front_end;
  front_end.show = [this](const tools::Forms& forms) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back({false, Stream::out, "", forms});
    changed_.notify_all();
  };
  front_end.read_line = [this] { return read_line(); };
  tools::set_front_end(*engine, std::move(front_end));
  return engine;
}

void Session::serve() {
  const std::unique_ptr<Engine> engine = make_engine();
  for (;;) {
    const std::function<void(Engine&)>* work = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return work_ != nullptr; });
      work = std::exchange(work_, nullptr);
    }
    {
      const std::lock_guard<std::mutex> lock(running_mutex_);
      running_ = engine.get();
      interrupted_ = false;
    }
    (*work)(*engine);
    bool interrupted = false;
    {
      const std::lock_guard<std::mutex> lock(running_mutex_);
      running_ = nullptr;
      interrupted = interrupted_;
    }
    // One that came too late is not for the next cell: a call takes it.
    if (interrupted) (void)engine->run("Base.foreach(Base.identity, 1:3)", "<interrupt>");
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
}

void Session::print(Stream stream, std::string_view text) {
  if (text.empty()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return event_bytes_ < most_waiting; });
  if (events_.empty() || !events_.back().is_text || events_.back().stream != stream)
    events_.push_back({true, stream, "", {}});
  events_.back().text += text;
  event_bytes_ += text.size();
  changed_.notify_all();
}

std::string Session::read_line() {
  std::unique_lock<std::mutex> lock(mutex_);
  line_.reset();
  wants_line_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return line_.has_value(); });
  Line line = std::move(*line_);
  lock.unlock();
  if (line.problem) std::rethrow_exception(line.problem);
  if (line.text) return *line.text;
  interrupt();  // what waits for the line
  return "";
}

void Session::answer_reader(Listener& listener, std::unique_lock<std::mutex>& lock) {
  wants_line_ = false;
  lock.unlock();
  Line line;
  reading_ = true;
  try {
    line.text = listener.read_line();
  } catch (...) {
    line.problem = std::current_exception();
  }
  reading_ = false;
  lock.lock();
  line_ = std::move(line);
  changed_.notify_all();
}

void Session::use(const std::function<void(Engine&)>& work, Listener& listener) {
  std::unique_lock<std::mutex> lock(mutex_);
  work_ = &work;
  done_ = false;
  changed_.notify_all();
  for (;;) {
    changed_.wait(lock, [&] { return done_ || wants_line_ || !events_.empty(); });
    changed_.wait_for(lock, pause, [&] { return done_ || wants_line_ || event_bytes_ >= most_waiting; });
    const std::vector<Event> events = std::exchange(events_, {});
    event_bytes_ = 0;
    const bool done = done_;
    changed_.notify_all();
    lock.unlock();
    for (const Event& event : events) {
      if (event.is_text)
        listener.printed(event.stream, event.text);
      else
        listener.shown(event.forms);
    }
    lock.lock();
    if (done) return;
    if (wants_line_ && events_.empty()) answer_reader(listener, lock);
  }
}

void Session::interrupt() {
  const std::lock_guard<std::mutex> lock(running_mutex_);
  if (!running_) return;
  interrupted_ = true;
  running_->interrupt(Interrupt::exception);
}

}  // namespace slope::repl
