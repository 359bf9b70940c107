// The prompt on a pseudo terminal: how long until it is there, and until a key shows, with ten thousand inputs in the
// history.
//
//   slope_bench_prompt SLOPE FOLDER     FOLDER: for a history, made anew
//
// Prints a line a sample, as the programs in bench/programs do: `sample`, name, nanoseconds.
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

class Session {
 public:
  Session(const std::string& slope, const std::string& state) {
    winsize size = {24, 80, 0, 0};
    child_ = forkpty(&master_, nullptr, nullptr, &size);
    if (child_ != 0) return;
    setenv("TERM", "xterm", 1);
    setenv("XDG_STATE_HOME", state.c_str(), 1);
    setenv("XDG_CONFIG_HOME", "/dev/null/none", 1);
    execl(slope.c_str(), slope.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  ~Session() {
    kill(child_, SIGKILL);
    wait4(child_, nullptr, 0, nullptr);
    close(master_);
  }
  Session(const Session&) = delete;

  // What comes until `text` does; false after five seconds.
  bool wait_for(const std::string& text) {
    const auto start = Clock::now();
    while (seen_.find(text) == std::string::npos) {
      pollfd input = {master_, POLLIN, 0};
      if (nanoseconds_since(start) > 5e9) return false;
      if (poll(&input, 1, 100) <= 0) continue;
      char bytes[4096];
      const ssize_t count = read(master_, bytes, sizeof bytes);
      if (count <= 0) return false;
      seen_.append(bytes, static_cast<std::size_t>(count));
    }
    seen_.clear();
    return true;
  }
  void rest() {  // what is still on its way
    pollfd input = {master_, POLLIN, 0};
    char bytes[4096];
    while (poll(&input, 1, 20) > 0 && read(master_, bytes, sizeof bytes) > 0) {
    }
    seen_.clear();
  }
  bool type(const char* keys, std::size_t count) { return write(master_, keys, count) == static_cast<ssize_t>(count); }

 private:
  int master_ = -1;
  pid_t child_ = -1;
  std::string seen_;
};

void sample(const char* name, double nanoseconds) { std::printf("sample %s %.0f\n", name, nanoseconds); }

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: slope_bench_prompt SLOPE FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = arguments[2];
  std::filesystem::create_directories(folder / "slope");
  {
    std::ofstream history(folder / "slope" / "history");
    constexpr int inputs = 10000;
    for (int i = 0; i < inputs; ++i) history << "#1700000000\nvalue_" << i << " = sum(x -> x^2, 1:" << i << ")\n";
  }
  constexpr int turns = 10;
  for (int turn = 0; turn < turns; ++turn) {
    const auto start = Clock::now();
    Session session(arguments[1], folder);
    if (!session.wait_for("slope>")) return 1;
    sample("prompt", nanoseconds_since(start));
    session.rest();
    const auto pressed = [&](const char* name, const char* keys, std::size_t length, const std::string& shown) {
      const auto before = Clock::now();
      if (!session.type(keys, length) || !session.wait_for(shown)) std::exit(1);
      sample(name, nanoseconds_since(before));
      session.rest();
    };
    pressed("key", "v", 1, "v");
    pressed("history", "\033[A", 3, "9999");  // the newest input that begins with v
    pressed("search",
            "\x12"
            "1:77)",
            6, "1:77)");  // ^R and five keys, back through almost all of them
  }
}
