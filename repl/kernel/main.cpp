// slope-kernel: what `slope kernel` and `slope notebook` run.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string_view>

#include "repl/kernel/kernel.hpp"
#include "repl/kernel/kernelspec.hpp"
#include "repl/kernel/notebook.hpp"
#include "repl/subcommand.hpp"

namespace {

using namespace slope::repl;

constexpr const char* kernel_help = R"(usage: slope kernel --install [--prefix FOLDER]
       slope kernel -f FILE

A kernel for Jupyter: notebooks of Slope.

  --install         tell Jupyter of it, for this user ($JUPYTER_DATA_DIR, else ~/.local/share/jupyter)
  --user            the same as without --prefix
  --prefix FOLDER   tell Jupyter below FOLDER/share/jupyter instead, for all its users
  -f FILE           serve the notebook that wrote this connection file; Jupyter starts it so
)";

int run_kernel(int count, char** arguments) {
  std::string connection, prefix;
  bool install = false, user = false;
  CLI::App app;
  app.add_flag("--install", install);
  app.add_flag("--user", user);
  app.add_option("--prefix", prefix);
  app.add_option("-f", connection);
  const Subcommand command{kernel_help, "slope kernel --install [--prefix FOLDER]; slope kernel -f FILE"};
  if (const std::optional<int> status = command.parse(app, count, arguments)) return *status;
  if (install == !connection.empty()) return command.wrong_usage("either --install or -f FILE");
  if (user && !prefix.empty()) return command.wrong_usage("either --user or --prefix");
  try {
    if (install)
      install_kernelspec(prefix.empty() ? user_data_folder() : prefix + "/share/jupyter");
    else
      serve_notebook(connection);
  } catch (const std::exception& problem) {
    std::cerr << "slope: " << problem.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view task = count > 1 ? arguments[1] : "";
  if (task == "notebook") return run_notebook(count - 2, arguments + 2);
  if (task == "kernel") return run_kernel(count - 2, arguments + 2);
  std::cerr << kernel_help;
  return 2;
}
