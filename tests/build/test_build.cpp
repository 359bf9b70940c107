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

namespace {

// Builds each script's exports, links them to its C program by `compiler`, and compares what the program prints.
void check_programs(const std::vector<std::string>& options, const std::vector<std::string>& compiler,
                    const std::vector<std::string>& runner) {
  for (const fs::path& script : scripts("tests/build")) {
    INFO(script);
    const Folder folder;
    const fs::path base = folder.path / script.stem();
    std::vector<std::string> build = build_command(script, base);
    build.insert(build.end(), options.begin(), options.end());
    const ProcessResult built = run(build);
    CHECK(built.err == "");
    REQUIRE(built.status == 0);
    fs::path source = script;
    source.replace_extension(".c");
    std::vector<std::string> compile = compiler;
    for (const std::string& word : {std::string("-std=c11"), std::string("-Wall"), std::string("-Wextra"),
                                    std::string("-Werror"), "-I" + folder.path.string(), source.string(),
                                    base.string() + ".o", std::string("-lm"), std::string("-o"), base.string()})
      compile.push_back(word);
    const ProcessResult compiled = run(compile);
    CHECK(compiled.err == "");
    REQUIRE(compiled.status == 0);
    std::vector<std::string> program = runner;
    program.push_back(base.string());
    const ProcessResult ran = run(program);
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

}  // namespace

TEST_CASE("built functions compute what the engine computes") { check_programs({}, {SLOPE_C_COMPILER}, {}); }

TEST_CASE("objects for another machine") {
  const Folder folder;
  const fs::path base = folder.path / "rosenbrock";
  const std::vector<std::string> command{SLOPE_COMMAND,
                                         "build",
                                         "tests/build/models.slope",
                                         "--export",
                                         "rosenbrock(::Vector{Float64})",
                                         "--gradient",
                                         "-o",
                                         base.string(),
                                         "--target"};
  const auto build_for = [&](const std::string& target) {
    std::vector<std::string> words = command;
    words.push_back(target);
    return run(words);
  };
  CHECK(build_for("aarch64-linux-gnu").status == 0);
  CHECK(read_file(base.string() + ".o").substr(18, 1) == "\xb7");  // e_machine: EM_AARCH64
  CHECK(build_for("x86_64-linux-gnu").status == 0);
  CHECK(read_file(base.string() + ".o").substr(18, 1) == "\x3e");  // EM_X86_64
  CHECK(build_for("pdp11-unknown-none").err.find("no code generator for `pdp11-unknown-none`") != std::string::npos);
  CHECK(build_for("i386-linux-gnu").err.find("of 64 bits") != std::string::npos);
  // Where there are a compiler and an emulator of that machine, the programs run.
  const std::string emulator = "/usr/bin/qemu-aarch64", compiler = "/usr/bin/aarch64-linux-gnu-gcc";
  if (!fs::exists(emulator) || !fs::exists(compiler)) return;
  check_programs({"--target", "aarch64-linux-gnu"}, {compiler, "-static"}, {emulator});
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
