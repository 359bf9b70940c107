// Samples of running scripts, in both tiers.
#include "slope/profile.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <set>

using slope::Engine;
using slope::Tier;

namespace {

// Two functions of which one takes four times the other's time, and what calls them.
constexpr const char* program = R"(@noinline function small(n)
    s = 0.0
    for i in 1:n
        s += sin(i * 0.5) / (1 + s * s)
    end
    return s
end
@noinline function large(n)
    s = 0.0
    for i in 1:4n
        s += sin(i * 0.5) / (1 + s * s)
    end
    return s
end
function both(n, turns)
    s = 0.0
    for i in 1:turns
        s += small(n)
        s += large(n)
    end
    return s
end
)";

using slope::api::Profile;
using slope::api::ProfileStack;

struct Shares {
  double small = 0, large = 0, both = 0;  // shares of the samples in which the function stands
  double small_line = 0;                  // of small's samples, those at its loop's line
  bool below_both = true;                 // small and large stand behind both, which is not called by them
  std::set<bool> compiled;
};

[[maybe_unused]] Shares shares(const Profile& profile) {
  Shares found;
  std::uint64_t small = 0, large = 0, both = 0, line = 0;
  for (const ProfileStack& stack : profile.stacks) {
    std::ptrdiff_t at_both = -1, at_leaf = -1;
    const slope::api::ProfileFrame* leaf = nullptr;
    for (std::size_t i = 0; i < stack.frames.size(); ++i) {
      const auto& frame = profile.frames[stack.frames[i]];
      if (frame.function == "both") at_both = static_cast<std::ptrdiff_t>(i);
      if (frame.function == "small" || frame.function == "large") {
        at_leaf = static_cast<std::ptrdiff_t>(i);
        leaf = &frame;
      }
    }
    if (at_both >= 0) both += stack.samples;
    if (!leaf) continue;
    if (at_both < 0 || at_both > at_leaf) found.below_both = false;
    found.compiled.insert(leaf->compiled);
    CHECK(leaf->file == "<text>");
    CHECK_FALSE(leaf->library);
    if (leaf->function == "small") {
      small += stack.samples;
      if (leaf->line == 3 || leaf->line == 4) line += stack.samples;
    } else {
      large += stack.samples;
    }
  }
  const auto all = static_cast<double>(profile.samples);
  found.small = static_cast<double>(small) / all;
  found.large = static_cast<double>(large) / all;
  found.both = static_cast<double>(both) / all;
  found.small_line = small ? static_cast<double>(line) / static_cast<double>(small) : 0;
  return found;
}

}  // namespace

#ifndef __SANITIZE_THREAD__  // which delivers signals late: too few samples
TEST_CASE("A profile tells functions and lines, interpreted and compiled") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  slope::Options options;
  options.tier = tier;
  options.profile = true;
  Engine engine(options);
  engine.run(program).value();
  engine.run("both(10, 1)").value();
  slope::start_profile(engine, {.interval = 0.0005}).value();
  // Until there are enough samples, however fast the machine.
  const std::string call = tier == Tier::interpret ? "both(2000, 10)" : "both(100000, 20)";
  double first = 0, sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 12 && (i < 2 || std::chrono::steady_clock::now() - start < std::chrono::seconds(1)); ++i) {
    sum = engine.eval<double>(call).value();
    if (i == 0) first = sum;
    CHECK(sum == first);
  }
  const Profile profile = slope::stop_profile(engine).value();
  REQUIRE(profile.samples >= 40);
  CHECK(profile.lost == 0);
  CHECK(profile.sequence.size() == profile.samples);
  std::uint64_t counted = 0;
  for (const ProfileStack& stack : profile.stacks) counted += stack.samples;
  CHECK(counted == profile.samples);

  const Shares found = shares(profile);
  CHECK(found.both > 0.8);
  CHECK(found.below_both);
  CHECK(found.large > 0.5);
  CHECK(found.small > 0.05);
  CHECK(found.large / found.small > 2);
  CHECK(found.large / found.small < 8);
  CHECK(found.small_line > 0.8);
  CHECK(found.compiled == std::set<bool>{tier == Tier::compile});
}
#endif

TEST_CASE("What raises, recurses and is caught leaves whole stacks") {
  slope::Options options;
  options.tier = GENERATE(Tier::interpret, Tier::compile);
  options.profile = true;
  Engine engine(options);
  engine
      .run(R"(@noinline deep(n) = n == 0 ? error("bottom") : 1 + deep(n - 1)
function tries(n)
    caught = 0
    for i in 1:n
        try
            deep(20)
        catch
            caught += 1
        end
    end
    return caught
end)")
      .value();
  slope::start_profile(engine, {.interval = 0.0002, .memory = std::size_t{8} << 20}).value();
  CHECK(engine.eval<int>("tries(3000)").value() == 3000);
  CHECK_FALSE(engine.run("deep(5)").ok());
  CHECK(engine.eval<int>("tries(300)").value() == 300);
  const Profile profile = slope::stop_profile(engine).value();
  REQUIRE(profile.samples > 0);
  std::size_t most = 0;
  for (const ProfileStack& stack : profile.stacks) {
    std::size_t deep = 0;
    for (std::uint32_t frame : stack.frames) deep += profile.frames[frame].function == "deep";
    most = std::max(most, deep);
  }
  CHECK(most > 0);
  CHECK(most <= 21);  // a frame that was left by an error does not stay
}

TEST_CASE("Profiles are refused with the reason") {
  Engine plain;
  CHECK(slope::start_profile(plain).error().message.find("Options::profile") != std::string::npos);
  CHECK(slope::stop_profile(plain).error().message == "no profile of this engine was started");
  slope::Options options;
  options.profile = true;
  Engine engine(options), other(options);
  slope::start_profile(engine).value();
  CHECK(slope::start_profile(engine).error().message == "a profile of this engine is being taken already");
  CHECK(slope::start_profile(other).error().message == "a profile is being taken on this thread already");
  CHECK(slope::stop_profile(engine).value().samples < 1000);
  CHECK_FALSE(slope::start_profile(other, {.interval = 0}).ok());
  slope::start_profile(other).value();
  other = Engine(options);  // one that is destroyed with its profile running
  slope::start_profile(engine).value();
  CHECK(slope::stop_profile(engine).ok());
}

#ifndef __SANITIZE_THREAD__  // which delivers signals late: too few samples
TEST_CASE("A loop that goes on in machine code is one activation") {
  slope::Options options;
  options.profile = true;
  Engine engine(options);
  engine.run(program).value();
  slope::start_profile(engine, {.interval = 0.0005}).value();
  double sum = 0;
  for (int i = 0; i < 5; ++i) sum += engine.eval<double>("both(20000, 50)").value();
  CHECK(sum != 0);
  const Profile profile = slope::stop_profile(engine).value();
  std::uint64_t compiled = 0;
  for (const ProfileStack& stack : profile.stacks) {
    std::size_t both = 0;
    for (std::uint32_t frame : stack.frames) {
      both += profile.frames[frame].function == "both";
      if (profile.frames[frame].compiled) compiled += stack.samples;
    }
    CHECK(both <= 1);
  }
  CHECK(compiled > 0);
}
#endif
