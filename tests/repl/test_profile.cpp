// `slope profile`: what its formats say of a profile, and a run in each tier.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "repl/profile.hpp"
#include "tests/golden.hpp"
#include "tests/repl/command.hpp"

using slope::test::run_slope;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

slope::Profile made() {
  slope::Profile profile;
  profile.frames = {{"top-level scope", "/nowhere/a.slope", 9, false, false},
                    {"work", "/nowhere/a.slope", 2, true, false},
                    {"sin", "Base/math.slope", 5, true, true},
                    {"odd; \"name\"", "/nowhere/a.slope", 4, false, false},
                    {"[compiler]", "", 0, false, false}};
  profile.stacks = {{{0, 1}, 3}, {{0, 1, 2}, 4}, {{0, 3}, 1}, {{0, 4}, 1}, {{}, 1}};
  profile.sequence = {4, 3, 0, 0, 1, 1, 1, 1, 0, 2};
  profile.samples = 10;
  profile.interval = 0.001;
  return profile;
}

struct Script {
  Script() : path(std::filesystem::temp_directory_path() / ("slope-profile-" + std::to_string(getpid()) + ".slope")) {
    std::ofstream(path) << "@noinline function hot(n)\n"
                           "    s = 0.0\n"
                           "    for i in 1:n\n"
                           "        s += sin(s + i)\n"
                           "    end\n"
                           "    s\n"
                           "end\n"
                           "cold(x) = x + 1\n"
                           "function run(seconds)\n"
                           "    start = time_ns()\n"
                           "    s = 0.0\n"
                           "    while time_ns() - start < seconds * 1e9\n"
                           "        s += hot(s > 1e300 ? 1 : 20_000) + cold(s)\n"
                           "    end\n"
                           "    s\n"
                           "end\n"
                           "run(0.4)\n"
                           "println(\"ran \", length(ARGS))\n";
  }
  ~Script() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("The table of a profile counts the library for the script's lines") {
  const std::string table = slope::repl::profile_table(made());
  INFO(table);
  CHECK(contains(table, "10 samples, one every 1 ms of processor time\n"));
  CHECK(contains(table, "  70.0%   70.0%   100.0%  work  /nowhere/a.slope:2\n"));
  CHECK(contains(table, "  10.0%   10.0%     0.0%  [compiler]\n"));
  CHECK(contains(table, "   0.0%   90.0%           top-level scope  /nowhere/a.slope:9\n"));
  CHECK(contains(table, "  10.0%  no line of the script was running"));
}

TEST_CASE("Collapsed stacks are a line each, with their samples") {
  CHECK(slope::repl::collapsed_stacks(made()) ==
        "top-level scope (/nowhere/a.slope:9);work (/nowhere/a.slope:2)_[j] 3\n"
        "top-level scope (/nowhere/a.slope:9);work (/nowhere/a.slope:2)_[j];sin (Base/math.slope:5)_[j] 4\n"
        "top-level scope (/nowhere/a.slope:9);odd, \"name\" (/nowhere/a.slope:4) 1\n"
        "top-level scope (/nowhere/a.slope:9);[compiler] 1\n"
        "[no script] 1\n");
}

TEST_CASE("The speedscope file is JSON with the samples in order of time") {
  const auto read =
      run_slope({"-e",
                 "p = JSON.parse(read(stdin, String)); q = p[\"profiles\"][1]; f = p[\"shared\"][\"frames\"]\n"
                 "println(p[\"\\$schema\"], \" \", q[\"type\"], \" \", length(q[\"samples\"]), \" \", "
                 "length(q[\"weights\"]), \" \", "
                 "round(sum(q[\"weights\"]), digits=6), \" \", round(q[\"endValue\"], digits=6))\n"
                 "println(join([f[i+1][\"name\"] for i in q[\"samples\"][4]], \"|\"), \" \", f[2][\"line\"], \" \", "
                 "f[4][\"name\"])"},
                slope::repl::speedscope_json(made(), "a \"b\".slope"));
  CHECK(read.out ==
        "https://www.speedscope.app/file-format-schema.json sampled 6 6 0.01 0.01\n"
        "top-level scope (interpreted)|work|sin 2 odd; \"name\" (interpreted)\n");
}

TEST_CASE("slope profile finds the line that takes the time, in both tiers") {
  Script script;
  for (const std::string tier : {"interpret", SLOPE_LAST_TIER}) {
    INFO(tier);
    const auto run = run_slope({"profile", "--format", "collapsed", "--tier", tier, script.path, "x", "--y"});
    CHECK(run.status == 0);
    CHECK(run.err == "ran 2\n");
    std::istringstream lines(run.out);
    std::uint64_t all = 0, hot = 0, marked = 0;
    for (std::string line; std::getline(lines, line);) {
      const std::uint64_t samples = std::stoull(line.substr(line.rfind(' ') + 1));
      if (contains(line, "[compiler]")) continue;  // under the sanitizers it may take more than the program
      all += samples;
      if (contains(line, "hot (" + script.path.string() + ":4)")) hot += samples;
      if (contains(line, "_[j]")) marked += samples;
      if (contains(line, "hot (")) CHECK(contains(line, "top-level scope (" + script.path.string() + ":17)"));
    }
    INFO(run.out);
    CHECK(all > 50);
    CHECK(hot * 2 > all);
    if (tier == "interpret") CHECK(marked == 0);
    if (tier == "compile") CHECK(marked * 2 > all);
  }
}

TEST_CASE("slope profile writes to a file, and says what is wrong") {
  Script script;
  const std::filesystem::path out = script.path.string() + ".json";
  auto run = run_slope({"profile", "--format", "speedscope", "-o", out, script.path});
  CHECK(run.status == 0);
  CHECK(run.out == "ran 0\n");
  CHECK(contains(slope::test::read_file(out), "\"name\":\"hot"));
  std::filesystem::remove(out);
  run = run_slope({"profile", script.path});
  CHECK(contains(run.out, "hot  " + script.path.string() + ":4  s += sin(s + i)"));
  CHECK(run_slope({"profile"}).status == 2);
  CHECK(run_slope({"profile", "--format", "song", script.path}).status == 2);
  CHECK(run_slope({"profile", "/nowhere.slope"}).status == 1);
  CHECK(run_slope({"profile", "-o", "/nowhere/x", script.path}).status == 1);
  std::ofstream(script.path) << "exit(3)\n";
  CHECK(run_slope({"profile", script.path}).status == 3);
}

TEST_CASE("A profile as a page holds the tree of calls, and nothing of it ends the script") {
  slope::Profile profile = made();
  profile.frames[1].function = "work</script>";
  const std::string page = slope::repl::flame_html(profile, "a<b.slope");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(contains(page, "<title>a&lt;b.slope</title>"));
  CHECK(contains(page, "tree:[-1,10,[[0,9,[[1,7,[[2,4,[]]]],[3,1,[]],[4,1,[]]]]]]"));
  CHECK(contains(page, "\"work\\u003c/script>\""));
  CHECK(page.find("</script>") == page.rfind("</script>"));
}

TEST_CASE("slope profile --compiling says what was compiled, by function and stage") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("slope-compiling-" + std::to_string(getpid()) + ".slope")).string();
  std::ofstream(path) << "summed(n) = (s = 0.0; for i in 1:n; s += sin(i); end; s)\nprintln(summed(10) > 0)\n";
  const auto run = run_slope({"profile", "--compiling", "--tier", "compile", path});
  CHECK(run.status == 0);
  CHECK(run.out.find("LLVM") != std::string::npos);
  CHECK(run.out.find(" summed\n") != std::string::npos);
  CHECK(run_slope({"profile", "--compiling", "--memory", path}).status == 2);
  CHECK(run_slope({"profile", "--compiling", "--format", "html", path}).status == 2);
  std::filesystem::remove(path);
}

TEST_CASE("slope profile --memory says which lines allocate what") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("slope-memory-" + std::to_string(getpid()) + ".slope")).string();
  std::ofstream(path) << "kept = Vector{Float64}[]\n"
                         "for i in 1:10\n"
                         "    push!(kept, zeros(100_000))\n"
                         "end\n";
  const auto run = run_slope({"profile", "--memory", path});
  std::filesystem::remove(path);
  CHECK(run.status == 0);
  CHECK(contains(run.out, " allocations\n"));
  CHECK(contains(run.out, "Vector{Float64}  " + path + ":3"));
  CHECK(run_slope({"profile", "--memory", "--format", "html", path}).status == 2);
}
