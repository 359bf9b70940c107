// `slope check`: what it finds without running a file, its places, and its exit status.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/golden.hpp"
#include "tests/repl/command.hpp"

using slope::test::run_slope;

namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("slope-check-" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
  fs::path path;
};

}  // namespace

TEST_CASE("slope check says what is wrong, where, and does not run the file") {
  const auto run = run_slope({"check", "-"}, slope::test::golden_input("check", "wrong.slope"));
  CHECK(run.status == 1);
  CHECK(run.err.empty());
  CHECK_GOLDEN("check", "wrong", run.out);
}

TEST_CASE("slope check finds nothing in a program that is right") {
  const auto run = run_slope({"check", "-"}, slope::test::golden_input("check", "right.slope"));
  CHECK(run.out == "");
  CHECK(run.status == 0);
}

TEST_CASE("slope check writes JSON, reads included files, and ends with a status") {
  const Folder folder;
  const std::string inner = folder.file("inner.slope", "helper(x::Int64) = x + 1\nbroken() = helper(\"a\")\n");
  const std::string outer = folder.file("outer.slope", "include(\"inner.slope\")\nprintln(helper(2))\nhelper(2, 3)\n");
  auto run = run_slope({"check", "--json", outer});
  CHECK(run.status == 1);
  CHECK(run.out.find("\"file\":\"" + inner + "\",\"line\":2,\"column\":12") != std::string::npos);
  CHECK(run.out.find("\"file\":\"" + outer + "\",\"line\":3,\"column\":1") != std::string::npos);
  CHECK(run.out.find("\"code\":\"no-method\"") != std::string::npos);
  CHECK(run_slope({"check", "--json", folder.file("good.slope", "println(1)\n")}).out == "[]\n");
  run = run_slope({"check", folder.file("syntax.slope", "f(x = 1\n")});
  CHECK(run.status == 1);
  CHECK(run.out.starts_with("error: expected `,` or `)`"));
  CHECK(run_slope({"check"}).status == 2);
  CHECK(run_slope({"check", "/nowhere.slope"}).status == 2);
  CHECK(run_slope({"check", "--help"}).out.starts_with("usage: slope check"));
}
