// One compiled function on several threads, each with a workspace.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "slope/engine.hpp"

using slope::Engine;
using slope::ErrorKind;
using slope::Options;
using slope::Tier;

namespace {

const char* const model = R"(
const table = [sin(i) for i in 1:64]
struct Step
    x::Float64
    v::Float64
end
function loss(w, scale)
    s = 0.0
    kept = zeros(length(w))
    for i in eachindex(w)
        kept[i] = table[i % 64 + 1] * w[i]
        s += scale * tanh(kept[i])^2
    end
    state = Step(s, 1.0)
    for k in 1:20
        state = Step(state.x + 0.01 * state.v, state.v - 0.01 * state.x * w[1])
    end
    state.x + sum(map(x -> x^2, kept)) + sum(abs2, w .* kept)
end
polynomial(x) = x^3 - 2x
first_of(w, i) = w[i]
counter = Ref(0)
const buffer = zeros(3)
writes(w) = (buffer[1] = w[1]; sum(w))
prints(x) = (println(x); x)
draws(x) = x + rand()
spin(x) = (while x > 0; x += 1; end; x)
)";

}  // namespace

TEST_CASE("Eight threads with a workspace each compute what one computes") {
  Engine engine(Options{.tier = Tier::compile});
  engine.run(model).value();
  auto loss = engine.function<double(std::span<const double>, double)>("loss").value();
  constexpr int threads = 8, rounds = 200;
  constexpr std::size_t n = 50;
  auto input = [](int k) {
    std::vector<double> w(n);
    for (std::size_t i = 0; i < n; ++i) w[i] = 0.1 * std::sin(static_cast<double>(k + 1) * static_cast<double>(i));
    return w;
  };
  std::vector<double> values(threads), scales(threads);
  std::vector<std::vector<double>> gradients(threads, std::vector<double>(n));
  for (int k = 0; k < threads; ++k)
    values[k] = loss.value_and_gradient(input(k), 0.5 + k, gradients[k], scales[k]).value();

  std::atomic<int> wrong = 0;
  std::vector<slope::Workspace> workspaces;
  for (int k = 0; k < threads; ++k) workspaces.push_back(loss.workspace().value());
  std::vector<std::thread> running;
  for (int k = 0; k < threads; ++k) {
    running.emplace_back([&, k] {
      const std::vector<double> w = input(k);
      std::vector<double> g(n);
      double scale = 0;
      for (int i = 0; i < rounds; ++i) {
        auto value = loss(workspaces[k], w, 0.5 + k);
        auto both = loss.value_and_gradient(workspaces[k], w, 0.5 + k, g, scale);
        if (!value.ok() || !both.ok() || value.value() != values[k] || both.value() != values[k] || g != gradients[k] ||
            scale != scales[k])
          ++wrong;
      }
    });
  }
  for (auto& thread : running) thread.join();
  CHECK(wrong == 0);
  CHECK(engine.eval<int>("1 + 1").value() == 2);
  engine.collect_garbage();
  CHECK(loss(workspaces[0], input(0), 0.5).value() == values[0]);
}

TEST_CASE("A gradient may be asked of workspaces first, on their threads") {
  Engine engine;
  engine.run(model).value();
  auto loss = engine.function<double(std::span<const double>, double)>("loss").value();
  const std::vector<double> w{0.5, -1.0, 2.0};
  std::vector<std::vector<double>> gradients(4, std::vector<double>(3));
  std::vector<std::thread> running;
  std::atomic<int> wrong = 0;
  for (auto& g : gradients)
    running.emplace_back([&loss, &w, &g, &wrong, workspace = loss.workspace().value()]() mutable {
      if (!loss.value_and_gradient(workspace, w, 1.0, g, nullptr).ok()) ++wrong;
    });
  for (auto& thread : running) thread.join();
  CHECK(wrong == 0);
  std::vector<double> g(3);
  loss.value_and_gradient(w, 1.0, g, nullptr).value();
  for (const auto& other : gradients) CHECK(other == g);
}

TEST_CASE("Errors on several threads stay apart") {
  Engine engine(Options{.tier = Tier::compile, .fuel = 100'000});
  engine.run(model, "model.slope").value();
  auto first = engine.function<double(std::span<const double>, std::int64_t)>("first_of").value();
  auto spin = engine.function<double(double)>("spin").value();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> running;
  for (int k = 0; k < 4; ++k) {
    running.emplace_back([&, k, one = first.workspace().value(), two = spin.workspace().value()]() mutable {
      const std::vector<double> w(static_cast<std::size_t>(k + 1), 1.0);
      for (int i = 0; i < 50; ++i) {
        auto failed = first(one, w, 10 + k);
        if (failed.ok() || failed.error().type != "BoundsError" || failed.error().position.line == 0 ||
            failed.error().summary.find("[" + std::to_string(10 + k) + "]") == std::string::npos)
          ++wrong;
        if (first(one, w, 1).value_or(0) != 1.0) ++wrong;
        auto stopped = spin(two, 1.0);
        if (stopped.ok() || stopped.error().kind != ErrorKind::limit) ++wrong;
      }
    });
  }
  for (auto& thread : running) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("What reaches outside its arguments has no workspace, and the refusal says where") {
  Engine engine;
  engine.run(model, "model.slope").value();
  auto writes = engine.function<double(std::span<const double>)>("writes").value();
  CHECK(writes.workspace().error().kind == ErrorKind::not_native);
  CHECK(writes.workspace().error().position.file == "model.slope");
  for (const char* name : {"prints", "draws"}) {
    CAPTURE(name);
    auto f = engine.function<double(double)>(name, slope::Dispatch::allowed).value();
    CHECK_FALSE(f.workspace().ok());
  }
  engine.define("effectful", [](double x) { return x; }).value();
  engine.define("plain", [](double x) { return x + 1; }).pure().derivative([](double) { return 1.0; }).value();
  engine.run("a(x) = effectful(x)\nb(x) = plain(x)^2").value();
  CHECK_FALSE(engine.function<double(double)>("a").value().workspace().ok());
  auto b = engine.function<double(double)>("b").value();
  auto workspace = b.workspace().value();
  CHECK(b(workspace, 2.0).value() == 9.0);
  double dx = 0;
  CHECK(b.value_and_gradient(workspace, 2.0, dx).value() == 9.0);
  CHECK(dx == 6.0);
}

TEST_CASE("Rules that keep something between calls are refused in gradients with a workspace, and say where") {
  Engine engine(Options{.tier = Tier::compile});
  engine
      .run(R"(
const shared = zeros(4)
squares(x::Vector{Float64}) = sum(abs2, x)
rrule(::typeof(squares), x::Vector{Float64}) = (shared .= 2 .* x; (squares(x), ȳ -> (nothing, ȳ .* shared)))
in_global(x) = squares(x) * x[1]
cubes(x::Vector{Float64}) = sum(x .^ 3)
function build_rrule(::Type{<:Tuple{typeof(cubes),Vector{Float64}}})
    kept = zeros(4)
    (f, x) -> (kept .= 3 .* x .^ 2; (cubes(x), ȳ -> (nothing, ȳ .* kept)))
end
in_builder(x) = cubes(x) * x[1]
fourths(x::Vector{Float64}) = sum(x .^ 4)
function build_rrule(::Type{<:Tuple{typeof(fourths),Vector{Float64}}})
    calls = Ref(0)
    (f, x) -> (fourths(x), ȳ -> (calls[] += 1; (nothing, 4ȳ .* x .^ 3)))
end
in_count_of_builder(x) = fourths(x) * x[1]
asked = 0
counted(x::Vector{Float64}) = sum(x)
rrule(::typeof(counted), x::Vector{Float64}) = (global asked += 1; (sum(x), ȳ -> (nothing, fill(ȳ, length(x)))))
in_counter(x) = counted(x) * x[1]
doubled(x::Vector{Float64}) = 2 * sum(x)
rrule(::typeof(doubled), x::Vector{Float64}) = (w = 2 .* one.(x); (doubled(x), ȳ -> (nothing, ȳ .* w)))
apart(x) = doubled(x) * x[1]
)")
      .value();
  const std::vector<double> x{1.0, 2.0, 0.5, 1.5};
  std::vector<double> g(4);
  for (const char* name : {"in_global", "in_builder", "in_counter", "in_count_of_builder"}) {
    INFO(name);
    auto f = engine.function<double(std::span<const double>)>(name).value();
    auto workspace = f.workspace().value();
    REQUIRE(f(workspace, x));
    auto result = f.value_and_gradient(workspace, x, g);
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == ErrorKind::not_native);
    CHECK(result.error().message.find("a rule in it writes") != std::string::npos);
    CHECK(f.value_and_gradient(x, g));  // the engine's own
  }
  auto apart = engine.function<double(std::span<const double>)>("apart").value();
  auto workspace = apart.workspace().value();
  CHECK(apart.value_and_gradient(workspace, x, g).value() == 10.0);
  CHECK(g == std::vector<double>{12.0, 2.0, 2.0, 2.0});
}

TEST_CASE("A workspace is of its function, can be interrupted, and outlives its engine dead") {
  slope::Workspace workspace;
  {
    Engine engine;
    engine.run(model).value();
    auto polynomial = engine.function<double(double)>("polynomial").value();
    auto spin = engine.function<double(double)>("spin").value();
    CHECK_FALSE(polynomial(workspace, 1.0).ok());
    workspace = spin.workspace().value();
    CHECK_FALSE(polynomial(workspace, 1.0).ok());
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      workspace.interrupt();
    });
    CHECK(spin(workspace, 1.0).error().kind == ErrorKind::interrupted);
    other.join();
    // The engine waits for it, and it for the engine is refused.
    bool was_interrupted = false;
    std::thread long_one([&] { was_interrupted = spin(workspace, 1.0).error().kind == ErrorKind::interrupted; });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      workspace.interrupt();
    });
    CHECK(engine.eval<int>("2 + 2").value() == 4);
    long_one.join();
    stopper.join();
    CHECK(was_interrupted);
    auto one = polynomial.workspace().value();
    CHECK(polynomial(one, 2.0).value() == 4.0);
    engine.run("polynomial(x) = x").value();
    CHECK(polynomial(one, 2.0).value() == 4.0);  // as the function: the definitions that it was made with
    workspace = std::move(one);
  }
}

TEST_CASE("Gradients with a workspace: every subset of arguments, other sizes, errors, overlapping memory") {
  Engine engine(Options{.tier = Tier::compile});
  engine.run("f(w, x, n, v) = (w[1]^2 * x + w[end] * v[n]) * x").value();
  using Numbers = std::span<const double>;
  auto f = engine.function<double(Numbers, double, std::int64_t, Numbers)>("f").value();
  auto workspace = f.workspace().value();
  for (const std::size_t size : {1, 3, 3, 2}) {
    std::vector<double> w(size, 1.0), v{2.0, 5.0}, gw(size, 9.0), gv(2, 9.0);
    w[0] = 3.0;
    double gx = 9.0;
    const double last = w.back(), x = 0.5;
    const double value = (9.0 * x + last * 5.0) * x;
    auto ends = [&](std::size_t i) { return (i == 0 ? 6.0 * x * x : 0.0) + (i + 1 == size ? 5.0 * x : 0.0); };
    // Once for each combination on the road that prepares, once on the one that is prepared.
    for (int time = 0; time < 2; ++time) {
      CHECK(f.value_and_gradient(workspace, w, x, 2, v, gw, gx, nullptr, gv).value() == value);
      for (std::size_t i = 0; i < size; ++i) CHECK(gw[i] == ends(i));
      CHECK(gx == 2 * 9.0 * x + last * 5.0);
      CHECK(gv == std::vector<double>{0.0, last * x});
    }
    for (int time = 0; time < 2; ++time) {
      gx = 9.0;
      gv.assign(2, 9.0);
      CHECK(f.value_and_gradient(workspace, w, x, 2, v, nullptr, gx, nullptr, nullptr).value() == value);
      CHECK(gx == 2 * 9.0 * x + last * 5.0);
      CHECK(f.value_and_gradient(workspace, w, x, 2, v, nullptr, nullptr, nullptr, gv).value() == value);
      CHECK(gv == std::vector<double>{0.0, last * x});
    }
    for (int time = 0; time < 2; ++time) {
      CHECK(f.value_and_gradient(workspace, w, x, 3, v, nullptr, gx, nullptr, nullptr).error().type == "BoundsError");
      CHECK(f.value_and_gradient(workspace, w, x, 2, v, nullptr, nullptr, nullptr, v).error().kind ==
            ErrorKind::conversion);
      CHECK(v == std::vector<double>{2.0, 5.0});
      CHECK_FALSE(f.value_and_gradient(workspace, w, x, 2, v, nullptr, nullptr, nullptr, std::span(gv).first(1)).ok());
      CHECK(f.value_and_gradient(workspace, w, x, 2, v, nullptr, gx, nullptr, nullptr).value() == value);
    }
  }
  std::vector<double> none;
  CHECK(f.value_and_gradient(workspace, none, 1.0, 1, none, none, nullptr, nullptr, nullptr).error().type ==
        "BoundsError");
}
