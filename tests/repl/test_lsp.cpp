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
  // checks: what inference finds, types on hover; features: the rest. `slope/settle` waits for what is found.
  for (const std::string session : {"session", "checks", "features"}) {
    INFO(session);
    std::string input;
    for (const std::string& message : slope::test::split_lines(slope::test::golden_input("lsp", session + ".jsonl")))
      input += framed(message);
    const auto run = run_slope({"lsp", "--stdio"}, input);
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

TEST_CASE("`slope lsp` says what it is, and refuses what it does not know") {
  CHECK(run_slope({"lsp", "--help"}).out.starts_with("usage: slope lsp"));
  CHECK(run_slope({"lsp", "--socket=3"}).status == 2);
}

TEST_CASE("The language server answers no request that was cancelled") {
  std::string input = framed(
      R"({"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a","text":"f(x) = x\n"}}})");
  for (int id = 1; id <= 20; ++id)
    input += framed(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                    R"(,"method":"textDocument/completion","params":{"textDocument":{"uri":"file:///a"},)"
                    R"("position":{"line":0,"character":1}}})");
  // Requests that wait behind these are known to be cancelled when they are reached, unless they were answered before.
  for (int id = 1; id <= 20; ++id)
    input += framed(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)" + std::to_string(id) + "}}");
  const auto run = run_slope({"lsp"}, input);
  CHECK(run.status == 0);
  const std::string answers = messages_of(run.out);
  for (int id = 1; id <= 20; ++id) CHECK(answers.find("\"id\":" + std::to_string(id) + ",") != std::string::npos);
}
