#include "repl/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <initializer_list>

namespace slope::repl {

namespace {

std::atomic<Output*> tended = nullptr;  // the command has one

// Those that end the process, unless whoever started it has them ignored (nohup).
sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction now = {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) sigaddset(&set, number);
  }
  return set;
}

bool is_tended() { return isatty(STDOUT_FILENO) == 0; }

}  // namespace

Output::Output() : immediate_(isatty(STDOUT_FILENO) != 0) { tended = this; }

Output::~Output() {
  tended = nullptr;
  flush();
}

void Output::out(std::string_view text) {
  constexpr std::size_t full = 64 * 1024;
  const std::lock_guard<std::timed_mutex> lock(mutex_);
  buffer_ += text;
  if (!text.empty()) at_line_start_ = text.back() == '\n';
  if (immediate_ || text.empty() || buffer_.size() >= full) flush_locked();
}

void Output::err(std::string_view text) {
  flush();
  if (!text.empty()) at_line_start_ = text.back() == '\n';
  write_all(STDERR_FILENO, text);
}

void Output::flush() {
  const std::lock_guard<std::timed_mutex> lock(mutex_);
  flush_locked();
}

void Output::flush_from_outside(bool waits) {
  std::unique_lock<std::timed_mutex> lock(mutex_, std::defer_lock);
  if (waits ? !lock.try_lock_for(std::chrono::milliseconds(100)) : !lock.try_lock()) return;
  constexpr std::size_t taken_at_once = 4096;  // a pipe that is ready takes so much without waiting
  std::size_t done = 0;
  while (done < buffer_.size()) {
    pollfd ready = {STDOUT_FILENO, POLLOUT, 0};
    if (poll(&ready, 1, waits ? 100 : 0) != 1) break;
    const ssize_t written = write(STDOUT_FILENO, buffer_.data() + done, std::min(taken_at_once, buffer_.size() - done));
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  buffer_.erase(0, done);
}

void Output::flush_locked() {
  if (const int failed = write_all(STDOUT_FILENO, buffer_); failed != 0 && failure_ == 0) failure_ = failed;
  buffer_.clear();
}

int Output::write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {  // somebody made it non-blocking
      pollfd ready = {descriptor, POLLOUT, 0};
      if (poll(&ready, 1, -1) < 0 && errno != EINTR) return errno;
    } else if (written == 0 || errno != EINTR) {
      return written == 0 ? EIO : errno;
    }
  }
  return 0;
}

void open_closed_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) == 0 || errno != EBADF) continue;
    if (open("/dev/null", O_RDONLY) != descriptor) return;  // the lowest that is free
  }
}

void block_ending_signals() {
  if (!is_tended()) return;
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void tend_output() {
  if (!is_tended()) return;
  const sigset_t set = ending_signals();
  while (true) {
    constexpr timespec pause = {0, 100'000'000};
    const int number = sigtimedwait(&set, nullptr, &pause);
    if (Output* output = tended.load()) output->flush_from_outside(number > 0);
    if (number <= 0) continue;
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
}

}  // namespace slope::repl
