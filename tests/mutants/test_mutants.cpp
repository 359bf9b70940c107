// Programs that somebody broke: scripts of the tests with a piece cut out, doubled, swapped or replaced, run by the
// command. Whatever they mean now, they must end in success or in a reported error, and a program that runs on must
// stop when it is interrupted. The mutants depend on nothing but the seed, which a failure names.
//
//   SLOPE_MUTANTS=2000 SLOPE_MUTANT_SEED=7 slope_test_mutants
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/golden.hpp"
#include "tests/scripts/process.hpp"

namespace fs = std::filesystem;

namespace {

unsigned number_from(const char* variable, unsigned otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : otherwise;
}

// Not those that touch files.
std::vector<std::string> programs() {
  std::vector<fs::path> paths;
  for (const char* folder : {"tests/conformance", "tests/scripts", "tests/derivatives/collector_stress"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SLOPE_SOURCE_DIR) / folder)) {
      const std::string path = entry.path().string();
      const bool files = path.find("/io_files/") != std::string::npos || path.find("/csv/") != std::string::npos ||
                         path.find("include_and_files") != std::string::npos ||
                         path.find("/include/") != std::string::npos || path.find("/data/") != std::string::npos;
      if (entry.path().extension() == ".slope" && !files) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const fs::path& path : paths) texts.push_back(slope::test::read_file(path));
  return texts;
}

// Where tokens begin, about: a word, a number, a run of blanks, or one other character.
std::vector<std::size_t> token_begins(const std::string& text) {
  const auto kind = [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return std::isalnum(u) != 0 || c == '_' || u >= 0x80 ? 1 : std::isspace(u) != 0 ? 2 : 0;
  };
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i == 0 || kind(text[i]) == 0 || kind(text[i]) != kind(text[i - 1])) begins.push_back(i);
  begins.push_back(text.size());
  return begins;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& texts, unsigned seed) : texts_(texts), random_(seed) {}

  std::string next() {
    std::string text = pick(texts_);
    for (unsigned changes = 1 + below(3); changes > 0; --changes) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  std::string piece(const std::string& text, std::size_t most) {
    const std::vector<std::size_t> begins = token_begins(text);
    const std::size_t first = below(begins.size());
    const std::size_t last = std::min(begins.size() - 1, first + 1 + below(most));
    return text.substr(begins[first], begins[last] - begins[first]);
  }

  void change(std::string& text) {
    static const std::vector<std::string> tokens = {
        "end",    "begin",   "(",       ")",          "[",       "]",        "{",      "}",        ",",
        ";",      "\n",      " ",       "=",          "==",      "+=",       "->",     "...",      ".",
        "::",     "<:",      "where",   "T",          "\"",      "$",        "'",      ":",        "?",
        "&&",     "nothing", "missing", "Any",        "Int",     "0",        "-1",     "1.5",      "typemax(Int)",
        "\"\"",   "[]",      "()",      "quote",      "eval",    "@eval",    "macro",  "function", "struct",
        "try",    "catch",   "finally", "return",     "break",   "continue", "global", "local",    "const",
        "module", "Union{}", "Vararg",  "@generated", "@inline", "import",   "using",  "#=",       "=#"};
    const std::vector<std::size_t> begins = token_begins(text);
    const std::size_t first = below(begins.size());
    const std::size_t last = std::min(begins.size() - 1, first + 1 + below(4));
    const std::size_t at = begins[first];
    const std::size_t size = begins[last] - at;
    switch (below(6)) {
      case 0:
        text.erase(at, size);
        break;
      case 1:
        text.insert(at, text.substr(at, size));
        break;
      case 2:
        text.replace(at, size, pick(tokens));
        break;
      case 3:
        text.insert(at, pick(tokens));
        break;
      case 4:
        text.replace(at, size, piece(pick(texts_), 6));
        break;
      default:
        if (below(4) == 0)
          text.resize(at);
        else
          text.replace(at, size, piece(text, 4));
    }
  }

  const std::vector<std::string>& texts_;
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("broken programs end in success or a reported error") {
  const std::vector<std::string> texts = programs();
  REQUIRE(texts.size() > 100);
  const unsigned seed = number_from("SLOPE_MUTANT_SEED", 1);
  const unsigned count = number_from("SLOPE_MUTANTS", 60);
  const fs::path folder = fs::temp_directory_path() / ("slope-mutants-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path file = folder / "mutant.slope";
  for (unsigned i = 0; i < count; ++i) {
    std::ofstream(file, std::ios::binary) << Mutator(texts, seed * 100003 + i).next();
    const char* tier = i % 4 == 3 ? "--tier=auto" : "--tier=interpret";
    // After some seconds an interrupt; what does not heed it is killed, and `timeout` answers 137.
    const auto run = slope::test::run_process({"/usr/bin/env", "-C", folder.string(), "timeout", "--signal=INT",
                                               "--kill-after=20", "5", SLOPE_COMMAND, tier, file.string()},
                                              "", std::chrono::seconds(480));
    const bool ended = run.status == 0 || run.status == 1 || run.status == 124 || run.status == 130;
    const bool internal = run.err.find("internal") != std::string::npos;
    if (ended && !internal) continue;
    const fs::path kept =
        fs::temp_directory_path() / ("mutant-" + std::to_string(seed) + "-" + std::to_string(i) + ".slope");
    fs::copy_file(file, kept, fs::copy_options::overwrite_existing);
    FAIL_CHECK("mutant " << i << " of seed " << seed << ", " << tier << ", kept as " << kept.string() << ": status "
                         << run.status << ", signal " << run.signal << "\n"
                         << run.err.substr(0, 2000));
  }
  fs::remove_all(folder);
}
