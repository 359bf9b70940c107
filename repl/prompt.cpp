// The prompt: read lines until they are a whole input, run it, show its value. What the session said last is `ans`.
#include "repl/prompt.hpp"

#include <unistd.h>

#include <iostream>

#include "repl/interrupts.hpp"

namespace slope::repl {

namespace {

constexpr const char* first_prompt = "slope> ";
constexpr const char* next_prompt = "       ";

class PlainInput final : public InputSource {
 public:
  Outcome read(const char*, std::string& line) override {
    return std::getline(std::cin, line) ? Outcome::line : Outcome::end;
  }
  void remember(const std::string&) override {}
};

std::string_view trimmed(std::string_view text) {
  const char* space = " \t\r\n";
  std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

// An input that ends in `;` does not show its value. A comment may follow; `#` in a string is not worth a parser here:
// it can only hide a value that ends in `;` anyway.
bool hides_value(std::string_view input) {
  input = trimmed(input);
  std::size_t last_line = input.rfind('\n');
  std::string_view line = last_line == std::string_view::npos ? input : input.substr(last_line + 1);
  if (line.find('"') == std::string_view::npos) line = line.substr(0, line.find('#'));
  return trimmed(line).ends_with(';');
}

class Prompt {
 public:
  Prompt(Engine& engine, Output& output, InputSource& input) : engine_(engine), output_(output), input_(input) {}

  int run() {
    for (;;) {
      std::string input;
      if (!read_input(input)) return 0;
      std::string_view text = trimmed(input);
      if (text.empty()) continue;
      input_.remember(std::string(text));
      if (text[0] == '?') {
        help(trimmed(text.substr(1)));
        continue;
      }
      if (int status = 0; !evaluate(input, status)) return status;
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
      if (std::string_view(line).starts_with(first_prompt)) line.erase(0, std::string_view(first_prompt).size());
      input += line;
      input += '\n';
      if (trimmed(input).starts_with("?") || !engine_.incomplete(input)) return true;
    }
  }

  void help(std::string_view name) {
    if (name.empty()) {
      output_.out("?name shows the documentation and the methods of a name. ^D leaves, ^C stops what is running.\n");
      return;
    }
    Result<std::string> text = engine_.help(name);
    output_.out(text.ok() ? text.value() : text.error().message + "\n");
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
      output_.err(error.message + "\n");
      return true;
    }
    const Value& value = result.value();
    if (value.is_nothing()) return true;
    (void)engine_.set("ans", value);
    if (!hides_value(input)) output_.out(value.display() + "\n");
    return true;
  }

  Engine& engine_;
  Output& output_;
  InputSource& input_;
  int number_ = 0;
};

}  // namespace

std::unique_ptr<InputSource> make_plain_input() { return std::make_unique<PlainInput>(); }

int run_prompt(Engine& engine, Output& output) {
  bool terminal = isatty(STDIN_FILENO) != 0;
  std::unique_ptr<InputSource> input = terminal ? make_terminal_input(engine) : make_plain_input();
  if (terminal) output.out("Slope " + std::string(version()) + ". ?name for help, ^D to leave.\n");
  Prompt prompt(engine, output, *input);
  return prompt.run();
}

}  // namespace slope::repl
