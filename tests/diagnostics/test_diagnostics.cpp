// Wrong programs and what the command says of each: NAME.slope and, beside it, NAME.err, the whole of standard error.
// The first comment of a program says which mistake was made; the text is to be read as who made it would. Programs
// run in the first and the last tier, whose messages must agree; under sanitizers in the first alone.
//
// SLOPE_UPDATE_GOLDEN=1 (`./dev test --update-golden`) rewrites the .err files; the change is read in review. The
// library's own frames and candidates, which change with every work on it, are left out of them; a frame's number is n.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string_view>

#include "tests/golden.hpp"
#include "tests/scripts/process.hpp"

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string message_of(const fs::path& program, const std::string& tier) {
  // By a relative path, as one types it: the message names the file so.
  const auto result =
      slope::test::run_process({SLOPE_COMMAND, "--tier=" + tier, program.string()}, "", std::chrono::seconds(60));
  INFO(program << " --tier=" << tier);
  CHECK(result.status == 1);
  static const std::regex library_frame("\n +\\[[0-9]+\\] [^\n]*\n +@ Base Base/[^\n]*");
  static const std::regex library_candidate("(\n  [^ \n][^\n]*\n   @ Base Base/[^\n]*(\n  \\.\\.\\.)?)+");
  static const std::regex frame_number("\n +\\[[0-9]+\\] ([^\n]*)\n +@");
  const std::string frames = std::regex_replace(result.err, library_frame, "");
  const std::string candidates = std::regex_replace(frames, library_candidate, "\n  … of the library");
  return std::regex_replace(candidates, frame_number, "\n [n] $1\n     @");
}

std::vector<fs::path> programs() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator("tests/diagnostics"))
    if (entry.path().extension() == ".slope") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("messages of wrong programs") {
  const auto all = programs();
  CHECK(all.size() >= 60);
  for (const auto& program : all) {
    const std::string found = message_of(program, "interpret");
    fs::path golden = program;
    golden.replace_extension(".err");
    if (slope::test::updating_golden()) std::ofstream(golden, std::ios::binary) << found;
    INFO(golden);
    CHECK(read(golden) == found);
    if (std::string_view(SLOPE_LAST_TIER) != "interpret") CHECK(message_of(program, SLOPE_LAST_TIER) == found);
  }
}
