// `slope build`: objects for programs without an engine. NAME.slope says in comments what is exported (`# export: CALL`)
// and with which options (`# options: --gradient`). NAME.c is compiled against the header, linked with the object alone,
// and run: it prints the numbers that the script prints when the engine runs it, and checks the rest itself.
// Scripts in refused/ cannot be built; beside each is what the command says, a golden file.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/golden.hpp"
#include "tests/scripts/process.hpp"

namespace {

namespace fs = std::filesystem;
using slope::test::ProcessResult;
using slope::test::read_file;

ProcessResult run(const std::vector<std::string>& command) {
  return slope::test::run_process(command, "", std::chrono::seconds(240));
}

// What `# word: …` lines say.
std::vector<std::string> directives(const fs::path& script, const std::string& word) {
  const std::string begin = "# " + word + ": ";
  std::vector<std::string> found;
  for (const std::string& line : slope::test::split_lines(read_file(script)))
    if (line.rfind(begin, 0) == 0) found.push_back(line.substr(begin.size()));
  return found;
}

std::vector<std::string> build_command(const fs::path& script, const fs::path& output) {
  std::vector<std::string> command{SLOPE_COMMAND, "build", script.string(), "-o", output.string()};
  for (const std::string& call : directives(script, "export")) {
    command.emplace_back("--export");
    command.push_back(call);
  }
  for (const std::string& option : directives(script, "options")) command.push_back(option);
  return command;
}

std::vector<fs::path> scripts(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".slope") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "slope_build_XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("built functions compute what the engine computes") {
  for (const fs::path& script : scripts("tests/build")) {
    INFO(script);
    const Folder folder;
    const fs::path base = folder.path / script.stem();
    const ProcessResult built = run(build_command(script, base));
    CHECK(built.err == "");
    REQUIRE(built.status == 0);
    fs::path source = script;
    source.replace_extension(".c");
    const ProcessResult compiled =
        run({SLOPE_C_COMPILER, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I" + folder.path.string(), source.string(),
             base.string() + ".o", "-lm", "-o", base.string()});
    CHECK(compiled.err == "");
    REQUIRE(compiled.status == 0);
    const ProcessResult ran = run({base.string()});
    CHECK(ran.err == "");
    CHECK(ran.status == 0);
    const auto expected = slope::test::split_lines(run({SLOPE_COMMAND, script.string()}).out);
    const auto found = slope::test::split_lines(ran.out);
    CHECK(expected.size() > 10);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double want = std::strtod(expected[i].c_str(), nullptr), got = std::strtod(found[i].c_str(), nullptr);
      INFO("line " << i + 1 << ": " << expected[i] << ", " << found[i]);
      CHECK(std::abs(want - got) <= 1e-12 * (1 + std::abs(want)));
    }
  }
}

TEST_CASE("the header of a built object") {
  const Folder folder;
  const fs::path script = "tests/build/models.slope";
  REQUIRE(run(build_command(script, folder.path / "models")).status == 0);
  std::string header = read_file(folder.path / "models.h");
  const std::size_t open = header.find(" ("), close = header.find(')');  // the machine
  header.erase(open, close - open + 1);
  const fs::path golden = "tests/build/models.h.golden";
  if (slope::test::updating_golden()) std::ofstream(golden, std::ios::binary) << header;
  CHECK(read_file(golden) == header);
}

TEST_CASE("the object of a small function is small, and needs nothing") {
  const Folder folder;
  const fs::path base = folder.path / "rosenbrock";
  REQUIRE(run({SLOPE_COMMAND, "build", "tests/build/models.slope", "--export", "rosenbrock(::Vector{Float64})",
               "--gradient", "-o", base.string()})
              .status == 0);
  CHECK(fs::file_size(base.string() + ".o") < 4096);
  const ProcessResult names = run({"nm", "--undefined-only", base.string() + ".o"});
  if (names.status == 0) CHECK(names.out == "");
}

TEST_CASE("what cannot be built is refused with its line") {
  for (const fs::path& script : scripts("tests/build/refused")) {
    INFO(script);
    const Folder folder;
    const ProcessResult built = run(build_command(script, folder.path / "refused"));
    CHECK(built.status == 1);
    CHECK(fs::is_empty(folder.path));
    fs::path golden = script;
    golden.replace_extension(".err");
    if (slope::test::updating_golden()) std::ofstream(golden, std::ios::binary) << built.err;
    CHECK(read_file(golden) == built.err);
  }
}
