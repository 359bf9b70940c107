#include "repl/inspect.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <string>

#include "repl/paint.hpp"
#include "repl/subcommand.hpp"
#include "slope/tools.hpp"

namespace slope::repl {

namespace {

constexpr const char* inspect_help = R"(usage: slope inspect FILE --function 'f(::T, …)' [OPTIONS]

Runs FILE (what it prints goes to standard error), then prints what the compiler makes of the call.

  --function CALL   a function with the types of its arguments: 'loss(::Vector{Float64})'; without types: those of
                    its most frequent call while FILE ran, else those that its only method declares
  --view VIEW       warntype (the default), typed, lowered, grad, llvm, native; or a reason: why a type is not exact,
                    allocates, dynamic: why methods are looked up when it runs, recompiled: by which definition
  --format FORMAT   text (the default), json, or html: one page with the source, the types of its expressions, its callees
                    and their code
  --no-source       without the lines of the source beside the code
  --full            long types and constants are written out
  --hide-stable     warntype: only what is not exact
  --color WHEN      yes, no or auto
)";

// A Slope string literal.
std::string string_literal(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '$') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

int run_inspect(int count, char** arguments) {
  std::string file, function, view = "warntype", format = "text", color = "auto";
  bool no_source = false, full = false, hide_stable = false;
  CLI::App app;
  app.add_flag("--no-source", no_source);
  app.add_flag("--full", full);
  app.add_flag("--hide-stable", hide_stable);
  app.add_option("file", file);
  app.add_option("--function", function);
  app.add_option("--view", view)
      ->check(CLI::IsMember(
          {"warntype", "typed", "lowered", "grad", "llvm", "native", "why", "allocates", "dynamic", "recompiled"}));
  app.add_option("--format", format)->check(CLI::IsMember({"text", "json", "html"}));
  app.add_option("--color", color)->check(CLI::IsMember({"yes", "no", "auto"}));
  const Subcommand command{inspect_help,
                           "slope inspect FILE --function 'f(::T)'; slope inspect --help lists the options"};
  if (const std::optional<int> status = command.parse(app, count, arguments)) return *status;
  if (file.empty()) return command.wrong_usage("which file?");
  if (function.empty()) return command.wrong_usage("which function? --function 'f(::T)'");

  Output output;
  Options options;
  options.capabilities = Capabilities::all();
  options.output = [&](std::string_view text) { output.err(text); };
  options.error_output = [&](std::string_view text) { output.err(text); };
  Engine engine(options);
  const ColorChoice choice = color == "yes"  ? ColorChoice::always
                             : color == "no" ? ColorChoice::never
                                             : ColorChoice::automatic;
  tools::set_color(engine, wants_color(choice, STDOUT_FILENO));
  const auto failed = [&](const Error& error) {
    report_error(output, error, wants_color(choice, STDERR_FILENO));
    return error.kind == ErrorKind::exit ? error.exit_code : 1;
  };
  if (Result<Value> ran = engine.run_file(file); !ran.ok()) return failed(ran.error());
  const Result<std::string> report = engine.eval<std::string>(
      "Base.inspect_report(" + string_literal(function) + ", :" + view + ", :" + format +
          "; source=" + (no_source ? "false" : "true") + ", full=" + (full ? "true" : "false") +
          ", hide_stable=" + (hide_stable ? "true" : "false") + ")",
      "--function");
  if (!report.ok()) {
    // Where the report itself was made says nothing: the message alone.
    Error problem = report.error();
    for (const char* rest : {"\n --> --function", "\nStacktrace:"})
      problem.message = problem.message.substr(0, problem.message.find(rest));
    constexpr std::string_view prefix = "ERROR: ";
    if (problem.message.starts_with(prefix)) problem.message.erase(0, prefix.size());
    while (problem.message.ends_with('\n')) problem.message.pop_back();
    output.err("slope: --function '" + function + "': " + problem.message + "\n");
    return 1;
  }
  output.out(report.value());
  return 0;
}

}  // namespace slope::repl
