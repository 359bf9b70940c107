#include "repl/subcommand.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <vector>

#include "repl/paint.hpp"

namespace slope::repl {

std::optional<int> Subcommand::parse(CLI::App& app, int count, char** arguments) const {
  bool wants_help = false;
  app.set_help_flag();
  app.add_flag("-h,--help", wants_help);
  std::vector<std::string> given(arguments, arguments + count);
  std::reverse(given.begin(), given.end());  // as the library wants them
  try {
    app.parse(given);
  } catch (const CLI::ParseError& problem) {
    return wrong_usage(problem.what());
  }
  if (!wants_help) return std::nullopt;
  std::cout << help;
  return 0;
}

int Subcommand::wrong_usage(const std::string& problem) const {
  std::cerr << "slope: " << problem << "\nusage: " << usage << '\n';
  return 2;
}

void report_error(Output& output, const Error& error, bool painted) {
  const std::string message = (error.kind == ErrorKind::engine ? "slope: " : "") + error.message + "\n";
  output.err(painted ? painted_error(message) : message);
}

}  // namespace slope::repl
