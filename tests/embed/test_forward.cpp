// Typed handles in other modes than the gradient: directions (jvp), Hessians times a direction, Jacobians, pullbacks.
#include <catch2/catch.hpp>
#include <cmath>

#include "slope/engine.hpp"

using slope::Engine;
using slope::Tier;

namespace {

constexpr const char* script = R"(
energy(a, w, n) = a^n * sum(w .^ 3) + sin(a)
function curve(t, w)
    [t * w[1], w[1] * w[2]^2, exp(t)]
end
plain(x, y) = x^2 * y
rest(x...) = x[1]^2 * x[2]
const factors = [2.0, 3.0]
struct Scaled
    by::Vector{Float64}
end
(s::Scaled)(x) = s.by[1] * x^3
const scaled = Scaled([2.0])
fails(x) = throw(DomainError(x, "no"))
function hidden(x)
    y = Any[x]
    foreign(y[1])
end
)";

using Numbers = std::span<const double>;
const std::vector<double> w = {0.5, -1.25};

void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(1e-12));
}

}  // namespace

TEST_CASE("Derivatives in a direction") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine.run(script).value();
  auto energy = engine.function<double(double, Numbers, int)>("energy").value();
  const double cubes = 0.125 - 1.25 * 1.25 * 1.25;
  const std::vector<double> dw = {1.0, 2.0};
  for (int again = 0; again < 3; ++again) {  // what is kept from one call serves the next, also for other arguments
    auto [y, dy] = energy.jvp(1.5, w, 2, 0.5, dw, nullptr).value();
    CHECK(y == Approx(2.25 * cubes + std::sin(1.5)));
    CHECK(dy == Approx(0.5 * (3.0 * cubes + std::cos(1.5)) + 2.25 * 3 * (0.25 * 1.0 + 1.5625 * 2.0)));
    CHECK(energy.jvp(1.5, w, 2, nullptr, dw, nullptr).value().tangent ==
          Approx(2.25 * 3 * (0.25 * 1.0 + 1.5625 * 2.0)));
    CHECK(energy.jvp(1.5, w, 2, 1.0, nullptr, nullptr).value().tangent == Approx(3.0 * cubes + std::cos(1.5)));
  }
  CHECK(energy.jvp(1.5, w, 2, nullptr, nullptr, nullptr).value().tangent == 0.0);

  auto curve = engine.function<std::vector<double>(double, Numbers)>("curve", slope::Dispatch::allowed).value();
  auto moved = curve.jvp(2.0, w, 1.0, dw).value();
  check_close(moved.value, {1.0, 0.78125, std::exp(2.0)});
  check_close(moved.tangent, {0.5 + 2.0, 1.5625 + 0.5 * 2 * -1.25 * 2, std::exp(2.0)});

  auto rest = engine.function<double(double, double)>("rest").value();
  CHECK(rest.jvp(3.0, 2.0, 1.0, nullptr).value().tangent == 12.0);
  auto scaled = engine.function<double(double)>("scaled", slope::Dispatch::allowed).value();
  CHECK(scaled.jvp(2.0, 1.0).value().tangent == 24.0);
}

TEST_CASE("Hessians times a direction") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine.run(script).value();
  auto energy = engine.function<double(double, Numbers, int)>("energy").value();
  const double a = 1.5, cubes = 0.125 - 1.25 * 1.25 * 1.25, da = 0.5;
  const std::vector<double> dw = {1.0, 2.0};
  for (int again = 0; again < 3; ++again) {
    double ha = 99;
    std::vector<double> hw(2, 99.0);
    energy.hvp(a, w, 2, da, dw, nullptr, ha, hw, nullptr).value();
    const double slopes = 3 * (0.25 * 1.0 + 1.5625 * 2.0);
    CHECK(ha == Approx(da * (2 * cubes - std::sin(a)) + 2 * a * slopes));
    check_close(hw, {2 * a * 3 * 0.25 * da + a * a * 6 * 0.5 * 1.0, 2 * a * 3 * 1.5625 * da + a * a * 6 * -1.25 * 2.0});
    std::vector<double> alone(2, 99.0);
    energy.hvp(a, w, 2, nullptr, dw, nullptr, nullptr, alone, nullptr).value();
    check_close(alone, {a * a * 6 * 0.5 * 1.0, a * a * 6 * -1.25 * 2.0});
    double mixed = 99;  // moves along w, asked along a
    energy.hvp(a, w, 2, nullptr, dw, nullptr, mixed, nullptr, nullptr).value();
    CHECK(mixed == Approx(2 * a * slopes));
  }
  auto plain = engine.function<double(double, double)>("plain").value();
  double hx = 0, hy = 0;
  plain.hvp(3.0, 2.0, 1.0, 10.0, hx, hy).value();
  CHECK(hx == 2 * 2.0 + 2 * 3.0 * 10);
  CHECK(hy == 6.0);
  auto rest = engine.function<double(double, double)>("rest").value();
  rest.hvp(3.0, 2.0, 1.0, 10.0, hx, hy).value();
  CHECK(hx == 2 * 2.0 + 2 * 3.0 * 10);
  CHECK(hy == 6.0);
}

TEST_CASE("Jacobians, a matrix for each argument") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine.run(script).value();
  auto curve = engine.function<std::vector<double>(double, Numbers)>("curve", slope::Dispatch::allowed).value();
  std::vector<double> t, by_w(6);
  check_close(curve.jacobian(2.0, w, t, std::span<double>(by_w)).value(), {1.0, 0.78125, std::exp(2.0)});
  check_close(t, {0.5, 0, std::exp(2.0)});
  check_close(by_w, {2, 1.5625, 0, 0, -1.25, 0});

  engine.run("shift(v) = [i * v[i] for i in 1:length(v)]").value();  // more columns than go at once
  auto shift = engine.function<std::vector<double>(Numbers)>("shift", slope::Dispatch::allowed).value();
  const std::vector<double> many(11, 1.0);
  std::vector<double> matrix;
  shift.jacobian(many, matrix).value();
  REQUIRE(matrix.size() == 121);
  for (std::size_t i = 0; i < 11; ++i)
    for (std::size_t j = 0; j < 11; ++j) CHECK(matrix[i + 11 * j] == (i == j ? static_cast<double>(i + 1) : 0.0));

  auto energy = engine.function<double(double, Numbers, int)>("energy").value();
  std::vector<double> row;
  energy.jacobian(1.5, w, 2, nullptr, row, nullptr).value();
  check_close(row, {2.25 * 3 * 0.25, 2.25 * 3 * 1.5625});
  auto rest = engine.function<double(double, double)>("rest").value();
  CHECK(rest.jacobian(3.0, 2.0, nullptr, row).value() == 18.0);
  check_close(row, {9.0});
  std::vector<double> none;
  CHECK(shift.jacobian(none, matrix).value().empty());
  CHECK(matrix.empty());

  std::vector<double> wrong(5);
  CHECK(curve.jacobian(2.0, w, nullptr, std::span<double>(wrong)).error().message ==
        "jacobian of `curve`, argument 2: the matrix has 3 rows and 2 columns, the memory 5 elements");
  CHECK(energy.jacobian(1.5, w, 2, nullptr, nullptr, row).error().message ==
        "jacobian of `energy`, argument 3: there is no derivative with respect to this type; pass nullptr");
}

TEST_CASE("A pullback gives the cotangents of the arguments, as often as it is asked") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine.run(script).value();
  auto curve = engine.function<std::vector<double>(double, Numbers)>("curve", slope::Dispatch::allowed).value();
  std::vector<double> mine = w;
  auto back = curve.pullback(2.0, mine).value();
  mine = {100.0, 100.0};  // the arguments were copied
  check_close(back.value(), {1.0, 0.78125, std::exp(2.0)});
  for (int again = 0; again < 2; ++again) {
    double t = 0;
    std::vector<double> g(2);
    back({1.0, 10.0, 100.0}, t, g).value();
    CHECK(t == Approx(0.5 + 100 * std::exp(2.0)));
    check_close(g, {2 + 15.625, -12.5});
  }
  back({0.0, 1.0, 0.0}, nullptr, mine).value();
  check_close(mine, {1.5625, -1.25});
  CHECK(back({1.0, 2.0}, nullptr, mine).error().message ==
        "pullback of `curve`: the result has 3 elements, its cotangent 2");
  CHECK_FALSE(back({1.0, 2.0, 3.0}, nullptr, std::vector<double>(3)).ok());

  auto plain = engine.function<double(double, double)>("plain").value();
  double x = 0, y = 0;
  plain.pullback(3.0, 2.0).value()(10.0, x, y).value();
  CHECK(x == 120.0);
  CHECK(y == 90.0);
}

TEST_CASE("Directions that do not fit, and what has no derivative") {
  Engine engine;
  engine.define("foreign", [](double x) { return x; }).value();
  engine.run(script, "forward.slope").value();
  auto energy = engine.function<double(double, Numbers, int)>("energy").value();
  std::vector<double> three(3), two(2);
  CHECK(energy.jvp(1.0, w, 1, nullptr, three, nullptr).error().message ==
        "jvp of `energy`, argument 2: the argument has 2 elements, its tangent 3");
  CHECK(energy.jvp(1.0, w, 1, two, nullptr, nullptr).error().message ==
        "jvp of `energy`, argument 1: the tangent of a number is a number");
  CHECK(energy.jvp(1.0, w, 1, nullptr, nullptr, 1.0).error().message ==
        "jvp of `energy`, argument 3: values of this type do not move; pass nullptr");
  CHECK(energy.hvp(1.0, w, 1, nullptr, two, nullptr, nullptr, two, nullptr).error().message ==
        "hvp of `energy`, argument 2: the memory for the result overlaps the direction");

  auto fails = engine.function<double(double)>("fails", slope::Dispatch::allowed).value();
  CHECK(fails.jvp(1.0, 1.0).error().type == "DomainError");
  double h = 0;
  CHECK(fails.hvp(1.0, 1.0, h).error().type == "DomainError");
  CHECK(fails.pullback(1.0).error().type == "DomainError");

  auto hidden = engine.function<double(double)>("hidden", slope::Dispatch::allowed).value();
  auto refused = hidden.jvp(1.0, 1.0);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == slope::ErrorKind::not_differentiable);
  CHECK(refused.error().message.find("forward.slope:") != std::string::npos);
}

TEST_CASE("Forward mode stays with the definitions of the handle") {
  Engine engine;
  engine.run("part(x) = x^2\nwhole(x) = part(x) * x").value();
  auto whole = engine.function<double(double)>("whole").value();
  double h = 0;
  CHECK(whole.jvp(2.0, 1.0).value().tangent == 12.0);
  whole.hvp(2.0, 1.0, h).value();
  CHECK(h == 12.0);
  auto back = whole.pullback(2.0).value();
  engine.run("part(x) = x").value();
  CHECK(whole.jvp(2.0, 1.0).value().tangent == 12.0);
  whole.hvp(2.0, 1.0, h).value();
  CHECK(h == 12.0);
  back(1.0, h).value();
  CHECK(h == 12.0);
  whole.refresh().value();
  CHECK(whole.jvp(2.0, 1.0).value().tangent == 4.0);
  whole.hvp(2.0, 1.0, h).value();
  CHECK(h == 2.0);
}
