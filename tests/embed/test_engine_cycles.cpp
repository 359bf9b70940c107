// Engines are destroyed completely. A leak checker looks at this program's end where there is one (the dev preset, or
// the release build with liblsan.so preloaded); the memory of the process is looked at here. SLOPE_ENGINE_CYCLES=10000
// makes as many engines instead of a few.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "slope/array.hpp"
#include "slope/engine.hpp"

namespace {

std::size_t resident_bytes() {
  std::ifstream statistics("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  statistics >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Something of everything that an engine can own; machine code too.
double use(bool compile) {
  slope::Options options;
  options.tier = compile ? slope::Tier::compile : slope::Tier::interpret;
  options.heap_limit = std::size_t{64} << 20;
  options.output = [](std::string_view) {};
  slope::Engine engine(options);
  std::vector<double> memory = {1, 2, 3, 4};
  bool released = false;
  double sum = 0;
  {
    engine.define("triple", [](double x) { return 3 * x; }).derivative([](double) { return 3.0; }).pure().value();
    engine
        .run(
            "struct P\n    x::Float64\nend\nloss(w) = sum(triple(x)^2 for x in w)\nkept = Dict(1 => [P(2.0)])\n"
            "println(\"text\")\ntry\n    error(\"caught\")\ncatch\nend")
        .value();
    slope::Value p = engine.run("P(1.5)").value();
    sum += p.field("x").value().to<double>().value();
    engine
        .set(
            "m",
            engine.adopt(slope::ArrayView<double, 2>(memory.data(), {2, 2}), [&](double*) { released = true; }).value())
        .value();
    sum += engine.eval<double>("sum(m)").value();
    sum += engine.run("error(\"told\")").ok();
    if (compile) {
      auto loss = engine.function<double(std::span<const double>)>("loss").value();
      auto workspace = loss.workspace().value();
      std::vector<double> g(4);
      sum += loss.value_and_gradient(memory, g).value() + loss.value_and_gradient(workspace, memory, g).value();
    }
  }
  { slope::Engine gone(std::move(engine)); }
  return released ? sum : -1;
}

}  // namespace

TEST_CASE("Engines that are made and destroyed leave nothing behind") {
  const char* wanted = std::getenv("SLOPE_ENGINE_CYCLES");
  const int cycles = wanted ? std::atoi(wanted) : 24;
  // Every tenth compiles: that takes ten times as long.
  auto cycle = [](int i) {
    const double expected = i % 10 == 0 ? 1.5 + 10 + 2 * 9 * 30 : 11.5;
    if (use(i % 10 == 0) != expected) FAIL("a wrong answer in cycle " << i);
  };
  for (int i = 0; i < 11; ++i) cycle(i);
  const std::size_t before = resident_bytes();
  for (int i = 0; i < cycles; ++i) cycle(i);
  const std::size_t after = resident_bytes();
  // malloc keeps some; an engine that leaks has 2 MB.
  const std::size_t grown = after > before ? after - before : 0;
  INFO("grown by " << grown << " bytes in " << cycles << " cycles");
  CHECK(grown < (std::size_t{24} << 20));
}
