// Methods that were replaced are freed when nothing can reach them, and not before: handles, plans, workspaces,
// pullbacks, tasks, frames and generators of older worlds go on with them.
#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "slope/engine.hpp"

using slope::Engine;
using slope::Options;
using slope::Tier;

namespace {

Options options_of(Tier tier) {
  Options options;
  options.tier = tier;
  return options;
}

// Far more definitions than wait for each other to be freed.
void replace(Engine& engine, const std::string& before, const std::string& after) {
  for (int i = 1; i <= 200; ++i) engine.run(before + std::to_string(i) + after).value();
}

bool holds(Engine& engine, const std::string& text) {
  const auto result = engine.eval<bool>(text);
  if (!result.ok()) UNSCOPED_INFO(result.error().message);
  return result.ok() && result.value();
}

}  // namespace

TEST_CASE("What the host got before a definition goes on with the methods of that time") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(options_of(tier));
  engine.run("scale(x) = 2x\nshift(x::Any) = 100.0\nf(x) = scale(x) * x + 1").value();
  auto handle = engine.function<double(double)>("f").value();
  double gradient = 0;
  CHECK(handle.value_and_gradient(3.0, gradient).value() == 19);
  auto back = handle.pullback(3.0).value();
  engine.run("g(x) = scale(x) + 1").value();
  auto later = engine.function<double(double)>("g").value();  // its gradient was not asked for yet
  replace(engine, "scale(x) = x * ", "");
  replace(engine, "f(x) = scale(x) + ", "; f(1.0); g(2.0)");
  CHECK(handle(3.0).value() == 19);
  CHECK_FALSE(handle.is_current());
  CHECK(handle.value_and_gradient(4.0, gradient).value() == 33);
  CHECK(gradient == 16);
  CHECK(later(1.0).value() == 3);
  CHECK(later.value_and_gradient(1.0, gradient).value() == 3);
  CHECK(gradient == 2);
  double of_back = 0;
  REQUIRE(back(1.0, of_back).ok());
  CHECK(of_back == 12);
  REQUIRE(handle.refresh().ok());
  CHECK(handle(3.0).value() == 800);
  replace(engine, "f(x) = scale(x) - ", "");
  CHECK(handle(3.0).value() == 800);
}

TEST_CASE("A workspace goes on with the methods of its time") {
  Engine engine(options_of(Tier::compile));
  engine.run("part(x) = 3x\nwhole(x) = part(x) * x").value();
  auto handle = engine.function<double(double)>("whole").value();
  auto workspace = handle.workspace();
  if (!workspace.ok()) return;  // no machine code in this build
  replace(engine, "part(x) = x + ", "; whole(1.0)");
  double value = 0, gradient = 0;
  std::thread([&] {
    value = handle(workspace.value(), 2.0).value();
    handle.value_and_gradient(workspace.value(), 2.0, gradient).value();
  }).join();
  CHECK(value == 12);
  CHECK(gradient == 12);
}

TEST_CASE("Frames, tasks, pullbacks and generators of older worlds find their methods") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(options_of(tier));
  engine
      .run(R"(
    helper(x) = x + 1000
    waits(c) = (n = take!(c); helper(n) + sum(map(helper, [n, n])))
    c = Channel{Int}(0)
    task = @async waits(c)
    yield()
    old(x) = helper(x) * x
    value, back = pullback(old, 2.0)
    kept = old
    made_by(n) = :(x + $n)
    @generated made(x) = made_by(sizeof(x))
    function runs(n)
      for i in 1:n
        Core.eval(Main, :(helper(x) = x - $i))
        Core.eval(Main, :(old(x) = helper(x) + $i))
        Base.invokelatest(old, 1.0)
      end
      helper(1)
    end
    world = world_age()
    first = helper
  )")
      .value();
  CHECK(holds(engine, "runs(200) == 1001"));
  CHECK(holds(engine, "helper(1) == -199"));
  replace(engine, "helper(x) = x * ", "; helper(1)");
  replace(engine, "made_by(n) = :(x - ", " * $n)");
  CHECK(holds(engine, "(put!(c, 5); fetch(task) == 3015)"));
  CHECK(holds(engine, "(try; back(1.0); false; catch e; e isa DifferentiationError; end)"));
  CHECK(holds(engine, "made(1) == 9 && made(Int8(1)) == 2"));
  CHECK(holds(engine, "invoke_in_world(world, first, 1) == 1001"));
  CHECK(holds(engine, "(try; invoke_in_world(world + 2, first, 1); false; catch e; e isa ArgumentError; end)"));
  CHECK(holds(engine, "length(invalidations()) > 0 && all(x -> x.ended isa String, invalidations())"));
}

TEST_CASE("A trace shows functions that were replaced since") {
  Engine engine(options_of(Tier::interpret));
  engine
      .run(R"(
    fails(x) = error("first")
    struct Shown <: Exception; end
    function Base.showerror(io::IO, e::Shown)
      for i in 1:200
        Core.eval(Main, :(throws(x) = $i))
        Base.invokelatest(Main.throws, 1)
      end
      print(io, "shown")
    end
    throws(x) = throw(Shown())
  )")
      .value();
  const auto failed = engine.run("throws(1)");
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().message.find("shown") != std::string::npos);
  const auto again =
      engine.run("try; fails(1); catch; for i in 1:200; Core.eval(Main, :(fails(x) = $i)); end; rethrow(); end");
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().message.find("fails(x)") != std::string::npos);
}
