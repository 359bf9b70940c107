// How a derivative of a handle is computed is chosen once for what is asked, and kept: asking in turn for other arguments
// or directions compiles nothing again.
#include <catch2/catch.hpp>
#include <span>
#include <vector>

#include "slope/engine.hpp"

using slope::Engine;
using slope::Tier;

TEST_CASE("Derivatives asked in turn for several sets of arguments are made once each") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  Engine engine(slope::Options{.tier = tier});
  engine.run("energy(a, w) = a^2 * sum(w .^ 2)").value();
  auto energy = engine.function<double(double, std::span<const double>)>("energy").value();
  const std::vector<double> w{1.0, 2.0};
  const auto ask = [&] {
    double da = 0;
    std::vector<double> dw(2), hw(2);
    CHECK(energy.value_and_gradient(3.0, w, da, dw).value() == 45.0);
    CHECK(da == 30.0);
    CHECK(dw == std::vector<double>{18.0, 36.0});
    da = 0;
    CHECK(energy.value_and_gradient(3.0, w, da, nullptr).value() == 45.0);
    CHECK(da == 30.0);
    dw = {0, 0};
    CHECK(energy.value_and_gradient(3.0, w, nullptr, dw).value() == 45.0);
    CHECK(dw == std::vector<double>{18.0, 36.0});
    CHECK(energy.jvp(3.0, w, 1.0, nullptr).value().tangent == 30.0);
    CHECK(energy.jvp(3.0, w, nullptr, w).value().tangent == 90.0);
    energy.hvp(3.0, w, 1.0, nullptr, da, hw).value();
    CHECK(da == 10.0);
    CHECK(hw == std::vector<double>{12.0, 24.0});
    energy.hvp(3.0, w, nullptr, w, da, nullptr).value();
    CHECK(da == 60.0);
  };
  ask();
  const slope::Statistics before = engine.statistics();
  for (int i = 0; i < 5; ++i) ask();
  const slope::Statistics after = engine.statistics();
  CHECK(after.derivatives == before.derivatives);
  CHECK(after.inferred_functions == before.inferred_functions);
  CHECK(after.compiled_functions == before.compiled_functions);
  if (tier == Tier::compile) CHECK(after.compile_seconds == before.compile_seconds);
}
