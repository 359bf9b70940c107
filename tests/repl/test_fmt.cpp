// `slope fmt`: the layout, and that it changes nothing else.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/golden.hpp"
#include "tests/repl/command.hpp"

using slope::test::run_slope;

namespace fs = std::filesystem;

TEST_CASE("slope fmt lays out a text; comments, strings and what is lined up stay") {
  const auto run = run_slope({"fmt", "-"}, slope::test::golden_input("fmt", "sample.slope"));
  CHECK(run.status == 0);
  CHECK_GOLDEN("fmt", "sample", run.out);
  CHECK(run_slope({"fmt", "-"}, run.out).out == run.out);
}

TEST_CASE("slope fmt leaves alone what does not parse, and says why") {
  const fs::path file = fs::temp_directory_path() / ("slope-fmt-" + std::to_string(getpid()) + ".slope");
  std::ofstream(file) << "f(x = 1\n";
  auto run = run_slope({"fmt", file});
  CHECK(run.status == 1);
  CHECK(run.err.find("is left as it is") != std::string::npos);
  CHECK(slope::test::read_file(file) == "f(x = 1\n");
  std::ofstream(file) << "  x = 1\n";
  run = run_slope({"fmt", "--check", file});
  CHECK(run.status == 1);
  CHECK(run.out == file.string() + "\n");
  CHECK(run_slope({"fmt", file}).status == 0);
  CHECK(slope::test::read_file(file) == "x = 1\n");
  CHECK(run_slope({"fmt", "--check", file}).status == 0);
  fs::remove(file);
  CHECK(run_slope({"fmt"}).status == 2);
  CHECK(run_slope({"fmt", "/nowhere.slope"}).status == 1);
}

// The formatter refuses an output whose tokens differ, so success says that nothing but the layout changed.
TEST_CASE("Every script of the repository can be laid out, and twice is as once") {
  const fs::path folder = fs::temp_directory_path() / ("slope-fmt-all-" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::vector<std::string> files;
  for (const char* part : {"stdlib", "examples", "tests/conformance"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SLOPE_SOURCE_DIR) / part))
      if (entry.path().extension() == ".slope") {
        files.push_back((folder / (std::to_string(files.size()) + ".slope")).string());
        fs::copy_file(entry.path(), files.back());
      }
  REQUIRE(files.size() > 500);
  std::vector<std::string> arguments = {"fmt"};
  arguments.insert(arguments.end(), files.begin(), files.end());
  auto run = run_slope(arguments);
  CHECK(run.err.empty());
  CHECK(run.status == 0);
  arguments.insert(arguments.begin() + 1, "--check");
  run = run_slope(arguments);
  CHECK(run.out.empty());
  CHECK(run.status == 0);
  fs::remove_all(folder);
}
