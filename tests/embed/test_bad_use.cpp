// What hosts should not do: defined all the same.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "slope/array.hpp"
#include "slope/containers.hpp"
#include "slope/type.hpp"

#ifndef NDEBUG
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>
#endif

using slope::Engine;

namespace embed_bad_use {

struct Angry {
  explicit Angry(double x) : x(x) {}
  Angry(const Angry&) = default;
  ~Angry() noexcept(false) {
    if (x < 0) throw std::runtime_error("a destructor threw");
  }
  double x;
};

}  // namespace embed_bad_use
SLOPE_TYPE(embed_bad_use::Angry)
using embed_bad_use::Angry;

TEST_CASE("A destructor that throws ends nothing") {
  Engine engine;
  engine.type<Angry>("Angry").constructor<double>().property("x", &Angry::x).value();
  engine.run("a = Angry(1)\na.x = -1\na = nothing").value();
  for (int i = 0; i < 3; ++i) {
    engine.run("for i in 1:100\n    b = Angry(i)\n    b.x = -i\nend").value();
    engine.collect_garbage();
  }
  CHECK(engine.eval<double>("Angry(5).x").value() == 5.0);
}

TEST_CASE("What outlives its engine says so") {
  std::optional<Engine> engine(std::in_place);
  engine->run("f(x) = x^2\ng(w) = sum(w .^ 2)").value();
  slope::Value value = engine->run("[1.0, 2.0]").value();
  auto f = engine->function<double(double)>("f").value();
  auto g = engine->function<double(std::span<const double>)>("g").value();
  auto back = f.pullback(3.0).value();
  const std::vector<double> w = {1, 2};
  std::vector<double> into(2);
  auto workspace = g.workspace().value();
  CHECK(f(3).value() == 9.0);
  CHECK(g.value_and_gradient(workspace, w, into).value() == 5.0);
  engine.reset();

  double d = 0;
  const std::string gone = "the engine of the function `f` is gone";
  CHECK(value.type_name() == "#dead");
  CHECK_FALSE(value.at(0).ok());
  CHECK(f(3).error().message == gone);
  CHECK(f.value_and_gradient(3, d).error().message == gone);
  CHECK(f.jvp(3, 1.0).error().message == gone);
  CHECK(f.hvp(3, 1.0, d).error().message == gone);
  CHECK(f.jacobian(3, into).error().message == gone);
  CHECK(f.pullback(3).error().message == gone);
  CHECK(f.workspace().error().message == gone);
  CHECK(f.refresh().error().message == gone);
  CHECK_FALSE(f.is_current());
  CHECK(back(1.0, d).error().message == "pullback of `f`: the engine of the pullback is gone");
  CHECK_FALSE(g.value_and_gradient(workspace, w, into).ok());
}

TEST_CASE("NaN and infinities are numbers like others; integers out of range are refused") {
  Engine engine;
  engine.run("f(x) = x + 1\ng(n) = n").value();
  auto f = engine.function<double(double)>("f").value();
  CHECK(std::isnan(f(std::numeric_limits<double>::quiet_NaN()).value()));
  CHECK(f(-std::numeric_limits<double>::infinity()).value() == -std::numeric_limits<double>::infinity());
  double d = 0;
  CHECK(std::isnan(f.value_and_gradient(std::numeric_limits<double>::quiet_NaN(), d).value()));
  CHECK(d == 1.0);
  auto g = engine.function<std::int8_t(std::int64_t)>("g").value();
  CHECK(g(127).value() == 127);
  CHECK(g(128).error().kind == slope::ErrorKind::conversion);
}

TEST_CASE("The gradient of a function that always throws is its error") {
  Engine engine(slope::Options{.tier = slope::Tier::interpret});
  engine.run("fails(x) = throw(DomainError(x, \"no\"))\nfails_at(w) = throw(BoundsError(w, 9))").value();
  double d = 0;
  std::vector<double> w = {1, 2}, g(2);
  auto fails = engine.function<double(double)>("fails", slope::Dispatch::allowed).value();
  auto fails_at = engine.function<double(std::span<const double>)>("fails_at", slope::Dispatch::allowed).value();
  for (int i = 0; i < 3; ++i) {
    CHECK(fails.value_and_gradient(1.0, d).error().type == "DomainError");
    CHECK(fails_at.value_and_gradient(w, g).error().type == "BoundsError");
  }
}

#ifndef NDEBUG
TEST_CASE("Two threads in one engine are noticed by builds with assertions") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    std::signal(SIGABRT, SIG_DFL);  // not the test framework's
    Engine engine;
    engine.define("meanwhile", [&] { std::thread([&] { (void)engine.run("1 + 1"); }).join(); }).value();
    (void)engine.run("meanwhile()");
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(text.find("two threads use one engine at the same time") != std::string::npos);
}
#endif

TEST_CASE("A script that ends itself inside a host function ends the whole call") {
  Engine engine(slope::Options{.tier = GENERATE(slope::Tier::interpret, slope::Tier::compile)});
  engine.define("run_it", [&](const std::string& text) { engine.run(text).value(); }).value();
  for (const char* text : {"run_it(\"exit(3)\")", "try run_it(\"exit(3)\") catch; end; error()"}) {
    const auto ended = engine.run(text);
    REQUIRE_FALSE(ended.ok());
    CHECK(ended.error().kind == slope::ErrorKind::exit);
    CHECK(ended.error().exit_code == 3);
  }
  const auto failed = engine.run("error(\"no\")");
  CHECK(failed.error().kind == slope::ErrorKind::runtime);
}

TEST_CASE("Every use of a value whose engine is gone says so") {
  slope::Value dead;
  {
    Engine engine;
    dead = engine.run("[1, 2]").value();
  }
  const std::string gone = "a value whose engine is gone";
  CHECK(dead.size().error().message == gone);
  CHECK(dead.at(0).error().message == gone);
  CHECK(dead.elements().error().message == gone);
  CHECK(dead.field("x").error().message == gone);
  CHECK(dead(1).error().message == gone);
  CHECK(dead.to<std::vector<double>>().error().message == gone);
}

TEST_CASE("Names that are none are refused, and say what was found") {
  Engine engine;
  for (const char* name : {"", "two words", "if", "1x", "x+"}) {
    CHECK(engine.set(name, 1).error().message ==
          "a global needs a name such as `x`; found `" + std::string(name) + "`");
    CHECK(engine.define(name, [](double x) { return x; }).error().message ==
          "a function needs a name such as `spline`; found `" + std::string(name) + "`");
  }
  engine.set("β!", 2).value();
  CHECK(engine.eval<int>("β!").value() == 2);
  const auto definition = engine.define("two", [](double x, double y) { return x + y; }).derivative([](double, double) {
    return 1.0;
  });  // a value of its own
  CHECK(definition.error().message ==
        "the derivative of the host function `two`: expected 2 functions, one for each argument that is a number");
}

TEST_CASE("A gradient through a host function without a rule names it") {
  Engine engine(slope::Options{.tier = GENERATE(slope::Tier::interpret, slope::Tier::compile)});
  engine.define("undifferentiated", [](double x) { return x; }).value();
  engine.run("f(x) = 2 * undifferentiated(x)", "f.slope").value();
  auto f = engine.function<double(double)>("f").value();
  double g = 0;
  for (const slope::Error& error : {f.value_and_gradient(1.0, g).error(), f.jvp(1.0, 1.0).error()}) {
    CHECK(error.kind == slope::ErrorKind::not_differentiable);
    CHECK(error.message.find("the host's function `undifferentiated` has no derivative rule\n  = help: tell it") !=
          std::string::npos);
    CHECK(error.message.find("host_") == std::string::npos);
    CHECK(error.position.file == "f.slope");
  }
}

TEST_CASE("What was moved from says so, or goes on") {
  Engine engine;
  engine.run("f(x) = x^2\ng(w) = sum(w)").value();
  auto f = engine.function<double(double)>("f").value();
  auto g = engine.function<double(std::span<const double>)>("g").value();
  const auto moved = std::move(f);
  CHECK(f(3).value() == 9.0);  // functions are copied
  CHECK(moved(3).value() == 9.0);
  double d = 0;
  auto pullback = moved.pullback(3).value();
  auto moved_pullback = std::move(pullback);
  CHECK(pullback(1.0, d).error().message == "the pullback was moved from");
  CHECK(moved_pullback(1.0, d).ok());
  CHECK(d == 6.0);

  const std::vector<double> w = {1, 2};
  std::vector<double> into(2);
  auto workspace = g.workspace().value();
  auto moved_workspace = std::move(workspace);
  const std::string empty = "the workspace is empty: it was moved from, or never assigned";
  CHECK(g(workspace, w).error().message == empty);
  CHECK(g.value_and_gradient(workspace, w, into).error().message == empty);
  workspace.interrupt();
  CHECK(g(moved_workspace, w).value() == 3.0);

  Engine other = std::move(engine);
  CHECK(other.eval<double>("f(4)").value() == 16.0);
  CHECK(f(5).value() == 25.0);
  const std::string gone = "the engine was moved from: use the one that it was moved to";
  CHECK(engine.run("1").error().message == gone);
  CHECK(engine.run_file("x").error().message == gone);
  CHECK(engine.set("x", 1).error().message == gone);
  CHECK(engine.get<int>("x").error().message == gone);
  CHECK(engine.call("f", 1).error().message == gone);
  CHECK(engine.function<double(double)>("f").error().message == gone);
  CHECK(engine.define("h", [] { return 1; }).pure().error().message == gone);
  CHECK(engine.type<Angry>("Angry").constructor<double>().error().message == gone);
  CHECK(engine.check_rule("f", 1.0).error().message == gone);
  CHECK(engine.adopt(std::span<double>(into), nullptr).error().message == gone);
  CHECK(engine.help("f").error().message == gone);
  engine.interrupt();
  engine.set_fuel(1);
  engine.set_tier(slope::Tier::compile);
  engine.collect_garbage();
  CHECK(engine.fuel() == 0);
  CHECK(engine.statistics().heap_bytes == 0);
  CHECK(engine.complete("f").empty());
  engine = Engine();
  CHECK(engine.eval<int>("1 + 1").value() == 2);
}

TEST_CASE("An engine that is destroyed by what it calls stops the script, and ends when that has come back") {
  const slope::Tier tier = GENERATE(slope::Tier::interpret, slope::Tier::compile);
  auto engine = std::make_unique<Engine>(slope::Options{.tier = tier});
  auto ended = std::make_shared<int>(0);
  const std::weak_ptr<int> held = ended;
  engine->define("destroy", [&engine, ended] { engine.reset(); }).value();
  ended.reset();
  engine->run("f(x) = (destroy(); while true end; x)").value();
  auto f = engine->function<double(double)>("f").value();
  SECTION("a text") {
    const auto stopped = engine->run("f(1.0)");
    REQUIRE_FALSE(stopped.ok());
    CHECK(stopped.error().kind == slope::ErrorKind::interrupted);
    CHECK(stopped.error().message == "the engine was destroyed by a function that it was calling");
  }
  SECTION("a handle") { CHECK(f(1.0).error().kind == slope::ErrorKind::interrupted); }
  CHECK(held.expired());
  CHECK(f(1.0).error().message == "the engine of the function `f` is gone");

  Engine assigned(slope::Options{.tier = tier});
  assigned.define("assign", [&assigned] { assigned = Engine(); }).value();
  CHECK_FALSE(assigned.run("assign(); 1").ok());
  CHECK(assigned.eval<int>("2").value() == 2);
}

TEST_CASE("What the host's sinks and loaders throw is an error of the script") {
  slope::Options options{.tier = GENERATE(slope::Tier::interpret, slope::Tier::compile)};
  options.output = [](std::string_view text) {
    if (text.find('!') != std::string_view::npos) throw std::length_error("the disk is full");
  };
  options.error_output = [](std::string_view) { throw 1; };
  options.load_source = [](const std::string& path) -> slope::Result<std::string> {
    throw std::runtime_error("no " + path + " in the archive");
  };
  Engine engine(std::move(options));
  engine.run("f() = (for i in 1:3\n    print(\"!\")\nend; 1)", "f.slope").value();
  const auto failed = engine.run("f()");
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().summary == "the disk is full");
  CHECK(failed.error().position.file == "f.slope");
  CHECK(failed.error().position.line == 2);
  CHECK_THROWS_AS(std::rethrow_exception(failed.error().cause), std::length_error);
  CHECK(engine.eval<int>("try f() catch; 7 end").value() == 7);
  CHECK(engine.run("println(stderr, \"dropped\")").ok());
  CHECK(engine.run("include(\"a.slope\")").error().summary.find("no a.slope in the archive") != std::string::npos);
  CHECK(engine.eval<int>("3").value() == 3);
}

TEST_CASE("Results are asked for their errors whether they have one or not, and loops over results may be temporary") {
  Engine engine;
  CHECK(engine.run("1").error().message.empty());
  CHECK(slope::Result<void>().error().message.empty());
  CHECK(slope::Result<double>(1.0).error().message.empty());
  std::string all;
  for (const slope::Value& v : engine.run("[\"a\", \"b\"]").value().elements().value()) all += v.repr();
  CHECK(all == "\"a\"\"b\"");
  const auto& kept = engine.eval<std::string>("\"long enough to lie on the heap, where it would be gone\"").value();
  CHECK(kept.size() == 54);
}

TEST_CASE("Memory that is none is refused where it is given") {
  Engine engine;
  const char* none = nullptr;
  engine.set("none", none).value();
  CHECK(engine.eval<bool>("none === nothing").value());
  CHECK(engine.adopt(std::span<double>(static_cast<double*>(nullptr), 4), nullptr).error().message ==
        "adopt: the memory is null");
  CHECK(engine.run_file("/").error().message == "cannot read /: Is a directory");
}

TEST_CASE("Arrays at no address, and of more elements than memory can hold, are no arguments") {
  Engine engine;
  engine.run("total(v) = sum(v)").value();
  double number = 1;
  const std::span<const double> none(static_cast<const double*>(nullptr), 3);
  const slope::ArrayView<const double, 2> wraps(&number, {std::size_t{1} << 62, 8});
  auto total = engine.function<double(std::span<const double>)>("total").value();
  CHECK(total(none).error().kind == slope::ErrorKind::conversion);
  CHECK(total(std::span<const double>()).value() == 0);
  std::vector<double> v = {1, 2, 3}, g(3);
  CHECK(total.value_and_gradient(v, g).ok());
  CHECK_FALSE(total.value_and_gradient(v, std::span<double>(static_cast<double*>(nullptr), 3)).ok());
  CHECK(total.value_and_gradient(none, g).error().kind == slope::ErrorKind::conversion);
  auto matrix = engine.function<double(slope::ArrayView<const double, 2>)>("total").value();
  CHECK(matrix(wraps).error().kind == slope::ErrorKind::conversion);
  CHECK_FALSE(engine.call("total", wraps).ok());
  CHECK_FALSE(engine.call("total", none).ok());
}
