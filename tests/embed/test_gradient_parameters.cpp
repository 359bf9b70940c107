// Structures, tuples and containers as parameters of gradients: the derivative comes in their shape.
#include <catch2/catch.hpp>

#include "slope/containers.hpp"
#include "slope/structure.hpp"

using slope::Engine;
using slope::Tier;

namespace embed_test {

struct Spring {
  double stiffness = 0;
  int count = 0;
  std::vector<double> lengths;
};
struct Model {
  Spring spring;
  double offset = 0;
  std::string name;
};

struct Coefficients {
  std::map<std::string, double> named;
  double scale = 0;
  std::complex<double> wave;
};

}  // namespace embed_test

using embed_test::Coefficients;
using embed_test::Model;
using embed_test::Spring;
SLOPE_STRUCTURE(Spring, stiffness, count, lengths)
SLOPE_STRUCTURE(Model, spring, offset, name)
SLOPE_STRUCTURE(Coefficients, named, scale, wave)

TEST_CASE("Gradients with respect to structures") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine.run(slope::definition<Spring>()).value();
  engine.run(slope::definition<Model>()).value();
  engine
      .run(
          "energy(s, x) = 0.5 * s.stiffness * s.count * sum((s.lengths .- x) .^ 2)\n"
          "total(m, x) = energy(m.spring, x) + m.offset^2\n"
          "unmoved(m) = m.offset")
      .value();
  auto energy = engine.function<double(const Spring&, double)>("energy", slope::Dispatch::allowed).value();
  const Spring spring{2.0, 3, {1.0, 4.0}};
  Spring g{99, 99, {1, 2, 3}};
  double dx = 0;
  CHECK(energy.value_and_gradient(spring, 2.0, g, dx).value() == 0.5 * 2 * 3 * 5);
  CHECK(g.stiffness == 0.5 * 3 * 5);
  CHECK(g.count == 0);
  CHECK(g.lengths == std::vector<double>{-6, 12});
  CHECK(dx == -6.0);
  energy.value_and_gradient(spring, 2.0, nullptr, dx).value();

  auto total = engine.function<double(const Model&, double)>("total", slope::Dispatch::allowed).value();
  const Model model{spring, 5.0, "steel"};
  Model m;
  CHECK(total.value_and_gradient(model, 2.0, m, nullptr).value() == 15 + 25);
  CHECK(m.spring.lengths == std::vector<double>{-6, 12});
  CHECK(m.offset == 10.0);
  CHECK(m.name.empty());

  auto unmoved = engine.function<double(const Model&)>("unmoved", slope::Dispatch::allowed).value();
  m = model;
  unmoved.value_and_gradient(model, m).value();
  CHECK(m.spring.stiffness == 0.0);
  CHECK(m.spring.lengths == std::vector<double>{0, 0});
  CHECK(m.offset == 1.0);
  CHECK_FALSE(unmoved.value_and_gradient(m, m).ok());  // an argument is not its own gradient
}

TEST_CASE("Gradients with respect to tuples and containers") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine.run("f(t) = t[1]^2 * sum(t[2]) * t[3]\ng(a, rows) = a[1] * a[2] * sum(map(sum, rows))").value();
  using Parameters = std::tuple<double, std::vector<double>, int>;
  auto f = engine.function<double(const Parameters&)>("f", slope::Dispatch::allowed).value();
  Parameters d;
  CHECK(f.value_and_gradient({3.0, {1.0, 2.0}, 2}, d).value() == 54.0);
  CHECK(d == Parameters{36.0, {18.0, 18.0}, 0});

  using Pair = std::array<double, 2>;
  using Rows = std::vector<std::vector<double>>;
  auto g = engine.function<double(const Pair&, const Rows&)>("g", slope::Dispatch::allowed).value();
  Pair a{};
  Rows rows;
  CHECK(g.value_and_gradient({2.0, 3.0}, {{1.0, 2.0}, {4.0}}, a, rows).value() == 42.0);
  CHECK(a == Pair{21.0, 14.0});
  CHECK(rows == Rows{{6.0, 6.0}, {6.0}});
}

TEST_CASE("Gradients with respect to maps, variants and options have the form of the argument") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(slope::Options{.tier = tier});
  engine
      .run(
          "score(m, t) = sum(m[\"w\"]) * t + m[\"b\"][1]^2\n"
          "any(x, y) = x isa Float64 ? x^2 * y : x isa Vector ? sum(x) * y : y")
      .value();
  using Map = std::map<std::string, std::vector<double>>;
  auto score = engine.function<double(const Map&, double)>("score", slope::Dispatch::allowed).value();
  const Map m = {{"w", {1, 2}}, {"b", {3}}, {"unused", {1, 1}}};
  Map g = {{"old", {1}}};
  double gt = 0;
  CHECK(score.value_and_gradient(m, 2.0, g, gt).value() == 15);
  CHECK(g == Map{{"w", {2, 2}}, {"b", {6}}, {"unused", {0, 0}}});
  CHECK(gt == 3);

  using Cell = std::variant<std::monostate, double, std::vector<double>, std::string>;
  auto any = engine.function<double(const Cell&, double)>("any", slope::Dispatch::allowed).value();
  Cell d;
  CHECK(any.value_and_gradient(3.0, 2.0, d, gt).value() == 18);
  CHECK(d == Cell(12.0));
  CHECK(gt == 9);
  CHECK(any.value_and_gradient(std::vector<double>{1, 2}, 2.0, d, gt).value() == 6);
  CHECK(d == Cell(std::vector<double>{2, 2}));
  CHECK(any.value_and_gradient(std::string("s"), 2.0, d, gt).value() == 2);
  CHECK(d == Cell(std::string()));
  CHECK(any.value_and_gradient(std::monostate(), 2.0, d, nullptr).value() == 2);
  CHECK(d == Cell());
}

TEST_CASE("Gradients with respect to dictionaries and complex numbers inside structures") {
  Engine engine(slope::Options{.tier = GENERATE(Tier::interpret, Tier::compile)});
  engine.run(slope::definition<Coefficients>() + "f(c) = c.named[\"a\"] * c.named[\"b\"] * c.scale + abs2(c.wave)")
      .value();
  auto f = engine.function<double(const Coefficients&)>("f", slope::Dispatch::allowed).value();
  Coefficients g;
  CHECK(f.value_and_gradient({{{"a", 2}, {"b", 3}, {"c", 4}}, 0.5, {3, 4}}, g).value() == 28);
  CHECK(g.named == std::map<std::string, double>{{"a", 1.5}, {"b", 1}, {"c", 0}});
  CHECK(g.scale == 6);
  CHECK(g.wave == std::complex<double>(6, 8));
}
