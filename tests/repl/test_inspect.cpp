// `slope inspect`: views of a call as text, JSON and one page.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "tests/repl/command.hpp"

using slope::test::run_slope;

namespace {

struct Script {
  Script() : path(std::filesystem::temp_directory_path() / ("slope-inspect-" + std::to_string(getpid()) + ".slope")) {
    std::ofstream(path) << "half(x) = x / 2\n"
                           "function loss(w)\n"
                           "    s = 0\n"
                           "    for i in 1:length(w)\n"
                           "        s += half(w[i])\n"
                           "    end\n"
                           "    s\n"
                           "end\n"
                           "println(\"ran\")\n";
  }
  ~Script() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

}  // namespace

TEST_CASE("slope inspect prints a view; what the script prints goes to standard error") {
  Script script;
  const std::string call = "loss(::Vector{Float64})";
  auto run = run_slope({"inspect", script.path, "--function", call});
  CHECK(run.status == 0);
  CHECK(run.out.starts_with("MethodInstance for loss(::Vector{Float64})\n"));
  CHECK(contains(run.out, "Body::UNION{FLOAT64, INT64}"));
  CHECK(run.err == "ran\n");
  CHECK(contains(run_slope({"inspect", script.path, "--function", call, "--view", "why"}).out,
                 "Because a variable has different types on the paths that meet here: Int64 or Float64"));
  run = run_slope({"inspect", script.path, "--function", call, "--color", "yes"});
  CHECK(contains(run.out, "Body\033[93;1m::Union{Float64, Int64}\033[0m"));
  for (const char* view : {"typed", "lowered", "grad"}) {
    INFO(view);
    run = run_slope({"inspect", script.path, "--function", call, "--view", view});
    CHECK(run.status == 0);
    CHECK_FALSE(run.out.empty());
  }
  CHECK(run_slope({"inspect", script.path, "--function", "half"}).status == 0);  // one method, any argument
}

TEST_CASE("slope inspect without types takes those of the most frequent call") {
  Script script;
  std::ofstream(script.path, std::ios::app) << "for i in 1:3\n    loss([1.5])\nend\nloss([1])\n";
  const auto run = run_slope({"inspect", script.path, "--function", "loss"});
  CHECK(contains(run.out, "MethodInstance for loss(::Vector{Float64})"));
  CHECK(contains(run.err, "it was also called as loss(::Vector{Int64})"));
}

TEST_CASE("slope inspect --format json is one object") {
  Script script;
  const auto run = run_slope({"inspect", script.path, "--function", "loss(::Vector{Float64})", "--format", "json"});
  REQUIRE(run.status == 0);
  // Read again by the language's own reader.
  const auto read = run_slope({"-e",
                               "r = JSON.parse(read(stdin, String)); println(r[\"call\"], \" \", r[\"exact\"], \" \", "
                               "r[\"why\"][\"kind\"], \" \", r[\"callees\"][end][\"call\"], \" \", r[\"line\"])"},
                              run.out);
  CHECK(contains(read.out, "loss(::Vector{Float64}) false paths "));
}

TEST_CASE("slope inspect --format html is one page that needs no other file") {
  Script script;
  const auto run = run_slope({"inspect", script.path, "--function", "loss(::Vector{Float64})", "--format", "html"});
  REQUIRE(run.status == 0);
  const std::string& page = run.out;
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK_FALSE(contains(page, "src="));
  CHECK_FALSE(contains(page, "http"));
  CHECK(contains(page, "<h2>half(::Float64) :: Float64</h2>"));  // a callee has a section of its own
  CHECK(contains(page, "title=\"Float64\""));                    // the type of an expression
  for (const char* tag : {"span", "section", "pre", "div", "ul", "li", "a", "code", "table", "tr", "button", "nav"}) {
    INFO(tag);
    CHECK(count(page, std::string("<") + tag + ">") + count(page, std::string("<") + tag + " ") ==
          count(page, std::string("</") + tag + ">"));
  }
  // The two columns.
  CHECK(contains(page, "<pre data-view=\"warntype\">MethodInstance for loss"));
  CHECK(contains(page, "<pre data-view=\"llvm\">"));
  // Each link leads to a section.
  std::set<std::string> ids;
  const std::regex id("id=\"(f\\d+)\""), link("href=\"#(f\\d+)\"");
  for (std::sregex_iterator at(page.begin(), page.end(), id), end; at != end; ++at) ids.insert((*at)[1]);
  std::size_t links = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at, ++links)
    CHECK(ids.count((*at)[1]) == 1);
  CHECK(links >= 2);
}

TEST_CASE("slope inspect says what is wrong with its arguments") {
  Script script;
  CHECK(run_slope({"inspect", script.path}).status == 2);
  CHECK(run_slope({"inspect", script.path, "--function", "loss", "--view", "soul"}).status == 2);
  auto run = run_slope({"inspect", script.path, "--function", "nothing_such(::Int)"});
  CHECK(run.status == 1);
  CHECK(contains(run.err, "nothing_such"));
  run = run_slope({"inspect", script.path, "--function", "loss(1)"});
  CHECK(run.status == 1);
  CHECK(contains(run.err, "expected types as arguments"));
  CHECK(run_slope({"inspect", "/nowhere.slope", "--function", "f"}).status == 1);
}
