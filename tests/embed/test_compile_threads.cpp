// What gets hot is compiled by other threads while the script goes on: the answers are the same, whenever it is ready.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "slope/engine.hpp"

using slope::Engine;
using slope::Options;
using slope::Tier;

namespace {

const Options in_threads{.tier = Tier::automatic, .compile_threads = 1};

// Loops in functions and outside them, calls, an exception, a gradient.
const char* const script = R"(
step(x, k) = 0.5x + sin(k * x)
walk(x, n) = (for k in 1:n; x = step(x, k); end; x)
checked(x) = x > 10 ? error("too far: $x") : x
loss(v) = sum(abs2, v .- walk(0.1, 10)) + checked(v[1])^2
total = 0.0
for k in 1:20000
    global total += step(1.0 / k, k)
end
function work(turns)
    v = [0.5, 1.5, -0.5]
    for _ in 1:turns
        v = v .- 0.01 .* gradient(loss, v)[1]
    end
    v
end
)";

#if defined(__SANITIZE_ADDRESS__)
constexpr int times_gone = 6;  // each at another stage of what is compiled
#else
constexpr int times_gone = 20;
#endif

std::string answer(const Options& options, int turns) {
  Engine engine(options);
  engine.run(script, "threads.slope").value();
  const auto failed = engine.run("checked(11.0)");
  REQUIRE(!failed.ok());
  CHECK(failed.error().message.find("threads.slope:4") != std::string::npos);
  return engine.run("string(total, work(" + std::to_string(turns) + "), walk(0.3, 5000))")
      .value()
      .to<std::string>()
      .value();
}

}  // namespace

TEST_CASE("What other threads compile gives the same answers") {
  for (const int turns : {1, 40, 2000}) CHECK(answer(in_threads, turns) == answer({.tier = Tier::interpret}, turns));
}

TEST_CASE("An engine may go while its code is being compiled") {
  for (int i = 0; i < times_gone; ++i) {
    Engine engine(in_threads);
    engine.run(script).value();
    engine.run("work(" + std::to_string(600 / times_gone * i) + ")").value();
  }
}

TEST_CASE("A definition ends code that is being compiled") {
  Engine engine(in_threads);
  engine.run("f(x) = x + 1; g(n) = (s = 0; for i in 1:n; s += f(i) - i; end; s)").value();
  for (int k = 1; k <= 60; ++k) {
    engine.run("f(x) = x + " + std::to_string(k)).value();
    CHECK(engine.run("(g(300), g(300), g(2000))[3]").value().to<std::int64_t>().value() == 2000 * k);
  }
}

TEST_CASE("Engines of several threads share those that compile") {
  const std::string expected = answer({.tier = Tier::interpret}, 60);
  std::vector<std::string> found(4);
  std::vector<std::thread> threads;
  for (std::string& one : found)
    threads.emplace_back([&one] {
      for (int i = 0; i < 3; ++i) one = answer(in_threads, 60);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : found) CHECK(one == expected);
}

TEST_CASE("Code that other threads have made is entered") {
  Engine engine(in_threads);
  engine.run("@noinline both(x, i) = (x * i, x + i); h(x) = (s = 0.0; for i in 1:100; s += sum(both(x, i)); end; s)")
      .value();
  // Machine code has the pairs in registers, the interpreter on the heap.
  const auto allocated = [&] {
    const std::size_t before = engine.statistics().allocated_bytes;
    engine.run("for i in 1:100; h(1.0 * i); end").value();
    return engine.statistics().allocated_bytes - before;
  };
  const std::size_t interpreted = allocated();
  if (engine.statistics().compiled_functions == 0) return;  // no machine code in this build
  std::size_t entered = interpreted;
  const auto begin = std::chrono::steady_clock::now();
  while (entered > interpreted / 10 && std::chrono::steady_clock::now() - begin < std::chrono::minutes(2))
    entered = allocated();
  CHECK(entered <= interpreted / 10);
}

TEST_CASE("A call that was made ready compiles nothing") {
  for (const Tier tier : {Tier::automatic, Tier::compile}) {
    Engine engine(Options{.tier = tier});
    engine.run(script, "threads.slope").value();
    CHECK(engine.warm("loss", "(Vector{Float64},)").value());
    CHECK(engine.warm("gradient", "(typeof(loss), Vector{Float64})").value());
    CHECK(engine.warm("walk", "Tuple{Float64, Int}").value());
    auto loss = engine.function<double(std::vector<double>)>("loss", slope::Dispatch::allowed).value();
    const auto before = engine.statistics().compiled_functions;
    for (int i = 0; i < 200; ++i) loss({0.5, 1.5, double(i) / 200}).value();
    engine.run("for _ in 1:200; gradient(loss, [0.5, 1.5, 0.1]); walk(0.1, 3); end").value();
    // The loop of the text itself may be.
    CHECK(engine.statistics().compiled_functions <= before + 1);
    CHECK(!engine.warm("walk", "(String,)").value());
    CHECK(!engine.warm("no_such_function", "(Int,)").ok());
    CHECK(!engine.warm("walk", "(1, 2)").ok());
  }
}
