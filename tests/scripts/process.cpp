#include "tests/scripts/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace slope::test {
namespace {

// A script that prints without end must not fill the memory before its time is up.
constexpr std::size_t max_captured = std::size_t{8} << 20;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

// False when the stream ended.
bool read_some(int end, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t count = read(end, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  if (into.size() < max_captured) into.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

ProcessResult run_once(const std::vector<std::string>& command, const std::string& input,
                       std::chrono::milliseconds limit) {
  ProcessResult result;
  Pipe in;
  Pipe out;
  Pipe err;

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_end, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // a group of its own: its children end with it

  std::vector<char*> arguments;
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, command[0].c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    result.err = "cannot start " + command[0] + ": " + std::strerror(failed);
    return result;
  }

  // Short inputs fit the pipe's buffer, so they can be written before the program reads.
  if (!input.empty() && write(in.write_end, input.data(), input.size()) < 0) result.err = "cannot write its input\n";
  Pipe::close_end(in.write_end);
  Pipe::close_end(out.write_end);
  Pipe::close_end(err.write_end);

  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (out.read_end >= 0 || err.read_end >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      result.timed_out = true;
      kill(-child, SIGKILL);
      break;
    }
    pollfd ends[2] = {{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}};
    if (poll(ends, 2, static_cast<int>(left.count())) <= 0) continue;
    if (ends[0].revents != 0 && !read_some(out.read_end, result.out)) Pipe::close_end(out.read_end);
    if (ends[1].revents != 0 && !read_some(err.read_end, result.err)) Pipe::close_end(err.read_end);
  }

  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, const std::string& input,
                          std::chrono::milliseconds limit) {
  // LeakSanitizer itself does not survive now and then (tests/leak_checked.sh); what the program did is lost in that.
  ProcessResult result = run_once(command, input, limit);
  for (int again = 0; again < 2 && result.status > 0; ++again) {
    if (result.err.find("LeakSanitizer has encountered a fatal error") == std::string::npos) break;
    result = run_once(command, input, limit);
  }
  return result;
}

}  // namespace slope::test
