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
