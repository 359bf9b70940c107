// Input from a terminal by readline, with history and completion.
//
// The code uses readline's callback interface and waits for input itself, so that ^C discards the input (readline alone
// would continue to read). readline edits, searches and keeps the history. This file decides when an input is complete
// (with the parser), and LineScreen draws it. A dumb terminal, which cannot move its cursor up, gets readline's own
// drawing, one line at a time. readline's variables and callbacks belong to the process, as does the one engine of the
// command.
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "repl/completion.hpp"
#include "repl/inputs.hpp"
#include "repl/interrupts.hpp"
#include "repl/line_screen.hpp"
#include "repl/pasted.hpp"
#include "repl/prompt.hpp"
#include "repl/shell.hpp"
#include "slope/tools.hpp"

namespace slope::repl {

namespace {

constexpr int most_history = 10000;

enum class Mode { code, help, shell };

struct Session {
  Engine* engine = nullptr;
  LineScreen screen;
  bool draws = false;  // the terminal can move its cursor
  bool color = false;
  Mode mode = Mode::code;
  std::string prompt;
  bool complete = false;  // a line, or the end of input, has come
  char* line = nullptr;
  bool searching = false;           // the last key went to an earlier or later input
  std::deque<std::string> waiting;  // pasted inputs
};
Session session;  // what readline's callbacks see

std::string_view buffer() { return {rl_line_buffer, static_cast<std::size_t>(rl_end)}; }
std::size_t point() { return static_cast<std::size_t>(rl_point); }

const char* prompt_of(Mode mode) {
  switch (mode) {
    case Mode::help:
      return "help?> ";
    case Mode::shell:
      return "shell> ";
    default:
      return session.prompt.c_str();
  }
}

Style prompt_style() {
  return session.mode == Mode::help    ? Style::help_prompt
         : session.mode == Mode::shell ? Style::shell_prompt
                                       : Style::prompt;
}

// --- what stands in grey behind the cursor ---

// The rest of the newest input that begins as this one does.
std::string rest_from_history() {
  const std::string_view text = buffer();
  if (text.empty() || point() != text.size() || text.find('\n') != std::string_view::npos) return "";
  HIST_ENTRY** entries = history_list();
  for (int i = history_length; entries && i-- > 0;) {
    const std::string_view line = entries[i]->line;
    if (line.size() > text.size() && line.starts_with(text)) return std::string(line.substr(text.size()));
  }
  return "";
}

// Why the input goes on: "`if` of line 1 is open".
std::string why_it_goes_on() {
  const std::string_view text = buffer();
  const std::size_t newline = text.rfind('\n');
  if (newline == std::string_view::npos || point() != text.size()) return "";
  if (text.find_first_not_of(" \t", newline + 1) != std::string_view::npos) return "";
  const std::vector<tools::Problem> problems = tools::syntax_problems(text);
  if (problems.empty()) return "";
  const tools::Problem& problem = problems.back();
  constexpr std::string_view no_end = "expected an `end` for this ", found = ", found the end of the text";
  std::string reason = problem.message.substr(0, problem.message.find(found));
  if (reason.starts_with(no_end)) {
    const std::size_t begin = std::min(problem.begin, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
    reason = reason.substr(no_end.size()) + " of line " + std::to_string(line) + " is open";
  }
  return "# " + reason;
}

// --- drawing ---

void draw(std::size_t cursor, bool match_brackets) {
  StyledText prompt;
  prompt.text = rl_display_prompt ? rl_display_prompt : "";
  // While readline searches it shows a prompt of its own.
  const bool own = prompt.text == session.prompt || prompt.text.empty();
  if (own) prompt.text = prompt_of(session.mode);
  if (own) prompt.styles.assign(prompt.text.size(), prompt_style());
  StyledText code;
  code.text = std::string(buffer());
  if (session.color && session.mode != Mode::shell)
    code.styles = styles_of(code.text, match_brackets ? cursor : std::string_view::npos);
  if (session.color && session.mode == Mode::code && match_brackets && own) {
    std::string grey = rest_from_history();
    grey = grey.empty() ? why_it_goes_on() : grey.substr(0, grey.find('\n'));
    code.text += grey;
    code.styles.resize(code.text.size(), Style::comment);
  }
  session.screen.show(prompt, code, cursor, session.prompt.size(), session.color);
}

void redisplay() {
  if (session.complete) return;
  draw(point(), true);
}

// The whole input stays above what comes.
void finish_drawing() {
  if (!session.draws) return;
  draw(buffer().size(), false);
  session.screen.leave();
}

void set_mode(Mode mode) {
  session.mode = mode;
  if (session.draws) redisplay();
}

// --- keys ---

void on_line(char* line) {
  session.line = line;
  session.complete = true;
  rl_callback_handler_remove();
}

std::size_t line_start(std::size_t at) {
  const std::size_t newline = at == 0 ? std::string_view::npos : buffer().rfind('\n', at - 1);
  return newline == std::string_view::npos ? 0 : newline + 1;
}
std::size_t line_end(std::size_t at) { return std::min(buffer().find('\n', at), buffer().size()); }

int insert_line(int, int) {
  const std::size_t start = line_start(point());
  const std::string_view line = buffer().substr(start, point() - start);
  const std::string indentation =
      session.mode == Mode::code ? indentation_after(*session.engine, line) : indentation_of(line);
  rl_insert_text(("\n" + indentation).c_str());
  return 0;
}

// A line that only closes a block, or begins its next part, and was indented as the line before it: out by one step.
void outdent() {
  const std::size_t start = line_start(point());
  if (start == 0 || line_end(point()) != buffer().size()) return;
  const auto indentation = [](std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); };
  const std::string_view line = buffer().substr(start);
  const std::size_t blanks = indentation(line);
  const std::size_t before = line_start(start - 1);
  const std::size_t above = indentation(buffer().substr(before, start - 1 - before));
  if (blanks < indentation_step || (blanks != above && blanks != above + indentation_step)) return;
  const std::string_view word = line.substr(blanks);
  const bool closes = word == "end" || word == "else" || word == "finally" || word == "catch" ||
                      word.starts_with("elseif ") || word.starts_with("catch ");
  if (!closes) return;
  rl_delete_text(static_cast<int>(start), static_cast<int>(start + indentation_step));
  rl_point -= static_cast<int>(indentation_step);
}

int accept(int, int key) {
  if (session.mode == Mode::code) outdent();
  if (session.mode == Mode::code && session.engine->incomplete(buffer())) return insert_line(1, key);
  finish_drawing();
  session.complete = true;  // nothing is drawn any more
  return rl_newline(1, '\n');
}

int question_mark(int count, int key) {
  if (rl_point != 0 || session.mode != Mode::code) return rl_insert(count, key);
  set_mode(Mode::help);
  return 0;
}
int semicolon(int count, int key) {
  if (rl_point != 0 || session.mode != Mode::code) return rl_insert(count, key);
  set_mode(Mode::shell);
  return 0;
}
int rubout(int count, int key) {
  if (rl_point == 0 && session.mode != Mode::code) {
    set_mode(Mode::code);
    return 0;
  }
  return rl_rubout(count, key);
}

// Up and down go through the lines of the input, then through the history: inputs that begin as the text before the
// cursor does.
void move_to_line(std::size_t start, std::size_t column) {
  std::size_t at = start;
  const std::size_t end = line_end(start);
  while (column > 0 && at < end) {
    do ++at;
    while (at < end && (static_cast<unsigned char>(buffer()[at]) & 0xc0) == 0x80);
    --column;
  }
  rl_point = static_cast<int>(at);
}
std::size_t column_now() {
  std::size_t column = 0;
  for (std::size_t i = line_start(point()); i < point(); ++i)
    if ((static_cast<unsigned char>(buffer()[i]) & 0xc0) != 0x80) ++column;
  return column;
}
int up(int count, int key);
int down(int count, int key);
int search(rl_command_func_t* direction, int count, int key) {
  // readline goes on with the same search when it is told that it did nothing else in between.
  if (session.searching && (rl_last_func == up || rl_last_func == down)) rl_last_func = rl_history_search_backward;
  session.searching = true;
  return direction(count, key);
}
bool goes_on_searching() { return session.searching && (rl_last_func == up || rl_last_func == down); }
int up(int count, int key) {
  const std::size_t start = line_start(point());
  if (start == 0 || goes_on_searching()) return search(rl_history_search_backward, count, key);
  session.searching = false;
  move_to_line(line_start(start - 1), column_now());
  return 0;
}
int down(int count, int key) {
  const std::size_t end = line_end(point());
  if (end == buffer().size() || goes_on_searching()) return search(rl_history_search_forward, count, key);
  session.searching = false;
  move_to_line(end + 1, column_now());
  return 0;
}

int begin_of_line(int, int) {
  const std::size_t start = line_start(point());
  rl_point = static_cast<int>(start == point() ? 0 : start);
  return 0;
}
// Takes what stands in grey behind the cursor.
bool take_rest() {
  const std::string rest = session.color && session.mode == Mode::code ? rest_from_history() : "";
  if (!rest.empty()) rl_insert_text(rest.c_str());
  return !rest.empty();
}
int forward(int count, int key) { return point() == buffer().size() && take_rest() ? 0 : rl_forward_char(count, key); }
int end_of_line(int, int) {
  if (point() == buffer().size() && take_rest()) return 0;
  const std::size_t end = line_end(point());
  rl_point = static_cast<int>(end == point() ? buffer().size() : end);
  return 0;
}

int clear_screen(int, int) {
  std::fputs("\033[H\033[2J", stdout);
  std::fflush(stdout);
  session.screen.forget();
  redisplay();
  return 0;
}

// The input in $VISUAL or $EDITOR.
int edit_input(int, int) {
  std::string path = (std::filesystem::temp_directory_path() / "slope-input-XXXXXX.slope").string();
  const int file = mkstemps(path.data(), 6);
  if (file < 0) return 0;
  const std::string text = std::string(buffer()) + "\n";
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  std::string problem = written ? "" : "the input could not be written to " + path;
  draw(buffer().size(), false);
  session.screen.leave();
  if (written) {
    rl_deprep_terminal();
    problem = open_editor(path, "1");
    rl_prep_terminal(1);
    std::ifstream in(path, std::ios::binary);
    std::string edited((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    while (edited.ends_with('\n')) edited.pop_back();
    if (problem.empty()) {
      rl_replace_line(edited.c_str(), 0);
      rl_point = rl_end;
    }
  }
  std::filesystem::remove(path);
  if (!problem.empty()) std::fputs((problem + "\n").c_str(), stdout);
  std::fflush(stdout);
  redisplay();
  return 0;
}

int tab(int, int) {
  const std::size_t start = line_start(point());
  const std::string_view before = buffer().substr(start, point() - start);
  if (session.mode == Mode::code && before.find_first_not_of(" \t") == std::string_view::npos) {
    rl_insert_text("    ");
    return 0;
  }
  const TabResult result = session.mode == Mode::shell ? complete_path_at(buffer(), point())
                                                       : complete_at(*session.engine, buffer(), point());
  if (buffer().substr(result.begin, point() - result.begin) != result.text) {
    rl_begin_undo_group();
    rl_delete_text(static_cast<int>(result.begin), rl_point);
    rl_point = static_cast<int>(result.begin);
    rl_insert_text(result.text.c_str());
    rl_end_undo_group();
  }
  if (result.choices.empty()) return 0;
  const LineScreen::Size size = LineScreen::terminal_size();
  const std::string list = choices_text(result.choices, size.columns, std::max<std::size_t>(size.rows, 6) - 4);
  if (session.draws) {
    const std::size_t cursor = point();
    draw(buffer().size(), false);
    session.screen.leave();
    std::fputs(list.c_str(), stdout);
    std::fflush(stdout);
    draw(cursor, true);
  } else {
    std::fputs(("\n" + list).c_str(), stdout);
    std::fflush(stdout);
    rl_on_new_line();
    rl_forced_update_display();
  }
  return 0;
}

int paste(int, int) {
  constexpr std::string_view end = "\033[201~";
  std::string text;
  while (!text.ends_with(end)) {
    const int key = rl_read_key();
    if (key < 0) break;
    text += static_cast<char>(key);
  }
  if (text.ends_with(end)) text.resize(text.size() - end.size());
  std::replace(text.begin(), text.end(), '\r', '\n');
  const auto incomplete = [](std::string_view code) { return session.engine->incomplete(code); };
  if (session.mode == Mode::code) {
    std::vector<std::string> inputs = inputs_of_session(text, incomplete);
    if (inputs.size() == 1) {
      text = inputs[0];
    } else if (!inputs.empty()) {
      session.waiting.assign(inputs.begin(), inputs.end());
      return 0;
    }
  }
  while (text.ends_with('\n')) text.pop_back();
  rl_insert_text(text.c_str());
  return 0;
}

// --- the session ---

// The newest input. On a full disk the file ends as before: half an entry would be taken for the beginning of the next.
void append_whole(const std::string& file) {
  struct stat before {};
  const bool exists = stat(file.c_str(), &before) == 0;
  append_history(1, file.c_str());
  const int written = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (written < 0) return;
  char last = 0;
  const off_t size = lseek(written, 0, SEEK_END);
  if (exists && size > before.st_size && pread(written, &last, 1, size - 1) == 1 && last != '\n' &&
      ftruncate(written, before.st_size) != 0)
    (void)lseek(written, 0, SEEK_SET);  // nothing else can be done
  close(written);
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
  if (failed) return {};
  std::string file = (folder / "slope" / "history").string();
  const int made = open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (made < 0) return {};
  close(made);
  return file;
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

// Characters of several bytes are characters, whatever the environment says.
void use_utf8() {
  if (!std::setlocale(LC_CTYPE, "") || std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

class TerminalInput final : public InputSource {
 public:
  TerminalInput(Engine& engine, bool color) : history_(history_file()) {
    use_utf8();
    session.engine = &engine;
    session.color = color;
    const char* kind = std::getenv("TERM");
    session.draws = kind && *kind && std::strcmp(kind, "dumb") != 0;
    struct sigaction resized = {};  // a new size of the terminal ends the wait for input
    resized.sa_handler = [](int) {};
    resized.sa_flags = SA_RESTART;
    sigaction(SIGWINCH, &resized, nullptr);
    rl_readline_name = "slope";
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_initialize();
    bind();
    using_history();
    history_comment_char = '#';  // with time stamps, inputs of several lines come back whole
    history_write_timestamps = 1;
    stifle_history(most_history);
    if (!history_.empty()) read_history(history_.c_str());
  }

  ~TerminalInput() override {
    if (!history_.empty() && history_length >= most_history) history_truncate_file(history_.c_str(), most_history);
    session = Session();
  }

  Outcome read(const char* prompt, std::string& line) override {
    // SIGINT is let through while waiting only, so that none comes between the question and the wait.
    SignalMask blocked(SIGINT);
    take_interrupt();
    session.complete = false;
    session.prompt = prompt;
    session.mode = Mode::code;
    session.screen.forget();
    rl_callback_handler_install(prompt, on_line);
    LineScreen::Size size = LineScreen::terminal_size();
    while (!session.complete) {
      if (!session.waiting.empty()) {
        take_waiting(line);
        return Outcome::line;
      }
      if (take_interrupt()) return abandon();
      pollfd input = {STDIN_FILENO, POLLIN, 0};
      const int ready = ppoll(&input, 1, nullptr, &blocked.before());
      if (ready > 0) rl_callback_read_char();
      if (ready < 0 && session.draws && !session.complete) {
        const LineScreen::Size now = LineScreen::terminal_size();
        if (now.columns != size.columns || now.rows != size.rows) redisplay();
        size = now;
      }
    }
    if (!session.line) {
      std::fputc('\n', stdout);
      std::fflush(stdout);
      return Outcome::end;
    }
    line = session.mode == Mode::help ? "?" : session.mode == Mode::shell ? ";" : "";
    line += session.line;
    std::free(session.line);
    session.line = nullptr;
    return Outcome::line;
  }

  void remember(const std::string& input) override {
    HIST_ENTRY* last = history_length > 0 ? history_get(history_base + history_length - 1) : nullptr;
    if (last && input == last->line) return;
    add_history(input.c_str());
    if (!history_.empty()) append_whole(history_);  // now: the session may end in any way
  }

 private:
  static void bind() {
    rl_variable_bind("blink-matching-paren", "off");
    rl_bind_key('\t', tab);
    if (!session.draws) return;
    rl_redisplay_function = redisplay;
    rl_bind_key('\r', accept);
    rl_bind_key('\n', accept);
    rl_bind_keyseq("\\e\\C-m", insert_line);
    rl_bind_key('?', question_mark);
    rl_bind_key(';', semicolon);
    rl_bind_key('\b', rubout);
    rl_bind_key('\x7f', rubout);
    rl_bind_key('\x01', begin_of_line);
    rl_bind_key('\x05', end_of_line);
    rl_bind_key('\x0c', clear_screen);
    rl_bind_keyseq("\\C-x\\C-e", edit_input);
    for (const char* keys : {"\\e[C", "\\eOC"}) rl_bind_keyseq(keys, forward);
    for (const char* keys : {"\\e[A", "\\eOA"}) rl_bind_keyseq(keys, up);
    for (const char* keys : {"\\e[B", "\\eOB"}) rl_bind_keyseq(keys, down);
    for (const char* keys : {"\\e[H", "\\eOH", "\\e[1~"}) rl_bind_keyseq(keys, begin_of_line);
    for (const char* keys : {"\\e[F", "\\eOF", "\\e[4~"}) rl_bind_keyseq(keys, end_of_line);
    rl_bind_keyseq("\\e[1;5C", rl_forward_word);
    rl_bind_keyseq("\\e[1;5D", rl_backward_word);
    rl_bind_keyseq("\\e[200~", paste);
  }

  // An input that was pasted with its prompt, as if it had been typed.
  static void take_waiting(std::string& line) {
    line = session.waiting.front();
    session.waiting.pop_front();
    rl_replace_line(line.c_str(), 1);
    rl_point = rl_end;
    finish_drawing();
    if (!session.draws) std::fputc('\n', stdout);
    rl_replace_line("", 1);
    session.complete = true;
    rl_callback_handler_remove();
  }

  Outcome abandon() {
    session.waiting.clear();
    rl_callback_sigcleanup();
    if (session.draws) {
      draw(buffer().size(), false);
      std::fputs("^C", stdout);
      std::fflush(stdout);
      session.screen.leave();
    } else {
      std::fputs("^C\n", stdout);
    }
    session.complete = true;
    rl_replace_line("", 0);
    rl_callback_handler_remove();
    std::fflush(stdout);
    return Outcome::interrupted;
  }

  std::string history_;
};

}  // namespace

std::unique_ptr<InputSource> make_terminal_input(Engine& engine, bool color) {
  return std::make_unique<TerminalInput>(engine, color);
}

}  // namespace slope::repl
