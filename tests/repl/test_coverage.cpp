// `slope coverage`: the lines that ran, as text, for lcov and as a page.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/golden.hpp"
#include "tests/repl/command.hpp"

using slope::test::run_slope;

namespace {

struct Script {
  Script()
      : path((std::filesystem::temp_directory_path() / ("slope-cover-" + std::to_string(getpid()) + ".slope"))
                 .string()) {
    std::ofstream(path) << "function half(x)\n"
                           "    if x < 0\n"
                           "        return 0\n"
                           "    end\n"
                           "    x / 2\n"
                           "end\n"
                           "for i in 1:3\n"
                           "    half(i)\n"
                           "end\n"
                           "println(\"<ran>\")\n";
  }
  ~Script() { std::filesystem::remove(path); }
  std::string path;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("slope coverage counts the lines that ran") {
  const Script script;
  auto run = run_slope({"coverage", script.path});
  CHECK(run.status == 0);
  CHECK(run.err == "<ran>\n");
  CHECK(contains(run.out, "     never         return 0\n"));
  CHECK(contains(run.out, "         3     x / 2\n"));
  CHECK(contains(run.out, "           end\n"));

  run = run_slope({"coverage", "--format", "lcov", script.path});
  CHECK(contains(run.out, "SF:" + script.path + "\nDA:"));
  CHECK(contains(run.out, "DA:3,0\n"));
  CHECK(contains(run.out, "DA:5,3\n"));
  CHECK(contains(run.out, "end_of_record\n"));

  const std::string page = script.path + ".html";
  run = run_slope({"coverage", "--format", "html", "-o", page, script.path});
  CHECK(run.out == "<ran>\n");
  const std::string text = slope::test::read_file(page);
  std::filesystem::remove(page);
  CHECK(contains(text, "<tr class=\"never\"><td>3</td><td>0</td><td><pre>        return 0</pre></td></tr>"));
  CHECK(contains(text, "println(\"&lt;ran>\")"));
}

TEST_CASE("slope coverage ends with the script's status, and with 1 when too little ran") {
  const Script script;
  CHECK(run_slope({"coverage", "--least", "50", script.path}).status == 0);
  CHECK(run_slope({"coverage", "--least", "100", script.path}).status == 1);
  CHECK(run_slope({"coverage"}).status == 2);
  CHECK(run_slope({"coverage", "/nowhere.slope"}).status == 1);
  CHECK(run_slope({"coverage", "--help"}).out.starts_with("usage: slope coverage"));
}
