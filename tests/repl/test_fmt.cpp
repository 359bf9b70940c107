// `slope fmt`: the layout, and that it changes nothing else.
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
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

TEST_CASE("slope fmt knows quoted words, and indents a condition that goes on once") {
  const std::string text =
      "f(x) = x == :do ? 1 : :end\n"
      "if f(1) == 1 &&\nf(2) == 2 ||\nf(3) == 3\nprintln(:end)\nelseif f(4) &&\nf(5)\nprintln(2)\nend\n"
      "function g(s)\nwhile s > 1 &&\ns < 3\ns = f(s,\n1)\nend\ns == :end && return 1\ny = s +\n1\nend\n";
  const std::string wanted =
      "f(x) = x == :do ? 1 : :end\n"
      "if f(1) == 1 &&\n    f(2) == 2 ||\n    f(3) == 3\n    println(:end)\nelseif f(4) &&\n    f(5)\n    "
      "println(2)\nend\n"
      "function g(s)\n    while s > 1 &&\n        s < 3\n        s = f(s,\n            1)\n    end\n"
      "    s == :end && return 1\n    y = s +\n        1\nend\n";
  CHECK(run_slope({"fmt", "-"}, text).out == wanted);
  CHECK(run_slope({"fmt", "-"}, wanted).out == wanted);
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

TEST_CASE("slope fmt on a full disk leaves the file as it was") {
  const fs::path folder = fs::temp_directory_path() / ("slope-fmt-full-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path file = folder / "long.slope", link = folder / "link.slope";
  std::string text;
  for (int i = 0; i < 200; ++i) text += "   x = 1\n";
  std::ofstream(file) << text;
  fs::permissions(file, fs::perms::owner_all);
  fs::create_symlink(file, link);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 100;
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const auto run = run_slope({"fmt", file});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  CHECK(run.status == 1);
  CHECK(slope::test::read_file(file) == text);
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 2);
  CHECK(run_slope({"fmt", link}).status == 0);
  CHECK(slope::test::read_file(file).starts_with("x = 1\nx = 1\n"));
  CHECK(fs::is_symlink(link));
  CHECK(fs::status(file).permissions() == fs::perms::owner_all);
  fs::remove_all(folder);
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
