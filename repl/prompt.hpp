// The prompt.
#pragma once

#include <memory>
#include <string>

#include "repl/output.hpp"
#include "repl/paint.hpp"
#include "slope/engine.hpp"

namespace slope::repl {

// Where inputs come from: readline on a terminal, plain lines otherwise.
class InputSource {
 public:
  virtual ~InputSource() = default;
  enum class Outcome { line, interrupted, end };
  virtual Outcome read(const char* prompt, std::string& line) = 0;
  virtual void remember(const std::string& input) = 0;  // a whole input, for the history
};

std::unique_ptr<InputSource> make_terminal_input(Engine& engine, bool color);  // terminal.cpp
std::unique_ptr<InputSource> make_plain_input();

struct PromptOptions {
  ColorChoice color = ColorChoice::automatic;
  bool startup = true;
};

// Reads and runs until the end of input; the exit status.
int run_prompt(Engine& engine, Output& output, const PromptOptions& options);

}  // namespace slope::repl
