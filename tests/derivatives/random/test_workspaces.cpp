// Random programs (test_random.cpp) in the interface of hosts: what the engine and a workspace give, once and again, is
// what the script gives. The seeds are SLOPE_RANDOM_FIRST to that and SLOPE_RANDOM_HOSTED more.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "slope/containers.hpp"
#include "slope/engine.hpp"

using slope::Engine;

namespace {

unsigned number_from(const char* variable, unsigned otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : otherwise;
}

bool near(double x, double y) { return std::abs(x - y) <= 1e-8 * (1 + std::abs(x) + std::abs(y)); }

struct Tally {
  unsigned compared = 0;
  unsigned in_workspaces = 0;
  unsigned refused = 0;  // they need objects, or write to memory of others
};

// `found`: the value, then the gradient.
void expect(double value, const std::vector<double>& gradient, const std::vector<double>& found) {
  CHECK(near(value, found[0]));
  REQUIRE(gradient.size() + 1 == found.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    INFO("element " << i << ": " << gradient[i] << ", the script has " << found[i + 1]);
    CHECK(near(gradient[i], found[i + 1]));
  }
}

void check_hosted(Engine& engine, unsigned seed, Tally& tally) {
  INFO("program " << seed);
  auto given = engine.call("host!", static_cast<int>(seed));
  REQUIRE(given.ok());
  const auto point = given.value().to<std::vector<double>>().value();
  if (point.empty()) return;
  const auto found = engine.call("found_by_script", point).value().to<std::vector<double>>().value();
  if (found.empty()) return;
  auto loss = engine.function<double(std::span<const double>)>("loss");
  if (!loss.ok()) {
    ++tally.refused;
    return;
  }
  std::vector<double> gradient(point.size());
  for (int round = 0; round < 2; ++round) {
    auto value = loss.value().value_and_gradient(point, gradient);
    INFO((value.ok() ? std::string() : value.error().message));
    REQUIRE(value.ok());
    expect(value.value(), gradient, found);
    ++tally.compared;
  }
  auto workspace = loss.value().workspace();
  if (!workspace.ok()) {
    ++tally.refused;
    return;
  }
  for (int round = 0; round < 3; ++round) {
    auto plain = loss.value()(workspace.value(), point);
    auto value = loss.value().value_and_gradient(workspace.value(), point, gradient);
    if (!plain.ok() || !value.ok()) {
      CHECK(round == 0);
      INFO((plain.ok() ? value.error().message : plain.error().message));
      ++tally.refused;
      return;
    }
    CHECK(near(plain.value(), found[0]));
    expect(value.value(), gradient, found);
    ++tally.in_workspaces;
  }
}

}  // namespace

TEST_CASE("random programs in workspaces give what the script gives") {
  const unsigned first = number_from("SLOPE_RANDOM_FIRST", 1);
  const unsigned count = number_from("SLOPE_RANDOM_HOSTED", 6);
  Engine engine;
  engine.run_file(SLOPE_SOURCE_DIR "/tests/derivatives/random/hosted.slope").value();
  Tally tally;
  for (unsigned seed = first; seed < first + count; ++seed) check_hosted(engine, seed, tally);
  if (count > 10)
    WARN("compared " << tally.compared << ", in workspaces " << tally.in_workspaces << ", refused " << tally.refused);
  CHECK(tally.compared > 0);
  CHECK(tally.in_workspaces > 0);
}
