#include <catch2/catch.hpp>

#include "tests/scripts/script.hpp"

using namespace slope::test;

namespace {

ProcessResult printed(std::string out, std::string err = "", int status = 0) {
  ProcessResult result;
  result.status = status;
  result.out = std::move(out);
  result.err = std::move(err);
  return result;
}

}  // namespace

TEST_CASE("Expectations are read with their lines") {
  const auto script = read_script("# args: a b\n# tiers: auto\nprintln(3) # expect: 3\nprintln() # expect:\n");
  REQUIRE(script.output.size() == 2);
  CHECK(script.output[0].line == 3);
  CHECK(script.output[0].text == "3");
  CHECK(script.output[1].text.empty());
  CHECK(script.arguments == std::vector<std::string>{"a", "b"});
  CHECK(script.tiers == std::vector<std::string>{"auto"});
}

TEST_CASE("A closing block holds the whole output, empty lines included") {
  const auto script = read_script("println(1)\nprintln()\n# expected output:\n# 1\n#\n#  x\n");
  REQUIRE(script.output.size() == 3);
  CHECK(script.output[0].text == "1");
  CHECK(script.output[1].text.empty());
  CHECK(script.output[2].text == " x");
  CHECK(script.output[2].line == 6);
}

TEST_CASE("An expectation goes on in lines that begin with #>") {
  const auto script = read_script("f() # expect: 1 2\n    #> 3 4\n#> 5\ng() # expect match: a\n#>b\n");
  REQUIRE(script.output.size() == 2);
  CHECK(script.output[0].text == "1 2 3 4 5");
  CHECK(script.output[0].line == 1);
  CHECK(script.output[1].text == "ab");
  CHECK(script.faults.empty());
  const auto block = read_script("f()\n# expected output:\n# 1 2\n#> 3\n# > 4\n");
  REQUIRE(block.output.size() == 2);
  CHECK(block.output[0].text == "1 2 3");
  CHECK(block.output[1].text == "> 4");
  CHECK(read_script("#> 1\nf() # expect: 2\n").faults.size() == 1);
}

TEST_CASE("A script that expects nothing is an error") {
  const auto script = read_script("println(1)\n# expected output\n");
  CHECK(script.faults.size() == 1);
  CHECK(check_result(script, printed("1\n")));
  for (const char* text : {"f() # expect: 1", "f() # expect match: 1", "f() # expect error: 1",
                           "f() # expect stderr: 1", "f()\n# expected output:\n# 1\n"})
    CHECK(read_script(text).faults.empty());
  CHECK(read_script("f()\n# expected output:\n").faults.size() == 1);
  const auto silent = read_script("# prints nothing\nf()\n");
  CHECK(silent.faults.empty());
  CHECK_FALSE(check_result(silent, printed("")));
  CHECK(check_result(silent, printed("1\n")));
  CHECK(check_result(silent, printed("", "ERROR: no", 1)));
  CHECK(read_script("# prints nothing\nf() # expect: 1\n").faults.size() == 1);
}

TEST_CASE("Lines have at most 160 columns") {
  const std::string at_limit(max_columns - 15, 'a');
  CHECK(read_script("f() # expect: " + at_limit + "\n").faults.empty());
  const auto script = read_script("\nf() # expect: aa" + at_limit + "\n");
  REQUIRE(script.faults.size() == 1);
  CHECK(script.faults[0] == "line 2 has 161 columns; at most 160 are allowed");
  CHECK(check_result(script, printed("aa" + at_limit + "\n")));
  std::string greek = "f() # expect: ";
  for (int i = 0; i < 140; ++i) greek += "\u03b1";  // two bytes, one column
  CHECK(read_script(greek).faults.empty());
}

TEST_CASE("Output must be the expected lines, neither more nor fewer") {
  const auto script = read_script("f() # expect: 1\nf() # expect match: \\d+\n");
  CHECK_FALSE(check_result(script, printed("1\n22\n")));
  CHECK(check_result(script, printed("1\nx\n")));
  CHECK(check_result(script, printed("1\n")));
  CHECK(check_result(script, printed("1\n2\n3\n")));
  CHECK(check_result(script, printed("1\n2\n", "", 1)));
}

TEST_CASE("An expected error needs its text and exit status 1") {
  const auto script = read_script("error(\"no\") # expect error: no\n");
  CHECK_FALSE(check_result(script, printed("", "ERROR: no\n", 1)));
  CHECK(check_result(script, printed("", "ERROR: yes\n", 1)));
  CHECK(check_result(script, printed("", "ERROR: no\n", 0)));
  auto crashed = printed("", "no", -1);
  crashed.signal = 11;
  CHECK(check_result(script, crashed));
}

TEST_CASE("A tolerance holds for numbers alone") {
  CHECK(same_text("loss 0.1234567890123 x1", "loss 0.1234567890124 x1", 1e-9));
  CHECK_FALSE(same_text("loss 0.12345", "loss 0.12346", 1e-9));
  CHECK_FALSE(same_text("x1 = 2.0", "x2 = 2.0", 10));
  CHECK_FALSE(same_text("1.0 a", "1.0 b", 1e-9));
  CHECK_FALSE(same_text("-1.0", "1.0", 10));
}

TEST_CASE("Processes are caught whole and ended at their limit") {
  const auto result = run_process({"/bin/sh", "-c", "cat; echo err >&2; exit 3"}, "in\n", std::chrono::seconds(10));
  CHECK(result.status == 3);
  CHECK(result.out == "in\n");
  CHECK(result.err == "err\n");
  CHECK(run_process({"/bin/sh", "-c", "sleep 30"}, "", std::chrono::milliseconds(100)).timed_out);
  CHECK(run_process({"/bin/sh", "-c", "kill -SEGV $$"}, "", std::chrono::seconds(10)).signal == 11);
}
