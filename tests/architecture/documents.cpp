// README, CHANGELOG and docs/*.md: links and paths lead somewhere, and lines stay within 120 columns.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr std::size_t columns = 120;

fs::path top() { return SLOPE_SOURCE_DIR; }

struct Line {
  fs::path file;  // relative to the top of the repository
  std::size_t number = 0;
  std::string text;
  bool code = false;  // inside a fence
};

std::string where(const Line& line) { return line.file.string() + ":" + std::to_string(line.number) + ": "; }

std::vector<Line> read_document(const fs::path& file) {
  std::vector<Line> lines;
  std::ifstream in(top() / file);
  bool code = false;
  for (std::string text; std::getline(in, text);) {
    const auto begin = text.find_first_not_of(' ');
    const bool fence = begin != std::string::npos && text.compare(begin, 3, "```") == 0;
    if (fence) code = !code;
    lines.push_back({file, lines.size() + 1, text, code || fence});
  }
  return lines;
}

const std::vector<Line>& documents() {
  static const std::vector<Line> all = [] {
    std::vector<fs::path> files = {"README.md", "CHANGELOG.md"};
    for (const auto& entry : fs::directory_iterator(top() / "docs"))
      if (entry.path().extension() == ".md") files.push_back(fs::relative(entry.path(), top()));
    std::sort(files.begin(), files.end());
    std::vector<Line> lines;
    for (const fs::path& file : files)
      for (Line& line : read_document(file)) lines.push_back(std::move(line));
    return lines;
  }();
  return all;
}

// Calls `use` with the first group of each match.
void each_match(const std::string& text, const std::regex& pattern,
                const std::function<void(const std::string&)>& use) {
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) use((*it)[1].str());
}

// Whether `path` names something. Of a pattern ("tests/<layer>/*.cpp", "NAME.err") the folder before it counts.
bool exists(const std::string& path) {
  std::string known = path.substr(0, path.find_first_of("*<{"));
  known = known.substr(0, known.find("NAME"));
  known = known.substr(0, known.find("…"));
  if (known.size() < path.size()) known = known.substr(0, known.rfind('/'));
  return fs::exists(top() / known);
}

std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

TEST_CASE("Links in the documents lead to files of the repository") {
  const std::regex link(R"(\]\(([^)#\s]+)[^)]*\))");
  const std::regex code_span("`[^`]*`");
  std::string problems;
  std::size_t links = 0;
  for (const Line& line : documents()) {
    if (line.code) continue;
    each_match(std::regex_replace(line.text, code_span, ""), link, [&](const std::string& target) {
      if (target.find("://") != std::string::npos) return;
      ++links;
      if (!fs::exists(top() / line.file.parent_path() / target)) problems += where(line) + target + "\n";
    });
  }
  INFO(problems);
  CHECK(problems.empty());
  CHECK(links > 20);
}

TEST_CASE("Paths that the documents name exist") {
  const std::regex path("`([A-Za-z_]+/[^`\\s]*)`");
  std::string problems;
  std::size_t paths = 0;
  for (const Line& line : documents()) {
    if (line.code) continue;
    each_match(line.text, path, [&](const std::string& name) {
      const std::string folder = name.substr(0, name.find('/'));
      if (folder == "build" || !fs::is_directory(top() / folder)) return;
      ++paths;
      if (!exists(name)) problems += where(line) + name + "\n";
    });
  }
  INFO(problems);
  CHECK(problems.empty());
  CHECK(paths > 50);
}

TEST_CASE("Lines of the documents have at most 120 columns") {
  std::string problems;
  for (const Line& line : documents()) {
    if (line.text.starts_with("|")) continue;  // a row of a table is one line
    if (width(line.text) > columns) problems += where(line) + std::to_string(width(line.text)) + " columns\n";
  }
  INFO(problems);
  CHECK(problems.empty());
}
