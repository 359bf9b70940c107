#include "repl/options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

namespace slope::repl {

namespace {

constexpr const char* help_text = R"(usage: slope [OPTIONS] [FILE [ARGUMENTS...]]
       slope inspect FILE --function 'f(::T)' [OPTIONS]    what the compiler makes of a function
       slope profile [OPTIONS] FILE [ARGUMENTS...]         where a script spends its time
       slope coverage [OPTIONS] FILE [ARGUMENTS...]        which lines of a script run
       slope check [--json] FILE…                          what is wrong with files, without running them
       slope build FILE --export 'f(::Float64)' …          functions as an object file with a C header
       slope fmt [--check] FILE…                           lays out files in place
       slope lsp                                           the language server, for editors
       slope kernel --install                              the kernel for Jupyter's notebooks
       slope notebook FILE                                 a script with `# %%` cells as a notebook, and back

Runs FILE (- is standard input) with ARGUMENTS in ARGS. Without a FILE and without CODE: opens the prompt on a terminal,
else runs standard input.

  -e, --eval CODE      run CODE
  -E, --print CODE     run CODE and print the value of its last statement
  -i, --interactive    then open the prompt
      --tier TIER      interpret: no machine code; compile: compile every function before its first call;
                       auto (the default): compile what is called or loops often
  -O LEVEL             machine code: 0 is ready ten times sooner, 1 twice as soon; 2 (the default) is the fastest
      --compile-threads N  compile on N other threads, while the script goes on (0: the script waits)
      --color WHEN     yes, no or auto (the default): on terminals, unless NO_COLOR is set
      --no-startup     without ~/.config/slope/startup.slope, which otherwise runs before the prompt opens
      --check-generators   run the generator of each @generated function twice and compare what it returns
      --check-rules    check what derivative rules return: types, shapes, numbers, arguments left as they were
      --trust-inbounds     believe @inbounds: a wrong script may then destroy any memory of the process
      --version        print the version
  -h, --help           print this

Exit status: 0; 1 when a script fails; 2 for wrong usage; the script's own with exit(n).
)";

}  // namespace

std::optional<CommandLine> read_command_line(int count, char** arguments, int& status) {
  CommandLine line;
  bool help = false;
  bool show_version = false;
  CLI::App app;
  app.prefix_command();  // the script's arguments are its own, whatever they look like
  app.set_help_flag();
  app.option_defaults()->take_last();  // given twice, an option means what it said last, as everywhere
  app.add_flag("-h,--help", help);
  app.add_flag("--version", show_version);
  app.add_flag("--check-generators", line.check_generators);
  app.add_flag("--check-rules", line.check_rules);
  app.add_flag("--trust-inbounds", line.trusts_inbounds);
  app.add_flag("-i,--interactive", line.interactive);
  auto snippet = [&](bool prints) {
    return [&line, prints](const std::string& code) { line.snippets.push_back({code, prints}); };
  };
  app.add_option_function<std::string>("-e,--eval", snippet(false))->trigger_on_parse()->take_all();
  app.add_option_function<std::string>("-E,--print", snippet(true))->trigger_on_parse()->take_all();
  const std::map<std::string, Tier> tiers = {
      {"interpret", Tier::interpret}, {"compile", Tier::compile}, {"auto", Tier::automatic}};
  app.add_option_function<std::string>("--tier", [&](const std::string& name) { line.tier = tiers.at(name); })
      ->check(CLI::IsMember({"interpret", "compile", "auto"}));
  app.add_option_function<unsigned>("-O", [&](unsigned level) { line.optimisation = static_cast<Optimisation>(level); })
      ->check(CLI::Range(0, 2));
  app.add_option("--compile-threads", line.compile_threads)->check(CLI::Range(0, 64));

  const std::map<std::string, ColorChoice> colors = {
      {"yes", ColorChoice::always}, {"no", ColorChoice::never}, {"auto", ColorChoice::automatic}};
  app.add_option_function<std::string>("--color", [&](const std::string& when) { line.color = colors.at(when); })
      ->check(CLI::IsMember({"yes", "no", "auto"}));
  app.add_flag_callback("--no-startup", [&] { line.startup = false; });

  auto wrong_usage = [&](const std::string& problem) {
    std::cerr << "slope: " << problem
              << "\nusage: slope [OPTIONS] [FILE [ARGUMENTS...]]; slope --help lists the options\n";
    status = 2;
    return std::nullopt;
  };
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& problem) {
    return wrong_usage(problem.what());
  }
  if (help || show_version) {
    if (help) {
      std::cout << help_text;
    } else {
      std::cout << "slope " << version() << '\n';
    }
    status = 0;
    return std::nullopt;
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
