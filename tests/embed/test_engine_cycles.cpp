// Engines are destroyed completely. A leak checker looks at this program's end where there is one (the dev preset, or
// the release build with liblsan.so preloaded); the memory of the process is looked at here. SLOPE_ENGINE_CYCLES=10000
// makes as many engines instead of a few.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

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
#if !defined(__SANITIZE_THREAD__)  // which keeps a history of memory
  CHECK(grown < (std::size_t{24} << 20));
#endif
}

TEST_CASE("A thousand engines live at the same time, each with its own world") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int count = 100;  // their memory is several times as large
#else
  constexpr int count = 1000;
#endif
  [[maybe_unused]] const std::size_t before = resident_bytes();
  std::vector<std::unique_ptr<slope::Engine>> engines;
  std::vector<slope::Function<double(double)>> functions;
  for (int i = 0; i < count; ++i) {
    slope::Options options;
    options.tier = slope::Tier::interpret;
    engines.push_back(std::make_unique<slope::Engine>(options));
    engines.back()->run("const own = " + std::to_string(i) + "\nf(x) = own + x").value();
    functions.push_back(engines.back()->function<double(double)>("f").value());
  }
  int wrong = 0;
  for (int i = count; i-- > 0;) wrong += functions[static_cast<std::size_t>(i)](0.5).value() != i + 0.5;
  CHECK(wrong == 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // 0.5 MB each, and what the text took of the library.
  CHECK((resident_bytes() - before) / count < (std::size_t{3} << 20));
#endif
  for (int i = 0; i < count; i += 2) engines[static_cast<std::size_t>(i)].reset();
  for (int i = 0; i < count; ++i) {
    auto y = functions[static_cast<std::size_t>(i)](1.0);
    wrong += i % 2 == 0 ? y.ok() : y.value() != i + 1.0;
  }
  CHECK(wrong == 0);
}
