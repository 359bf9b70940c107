// Scripts of strangers, each in a process of its own behind two fences: the engine's limits and capabilities, which end a
// script with an error that says why; and the system's (fence.cpp), for the day when the first has a hole.
//
//   untrusted FILE     runs a script, and prints what it prints
//   untrusted          shows both fences with scripts that try them
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <slope/engine.hpp>
#include <string>
#include <string_view>

#include "untrusted/fence.hpp"

namespace {

void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(to, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody reads
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// In the child: what the script prints goes to `to`, then its error.
[[noreturn]] void run_script(const std::string& text, int to) {
  slope::Options options;
  options.tier = slope::Tier::interpret;  // machine code would need memory that can be run
  options.heap_limit = std::size_t{64} << 20;
  options.time_limit = 2;  // seconds
  options.stack_limit = std::size_t{256} << 10;
  options.output = options.error_output = [to](std::string_view printed) { write_all(to, printed); };
  slope::Engine engine(options);
  // A hole, for the demonstration: a function of the host that a script should not have got.
  (void)engine.define("breach", [] { return std::ifstream("/etc/passwd").good() ? "inside" : "nothing there"; });
  // Libraries that are loaded when they are needed.
  (void)engine.run("using LinearAlgebra; [2.0 1.0; 1.0 2.0] \\ [1.0, 1.0]; match(r\"a\", \"a\")");
  if (!untrusted::fence_process({.address_space = std::size_t{4} << 30, .seconds = 5})) {
    std::perror("untrusted: no fence");
    _exit(3);
  }
  const auto result = engine.run(text, "script");
  if (!result.ok()) write_all(to, "ERROR: " + result.error().summary + "\n");
  _exit(result.ok() ? 0 : 1);  // destructors would have nothing to do that the system does not
}

// Its output, at most so much, and how it ended.
std::string run_fenced(const std::string& text, std::size_t most = 100000) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child < 0) return "no process";
  if (child == 0) {
    close(ends[0]);
    run_script(text, ends[1]);
  }
  close(ends[1]);
  std::string printed;
  char piece[4096];
  for (ssize_t n = 0; (n = read(ends[0], piece, sizeof piece)) > 0;) {
    if (printed.size() < most) printed.append(piece, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) printed += std::string("ENDED BY THE SYSTEM: ") + strsignal(WTERMSIG(status)) + "\n";
  return printed;
}

constexpr const char* attempts[] = {
    "println(sum(x -> x^2, 1:10), \" \", gradient(x -> x^3, 2.0))",
    "using LinearAlgebra\nprintln(round.(svd([3.0 0.0; 0.0 4.0]).S), \" \", replace(\"a1b2\", r\"[0-9]\" => \"-\"))",
    "while true; end",
    "v = Any[]; while true; push!(v, Vector{Float64}(undef, 10^6)); end",
    "f(x) = f(x) + 1; f(1)",
    "print(read(\"/etc/passwd\", String))",
    "run(`ls`)",
    "println(breach())",
};

}  // namespace

int main(int count, char** arguments) {
  if (count == 2) {
    std::ifstream file(arguments[1]);
    if (!file) return std::fprintf(stderr, "untrusted: %s cannot be read\n", arguments[1]), 2;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::fputs(run_fenced(text).c_str(), stdout);
    return 0;
  }
  for (const char* text : attempts) std::printf("%s\n=> %s\n", text, run_fenced(text).c_str());
}
