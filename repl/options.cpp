#include "repl/options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

namespace slope::repl {

std::optional<CommandLine> read_command_line(int count, char** arguments, int& status) {
  CommandLine line;
  CLI::App app("Runs Slope scripts; without FILE and -e, opens a prompt or runs standard input.", "slope");
  app.prefix_command();  // the script's arguments are its own, whatever they look like
  app.set_version_flag("--version", "slope " + std::string(version()));
  auto add_snippet = [&](bool prints) {
    return [&line, prints](const std::string& code) { line.snippets.push_back({code, prints}); };
  };
  app.add_option_function<std::string>("-e,--eval", add_snippet(false), "run CODE")
      ->type_name("CODE")
      ->trigger_on_parse()
      ->take_all();
  app.add_option_function<std::string>("-E,--print", add_snippet(true),
                                       "run CODE and print the value of its last statement")
      ->type_name("CODE")
      ->trigger_on_parse()
      ->take_all();
  app.add_flag("-i,--interactive", line.interactive, "open the prompt after FILE or CODE");
  const std::map<std::string, Tier> tiers = {
      {"interpret", Tier::interpret}, {"compile", Tier::compile}, {"auto", Tier::automatic}};
  app.add_option_function<std::string>(
         "--tier", [&](const std::string& name) { line.tier = tiers.at(name); },
         "interpret everything, compile everything, or compile what is hot")
      ->type_name("interpret|compile|auto")
      ->check(CLI::IsMember({"interpret", "compile", "auto"}));

  auto wrong_usage = [&](const std::string& problem) {
    std::cerr << "slope: " << problem
              << "\nusage: slope [OPTIONS] [FILE [ARGUMENTS...]]; slope --help lists the options\n";
    status = 2;
    return std::nullopt;
  };
  try {
    app.parse(count, arguments);
  } catch (const CLI::Success& asked) {  // --help, --version
    status = app.exit(asked);
    return std::nullopt;
  } catch (const CLI::ParseError& problem) {
    return wrong_usage(problem.what());
  }

  line.arguments = app.remaining();
  if (!line.arguments.empty() && line.arguments[0] == "--") {
    line.arguments.erase(line.arguments.begin());
  } else if (!line.arguments.empty() && line.arguments[0].size() > 1 && line.arguments[0][0] == '-') {
    return wrong_usage("there is no option " + line.arguments[0]);
  }
  if (line.snippets.empty() && !line.arguments.empty()) {
    line.file = line.arguments[0];
    line.arguments.erase(line.arguments.begin());
  }
  return line;
}

}  // namespace slope::repl
