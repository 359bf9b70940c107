// Texts that no position refers to are freed; what can still fail shows its line.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "slope/engine.hpp"

using slope::Engine;
using slope::Options;
using slope::Tier;

namespace {

// Each text is long, and there are more of them than the heap limit holds.
void run_many(Engine& engine, const std::string& before, const std::string& after, int count = 2600) {
  const std::string padding = "\n#" + std::string(20000, '-');
  for (int i = 1; i <= count; ++i) {
    const auto result = engine.run(before + std::to_string(i) + after + padding, "passing.slope");
    if (!result.ok()) FAIL(i << ": " << result.error().message);
  }
}

void check_place(const slope::Error& error, const std::string& file, int line, const std::string& text) {
  CHECK(error.position.file == file);
  CHECK(error.position.line == static_cast<std::uint32_t>(line));
  CHECK(error.message.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("A host runs texts for ever under a limit") {
  Options options;
  options.tier = Tier::interpret;
  options.heap_limit = 8 << 20;  // and 32 MiB of the engine's own
  options.error_output = [](std::string_view) {};
  Engine engine(options);
  SECTION("constants") { run_many(engine, "const level = ", "; level + 1"); }
  SECTION("functions") { run_many(engine, "f(x) = x + ", "; f(1)"); }
  SECTION("caught errors") { run_many(engine, "try; [1][", " + 2]; catch; end"); }
  SECTION("macros") { run_many(engine, "macro m(); ", "; end; @m"); }
  SECTION("errors") {
    const std::string padding = "\n#" + std::string(20000, '-');
    for (int i = 1; i <= 2600; ++i) {
      const auto result = engine.run("error(\"e" + std::to_string(i) + "\")" + padding, "passing.slope");
      REQUIRE_FALSE(result.ok());
      REQUIRE(result.error().kind == slope::ErrorKind::runtime);
    }
  }
  SECTION("syntax errors") {
    const std::string padding = "\n#" + std::string(20000, '-');
    for (int i = 1; i <= 2600; ++i) {
      const auto result = engine.run("x = (" + std::to_string(i) + padding, "passing.slope");
      REQUIRE(result.error().kind == slope::ErrorKind::syntax);
    }
  }
}

TEST_CASE("What is kept shows its lines when most texts are gone") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Options options;
  options.tier = tier;
  Engine engine(options);
  engine.run("plain(x) =\n  x < 0 ? error(\"negative\") : x", "plain.slope").value();
  engine.run("macro failing()\n  quote\n    error(\"from a macro\")\n  end\nend", "macro.slope").value();
  engine.run("\nuser() = @failing", "user.slope").value();
  engine.run("held = let y = 1\n  x -> x < 0 ? error(\"in a closure\") : x + y\nend", "closure.slope").value();
  engine.run("struct Checked\n  x::Int\n  Checked(x) =\n    x < 0 ? error(\"no\") : new(x)\nend", "struct.slope")
      .value();
  engine.run("module Part\nh(x) =\n  x < 0 ? error(\"in a module\") : x\nend", "module.slope").value();
  engine.run("waiting = @async begin\n  yield()\n  yield()\n  error(\"late\")\nend; yield()", "task.slope").value();
  engine.run("text(x) =\n\n  \"$(x)\"\nrefused(x) = parse(Float64, text(x))", "refused.slope").value();
  engine.run("older(x) =\n  x < 0 ? error(\"older\") : x", "older.slope").value();
  auto old = engine.function<double(double)>("older", slope::Dispatch::allowed).value();
  engine.run("older(x) = 0.0", "newer.slope").value();
  engine.run("@generated made(x) =\n  :(x < 0 ? error(\"made\") : x)", "generated.slope").value();
  engine.run("plain(1); user; held(1); Part.h(1); Checked(1); made(1)", "calls.slope").value();
  for (int i = 1; i <= 1500; ++i) engine.run("passing(x) = x + " + std::to_string(i) + "; passing(1)").value();
  // Numbers of removed texts are given to others, whose lines these are not.
  for (int i = 1; i <= 700; ++i) engine.run("\n\n\n\nother" + std::to_string(i) + "() = 1\n\n\n\n").value();

  const auto failing = [&](const char* text) { return engine.run(text, "call.slope").error(); };
  check_place(failing("plain(-1)"), "plain.slope", 2, "error(\"negative\")");
  check_place(failing("user()"), "user.slope", 2, "@failing");
  check_place(failing("held(-1)"), "closure.slope", 2, "in a closure");
  check_place(failing("Checked(-1)"), "struct.slope", 4, "new(x)");
  check_place(failing("Part.h(-1)"), "module.slope", 3, "in a module");
  CHECK(failing("wait(waiting)").message.find("late") != std::string::npos);
  CHECK(failing("made(-1)").message.find("made") != std::string::npos);
  check_place(old(-1).error(), "older.slope", 2, "error(\"older\")");
  engine.run("other1() + other700()").value();
}
