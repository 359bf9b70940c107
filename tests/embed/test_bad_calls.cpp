// Calls that a host should not make, or makes at a bad moment: from inside others, with what has changed meanwhile.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "slope/engine.hpp"
#include "slope/type.hpp"

using slope::Engine;
using slope::ErrorKind;
using slope::Options;
using slope::Tier;

namespace {

Options limited(Tier tier) {
  Options options;
  options.tier = tier;
  options.heap_limit = 64 << 20;
  options.time_limit = 20;
  return options;
}

}  // namespace

struct BadPoint {
  explicit BadPoint(double given) : x(given) {}
  double x;
};
SLOPE_TYPE(BadPoint)

TEST_CASE("A host function may use the engine that calls it, in any way") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(limited(tier));
  engine.run("f(x) = x^2\ng(x) = again(x) + 1\nk(x) = again(x)^2").value();
  SECTION("it runs texts, which call it again, until the stack or a limit ends it") {
    engine
        .define("again",
                [&](double x) -> double { return engine.eval<double>("g(" + std::to_string(x) + ")").value(); })
        .value();
    CHECK_FALSE(engine.run("g(1.0)").ok());
    CHECK(engine.eval<double>("f(3.0)").value() == 9);
  }
  SECTION("it redefines itself and what called it") {
    engine
        .define("again",
                [&](double x) {
                  engine.define("again", [](double y) { return y + 100; }).value();
                  engine.run("g(x) = 0.0; GC.gc()").value();
                  return x;
                })
        .value();
    CHECK(engine.eval<double>("g(1.0)").value() == 2);
    CHECK(engine.eval<double>("k(1.0)").value() == 101.0 * 101.0);
    CHECK(engine.eval<double>("g(1.0)").value() == 0);
  }
  SECTION("it takes the gradient of what calls it, with a rule that does the same") {
    auto handle = std::make_shared<std::optional<slope::Function<double(double)>>>();
    engine.define("again", [](double x) { return 3 * x; })
        .derivative([&, handle](double x) {
          double slope = 0;
          auto f = engine.function<double(double)>("f");
          f.value().value_and_gradient(x, slope).value();
          return slope;  // 2x, which is wrong, and what the rule says
        })
        .value();
    auto k = engine.function<double(double)>("k", slope::Dispatch::allowed).value();
    double slope = 0;
    CHECK(k.value_and_gradient(2.0, slope).value() == 36);
    CHECK(slope == 2 * 6 * 4);
  }
  SECTION("it changes the limits and the tier") {
    engine
        .define("again",
                [&](double x) {
                  engine.set_tier(Tier::interpret);
                  engine.set_tier(Tier::compile);
                  engine.collect_garbage();
                  (void)engine.collect_for(std::chrono::nanoseconds(1));
                  return x;
                })
        .value();
    CHECK(engine.eval<double>("sum(k(x) for x in 1.0:3.0)").value() == 14);
  }
  SECTION("it interrupts the engine and goes on") {
    engine
        .define("again",
                [&](double x) {
                  engine.interrupt();
                  return x;
                })
        .value();
    CHECK(engine.run("while true; g(1.0); end").error().kind == ErrorKind::interrupted);
    CHECK(engine.eval<double>("f(2.0)").value() == 4);
  }
}

TEST_CASE("Memory that a host lends is looked at when it is used, not when it was given") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(limited(tier));
  std::vector<double> data(8, 1.0);
  SECTION("an array that is kept after its call is none any more") {
    engine.run("kept = nothing; keep(v) = (global kept = v; sum(v))").value();
    auto keep = engine.function<double(std::span<const double>)>("keep", slope::Dispatch::allowed);
    REQUIRE(keep.ok());
    (void)keep.value()(data);
    data = {};
    const auto later = engine.run("kept === nothing ? 0.0 : sum(kept)");
    CHECK((later.ok() || later.error().kind == ErrorKind::runtime));
  }
  SECTION("an adopted array cannot be resized, by any function") {
    int released = 0;
    engine.set("a", engine.adopt(std::span<double>(data), [&](double*) { ++released; }).value()).value();
    for (const char* text : {"push!(a, 1.0)", "resize!(a, 100)", "append!(a, a)", "pop!(a)", "empty!(a)",
                             "deleteat!(a, 1)", "splice!(a, 1:2)", "insert!(a, 1, 0.0)", "prepend!(a, [1.0])",
                             "filter!(x -> false, a)", "unique!(a)", "keepat!(a, 1:0)"}) {
      INFO(text);
      (void)engine.run(text);
      CHECK(engine.eval<int>("length(a)").value() == 8);
    }
    CHECK(engine.eval<double>("sum(a .+ view(a, 1:8) .+ reshape(a, 8))").value() == 24);
    engine.run("a = nothing; GC.gc()").value();
    engine.collect_garbage();
  }
  SECTION("the arguments of a call overlap") {
    engine.run("mix!(a, b) = (a .= b .* 2; sum(a))\nboth(a, b) = sum(a .* b)").value();
    auto both = engine.function<double(std::span<const double>, std::span<const double>)>("both").value();
    CHECK(both(data, std::span<const double>(data)).value() == 8);
    std::vector<double> first(8), second(8);
    CHECK(both.value_and_gradient(data, std::span<const double>(data), first, second).value() == 8);
    CHECK(first == data);
    CHECK(second == data);
    CHECK_FALSE(both.value_and_gradient(data, std::span<const double>(data), first, first).ok());
  }
  SECTION("a gradient goes into its own argument") {
    engine.run("square(a) = sum(a .* a)").value();
    auto square = engine.function<double(std::span<const double>)>("square").value();
    std::vector<double> w{1, 2, 3};
    const auto value = square.value_and_gradient(std::span<const double>(w), w);
    CHECK((!value.ok() || value.value() == 14));
  }
}

TEST_CASE("Handles of one engine are no arguments of another") {
  Engine first(limited(Tier::interpret)), second(limited(Tier::interpret));
  slope::Value value = first.run("[1.0, 2.0]").value();
  slope::Value function = first.run("x -> x").value();
  CHECK_FALSE(second.set("v", value).ok());
  second.run("id(x) = x").value();
  CHECK_FALSE(second.call("id", value).ok());
  CHECK_FALSE(second.call("map", function, value).ok());
  CHECK_FALSE(function(second.run("1").value()).ok());
  CHECK(second.eval<int>("id(1)").value() == 1);
}

TEST_CASE("Types of the host are told once, and objects of other types are refused") {
  Engine engine(limited(Tier::interpret));
  engine.type<BadPoint>("Point").constructor<double>().field("x", &BadPoint::x);
  CHECK_FALSE(engine.run("Point(\"a\")").ok());
  CHECK_FALSE(engine.run("p = Point(1.0); p.x = \"a\"").ok());
  CHECK_FALSE(engine.run("Point(1.0).y").ok());
  engine.define("length_of", [](const BadPoint& p) { return p.x; }).value();
  for (const char* text : {"length_of(1)", "length_of(nothing)", "length_of([Point(1.0)])", "length_of(Point)"})
    CHECK_FALSE(engine.run(text).ok());
  CHECK(engine.eval<double>("length_of(Point(2.5))").value() == 2.5);
  (void)engine.run("struct Point; x::Int; end");
  CHECK(engine.eval<double>("length_of(Point(2.5))").value() == 2.5);
}

TEST_CASE("A host function that lies about its derivative is told by its shape") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(limited(tier));
  engine.define("norm2", [](std::span<const double> v) { return static_cast<double>(v.size()); })
      .vjp([](std::span<const double>, double) { return std::vector<double>(1000, 1.0); })
      .value();
  engine.run("loss(v) = norm2(v .* 2) + sum(v)").value();
  auto loss = engine.function<double(std::span<const double>)>("loss", slope::Dispatch::allowed).value();
  std::vector<double> w{1, 2, 3}, g(3);
  CHECK_FALSE(loss.value_and_gradient(std::span<const double>(w), g).ok());
  engine.define("thrower", [](double x) { return x; }).derivative([](double) -> double { throw 5; }).value();
  engine.run("t(x) = thrower(x)^2").value();
  auto t = engine.function<double(double)>("t", slope::Dispatch::allowed).value();
  double slope = 0;
  CHECK_FALSE(t.value_and_gradient(1.0, slope).ok());
  CHECK(t(3.0).value() == 9);
}

TEST_CASE("Odd texts, names and numbers") {
  Engine engine(limited(Tier::interpret));
  CHECK_FALSE(engine.run(std::string_view("1 + \0 2", 7)).ok());
  CHECK(engine.run(std::string(100000, ' ')).ok());
  CHECK(engine
            .eval<int>("\xef\xbb\xbf"
                       "41 + 1\r\n")
            .value() == 42);
  CHECK_FALSE(engine.run("\xff\xfe").ok());
  CHECK_FALSE(engine.run("1", std::string(100000, 'n')).value().to<std::string>().ok());
  CHECK_FALSE(engine.run("error()", std::string("a\0b\n\xff", 5)).ok());
  CHECK_FALSE(engine.function<double(double)>("").ok());
  CHECK_FALSE(engine.function<double(double)>("a.b").ok());
  CHECK_FALSE(engine.function<double(double)>("f; exit()").ok());
  CHECK_FALSE(engine.warm("println(1); sin", "(Int,").ok());
  CHECK(engine.complete(std::string(10000, 'x')).empty());
  CHECK_FALSE(engine.incomplete(std::string(10, ')')));
  CHECK_FALSE(engine.eval<int>("1e300").ok());
  CHECK_FALSE(engine.eval<int>("typemax(Int)").ok());
  CHECK_FALSE(engine.eval<std::vector<double>>("Any[1.0, \"a\"]").ok());
  CHECK_FALSE(engine.eval<unsigned>("-1").ok());
  engine.set_fuel(0);
  (void)engine.run("1");
}
