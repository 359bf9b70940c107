// The rooms and who may see whom: every #include line of the repository against one table.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Include {
  std::string file;  // relative to the top of the repository
  std::size_t line = 0;
  std::string path;
};

// The longest name that is a prefix of the path is its room.
const std::vector<std::string> rooms = {
    "lang/support",  "lang/syntax", "lang/runtime", "lang/ir",     "lang/lower", "lang/infer",
    "lang/diff",     "lang/opt",    "lang",         "interpreter", "codegen",    "stdlib/native",
    "stdlib",        "embed",       "include",      "repl",        "examples",   "tests/embed",
    "tests/install", "tests/fuzz",  "tests",        "bench",
};

// What a room may include besides itself. `stdlib` is the table of the library's text, trees and index; `lang` the
// pipeline.
const std::map<std::string, std::set<std::string>> may_include = {
    {"lang/support", {}},
    {"lang/syntax", {"lang/support"}},
    {"lang/runtime", {"lang/support"}},
    {"lang/ir", {"lang/runtime", "lang/support"}},
    {"lang/lower", {"lang/syntax", "lang/ir", "lang/runtime", "lang/support"}},
    {"lang/infer", {"lang/ir", "lang/runtime", "lang/support"}},
    {"lang/diff", {"lang/infer", "lang/ir", "lang/runtime", "lang/support"}},
    {"lang/opt", {"lang/infer", "lang/ir", "lang/runtime", "lang/support"}},
    {"lang",
     {"lang/lower", "lang/infer", "lang/diff", "lang/opt", "lang/syntax", "lang/ir", "lang/runtime", "lang/support"}},
    {"interpreter", {"lang/ir", "lang/runtime", "lang/support"}},
    {"codegen", {"lang/ir", "lang/runtime", "lang/support"}},
    {"stdlib/native", {"lang/runtime", "lang/support"}},
    {"stdlib", {"lang/lower", "lang/syntax", "lang/runtime", "lang/support"}},  // images.cpp, while building
    {"embed",
     {"lang", "lang/lower", "lang/infer", "lang/diff", "lang/opt", "lang/syntax", "lang/ir", "lang/runtime",
      "lang/support", "interpreter", "codegen", "stdlib", "stdlib/native", "include"}},
    {"include", {}},
    {"repl", {"include"}},
    {"examples", {"include"}},
    {"tests/embed", {"include", "tests"}},
    {"tests/install", {"include"}},
    {"tests/fuzz", {"include", "tests"}},
    {"bench", {"include", "lang/syntax", "lang/support"}},  // the parser has a bench of its own
};

// Libraries that only one room may see.
const std::vector<std::pair<std::string, std::set<std::string>>> library_rooms = {
    {"llvm/", {"codegen", "tests"}},
    {"llvm-c/", {"codegen", "tests"}},
    {"boost/", {"lang/syntax"}},
    {"readline/", {"repl"}},
    {"CLI/", {"repl"}},
};

fs::path top() { return SLOPE_SOURCE_DIR; }

std::string room_of(const std::string& path) {
  std::string best;
  for (const auto& room : rooms) {
    if (path.starts_with(room + "/") && room.size() > best.size()) best = room;
  }
  return best;
}

// The file an include names, relative to the top; nothing for what lies outside the repository.
std::optional<std::string> resolve(const std::string& path) {
  if (fs::exists(top() / path) && !room_of(path).empty()) return path;
  if (fs::exists(top() / "include" / path)) return "include/" + path;
  return std::nullopt;
}

std::vector<Include> includes_of(const fs::path& file) {
  std::vector<Include> found;
  std::ifstream in(file);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line);
    std::string directive;
    words >> directive;
    if (directive == "#") {
      words >> directive;
      directive = "#" + directive;
    }
    if (!directive.starts_with("#include")) continue;
    const auto begin = line.find_first_of("<\"");
    if (begin == std::string::npos) continue;
    const auto end = line.find_first_of(">\"", begin + 1);
    found.push_back({fs::relative(file, top()).string(), number, line.substr(begin + 1, end - begin - 1)});
  }
  return found;
}

std::vector<Include> all_includes() {
  std::vector<Include> all;
  const std::set<std::string> extensions = {".cpp", ".hpp", ".h", ".c", ".def", ".inc"};
  for (const char* folder :
       {"lang", "interpreter", "codegen", "stdlib", "embed", "include", "repl", "examples", "tests", "bench"}) {
    if (!fs::exists(top() / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top() / folder)) {
      if (!entry.is_regular_file() || !extensions.contains(entry.path().extension().string())) continue;
      const auto found = includes_of(entry.path());
      all.insert(all.end(), found.begin(), found.end());
    }
  }
  return all;
}

std::string where(const Include& include) {
  return include.file + ":" + std::to_string(include.line) + " includes " + include.path;
}

}  // namespace

TEST_CASE("Every room includes only what it may") {
  std::string problems;
  for (const auto& include : all_includes()) {
    const auto from = room_of(include.file);
    const auto target = resolve(include.path);
    if (!target || !may_include.contains(from)) continue;  // outside the repository, or tests of a layer
    const auto to = room_of(*target);
    if (from == to || may_include.at(from).contains(to)) continue;
    problems += where(include) + ": " + from + " may not see " + to + "\n";
  }
  INFO(problems);
  CHECK(problems.empty());
}

TEST_CASE("Includes are rooted at the top of the repository") {
  std::string problems;
  for (const auto& include : all_includes()) {
    const auto beside = fs::path(include.file).parent_path() / include.path;
    if (resolve(include.path) || !fs::exists(top() / beside)) continue;
    problems += where(include) + ": write " + beside.lexically_normal().string() + "\n";
  }
  INFO(problems);
  CHECK(problems.empty());
}

TEST_CASE("A library is seen by its own room alone") {
  std::string problems;
  for (const auto& include : all_includes()) {
    for (const auto& [prefix, allowed] : library_rooms) {
      if (!include.path.starts_with(prefix)) continue;
      auto room = room_of(include.file);
      if (room.starts_with("tests/")) room = "tests";
      if (!allowed.contains(room)) problems += where(include) + "\n";
    }
  }
  INFO(problems);
  CHECK(problems.empty());
}

TEST_CASE("Public headers include the C++ standard library and each other, nothing else") {
  std::string problems;
  for (const auto& include : all_includes()) {
    if (room_of(include.file) != "include") continue;
    const bool standard = include.path.find('/') == std::string::npos &&
                          (include.path.find('.') == std::string::npos || include.path.starts_with("std"));
    if (standard || include.path.starts_with("slope/")) continue;
    problems += where(include) + "\n";
  }
  INFO(problems);
  CHECK(problems.empty());
}
