// C++ functions in compiled code: called with words, with derivatives, with exceptions that come back whole.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "slope/containers.hpp"
#include "slope/engine.hpp"

using slope::Engine;
using slope::ErrorKind;
using slope::Options;
using slope::Tier;

namespace {

constexpr Tier tiers[] = {Tier::interpret, Tier::compile, Tier::automatic};

}  // namespace

TEST_CASE("Host functions of numbers give compiled code what they give everybody") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier});
    int calls = 0;
    engine.define("cube", [](double x) { return x * x * x; }).value();
    engine.define("mixed", [](double x, std::int64_t n, bool up) { return up ? x * n : x / n; }).value();
    engine.define("next", [](std::int64_t n) { return n + 1; }).value();
    engine.define("is_even", [](std::int64_t n) { return n % 2 == 0; }).value();
    engine.define("narrow", [](std::int8_t n) { return n; }).value();
    engine.define("single", [](float x) { return x; }).value();
    engine.define("count!", [&] { ++calls; }).value();
    engine.define("answer", [] { return 42; }).value();
    engine
        .define("sixteen", [](double a, double b, double c, double d, double e, double f, double g,
                              double h) { return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h; })
        .value();
    engine
        .run(R"(
function all_of(n)
    s = 0.0
    for i in 1:n
        s += cube(i) + mixed(0.5, i, is_even(i)) + next(i) + narrow(i % 100) + answer()
        count!()
    end
    s + sixteen(1, 2, 3, 4, 5, 6, 7, 8)
end
expected(n) = sum(i^3 + (iseven(i) ? 0.5 * i : 0.5 / i) + i + 1 + i % 100 + 42 for i in 1:n) + 204
)")
        .value();
    CHECK(engine.eval<double>("all_of(200)").value() == Approx(engine.eval<double>("expected(200)").value()));
    CHECK(calls == 200);
    auto f = engine.function<double(std::int64_t)>("all_of").value();
    CHECK(f(300).value() == Approx(engine.eval<double>("expected(300)").value()));
    CHECK(engine.eval<double>("single(0.1)").value() == static_cast<double>(0.1f));
    CHECK(std::isnan(engine.eval<double>("cube(NaN)").value()));
    CHECK(engine.eval<double>("cube(-Inf)").value() == -std::numeric_limits<double>::infinity());
    CHECK(engine.eval<double>("g(x) = cube(x); g(-0.0)").value() == 0.0);
    auto outside = engine.run("through(n) = narrow(n)\nthrough(300)", "n.slope");
    REQUIRE_FALSE(outside.ok());
    CHECK(outside.error().message.find("argument 1: ") != std::string::npos);
    CHECK(outside.error().position.line == 1);
  }
}

TEST_CASE("An exception passes compiled frames, can be caught, and comes back with both traces") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier});
    engine
        .define("strict",
                [](double x) {
                  if (x < 0) throw std::domain_error("strict: " + std::to_string(x) + " is negative");
                  return x;
                })
        .value();
    engine
        .define("result",
                [](double x) -> slope::Result<double> {
                  if (x < 0) return slope::Error{.message = "no result"};
                  return x;
                })
        .value();
    engine
        .run(R"(
outer(x) = inner(x) + 1
@noinline inner(x) = strict(x) * 2
guarded(x) = try strict(x) catch e; occursin("negative", e.msg) ? -1.0 : -2.0 end
second(x) = result(x)
)",
             "strict.slope")
        .value();
    auto outer = engine.function<double(double)>("outer").value();
    auto guarded = engine.function<double(double)>("guarded", slope::Dispatch::allowed).value();
    auto second = engine.function<double(double)>("second").value();
    for (int i = 0; i < 3; ++i) {
      CHECK(outer(2.0).value() == 5.0);
      CHECK(guarded(-1.0).value() == -1.0);
      CHECK(guarded(3.0).value() == 3.0);
      CHECK(second(-1.0).error().summary == "no result");
      auto failed = outer(-2.0);
      REQUIRE_FALSE(failed.ok());
      CHECK(failed.error().position.file == "strict.slope");
      CHECK(failed.error().position.line == 3);
      CHECK(failed.error().message.find("strict.slope:2") != std::string::npos);
      REQUIRE(failed.error().cause);
      CHECK_THROWS_AS(std::rethrow_exception(failed.error().cause), std::domain_error);
    }
    bool nested = false;
    try {
      outer(-2.0).value();
    } catch (const slope::ScriptError& e) {
      CHECK(std::string(e.what()).find("strict.slope:3") != std::string::npos);
      try {
        std::rethrow_if_nested(e);
      } catch (const std::domain_error& cause) {
        nested = std::string(cause.what()).find("is negative") != std::string::npos;
      }
    }
    CHECK(nested);
  }
}

TEST_CASE("Derivatives of host functions are told from C++") {
  for (Tier tier : tiers) {
    CAPTURE(static_cast<int>(tier));
    Engine engine(Options{.tier = tier});
    engine.define("cube", [](double x) { return x * x * x; }).derivative([](double x) { return 3 * x * x; }).value();
    engine.define("ratio", [](double x, std::int64_t n, double y) { return x * n / y; })
        .derivative([](double, std::int64_t n, double y) { return n / y; },
                    [](double x, std::int64_t n, double y) { return -x * n / (y * y); })
        .value();
    engine.define("area", [](double a, double b) { return a * b; })
        .jvp([](double a, double b, double da, double db) { return a * db + b * da; })
        .value();
    engine
        .define("norm2",
                [](std::span<const double> v) {
                  double s = 0;
                  for (double x : v) s += x * x;
                  return s;
                })
        .vjp([](std::span<const double> v, double seed) {
          std::vector<double> g(v.begin(), v.end());
          for (double& x : g) x *= 2 * seed;
          return g;
        })
        .jvp([](std::span<const double> v, std::span<const double> dv) {
          double s = 0;
          for (std::size_t i = 0; i < v.size(); ++i) s += 2 * v[i] * dv[i];
          return s;
        })
        .value();
    engine
        .define("scaled",
                [](double a, std::span<const double> v) {
                  double s = 0;
                  for (double x : v) s += a * x;
                  return s;
                })
        .vjp([](double a, std::span<const double> v, double seed) {
          double s = 0;
          for (double x : v) s += x;
          return std::tuple<double, std::vector<double>>(seed * s, std::vector<double>(v.size(), seed * a));
        })
        .value();
    engine.define("noise", [](double x) { return std::floor(x); }).non_differentiable().value();
    engine.define("opaque", [](double x) { return x; }).value();
    engine
        .run(R"(
f(x, y) = sin(cube(x)) + ratio(x, 3, y) * area(x, y) + noise(x)
h(v) = norm2(v) * v[1] + scaled(v[2], v)
refused(x) = opaque(x)^2
)",
             "rules.slope")
        .value();
    auto f = engine.function<double(double, double)>("f").value();
    double dx = 0, dy = 0;
    const double x = 0.7, y = 1.3, e = 1e-6;
    f.value_and_gradient(x, y, dx, dy).value();
    CHECK(dx == Approx((f(x + e, y).value() - f(x - e, y).value()) / (2 * e)).epsilon(1e-6));
    CHECK(dy == Approx((f(x, y + e).value() - f(x, y - e).value()) / (2 * e)).epsilon(1e-6));
    auto h = engine.function<double(std::span<const double>)>("h", slope::Dispatch::allowed).value();
    std::vector<double> v{0.5, -1.25, 2.0}, g(3);
    h.value_and_gradient(v, g).value();
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double kept = v[i];
      v[i] = kept + e;
      const double above = h(v).value();
      v[i] = kept - e;
      CHECK(g[i] == Approx((above - h(v).value()) / (2 * e)).epsilon(1e-6));
      v[i] = kept;
    }
    CHECK(engine.eval<double>("derivative(x -> cube(x) * area(x, 2.0), 0.5)").value() ==
          Approx(3 * 0.25 * 1.0 + 0.125 * 2.0));
    CHECK(engine.check_rule("cube", 0.7).ok());
    CHECK(engine.check_rule("area", 0.7, 2.0).ok());
    CHECK(engine.check_rule("norm2", std::vector<double>{1.0, 2.0}).ok());
    auto refused = engine.function<double(double)>("refused").value().value_and_gradient(1.0, dx);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind == ErrorKind::not_differentiable);
    CHECK(refused.error().position.line == 4);
  }
}

TEST_CASE("A wrong rule is found out") {
  Engine engine;
  engine.define("wrong", [](double x) { return x * x; }).derivative([](double x) { return x; }).value();
  auto checked = engine.check_rule("wrong", 1.5);
  REQUIRE_FALSE(checked.ok());
  CHECK(checked.error().type == "RuleFailure");
  CHECK(checked.error().message.find("central differences") != std::string::npos);
  auto two = [](double x, double y) { return x * y; };
  CHECK_FALSE(engine.define("f", two).derivative([](double x, double) { return x; }).ok());
  CHECK_FALSE(engine.define("f", two).derivative([](double x) { return x; }, [](double y) { return y; }).ok());
  CHECK_FALSE(engine.define("f", two).vjp([](double x, double y, double seed) { return x * y * seed; }).ok());
  CHECK_FALSE(engine.define("f", two).jvp([](double x, double y) { return x * y; }).ok());
  CHECK(engine.define("f", two).jvp([](double x, double y) { return x * y; }).error().message.find("expected") !=
        std::string::npos);
}

TEST_CASE("A rule for one mode is tested in that mode") {
  Engine engine;
  using Numbers = std::span<const double>;
  auto product = [](Numbers v) { return v[0] * v[1]; };
  engine.define("right", product)
      .vjp([](Numbers v, double y) {
        return std::vector<double>{y * v[1], y * v[0]};
      })
      .value();
  engine.define("wrong", product).vjp([](Numbers v, double y) { return std::vector<double>{y * v[1], y}; }).value();
  engine.define("forward", product).jvp([](Numbers v, Numbers dv) { return dv[0] * v[1] + v[0] * dv[1]; }).value();
  engine.define("without", product).value();
  const std::vector<double> at = {2, 3};
  CHECK(engine.check_rule("right", at).ok());
  CHECK(engine.check_rule("forward", at).ok());
  const auto wrong = engine.check_rule("wrong", at);
  CHECK(wrong.error().type == "RuleFailure");
  CHECK(wrong.error().message.find("reverse mode") != std::string::npos);
  CHECK(engine.check_rule("without", at).error().kind == ErrorKind::not_differentiable);
}

TEST_CASE("Second derivatives pass through a host function whose derivative has one") {
  Engine engine;
  engine.define("cube", [](double x) { return x * x * x; }).derivative([](double x) { return 3 * x * x; }).value();
  engine.run("f(w) = cube(w[1]) * w[2]").value();
  const std::vector<double> w = {1, 2}, v = {1, 0};
  std::vector<double> h(2);
  auto f = engine.function<double(std::span<const double>)>("f").value();
  const auto refused = f.hvp(w, v, h);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("`@scalar_rule f(x) df(x)`") != std::string::npos);

  engine.define("third_power", [](double x) { return x * x * x; }).value();
  engine.define("slope_of_cube", [](double x) { return 3 * x * x; }).derivative([](double x) { return 6 * x; }).value();
  engine.run("@scalar_rule third_power(x) slope_of_cube(x)\ng(w) = third_power(w[1]) * w[2]").value();
  engine.function<double(std::span<const double>)>("g").value().hvp(w, v, h).value();
  CHECK(h == std::vector<double>{12, 3});
}

TEST_CASE("An error that passes through script, host and script is told once") {
  Engine engine;
  engine.define("inner", [](double x) -> double { throw std::runtime_error("no root of " + std::to_string(x)); })
      .value();
  engine.define("again", [&](double x) { return engine.eval<double>("inner(" + std::to_string(x) + ")").value(); })
      .value();
  const auto failed = engine.run("again(2.0)");
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().summary == "no root of 2.000000");
  CHECK(failed.error().message.find("ERROR: no root of") == 0);
}
