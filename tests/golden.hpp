// Golden files: the expected text of a dump, kept in tests/golden/<kind>/<name>.txt beside no code at all, so that a
// change of output is read in review. With SLOPE_UPDATE_GOLDEN=1 (`./dev test --update-golden`) the files are
// rewritten instead of compared.
//
//   CHECK_GOLDEN("ir", "loops", print(function));
//
// A folder may hold the input beside the expectation; golden_input("ir", "loops.slope") reads it.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace slope::test {

inline std::filesystem::path golden_path(const std::string& kind, const std::string& name) {
  return std::filesystem::path(SLOPE_SOURCE_DIR) / "tests" / "golden" / kind / name;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::string golden_input(const std::string& kind, const std::string& name) {
  const auto path = golden_path(kind, name);
  INFO("golden input " << path.string());
  REQUIRE(std::filesystem::exists(path));
  return read_file(path);
}

inline bool updating_golden() {
  const char* value = std::getenv("SLOPE_UPDATE_GOLDEN");
  return value != nullptr && std::string_view(value) == "1";
}

inline std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

// The lines between the common head and the common tail, `-` expected and `+` found, with two lines around them.
inline std::string line_difference(const std::string& expected, const std::string& found) {
  const auto a = split_lines(expected);
  const auto b = split_lines(found);
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  std::size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;

  std::ostringstream out;
  const std::size_t first = head < 2 ? 0 : head - 2;
  out << "from line " << head + 1 << ":\n";
  for (std::size_t i = first; i < head; ++i) out << "    " << a[i] << '\n';
  for (std::size_t i = head; i < a.size() - tail; ++i) out << "  - " << a[i] << '\n';
  for (std::size_t i = head; i < b.size() - tail; ++i) out << "  + " << b[i] << '\n';
  for (std::size_t i = a.size() - tail; i < a.size() && i < a.size() - tail + 2; ++i) out << "    " << a[i] << '\n';
  return out.str();
}

// Empty when `found` is what the file holds; else what to show.
inline std::string compare_golden(const std::string& kind, const std::string& name, const std::string& found) {
  const auto path = golden_path(kind, name + ".txt");
  if (updating_golden()) {
    std::filesystem::create_directories(path.parent_path());
    if (!std::filesystem::exists(path) || read_file(path) != found) std::ofstream(path, std::ios::binary) << found;
    return {};
  }
  const std::string hint = "\nif the new text is right: ./dev test --update-golden\n";
  if (!std::filesystem::exists(path)) return path.string() + " does not exist; found:\n" + found + hint;
  const std::string expected = read_file(path);
  if (expected == found) return {};
  return path.string() + " differs (- expected, + found) " + line_difference(expected, found) + hint;
}

}  // namespace slope::test

#define CHECK_GOLDEN(kind, name, found)                                                           \
  do {                                                                                            \
    const std::string slope_golden_difference = ::slope::test::compare_golden(kind, name, found); \
    INFO(slope_golden_difference);                                                                \
    CHECK(slope_golden_difference.empty());                                                       \
  } while (false)
