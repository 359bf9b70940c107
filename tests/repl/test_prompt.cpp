// The prompt on a pseudo terminal, as a person at the keyboard has it.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

class Terminal {
 public:
  explicit Terminal(const char* kind = "dumb", const std::string& state = "/nonexistent") {
    winsize size = {};
    size.ws_row = 40;
    size.ws_col = 100;
    child_ = forkpty(&master_, nullptr, nullptr, &size);
    if (child_ == 0) {
      setenv("TERM", kind, 1);
      setenv("XDG_STATE_HOME", state.c_str(), 1);
      setenv("INPUTRC", "/dev/null", 1);
      execl(SLOPE_COMMAND, "slope", static_cast<char*>(nullptr));
      _exit(127);
    }
  }
  ~Terminal() {
    close(master_);
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  Terminal(const Terminal&) = delete;

  void type(const std::string& keys) {
    if (write(master_, keys.data(), keys.size()) < 0) FAIL("the terminal is closed");
  }
  // What appears until `text` does; fails after a while.
  std::string wait_for(const std::string& text) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      if (std::size_t at = seen_.find(text); at != std::string::npos) {
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
  // Types a line at the prompt, gives what comes until the next prompt.
  std::string ask(const std::string& line) {
    type(line + "\r");
    return wait_for("slope> ");
  }
  int status() {
    int status = 0;
    while (read_some()) {
    }
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  bool read_some() {
    pollfd end = {master_, POLLIN, 0};
    if (poll(&end, 1, 1000) < 0) return false;
    if (end.revents == 0) return true;
    std::array<char, 4096> buffer;
    ssize_t count = read(master_, buffer.data(), buffer.size());
    if (count <= 0) return false;
    append({buffer.data(), static_cast<std::size_t>(count)});
    return true;
  }
  // Text without control sequences and carriage returns.
  void append(std::string_view text) {
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

  int master_ = -1;
  pid_t child_ = -1;
  std::string seen_;
  bool in_sequence_ = false;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("slope-state-" + std::to_string(getpid()));
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("The prompt shows values, keeps ans, and goes on after errors") {
  const char* kind = GENERATE("dumb", "xterm");
  Terminal terminal(kind);
  terminal.wait_for("slope> ");
  CHECK(contains(terminal.ask("1 + 2"), "\n3\n"));
  CHECK(contains(terminal.ask("ans * 2"), "\n6\n"));
  CHECK_FALSE(contains(terminal.ask("ans * 1000;"), "6000"));
  CHECK(contains(terminal.ask("[1.5, 2.5]"), "2-element Vector{Float64}:\n 1.5\n 2.5\n"));
  CHECK(contains(terminal.ask("error(\"so it is\")"), "ERROR: so it is"));
  CHECK(contains(terminal.ask("1 + )"), "^"));
  CHECK(contains(terminal.ask("ans"), "2-element"));
  CHECK(contains(terminal.ask("?gradient"), "method"));
  terminal.type("\x04");
  CHECK(terminal.status() == 0);
}

TEST_CASE("An input may have several lines") {
  Terminal terminal;
  terminal.wait_for("slope> ");
  terminal.type("function f(x)\r");
  terminal.wait_for("       ");
  terminal.type("2x\r");
  terminal.wait_for("       ");
  CHECK(contains(terminal.ask("end"), "f (generic function with 1 method)"));
  CHECK(contains(terminal.ask("f(4)"), "\n8\n"));
  terminal.type("slope> f(5)\r");  // pasted with its prompt
  terminal.wait_for("f(5)");
  CHECK(contains(terminal.wait_for("slope> "), "\n10\n"));
}

TEST_CASE("^C throws away a line and stops running code; the session goes on") {
  Terminal terminal;
  terminal.wait_for("slope> ");
  terminal.type("x = (1 +");
  terminal.wait_for("(1 +");
  terminal.type("\x03");
  terminal.wait_for("slope> ");
  CHECK(contains(terminal.ask("40 + 2"), "\n42\n"));
  terminal.type("i = 0\r");
  terminal.wait_for("slope> ");
  terminal.type("while true; global i += 1; end\r");
  usleep(500 * 1000);
  terminal.type("\x03");
  CHECK(contains(terminal.wait_for("slope> "), "InterruptException"));
  CHECK(contains(terminal.ask("i > 0"), "\ntrue\n"));
}

TEST_CASE("Names are completed") {
  Terminal terminal("xterm");
  terminal.wait_for("slope> ");
  terminal.ask("distance_to_moon = 384");
  terminal.type("distance_to\t");
  CHECK(contains(terminal.ask(" + 1"), "385"));
  terminal.type("\t");  // at the start of a line: indentation
  CHECK(contains(terminal.ask("7"), "7\n"));
}

TEST_CASE("The history is kept from session to session") {
  Folder state;
  {
    Terminal terminal("xterm", state.path);
    terminal.wait_for("slope> ");
    terminal.ask("60 + 6");
    terminal.type("\x04");
    CHECK(terminal.status() == 0);
  }
  Terminal terminal("xterm", state.path);
  terminal.wait_for("slope> ");
  terminal.type("\x10");  // ^P, the previous line
  terminal.wait_for("60 + 6");
  CHECK(contains(terminal.ask(" + 600"), "666"));
}

TEST_CASE("exit leaves the prompt with its status") {
  Terminal terminal;
  terminal.wait_for("slope> ");
  terminal.type("exit(5)\r");
  CHECK(terminal.status() == 5);
}
