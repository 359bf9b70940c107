// The command as its user runs it: options, exit statuses, standard streams.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/repl/command.hpp"

using slope::test::run_slope;

namespace {

struct Script {
  explicit Script(const std::string& text) : path("slope-command-" + std::to_string(getpid()) + ".slope") {
    path = std::filesystem::temp_directory_path() / path;
    std::ofstream(path) << text;
  }
  ~Script() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("-e runs code, -E prints its value") {
  auto run = run_slope({"-e", "nothing"});
  CHECK(run.status == 0);
  CHECK(run.out.empty());
  CHECK(run.err.empty());
  CHECK(run_slope({"-e", "println(1 + 2)"}).out == "3\n");
  CHECK(run_slope({"-E", "1 + 2"}).out == "3\n");
  CHECK(run_slope({"-E", "\"a\""}).out == "\"a\"\n");
  CHECK(run_slope({"-E", "[1, 2]"}).out == "[1, 2]\n");
  CHECK(run_slope({"-E", "nothing"}).out == "nothing\n");
  CHECK(run_slope({"-e", "x = 2", "-E", "x", "-e", "println(x + 1)"}).out == "2\n3\n");
}

TEST_CASE("Arguments of scripts are in ARGS") {
  CHECK(run_slope({"-e", "println(ARGS)", "a", "b c"}).out == "[\"a\", \"b c\"]\n");
  Script script("println(length(ARGS), ' ', join(ARGS, ','))\n");
  CHECK(run_slope({script.path, "--tier=x", "-e", "1"}).out == "3 --tier=x,-e,1\n");
  CHECK(run_slope({"--", script.path, "--", "a"}).out == "2 --,a\n");
}

TEST_CASE("Each tier runs") {
  for (const char* tier : {"interpret", "compile", "auto"}) {
    CHECK(run_slope({std::string("--tier=") + tier, "-E", "sum(x^2 for x in 1:10)"}).out == "385\n");
    CHECK(run_slope({"--tier", tier, "-E", "1"}).out == "1\n");
  }
}

TEST_CASE("Each level of optimisation runs") {
  for (const char* level : {"-O0", "-O1", "-O2"})
    CHECK(run_slope({level, "--tier=compile", "-E", "gradient(x -> sum(x .^ 2), [1.0, 2.0])"}).out ==
          "([2.0, 4.0],)\n");
}

TEST_CASE("An option that is given twice means what it said last") {
  CHECK(run_slope({"-O1", "-O2", "--tier=auto", "--tier=interpret", "-E", "1"}).out == "1\n");
}

TEST_CASE("Wrong usage ends with status 2 and says what is wrong") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--bogus"}, {"--tier=fast"}, {"-O3"}, {"--tier"}, {"-e"}, {"-x", "file.slope"}}) {
    auto run = run_slope(arguments);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find("usage: slope") != std::string::npos);
  }
}

TEST_CASE("--help and --version print to standard output") {
  auto help = run_slope({"--help"});
  CHECK(help.status == 0);
  CHECK(help.out.find("--tier") != std::string::npos);
  auto version = run_slope({"--version"});
  CHECK(version.status == 0);
  CHECK(version.out.starts_with("slope "));
}

TEST_CASE("A failing script ends with status 1, its message on standard error, after its output") {
  Script script("println(\"before\")\nerror(\"no good\")\nprintln(\"after\")\n");
  auto run = run_slope({script.path});
  CHECK(run.status == 1);
  CHECK(run.out == "before\n");
  CHECK(run.err.find("ERROR: no good") == 0);
  CHECK(run.err.find(script.path.string() + ":2") != std::string::npos);

  auto syntax = run_slope({"-e", "f(x"});
  CHECK(syntax.status == 1);
  CHECK(syntax.err.find("-e:1:") != std::string::npos);

  auto missing = run_slope({"/nowhere/x.slope"});
  CHECK(missing.status == 1);
  CHECK(missing.err == "slope: cannot read /nowhere/x.slope: No such file or directory\n");
  CHECK(run_slope({"-e", "error(1)", "-e", "println(2)"}).out.empty());
}

TEST_CASE("exit gives the status") {
  CHECK(run_slope({"-e", "exit(7)"}).status == 7);
  CHECK(run_slope({"-e", "exit()"}).status == 0);
  auto run = run_slope({"-e", "print(1); exit(2); print(3)"});
  CHECK(run.status == 2);
  CHECK(run.out == "1");
}

TEST_CASE("Standard input is a script when it is no terminal") {
  CHECK(run_slope({}, "println(1)\nprintln(2)\n").out == "1\n2\n");
  CHECK(run_slope({"-"}, "println(ARGS)").out == "String[]\n");
  CHECK(run_slope({"-", "a"}, "println(ARGS)").out == "[\"a\"]\n");
  auto run = run_slope({}, "x = (1,\n");
  CHECK(run.status == 1);
  CHECK(run.err.find("<stdin>:") != std::string::npos);
}

TEST_CASE("Output and errors keep their order, and much output comes whole") {
  auto run = run_slope({"-e", "for i in 1:20_000\n    println(\"line \", i)\nend"});
  CHECK(run.status == 0);
  CHECK(run.out.ends_with("line 20000\n"));
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 20000);
}

TEST_CASE("Output that cannot be written is an error") {
  const auto run_to = [](const std::string& target, const std::string& code) {
    const std::string line = "exec \"$0\" -e '" + code + "' " + target;
    return slope::test::run_process({"/bin/sh", "-c", line, SLOPE_COMMAND}, "", std::chrono::seconds(60));
  };
  for (const char* code :
       {"println(1)", "print(\"x\"^100000)", "while true; println(1); end", "println(1); flush(stdout)"}) {
    const auto full = run_to(">/dev/full", code);
    CHECK(full.status == 1);
    CHECK(full.err.find("cannot write to standard output: No space left on device") != std::string::npos);
    const auto closed = run_to(">&-", code);
    CHECK(closed.status == 1);
    CHECK(closed.err.find("cannot write to standard output: Bad file descriptor") != std::string::npos);
  }
  CHECK(run_to(">/dev/full", "exit(7)").status == 7);
  CHECK(run_to(">/dev/full", "try; println(1); flush(stdout); catch e; print(stderr, typeof(e)); end")
            .err.rfind("ErrorException", 0) == 0);
  CHECK(run_to("2>/dev/full", "println(stderr, 1)").status == 0);
  // A file never takes the place of a closed stream.
  const auto file = std::filesystem::temp_directory_path() / ("slope-closed-" + std::to_string(getpid()));
  const std::string code = "open(\"" + file.string() + "\", \"w\") do f; println(1); println(f, \"kept\"); end";
  CHECK(run_to(">&-", code).status == 1);
  std::ifstream written(file);
  std::string text;
  std::getline(written, text);
  CHECK(text == "kept");
  std::filesystem::remove(file);
  CHECK(run_to("<&-", "print(isempty(readline()))").out == "true");
}

TEST_CASE("Bytes that are no text") {
  const auto says = [](const std::string& text, const std::string& part) {
    Script script(text);
    const auto run = run_slope({script.path});
    CHECK(run.status == 1);
    CHECK(run.err.find(part) != std::string::npos);
  };
  Script windows("\xef\xbb\xbfx = \"\"\"a\r\nb\"\"\"\r\nprint(repr(x))\r\n");
  CHECK(run_slope({windows.path}).out == "\"a\\nb\"");
  says(std::string("print(1)\0print(2)", 17), "a control character may stand in text only as an escape");
  says("print(1)\n\xff = 2", "this is not valid UTF-8");
  const auto unreadable = run_slope({"/proc/self/mem"});
  CHECK(unreadable.status == 1);
  CHECK(unreadable.err.find("cannot read /proc/self/mem") != std::string::npos);
}

TEST_CASE("-i without a terminal reads inputs, shows values and goes on after errors") {
  auto run = run_slope({"-i", "-e", "x = 4"},
                       "x + 1\nans * 2\nfunction f(y)\n    y^2\nend\nf(3);\nf(ans)\nundefined_name\n\"end\"\n");
  CHECK(run.out == "5\n10\nf (generic function with 1 method)\n81\n\"end\"\n");
  CHECK(run.err.find("UndefVarError") != std::string::npos);
  CHECK(run.status == 0);
}

TEST_CASE("What a script has flushed, or printed before it reads, is written before standard input ends") {
  // The shell keeps the script's input open until it has seen the output.
  const std::string conversation = R"(
    folder=$(mktemp -d) && mkfifo $folder/in
    "$0" -e "$1" <$folder/in >$folder/out &
    exec 3>$folder/in
    for turn in $(seq 400); do grep -q first $folder/out && break; sleep 0.05; done
    cat $folder/out; echo go >&3; exec 3>&-
    wait; echo then; cat $folder/out; rm -r $folder)";
  for (const char* script :
       {"println(\"first\"); flush(stdout); println(readline())", "println(\"first\"); println(readline())",
        "println(\"first\"); for line in eachline() println(line) end"}) {
    auto run =
        slope::test::run_process({"/bin/sh", "-c", conversation, SLOPE_COMMAND, script}, "", std::chrono::seconds(240));
    CHECK(run.out == "first\nthen\nfirst\ngo\n");
  }
}
