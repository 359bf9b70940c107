// Tasks and the host: limits reached in a task, tasks that outlive a use, host functions that tasks call.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "slope/engine.hpp"

using slope::Engine;
using slope::ErrorKind;
using slope::Options;
using slope::Tier;

namespace {

constexpr Tier tiers[] = {Tier::interpret, Tier::compile, Tier::automatic};

}  // namespace

TEST_CASE("A limit that a task reaches ends the use, and the next use begins anew") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier, .fuel = 200'000});
    engine.run("function spin(); k = 0; while true; try; k += 1; catch; end; end; end").value();
    for (int i = 0; i < 3; ++i) {
      const auto result = engine.run("t = @async try spin() catch; 1 end; fetch(t)");
      REQUIRE(!result.ok());
      CHECK(result.error().kind == ErrorKind::limit);
    }
    CHECK(engine.eval<int>("fetch(@async 1 + 1)").value() == 2);
  }
}

TEST_CASE("Recursion in a task ends as elsewhere") {
  Engine engine(Options{.stack_limit = 300'000});
  engine.run("deep(n) = 1 + deep(n + 1)").value();
  const auto result = engine.run("fetch(@async try deep(1) catch; 1 end)");
  REQUIRE(!result.ok());
  CHECK(result.error().kind == ErrorKind::limit);
  CHECK(engine.eval<int>("fetch(@async 3)").value() == 3);
}

TEST_CASE("Many tasks end at the heap limit") {
  Engine engine(Options{.heap_limit = 32 << 20});
  const auto result = engine.run("c = Condition(); ts = [@async wait(c) for _ in 1:100_000]; yield(); length(ts)");
  REQUIRE(!result.ok());
  CHECK(result.error().kind == ErrorKind::limit);
}

TEST_CASE("Tasks stay between uses, and end with the engine") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier});
    engine.run("c = Channel{Int}(c -> (i = 0; while true; put!(c, i += 1); end))").value();
    for (int i = 1; i < 20; ++i) CHECK(engine.eval<int>("take!(c)").value() == i);
    engine.run("seen = Int[]; d = Channel{Int}(0); @async for x in d; push!(seen, x); end").value();
    engine.run("put!(d, 4)").value();
    engine.run("put!(d, 5); yield()").value();
    CHECK(engine.eval<int>("sum(seen)").value() == 9);
    engine.run("w = [@async (x = zeros(50); wait(); sum(x)) for _ in 1:500]; yield()").value();
    engine.collect_garbage();
  }
}

TEST_CASE("A host function that a task calls may use the engine, but not wait in it") {
  Engine engine;
  engine.define("twice", [&](double x) { return engine.eval<double>("2.0 * " + std::to_string(x)).value(); }).value();
  engine
      .define("waits",
              [&](double x) {
                const auto result = engine.run("yield()");
                return result.ok() ? x : -1.0;
              })
      .value();
  CHECK(engine.eval<double>("fetch(@async (yield(); twice(3.0)))").value() == 6.0);
  CHECK(engine.eval<double>("a = @async yield(); fetch(@async waits(3.0))").value() == -1.0);
  CHECK(engine.eval<double>("waits(3.0)").value() == 3.0);
  engine.define("throws", [](double) -> double { throw std::runtime_error("from the host"); }).value();
  CHECK(engine.eval<bool>("istaskfailed((t = @async throws(1.0); try wait(t) catch; end; t))").value());
}

TEST_CASE("A deadlock is an error") {
  Engine engine;
  const auto result = engine.run("take!(Channel())");
  REQUIRE(!result.ok());
  CHECK(result.error().message.find("deadlock") != std::string::npos);
  CHECK(engine.eval<int>("1 + 1").value() == 2);
}
