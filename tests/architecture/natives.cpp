// docs/security.md lists every native that reaches what lies outside the engine, with the capability it needs: the list
// is what the sources say. A native reaches out when its function, or one of the same file that it calls, names a
// capability, a file, a clock, the environment or a source of randomness.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Functions at the outermost level of a file, by name: the text from the head to the brace in the first column.
std::map<std::string, std::string> functions_of(const std::string& text) {
  static const std::regex head("^[A-Za-z].* \\**([A-Za-z_]+)\\(.*");
  std::map<std::string, std::string> functions;
  std::istringstream lines(text);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (name.empty() && line.find(';') == std::string::npos && std::regex_match(line, found, head)) name = found[1];
    if (name.empty()) continue;
    functions[name] += line + "\n";
    if (line.starts_with("}")) name.clear();
  }
  return functions;
}

std::set<std::string> reaching_natives() {
  static const std::regex outside(
      "may_access|may_use|Capabilities::Access::|capabilities\\.|fstream|filesystem::(current|exists|is_|create|remove|"
      "rename|copy|directory)|"
      "fopen|getenv|environ\\b|random_device|_clock::now|sleep_|getline\\(std::cin|read_source\\(|run_file\\(");
  static const std::regex call("([A-Za-z_]+)(<[^()]*>)?\\(");
  static const std::regex row("\\{\"([A-Za-z_0-9]+)\",\\s*([A-Za-z_]+)[,<]");
  std::set<std::string> natives;
  for (const char* room : {"stdlib/native", "lang", "embed", "interpreter", "codegen"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SLOPE_SOURCE_DIR) / room)) {
      if (entry.path().extension() != ".cpp") continue;
      const std::string text = text_of(entry.path());
      if (text.find("NativeInfo") == std::string::npos) continue;
      const auto functions = functions_of(text);
      std::set<std::string> reaching;
      for (const auto& [name, body] : functions)
        if (std::regex_search(body, outside)) reaching.insert(name);
      for (bool more = true; more;) {
        more = false;
        for (const auto& [name, body] : functions) {
          if (reaching.count(name) != 0) continue;
          for (std::sregex_iterator at(body.begin(), body.end(), call), end; at != end; ++at) {
            if ((*at)[1] == name || reaching.count((*at)[1]) == 0) continue;
            more = reaching.insert(name).second;
            break;
          }
        }
      }
      for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at)
        if (reaching.count((*at)[2]) != 0) natives.insert((*at)[1]);
    }
  }
  return natives;
}

}  // namespace

TEST_CASE("docs/security.md lists the natives that reach outside the engine") {
  static const std::regex row("\\| `([a-z_0-9]+)` \\|");
  const std::string document = text_of(fs::path(SLOPE_SOURCE_DIR) / "docs/security.md");
  std::set<std::string> listed;
  for (std::sregex_iterator at(document.begin(), document.end(), row), end; at != end; ++at) listed.insert((*at)[1]);
  CHECK(listed == reaching_natives());
}
