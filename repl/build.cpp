#include "repl/build.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "repl/paint.hpp"
#include "repl/subcommand.hpp"
#include "slope/build.hpp"

namespace slope::repl {

namespace {

constexpr const char* build_help = R"(usage: slope build FILE --export 'f(::Vector{Float64})' [--gradient] [-o NAME]

Makes an object file that needs neither Slope nor LLVM, a C header and a file for CMake: NAME.o, NAME.h,
NAMEConfig.cmake. The script runs first, so that its constants have their values.

  --export CALL   a function with the types of its arguments: numbers, and arrays of numbers; may be repeated
  --gradient      also its gradient
  --jvp           also its derivative in a direction
  --hvp           also the product of its Hessian with a direction
  -o NAME         where the files go; otherwise beside the script, under its name
  --target NAME   another machine, as LLVM names it: aarch64-linux-gnu, x86_64-linux-gnu; otherwise this one
  --cpu NAME      a processor (`native`: this one); otherwise any of the architecture

What needs an engine is refused with its line. docs/ahead_of_time.md says what the functions look like in C.
Exit status: 0 when the files were written; 1 when not; 2 for wrong usage.
)";

}  // namespace

int run_build(int count, char** arguments) {
  CLI::App app;
  tools::BuildOptions options;
  std::string file;
  app.add_option("file", file);
  app.add_option("--export", options.exports)->allow_extra_args(false);
  app.add_flag("--gradient", options.gradient);
  app.add_flag("--jvp", options.jvp);
  app.add_flag("--hvp", options.hvp);
  app.add_option("-o", options.output);
  app.add_option("--target", options.target);
  app.add_option("--cpu", options.cpu);
  const Subcommand command{build_help, "slope build FILE --export 'f(::Vector{Float64})' [--gradient] [-o NAME]"};
  if (const std::optional<int> status = command.parse(app, count, arguments)) return *status;
  if (file.empty()) return command.wrong_usage("which file?");
  if (options.exports.empty()) return command.wrong_usage("which functions? Name them with --export");

  const bool painted = isatty(STDERR_FILENO) != 0;
  Result<tools::BuildReport> built = tools::build(file, options);
  std::cout.flush();
  if (!built.ok()) {
    const std::string message = "slope: " + built.error().message + "\n";
    std::cerr << (painted ? painted_error(message) : message);
    return 1;
  }
  for (const tools::BuildProblem& problem : built.value().problems) {
    const std::string message = "error: " + problem.message + "\n" + problem.excerpt;
    std::cerr << (painted ? painted_error(message) : message);
  }
  return built.value().problems.empty() ? 0 : 1;
}

}  // namespace slope::repl
