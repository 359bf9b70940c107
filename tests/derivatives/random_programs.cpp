// Gradients of random programs against central differences, the same programs on every run. A failure prints the
// program.
#include <catch2/catch.hpp>

#include "slope/engine.hpp"
#include "tests/derivatives/program.hpp"

namespace {

void check_programs(slope::Tier tier, std::uint64_t first, std::uint64_t last) {
  std::string out;
  slope::Options options;
  options.tier = tier;
  options.output = [&](std::string_view text) { out += text; };
  options.error_output = options.output;
  slope::Engine engine(options);
  REQUIRE(engine.run(slope::test::program_prelude()));
  for (std::uint64_t seed = first; seed < last; ++seed) {
    std::string program = slope::test::random_program(seed);
    INFO(program);
    out.clear();
    bool ran = static_cast<bool>(engine.run(program + slope::test::program_check(seed)));
    CHECK(ran);
    CHECK(out == "");
  }
}

}  // namespace

TEST_CASE("Gradients of random programs agree with central differences") {
  check_programs(slope::Tier::interpret, 1, 51);
}

TEST_CASE("Gradients of random programs agree with central differences in machine code") {
  check_programs(slope::Tier::automatic, 200, 204);
}
