// Functions of the project's own code have at most 100 lines, or a comment before them that begins with "Long because".
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_lines = 100;

struct LongFunction {
  std::size_t line = 0;  // of its head, from 1
  std::size_t lines = 0;
  bool has_reason = false;
};

std::vector<std::string> read_lines(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The comment right before the line: do any of its lines give the reason? A template's head may stand between.
bool reason_before(const std::vector<std::string>& lines, std::size_t head) {
  for (std::size_t i = head; i-- > 0;) {
    const std::size_t begin = lines[i].find_first_not_of(' ');
    if (begin == std::string::npos || lines[i].back() == '}' || lines[i].back() == ';') return false;
    if (lines[i].compare(begin, 2, "//") == 0 && lines[i].find("Long because") != std::string::npos) return true;
  }
  return false;
}

// clang-format has laid the files out: a body ends at the first line that closes at the column of its head.
std::vector<LongFunction> long_functions(const std::vector<std::string>& lines) {
  static const std::regex other(
      R"(^ *(namespace|class|struct|enum|extern|union|if|for|while|switch|else|do|#|//|\}).*)");
  std::vector<LongFunction> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || begin > 2 || line.back() != '{' || std::regex_match(line, other)) continue;
    const bool is_table = line.find("= {") != std::string::npos || line.find("({") != std::string::npos;
    if (is_table || line.find(')') == std::string::npos) continue;
    const std::string end = std::string(begin, ' ') + "}";
    std::size_t last = i + 1;
    while (last < lines.size() && !lines[last].starts_with(end)) ++last;
    if (last - i > most_lines) found.push_back({i + 1, last - i, reason_before(lines, i)});
  }
  return found;
}

}  // namespace

TEST_CASE("Functions of more than 100 lines give a reason") {
  std::string problems;
  std::size_t long_ones = 0;
  for (const char* room : {"lang", "interpreter", "codegen", "stdlib", "embed", "tools", "include", "repl"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SLOPE_SOURCE_DIR) / room)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      for (const LongFunction& function : long_functions(read_lines(entry.path()))) {
        ++long_ones;
        if (function.has_reason) continue;
        problems += fs::relative(entry.path(), SLOPE_SOURCE_DIR).string() + ":" + std::to_string(function.line) + ": " +
                    std::to_string(function.lines) + " lines\n";
      }
    }
  }
  INFO(problems);
  CHECK(problems.empty());
  CHECK(long_ones > 5);  // the tables that there are: the search finds something
}
