#include "repl/kernel/kernelspec.hpp"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "repl/process.hpp"
#include "slope/tools.hpp"

namespace slope::repl {

nlohmann::ordered_json language_info() {
  return {{"name", "slope"},
          {"version", std::string(version())},
          {"mimetype", "text/x-slope"},
          {"file_extension", ".slope"},
          // The syntax is Julia's.
          {"pygments_lexer", "julia"},
          {"codemirror_mode", "julia"},
          {"nbconvert_exporter", "script"}};
}

std::string user_data_folder() {
  if (const char* folder = std::getenv("JUPYTER_DATA_DIR"); folder && *folder) return folder;
  if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data == '/') return std::string(data) + "/jupyter";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.local/share/jupyter";
  throw std::runtime_error("HOME is not set: give a folder with --prefix");
}

void install_kernelspec(const std::string& folder) {
  const std::filesystem::path place = std::filesystem::path(folder) / "kernels" / "slope";
  std::filesystem::create_directories(place);
  const nlohmann::ordered_json spec = {
      {"argv", {program_folder() + "/slope-kernel", "kernel", "-f", "{connection_file}"}},
      {"display_name", "Slope"},
      {"language", "slope"},
      {"interrupt_mode", "signal"},
      {"metadata", {{"debugger", false}}}};
  const std::string file = (place / "kernel.json").string();
  if (const std::string problem = tools::replace_file(file, spec.dump(2) + "\n"); !problem.empty())
    throw std::runtime_error(file + ": " + problem);
  std::cout << file << "\n";
}

}  // namespace slope::repl
