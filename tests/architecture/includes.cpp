// The rooms and who may see whom: every #include line of the repository, and the table of the README, against the one
// list of cmake/rooms.txt.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
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

// The rooms of cmake/rooms.txt, in its order.
struct Room {
  std::string name;
  std::string what;
  std::vector<std::string> sees;  // as written: whom these may see, it may see too
};

fs::path top() { return SLOPE_SOURCE_DIR; }

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::vector<Room> read_rooms() {
  std::vector<Room> found;
  std::ifstream in(top() / "cmake/rooms.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream columns(line);
    Room room;
    std::string sees;
    std::getline(columns, room.name, '|');
    std::getline(columns, room.what, '|');
    std::getline(columns, sees);
    room.name = trimmed(room.name);
    room.what = trimmed(room.what);
    std::istringstream names(sees);
    for (std::string name; names >> name;) room.sees.push_back(name);
    found.push_back(std::move(room));
  }
  return found;
}

const std::vector<Room>& rooms() {
  static const std::vector<Room> all = read_rooms();
  return all;
}

const Room* room_named(const std::string& name) {
  for (const Room& room : rooms())
    if (room.name == name) return &room;
  return nullptr;
}

// Tests of one layer may see what is below it, and that is left to the linker; these see the public headers.
const std::map<std::string, std::set<std::string>> tests_see = {
    {"tests/embed", {"include/slope", "tests"}},
    {"tests/install", {"include/slope"}},
    {"tests/fuzz", {"include/slope", "tests"}},
};

void add_seen(const Room& room, std::set<std::string>& seen) {
  for (const std::string& name : room.sees) {
    if (!seen.insert(name).second) continue;
    if (const Room* below = room_named(name)) add_seen(*below, seen);
  }
}

// What a file in `room` may include besides the room itself; nothing when that is not restricted.
std::optional<std::set<std::string>> may_include(const std::string& room) {
  if (const auto at = tests_see.find(room); at != tests_see.end()) return at->second;
  const Room* found = room_named(room);
  if (!found) return std::nullopt;
  std::set<std::string> seen;
  add_seen(*found, seen);
  return seen;
}

// Libraries that only one room may see.
const std::vector<std::pair<std::string, std::set<std::string>>> library_rooms = {
    {"llvm/", {"codegen", "tests"}},   {"llvm-c/", {"codegen", "tests"}},
    {"boost/spirit", {"lang/syntax"}}, {"boost/multiprecision/", {"stdlib/native"}},
    {"readline/", {"repl"}},           {"CLI/", {"repl"}},
};

// What CMake looks for, and the header that shows the use of it. Empty: no header; it is a program, or something that
// LLVM's static libraries need.
const std::map<std::string, std::string> headers_of_libraries = {
    {"Boost", "boost/"},
    {"SLOPE_BOOST_CONTEXT", "boost/context/"},
    {"SLOPE_UTF8PROC", "utf8proc.h"},
    {"SLOPE_READLINE", "readline/"},
    {"CLI11", "CLI/"},
    {"xeus", "xeus/"},
    {"Catch2", "catch2/"},
    {"Threads", ""},
    {"SLOPE_ZLIB", ""},
    {"SLOPE_ZSTD", ""},
    {"Python3", ""},
    {"PkgConfig", ""},
};

// The longest name that is a prefix of the path is its room.
std::string room_of(const std::string& path) {
  std::string best;
  const auto consider = [&](const std::string& room) {
    if (path.starts_with(room + "/") && room.size() > best.size()) best = room;
  };
  for (const Room& room : rooms()) consider(room.name);
  for (const auto& [room, seen] : tests_see) consider(room);
  consider("tests");
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
  for (const char* folder : {"lang", "interpreter", "codegen", "stdlib", "embed", "tools", "include", "repl",
                             "examples", "tests", "bench"}) {
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
    const auto allowed = may_include(from);
    if (!target || !allowed) continue;  // outside the repository, or tests of a layer
    const auto to = room_of(*target);
    if (from == to || allowed->contains(to)) continue;
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

TEST_CASE("A library that CMake looks for is included where it does") {
  const std::vector<Include> includes = all_includes();
  const std::regex search(R"(find_(?:package|library)\((\w+))");
  std::string problems;
  std::vector<fs::path> files{top() / "CMakeLists.txt"};
  for (const char* folder : {"cmake", "lang", "interpreter", "codegen", "stdlib", "embed", "repl", "bench", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(top() / folder))
      if (entry.path().filename() == "CMakeLists.txt" || entry.path().extension() == ".cmake")
        files.push_back(entry.path());
  for (const fs::path& file : files) {
    const std::string path = fs::relative(file, top()).string();
    if (path.starts_with("tests/install/")) continue;  // hosts' own
    const std::string folder = path.find('/') == path.npos ? "" : path.substr(0, path.rfind('/') + 1);
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, search)) continue;
      const auto header = headers_of_libraries.find(found[1]);
      if (header == headers_of_libraries.end()) {
        problems += path + " looks for " + found.str(1) + ": name its header in headers_of_libraries\n";
      } else if (!header->second.empty() && std::ranges::none_of(includes, [&](const Include& include) {
                   return include.file.starts_with(folder) && include.path.starts_with(header->second);
                 })) {
        problems +=
            path + " looks for " + found.str(1) + ", but nothing in its folder includes " + header->second + "\n";
      }
    }
  }
  INFO(problems);
  CHECK(problems.empty());
}

TEST_CASE("Packages that are installed are those that the document gives a reason for") {
  std::ifstream document(top() / "docs/dependencies.md");
  const std::string text{std::istreambuf_iterator<char>(document), {}};
  std::ifstream packages(top() / "cmake/packages.txt");
  std::string problems;
  for (std::string line; std::getline(packages, line);)
    if (!line.empty() && line[0] != '#' && text.find("`" + line + "`") == std::string::npos)
      problems += line + " has no row in docs/dependencies.md\n";
  INFO(problems);
  CHECK(problems.empty());
}

TEST_CASE("Public headers include the C++ standard library and each other, nothing else") {
  std::string problems;
  for (const auto& include : all_includes()) {
    if (room_of(include.file) != "include/slope") continue;
    const bool standard = include.path.find('/') == std::string::npos &&
                          (include.path.find('.') == std::string::npos || include.path.starts_with("std"));
    if (standard || include.path.starts_with("slope/")) continue;
    problems += where(include) + "\n";
  }
  INFO(problems);
  CHECK(problems.empty());
}

TEST_CASE("The README's table of rooms is the list that CMake reads") {
  std::string table = "| room | what | may see |\n|---|---|---|\n";
  for (const Room& room : rooms()) {
    std::string sees;
    for (const std::string& name : room.sees) sees += (sees.empty() ? "`" : ", `") + name + "`";
    table += "| `" + room.name + "` | " + room.what + " | " + (sees.empty() ? "" : sees + " ") + "|\n";
  }
  std::ifstream in(top() / "README.md");
  std::ostringstream text;
  text << in.rdbuf();
  std::string readme = text.str();
  const std::string begin = "| room |";
  const auto at = readme.find(begin);
  REQUIRE(at != std::string::npos);
  const auto end = readme.find("\n\n", at) + 1;
  if (std::getenv("SLOPE_UPDATE_GOLDEN")) {
    readme.replace(at, end - at, table);
    std::ofstream(top() / "README.md") << readme;
    return;
  }
  CHECK(readme.substr(at, end - at) == table);
}
