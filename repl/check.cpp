#include "repl/check.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "repl/paint.hpp"
#include "repl/subcommand.hpp"
#include "slope/tools.hpp"

namespace slope::repl {

namespace {

constexpr const char* check_help = R"(usage: slope check [--json] [--lookups] FILE…

Says what is wrong with files (- is standard input) without running their statements: syntax, names that are defined
nowhere, calls that no method accepts, fields that a type does not have, stores into immutable values, conditions that
are no Bool, unknown keywords. Definitions, and files that are included by name, are read; inference follows the calls.

  --json      one array of objects: file, line, column, endLine, endColumn, severity, code, message, hint
  --lookups   also the calls whose method is looked up when they run, because types are not exact

Exit status: 0 when nothing was found; 1 when something was; 2 for wrong usage or a file that cannot be read.
)";

bool read_file(const std::string& file, std::string& text) {
  if (file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
    return true;
  }
  std::ifstream in(file, std::ios::binary);
  std::ostringstream all;
  if (in && in.peek() != EOF) all << in.rdbuf();
  if (!in.is_open() || in.bad()) return false;
  text = std::move(all).str();
  return true;
}

std::string shown(const tools::CheckProblem& problem) {
  const std::size_t margin = std::to_string(problem.begin.line).size();
  std::string text = std::string(problem.is_error ? "error: " : "warning: ") + problem.message + "\n" + problem.excerpt;
  if (!problem.hint.empty()) text += std::string(margin, ' ') + " = help: " + problem.hint + "\n";
  return text;
}

}  // namespace

int run_check(int count, char** arguments) {
  CLI::App app;
  bool json = false;
  tools::CheckOptions options;
  std::vector<std::string> files;
  app.add_flag("--json", json);
  app.add_flag("--lookups", options.lookups);
  app.add_option("files", files);
  const Subcommand command{check_help, "slope check [--json] [--lookups] FILE…"};
  if (const std::optional<int> status = command.parse(app, count, arguments)) return *status;
  if (files.empty()) return command.wrong_usage("which files?");

  std::vector<tools::CheckProblem> all;
  bool failed = false;
  for (const std::string& file : files) {
    std::string text;
    if (!read_file(file, text)) {
      std::cerr << "slope: cannot read " << file << ": " << std::strerror(errno) << "\n";
      failed = true;
      continue;
    }
    std::vector<tools::CheckProblem> found = tools::check(file == "-" ? "<stdin>" : file, std::move(text), options);
    all.insert(all.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  if (json) {
    std::cout << tools::check_json(all) << "\n";
  } else {
    const bool paints = wants_color(ColorChoice::automatic, STDOUT_FILENO);
    bool is_first = true;
    for (const tools::CheckProblem& problem : all) {
      if (!std::exchange(is_first, false)) std::cout << "\n";
      std::cout << (paints ? painted_error(shown(problem)) : shown(problem));
    }
    if (!all.empty()) std::cout << "\n" << all.size() << (all.size() == 1 ? " problem" : " problems") << "\n";
  }
  return failed ? 2 : all.empty() ? 0 : 1;
}

}  // namespace slope::repl
