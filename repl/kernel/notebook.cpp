#include "repl/kernel/notebook.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "repl/inputs.hpp"
#include "repl/kernel/kernelspec.hpp"
#include "repl/subcommand.hpp"
#include "slope/tools.hpp"

namespace slope::repl {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view marker = "# %%";
constexpr std::string_view markdown_marker = "# %% [markdown]";

struct Cell {
  bool is_markdown = false;
  std::vector<std::string> lines;
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (lines.back().ends_with('\r')) lines.back().pop_back();
  }
  return lines;
}

void drop_empty_ends(std::vector<std::string>& lines) {
  while (!lines.empty() && trimmed(lines.back()).empty()) lines.pop_back();
  std::size_t first = 0;
  while (first < lines.size() && trimmed(lines[first]).empty()) ++first;
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(first));
}

std::string without_comment(const std::string& line) {
  if (line.starts_with("# ")) return line.substr(2);
  return line.starts_with("#") ? line.substr(1) : line;
}

std::vector<Cell> cells_of(std::string_view script) {
  std::vector<Cell> cells(1);  // what comes before the first marker
  for (std::string& line : lines_of(script)) {
    if (line == marker || line.starts_with("# %% "))
      cells.push_back({line.starts_with(markdown_marker), {}});
    else
      cells.back().lines.push_back(cells.back().is_markdown ? without_comment(line) : std::move(line));
  }
  for (Cell& cell : cells) drop_empty_ends(cell.lines);
  if (cells[0].lines.empty()) cells.erase(cells.begin());
  return cells;
}

// Each line of a cell with its end, the last one without.
Json source_of(const std::vector<std::string>& lines) {
  Json source = Json::array();
  for (std::size_t i = 0; i < lines.size(); ++i) source.push_back(lines[i] + (i + 1 < lines.size() ? "\n" : ""));
  return source;
}

std::string text_of(const Json& source) {
  if (source.is_string()) return source.get<std::string>();
  std::string text;
  for (const Json& line : source) text += line.get<std::string>();
  return text;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

constexpr const char* notebook_help = R"(usage: slope notebook FILE [-o FILE]

Makes a notebook of a script, or a script of a notebook, as the end of FILE's name says: .slope or .ipynb. In a script a
line `# %%` begins a cell of code, and `# %% [markdown]` a cell of text, which stands in comments. A script that was made
so and its notebook run the same. Outputs of a notebook are not taken over.

  -o FILE   write to this file; without, to FILE with the other end. - is standard output
)";

}  // namespace

std::string notebook_of_script(std::string_view script) {
  Json cells = Json::array();
  for (const Cell& cell : cells_of(script)) {
    Json made = {{"cell_type", cell.is_markdown ? "markdown" : "code"},
                 {"id", "cell-" + std::to_string(cells.size() + 1)},
                 {"metadata", Json::object()},
                 {"source", source_of(cell.lines)}};
    if (!cell.is_markdown) {
      made["execution_count"] = nullptr;
      made["outputs"] = Json::array();
    }
    cells.push_back(std::move(made));
  }
  const Json notebook = {{"cells", cells},
                         {"metadata",
                          {{"kernelspec", {{"display_name", "Slope"}, {"language", "slope"}, {"name", "slope"}}},
                           {"language_info", language_info()}}},
                         {"nbformat", 4},
                         {"nbformat_minor", 5}};
  return notebook.dump(1) + "\n";
}

std::string script_of_notebook(std::string_view notebook) {
  const Json whole = Json::parse(notebook);
  std::string script;
  for (const Json& cell : whole.at("cells")) {
    const std::string kind = cell.at("cell_type").get<std::string>();
    std::vector<std::string> lines = lines_of(text_of(cell.at("source")));
    drop_empty_ends(lines);
    if (!script.empty()) script += "\n";
    script += std::string(kind == "code" ? marker : markdown_marker) + "\n";
    for (const std::string& line : lines)
      script += kind == "code" ? line + "\n" : line.empty() ? "#\n" : "# " + line + "\n";
  }
  return script;
}

int run_notebook(int count, char** arguments) {
  std::string file, out;
  CLI::App app;
  app.add_option("file", file);
  app.add_option("-o", out);
  const Subcommand command{notebook_help, "slope notebook FILE [-o FILE]"};
  if (const std::optional<int> status = command.parse(app, count, arguments)) return *status;
  const std::filesystem::path path = file;
  const bool to_script = path.extension() == ".ipynb";
  if (!to_script && path.extension() != ".slope") return command.wrong_usage("FILE ends in .slope or .ipynb");
  if (out.empty()) out = std::filesystem::path(path).replace_extension(to_script ? ".slope" : ".ipynb").string();
  try {
    const std::string text = read_text(file);
    const std::string made = to_script ? script_of_notebook(text) : notebook_of_script(text);
    if (out == "-") {
      std::cout << made;
      return 0;
    }
    const std::string problem = tools::replace_file(out, made);
    if (problem.empty()) return 0;
    std::cerr << "slope: " << out << ": " << problem << "\n";
  } catch (const std::exception& problem) {
    std::cerr << "slope: " << file << ": " << problem.what() << "\n";
  }
  return 1;
}

}  // namespace slope::repl
