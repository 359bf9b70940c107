// The prompt on a pseudo terminal, as a person at the keyboard has it.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/golden.hpp"
#include "tests/repl/terminal.hpp"

using slope::test::Terminal;
using slope::test::TerminalOptions;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("slope-state-" + std::to_string(getpid()));
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("The prompt shows values, keeps ans, and goes on after errors") {
  const char* kind = GENERATE("dumb", "xterm");
  Terminal terminal({.kind = kind});
  terminal.wait_for("slope> ");
  CHECK(contains(terminal.ask("1 + 2"), "\n3\n"));
  CHECK(contains(terminal.ask("ans * 2"), "\n6\n"));
  CHECK_FALSE(contains(terminal.ask("ans * 1000;"), "6000"));
  CHECK(contains(terminal.ask("[1.5, 2.5]"), "2-element Vector{Float64}:\n 1.5\n 2.5\n"));
  CHECK(contains(terminal.ask("error(\"so it is\")"), "ERROR: so it is"));
  CHECK(contains(terminal.ask("1 + )"), "^"));
  CHECK(contains(terminal.ask("ans"), "2-element"));
  CHECK(contains(terminal.ask("?gradient"), "method"));
  terminal.type("\x04");
  CHECK(terminal.status() == 0);
}

TEST_CASE("An input may have several lines") {
  Terminal terminal;
  terminal.wait_for("slope> ");
  terminal.type("function f(x)\r");
  terminal.wait_for("       ");
  terminal.type("2x\r");
  terminal.wait_for("       ");
  CHECK(contains(terminal.ask("end"), "f (generic function with 1 method)"));
  CHECK(contains(terminal.ask("f(4)"), "\n8\n"));
  terminal.type("slope> f(5)\r");  // pasted with its prompt
  terminal.wait_for("f(5)");
  CHECK(contains(terminal.wait_for("slope> "), "\n10\n"));
}

TEST_CASE("^C throws away a line and stops running code; the session goes on") {
  Terminal terminal;
  terminal.wait_for("slope> ");
  terminal.type("x = (1 +");
  terminal.wait_for("(1 +");
  terminal.type("\x03");
  terminal.wait_for("slope> ");
  CHECK(contains(terminal.ask("40 + 2"), "\n42\n"));
  terminal.type("i = 0\r");
  terminal.wait_for("slope> ");
  terminal.type("while true; global i += 1; end\r");
  usleep(500 * 1000);
  terminal.type("\x03");
  CHECK(contains(terminal.wait_for("slope> "), "InterruptException"));
  CHECK(contains(terminal.ask("i > 0"), "\ntrue\n"));
}

TEST_CASE("Names are completed") {
  Terminal terminal({.kind = "xterm"});
  terminal.wait_for("slope> ");
  terminal.ask("distance_to_moon = 384");
  terminal.type("distance_to\t");
  CHECK(contains(terminal.ask(" + 1"), "385"));
  terminal.type("\t");  // at the start of a line: indentation
  CHECK(contains(terminal.ask("7"), "7\n"));
}

TEST_CASE("The history is kept from session to session") {
  Folder state;
  {
    Terminal terminal({.kind = "xterm", .state = state.path});
    terminal.wait_for("slope> ");
    terminal.ask("60 + 6");
    terminal.type("\x04");
    CHECK(terminal.status() == 0);
  }
  Terminal terminal({.kind = "xterm", .state = state.path});
  terminal.wait_for("slope> ");
  terminal.type("\x10");  // ^P, the previous line
  terminal.wait_for("60 + 6");
  CHECK(contains(terminal.ask(" + 600"), "666"));
}

TEST_CASE("exit leaves the prompt with its status") {
  Terminal terminal;
  terminal.wait_for("slope> ");
  terminal.type("exit(5)\r");
  CHECK(terminal.status() == 5);
}
