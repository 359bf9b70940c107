// The command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "repl/paint.hpp"
#include "slope/engine.hpp"

namespace slope::repl {

struct Snippet {
  std::string code;
  bool prints = false;  // -E
};

struct CommandLine {
  std::vector<Snippet> snippets;  // in their order
  std::string file;               // empty: none; "-": standard input
  std::vector<std::string> arguments;
  Tier tier = Tier::automatic;
  bool check_generators = false;
  bool check_rules = false;
  bool trusts_inbounds = false;
  Optimisation optimisation = Optimisation::full;
  unsigned compile_threads = 0;
  bool interactive = false;
  bool startup = true;  // run the startup file before the prompt
  ColorChoice color = ColorChoice::automatic;
};

// Nothing: the command ends at once with `status` (--help, --version, wrong usage), everything has been printed.
std::optional<CommandLine> read_command_line(int count, char** arguments, int& status);

}  // namespace slope::repl
