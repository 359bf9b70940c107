// What subcommands such as `slope inspect` and `slope profile` share: their command lines, and errors of what they run.
#pragma once

#include <optional>
#include <string>

#include "repl/output.hpp"
#include "slope/engine.hpp"

namespace CLI {
class App;
}

namespace slope::repl {

struct Subcommand {
  const char* help;   // what --help prints
  const char* usage;  // one line, for wrong usage

  // The exit status when the command ends here: --help, wrong usage. `arguments` begin behind the subcommand's name.
  std::optional<int> parse(CLI::App& app, int count, char** arguments) const;
  int wrong_usage(const std::string& problem) const;  // reports it; the exit status
};

void report_error(Output& output, const Error& error, bool painted);

}  // namespace slope::repl
