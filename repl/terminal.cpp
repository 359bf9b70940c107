// Lines from a terminal by readline, with history and completion.
//
// readline's callback interface is used, with our own wait for input: so that ^C throws away the line (readline itself
// would only go on reading). Its variables and callbacks are of the process; so is the one engine of the command.
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "repl/interrupts.hpp"
#include "repl/prompt.hpp"

namespace slope::repl {

namespace {

struct Session {
  Engine* engine = nullptr;
  std::vector<std::string> candidates;
  std::size_t next_candidate = 0;
  bool complete = false;  // a line, or the end of input, has come
  char* line = nullptr;
};
Session session;  // what readline's callbacks see

void on_line(char* line) {
  session.line = line;
  session.complete = true;
  rl_callback_handler_remove();
}

char* next_candidate(const char* text, int state) {
  if (state == 0) {
    session.candidates = session.engine->complete(text);
    session.next_candidate = 0;
  }
  if (session.next_candidate >= session.candidates.size()) return nullptr;
  return strdup(session.candidates[session.next_candidate++].c_str());
}

char** complete(const char* text, int, int) {
  rl_completion_append_character = '\0';
  if (*text == '\0') {
    rl_attempted_completion_over = 1;
    return nullptr;
  }
  return rl_completion_matches(text, next_candidate);  // file names when there is none
}

// An empty line is indented by the tab key, not completed.
int complete_or_indent(int count, int key) {
  bool only_space =
      std::all_of(rl_line_buffer, rl_line_buffer + rl_point, [](char c) { return c == ' ' || c == '\t'; });
  if (!only_space) return rl_complete(count, key);
  return rl_insert_text("    ");
}

// $XDG_STATE_HOME/slope/history, by default ~/.local/state/slope/history; empty when there is no home.
std::string history_file() {
  namespace fs = std::filesystem;
  fs::path folder;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state == '/') {
    folder = state;
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folder = fs::path(home) / ".local" / "state";
  } else {
    return {};
  }
  std::error_code failed;
  fs::create_directories(folder / "slope", failed);
  return failed ? std::string() : (folder / "slope" / "history").string();
}

// Blocks one signal on this thread.
class SignalMask {
 public:
  explicit SignalMask(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    sigdelset(&before_, number);
  }
  ~SignalMask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalMask(const SignalMask&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

class TerminalInput final : public InputSource {
 public:
  explicit TerminalInput(Engine& engine) : history_(history_file()) {
    session.engine = &engine;
    rl_readline_name = "slope";
    rl_catch_signals = 0;
    rl_attempted_completion_function = complete;
    rl_completer_word_break_characters = " \t\n\"'`@$><=;|&{}()[],+-*/^%~?:";
    rl_basic_quote_characters = "";
    rl_bind_key('\t', complete_or_indent);
    using_history();
    history_comment_char = '#';  // with time stamps, inputs of several lines come back whole
    history_write_timestamps = 1;
    stifle_history(10000);
    if (!history_.empty()) read_history(history_.c_str());
  }

  ~TerminalInput() override {
    if (!history_.empty() && write_history(history_.c_str()) == 0) chmod(history_.c_str(), S_IRUSR | S_IWUSR);
    session = Session();
  }

  Outcome read(const char* prompt, std::string& line) override {
    // SIGINT is let through while waiting only, so that none comes between the question and the wait.
    SignalMask blocked(SIGINT);
    take_interrupt();
    session.complete = false;
    rl_callback_handler_install(prompt, on_line);
    while (!session.complete) {
      if (take_interrupt()) return abandon();
      pollfd input = {STDIN_FILENO, POLLIN, 0};
      int ready = ppoll(&input, 1, nullptr, &blocked.before());
      if (ready > 0) rl_callback_read_char();
    }
    if (!session.line) {
      std::fputc('\n', stdout);
      std::fflush(stdout);
      return Outcome::end;
    }
    line = session.line;
    std::free(session.line);
    session.line = nullptr;
    return Outcome::line;
  }

  void remember(const std::string& input) override {
    HIST_ENTRY* last = history_length > 0 ? history_get(history_base + history_length - 1) : nullptr;
    if (!last || input != last->line) add_history(input.c_str());
  }

 private:
  Outcome abandon() {
    rl_callback_sigcleanup();
    rl_replace_line("", 0);
    rl_callback_handler_remove();
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    return Outcome::interrupted;
  }

  std::string history_;
};

}  // namespace

std::unique_ptr<InputSource> make_terminal_input(Engine& engine) { return std::make_unique<TerminalInput>(engine); }

}  // namespace slope::repl
