// The prompt: reads lines until they are a whole input, runs it, shows its value. `ans` is the last value.
#include "repl/prompt.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "repl/inputs.hpp"
#include "repl/interrupts.hpp"
#include "repl/line_screen.hpp"
#include "repl/shell.hpp"
#include "slope/tools.hpp"

namespace slope::repl {

namespace {

constexpr const char* first_prompt = "slope> ";
constexpr const char* next_prompt = "       ";

constexpr const char* prompt_help =
    "?name      the documentation of a name, a word of the language or an operator; ?\"text\" searches all of it\n"
    ";command   runs a command of the shell\n"
    "tab        completes names, fields, arguments, paths in strings, and \\alpha to α\n"
    "↑ ↓        earlier inputs that begin as this one does; ^R searches\n"
    "^C         stops what is running, or throws the input away; ^D leaves\n"
    "ans        the last value; an input that ends in ; does not show its own\n"
    "varinfo()  what this session has defined\n";

class PlainInput final : public InputSource {
 public:
  Outcome read(const char*, std::string& line) override {
    return std::getline(std::cin, line) ? Outcome::line : Outcome::end;
  }
  void remember(const std::string&) override {}
};

// ~/.config/slope/startup.slope, or below $XDG_CONFIG_HOME; empty when there is none.
std::string startup_file() {
  namespace fs = std::filesystem;
  fs::path folder;
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config && *config == '/')
    folder = config;
  else if (const char* home = std::getenv("HOME"); home && *home)
    folder = fs::path(home) / ".config";
  else
    return {};
  const fs::path file = folder / "slope" / "startup.slope";
  std::error_code unknown;
  return fs::is_regular_file(file, unknown) ? file.string() : std::string();
}

class Prompt {
 public:
  Prompt(Engine& engine, Output& output, InputSource& input, bool terminal, bool color)
      : engine_(engine), output_(output), input_(input), terminal_(terminal), color_(color) {}

  int run(const std::string& startup) {
    if (!startup.empty()) {
      InterruptGuard guard(engine_);
      Result<Value> result = engine_.run_file(startup);
      if (!result.ok() && result.error().kind == ErrorKind::exit) return result.error().exit_code;
      if (!result.ok()) complain(result.error());
    }
    for (;;) {
      std::string input;
      if (!read_input(input)) return 0;
      std::string_view text = trimmed(input);
      if (text.empty()) continue;
      input_.remember(std::string(text));
      if (text[0] == '?') {
        help(trimmed(text.substr(1)));
      } else if (text[0] == ';') {
        output_.flush();
        if (std::string problem = run_shell(trimmed(text.substr(1))); !problem.empty()) output_.err(problem + "\n");
      } else if (int status = 0; !evaluate(input, status)) {
        return status;
      }
      if (terminal_) {
        if (!output_.at_line_start()) output_.out("\n");
        output_.out("\n");
      }
    }
  }

 private:
  // False at the end of input. An interrupted input is empty.
  bool read_input(std::string& input) {
    std::string line;
    for (;;) {
      output_.flush();
      switch (input_.read(input.empty() ? first_prompt : next_prompt, line)) {
        case InputSource::Outcome::end:
          if (input.empty()) return false;
          return true;  // let the parser say what is missing
        case InputSource::Outcome::interrupted:
          input.clear();
          continue;
        case InputSource::Outcome::line:
          break;
      }
      // What was copied from another session.
      for (const std::string_view copied : {std::string_view(first_prompt), std::string_view("julia> ")})
        if (std::string_view(line).starts_with(copied)) line.erase(0, copied.size());
      input += line;
      input += '\n';
      const std::string_view text = trimmed(input);
      if (text.starts_with("?") || text.starts_with(";") || !engine_.incomplete(input)) return true;
    }
  }

  void help(std::string_view name) {
    if (name.empty()) {
      output_.out(prompt_help);
      return;
    }
    if (name.size() > 1 && name[0] == '"' && name.back() == '"') {
      int status = 0;
      evaluate("apropos(" + std::string(name) + ")", status);
      return;
    }
    output_.out(help_of_input(engine_, name));
  }

  void complain(const Error& error) {
    const std::string message = error.message + "\n";
    output_.err(color_ ? painted_error(message) : message);
  }

  // False: the session ends with `status`.
  bool evaluate(const std::string& input, int& status) {
    std::string name = "prompt[" + std::to_string(++number_) + "]";
    InterruptGuard guard(engine_);
    Result<Value> result = engine_.run(input, name);
    if (!result.ok()) {
      const Error& error = result.error();
      if (error.kind == ErrorKind::exit) {
        status = error.exit_code;
        return false;
      }
      complain(error);
      return true;
    }
    answer(tools::take_request(engine_));
    const Value& value = result.value();
    if (value.is_nothing()) return true;
    (void)engine_.set("ans", value);
    if (!hides_value(input)) show(value);
    if (trimmed(input) == "exit") output_.out("`exit()` leaves, and so does ^D\n");
    return true;
  }

  void show(const Value& value) {
    if (!terminal_) {
      output_.out(value.display() + "\n");
      return;
    }
    if (!output_.at_line_start()) output_.out("\n");
    const LineScreen::Size size = LineScreen::terminal_size();
    const Result<std::string> text =
        tools::display(engine_, value, static_cast<int>(size.rows), static_cast<int>(size.columns));
    if (text.ok())
      output_.out(text.value() + "\n");
    else
      complain(text.error());
  }

  // What the script asked for.
  void answer(const std::string& request) {
    constexpr std::string_view edit = "edit:";
    if (!request.starts_with(edit)) return;
    const std::size_t colon = request.find(':', edit.size());
    if (colon == std::string::npos) return;
    output_.flush();
    const std::string problem =
        open_editor(request.substr(colon + 1), request.substr(edit.size(), colon - edit.size()));
    if (!problem.empty()) output_.err(problem + "\n");
  }

  Engine& engine_;
  Output& output_;
  InputSource& input_;
  bool terminal_;
  bool color_;
  int number_ = 0;
};

}  // namespace

std::unique_ptr<InputSource> make_plain_input() { return std::make_unique<PlainInput>(); }

int run_prompt(Engine& engine, Output& output, const PromptOptions& options) {
  const bool terminal = isatty(STDIN_FILENO) != 0;
  const bool color = wants_color(options.color, STDOUT_FILENO);
  std::unique_ptr<InputSource> input = terminal ? make_terminal_input(engine, color) : make_plain_input();
  if (terminal) output.out("Slope " + std::string(version()) + ". ?name for help, ^D to leave.\n");
  Prompt prompt(engine, output, *input, terminal, color);
  return prompt.run(terminal && options.startup ? startup_file() : std::string());
}

}  // namespace slope::repl
