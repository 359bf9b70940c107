#include "tests/repl/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>

namespace slope::test {

Terminal::Terminal(const TerminalOptions& options)
    : screen_(options.rows, options.columns), dumb_(options.kind == "dumb") {
  winsize size = {};
  size.ws_row = options.rows;
  size.ws_col = options.columns;
  child_ = forkpty(&master_, nullptr, nullptr, &size);
  if (child_ == 0) {
    unsetenv("NO_COLOR");
    setenv("TERM", options.kind.c_str(), 1);
    setenv("XDG_STATE_HOME", options.state.c_str(), 1);
    setenv("XDG_CONFIG_HOME", options.config.c_str(), 1);
    setenv("INPUTRC", "/dev/null", 1);
    for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    std::vector<char*> arguments{const_cast<char*>("slope")};
    for (const std::string& argument : options.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execv(SLOPE_COMMAND, arguments.data());
    _exit(127);
  }
}

Terminal::~Terminal() {
  close(master_);
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
}

void Terminal::type(const std::string& keys) {
  if (write(master_, keys.data(), keys.size()) < 0) FAIL("the terminal is closed");
}

std::string Terminal::wait_for(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    if (const std::size_t at = seen_.find(text); at != std::string::npos) {
      std::string before = seen_.substr(0, at + text.size());
      seen_.erase(0, at + text.size());
      return before;
    }
    if (std::chrono::steady_clock::now() > deadline || !read_some()) {
      FAIL("waited for \"" << text << "\", saw \"" << seen_ << "\"");
      return {};
    }
  }
}

std::string Terminal::ask(const std::string& line) {
  type(line);
  if (dumb_) {
    type("\r");
    return wait_for("slope> ");
  }
  // The input is drawn again with each key: what counts is what the screen shows.
  const bool prefixed = line.starts_with("?") || line.starts_with(";");  // shown as a prompt of its own
  type_until("", line.substr(prefixed ? 1 : line.rfind('\n') + 1));
  type("\r");
  seen_.clear();
  screen_when([&](const std::string& text) { return text.ends_with("\nslope>\n"); });
  return std::exchange(seen_, {});
}

std::string Terminal::screen_when(const std::function<bool(const std::string&)>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(6);
  while (!condition(screen_.text()) && std::chrono::steady_clock::now() < deadline)
    if (!read_some(100)) break;
  while (true) {  // and what still comes at once
    pollfd end = {master_, POLLIN, 0};
    if (poll(&end, 1, 30) <= 0 || !(end.revents & POLLIN) || !read_some(0)) break;
  }
  return screen_.text();
}

std::string Terminal::type_until(const std::string& keys, const std::string& ending) {
  type(keys);
  return screen_when([&](const std::string& text) { return text.ends_with(ending + "\n"); });
}

double Terminal::processor_seconds() const {
  clockid_t clock;
  timespec used = {};
  if (clock_getcpuclockid(child_, &clock) != 0 || clock_gettime(clock, &used) != 0) return -1;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

int Terminal::status() {
  int status = 0;
  while (read_some()) {
  }
  waitpid(child_, &status, 0);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool Terminal::read_some(int milliseconds) {
  pollfd end = {master_, POLLIN, 0};
  if (poll(&end, 1, milliseconds) < 0) return false;
  if (end.revents == 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t count = read(master_, buffer.data(), buffer.size());
  if (count <= 0) return false;
  append({buffer.data(), static_cast<std::size_t>(count)});
  return true;
}

// Text without control sequences and carriage returns.
void Terminal::append(std::string_view text) {
  screen_.send(text);
  for (char c : text) {
    if (in_sequence_) {
      in_sequence_ = c == '[' || c == '?' || c == ';' || (c >= '0' && c <= '9');
    } else if (c == '\x1b') {
      in_sequence_ = true;
    } else if (c != '\r' && c != '\a') {
      seen_ += c;
    }
  }
}

}  // namespace slope::test
