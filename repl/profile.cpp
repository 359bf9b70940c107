#include "repl/profile.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <vector>

#include "repl/allocation_sites.hpp"
#include "repl/interrupts.hpp"
#include "repl/paint.hpp"
#include "repl/subcommand.hpp"
#include "slope/tools.hpp"

namespace slope::repl {

namespace {

constexpr const char* profile_help = R"(usage: slope profile [OPTIONS] FILE [ARGUMENTS...]

Runs FILE and says where its time went: a sample of the stack of functions and lines, in the interpreter and in machine
code, every millisecond of processor time. What is spent in Slope's library counts for the script's line that called it.

  --format FORMAT   text (the default): a table of lines; html: one page with a flame graph; collapsed: a line a stack, for
                    flame graph programs; speedscope: JSON for https://www.speedscope.app
  --memory          instead of time: what was allocated, by line and type (text only)
  --compiling       instead: where the processor time of compiling went, by function and stage (text only)
  -o, --output PATH write there. Without it the profile goes to standard output, and what the script prints to standard
                    error
  --interval MS     milliseconds between samples (1)
  --tier TIER       interpret, compile or auto, as without `profile`

A script that fails, or is interrupted with ^C, is told of what it did until then. Exit status: as without `profile`.
)";

}  // namespace

int run_profile(int count, char** arguments) {
  std::string format = "text", output_path, tier = "auto";
  double interval = 1;
  bool memory = false, compiling = false;
  CLI::App app;
  app.prefix_command();  // the script's arguments are its own
  app.add_option("--format", format)->check(CLI::IsMember({"text", "html", "collapsed", "speedscope"}));
  app.add_option("-o,--output", output_path);
  app.add_flag("--memory", memory);
  app.add_flag("--compiling", compiling);
  app.add_option("--interval", interval)->check(CLI::Range(0.01, 10'000.0));
  app.add_option("--tier", tier)->check(CLI::IsMember({"interpret", "compile", "auto"}));
  const Subcommand command{profile_help, "slope profile [OPTIONS] FILE; slope profile --help lists the options"};
  if (const std::optional<int> status = command.parse(app, count, arguments)) return *status;
  std::vector<std::string> rest = app.remaining();
  if (!rest.empty() && rest[0] == "--") rest.erase(rest.begin());
  if (rest.empty()) return command.wrong_usage("which file?");
  if (rest[0].size() > 1 && rest[0][0] == '-') return command.wrong_usage("there is no option " + rest[0]);
  if (memory && compiling) return command.wrong_usage("either --memory or --compiling");
  if ((memory || compiling) && format != "text")
    return command.wrong_usage(std::string(memory ? "--memory" : "--compiling") + " has the format text alone");
  const std::string file = rest[0];
  rest.erase(rest.begin());
  std::ofstream written;
  if (!output_path.empty()) {
    written.open(output_path, std::ios::binary);  // before the script runs: it may run for hours
    if (!written) {
      std::cerr << "slope: " << output_path << " cannot be written\n";
      return 1;
    }
  }

  Output output;
  Options options;
  options.profile = true;
  options.tier = tier == "interpret" ? Tier::interpret : tier == "compile" ? Tier::compile : Tier::automatic;
  options.capabilities = Capabilities::all();
  options.arguments = rest;
  options.output = [&](std::string_view text) { output_path.empty() ? output.err(text) : output.out(text); };
  options.error_output = [&](std::string_view text) { output.err(text); };
  if (compiling) {
    options.profile = false;          // records of frames cost time of their own
    ::setenv("SLOPE_TIMES", "1", 1);  // the engine looks at it when it is made
  }
  AllocationSites allocations;
  if (memory) options.on_allocation = [&](const Allocation& each) { allocations.note(each); };
  Engine engine(options);
  const auto report = [&](const Error& error) {
    report_error(output, error, wants_color(ColorChoice::automatic, STDERR_FILENO));
  };
  ProfileOptions sampling;
  sampling.interval = interval / 1000;
  const bool samples = !memory && !compiling;
  if (samples) {
    if (const Result<void> started = start_profile(engine, sampling); !started.ok()) {
      report(started.error());
      return 1;
    }
  }
  int status = 0;
  {
    InterruptGuard guard(engine);
    if (const Result<Value> ran = engine.run_file(file); !ran.ok()) {
      status = ran.error().kind == ErrorKind::exit ? ran.error().exit_code : 1;
      if (ran.error().kind != ErrorKind::exit) report(ran.error());
    }
  }
  std::string text;
  if (memory) {
    text = allocations.table();
  } else if (compiling) {
    text = tools::compile_times(engine);
    if (text.empty()) text = "nothing was compiled\n";
  } else {
    const Result<Profile> profile = stop_profile(engine);
    if (!profile.ok()) {
      report(profile.error());
      return 1;
    }
    text = format == "collapsed"    ? collapsed_stacks(profile.value())
           : format == "speedscope" ? speedscope_json(profile.value(), file)
           : format == "html"       ? flame_html(profile.value(), file)
                                    : profile_table(profile.value());
  }
  if (output_path.empty()) {
    output.out(text);
  } else if (!(written << text) || !written.flush()) {
    std::cerr << "slope: " << output_path << " could not be written\n";
    return 1;
  }
  return status;
}

}  // namespace slope::repl
