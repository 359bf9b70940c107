// `slope lsp`: a recorded session, a message a line (tests/golden/lsp/session.jsonl), and what is answered.
#include <catch2/catch.hpp>
#include <string>

#include "tests/golden.hpp"
#include "tests/repl/command.hpp"

using slope::test::run_slope;

namespace {

std::string framed(const std::string& message) {
  return "Content-Length: " + std::to_string(message.size()) + "\r\n\r\n" + message;
}

// The frames of an output, a line each.
std::string messages_of(const std::string& output) {
  std::string lines;
  constexpr std::string_view header = "Content-Length: ";
  for (std::size_t at = 0; at < output.size();) {
    REQUIRE(output.compare(at, header.size(), header) == 0);
    const std::size_t length = std::stoul(output.substr(at + header.size()));
    const std::size_t body = output.find("\r\n\r\n", at) + 4;
    REQUIRE(body + length <= output.size());
    lines += output.substr(body, length) + "\n";
    at = body + length;
  }
  return lines;
}

}  // namespace

TEST_CASE("The language server answers recorded sessions") {
  for (const std::string session : {"session", "checks"}) {  // checks: what inference finds, types on hover
    INFO(session);
    std::string input;
    for (const std::string& message : slope::test::split_lines(slope::test::golden_input("lsp", session + ".jsonl")))
      input += framed(message);
    const auto run = run_slope({"lsp"}, input);
    CHECK(run.status == 0);
    CHECK(run.err.empty());
    CHECK_GOLDEN("lsp", session, messages_of(run.out));
  }
}

TEST_CASE("The language server ends with its input, and survives what is no message") {
  CHECK(run_slope({"lsp"}).status == 0);
  const auto run = run_slope(
      {"lsp"}, framed("{no json") + framed("[1]") + framed(R"({"jsonrpc":"2.0","id":1,"method":"shutdown"})"));
  CHECK(run.status == 0);
  const std::string answers = messages_of(run.out);
  CHECK(answers.find("-32700") != std::string::npos);
  CHECK(answers.find("-32600") != std::string::npos);
  CHECK(answers.find("\"result\":null") != std::string::npos);
}
