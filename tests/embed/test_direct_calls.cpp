// Typed handles: what a warm call may cost, and what may not leak from one call into the next.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <new>

#include "slope/engine.hpp"

using slope::Engine;

namespace {
std::atomic<std::size_t> allocations{0};
}

// Counts what goes through operator new, in this test program. Every form that `operator delete` below may be handed
// has its own replacement: a sanitizer, which replaces the rest, would otherwise see memory of its own freed by these.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* memory = operator new(bytes, std::nothrow)) return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace {

template <class F>
std::size_t allocations_of(const F& f) {
  std::size_t before = allocations.load();
  f();
  return allocations.load() - before;
}

const char* const model = R"(
function loss(w, scale)
    s = 0.0
    for i in eachindex(w)
        s += scale * (w[i] - i)^2
    end
    s
end
polynomial(x) = x^3 - 2x
const kept = Any[]
keep(w) = (push!(kept, w); sum(w))
function guarded(w, i)
    try
        w[i]
    catch e
        push!(kept, e)
        -1.0
    end
end
)";

}  // namespace

TEST_CASE("Warm calls and gradients allocate nothing") {
  Engine engine;
  engine.run(model).value();
  auto polynomial = engine.function<double(double)>("polynomial").value();
  auto loss = engine.function<double(std::span<const double>, double)>("loss").value();
  std::vector<double> w{1.0, 3.0, 5.0}, g(3);
  double dx = 0, dscale = 0, total = 0;
  auto once = [&] {
    total += polynomial(2.0).value() + polynomial.value_and_gradient(3.0, dx).value();
    total += loss(w, 0.5).value() + loss.value_and_gradient(w, 2.0, g, dscale).value();
  };
  once();
  CHECK(dx == 25.0);
  CHECK(g == std::vector<double>{0.0, 4.0, 8.0});
  CHECK(dscale == 5.0);
  once();
  auto workspace = loss.workspace().value();
  auto in_workspace = [&] { total += loss.value_and_gradient(workspace, w, 2.0, g, dscale).value(); };
  in_workspace();
  const std::size_t heap_before = engine.statistics().allocated_bytes;
  CHECK(allocations_of([&] {
          for (int i = 0; i < 100; ++i) once(), in_workspace();
        }) == 0);
  CHECK(engine.statistics().allocated_bytes == heap_before);
}

TEST_CASE("An array that a script wants to keep is never the array of a later call") {
  Engine engine;
  engine.run(model).value();
  auto keep = engine.function<double(std::span<const double>)>("keep", slope::Dispatch::allowed).value();
  std::vector<double> first{1.0, 2.0}, second{10.0, 20.0, 30.0};
  CHECK(keep(first).error().type == "ArgumentError");
  CHECK(keep(second).error().type == "ArgumentError");
  CHECK(engine.eval<bool>("!any(i -> isassigned(kept, i), eachindex(kept))").value());
  engine.run("last = nothing\nfunction keep_global(w)\n    global last = w\n    sum(w)\nend").value();
  auto keep_global = engine.function<double(std::span<const double>)>("keep_global", slope::Dispatch::allowed).value();
  CHECK(keep_global(first).error().position.line == 3);
  CHECK(engine.eval<bool>("last === nothing").value());
}

TEST_CASE("An exception that a script keeps does not keep the memory of the call") {
  Engine engine;
  engine.run(model).value();
  auto guarded =
      engine.function<double(std::span<const double>, std::int64_t)>("guarded", slope::Dispatch::allowed).value();
  std::vector<double> w{1.0, 2.0};
  CHECK(guarded(w, 2).value() == 2.0);
  CHECK(guarded(w, 7).error().message.find("cannot be kept") != std::string::npos);
  CHECK(engine.eval<bool>("!any(i -> isassigned(kept, i), eachindex(kept))").value());
}

TEST_CASE("A handle may be called while it runs") {
  Engine engine;
  slope::Function<double(std::span<const double>, double)>* handle = nullptr;
  const std::vector<double> inner{5.0, 6.0};
  engine.define("again", [&](double depth) { return (*handle)(std::span<const double>(inner), depth).value(); })
      .value();
  engine.run("outer(w, depth) = depth > 0 ? again(depth - 1) + w[1] : w[2]").value();
  auto outer = engine.function<double(std::span<const double>, double)>("outer").value();
  handle = &outer;
  const std::vector<double> w{1.0, 2.0};
  CHECK(outer(w, 0).value() == 2.0);
  CHECK(outer(w, 1).value() == 7.0);   // 1 + 6
  CHECK(outer(w, 3).value() == 17.0);  // 1 + 5 + 5 + 6
}

TEST_CASE("Results keep their types, and handles follow redefinitions") {
  Engine engine;
  engine.run("flip(b) = !b\nnext(i) = i + 1\nhalf(i) = i / 2\nwhole(x) = round(Int, x)\nnothing_much(x) = nothing")
      .value();
  CHECK(engine.function<bool(bool)>("flip").value()(true).value() == false);
  CHECK(engine.function<bool(bool)>("flip").value()(false).value() == true);
  CHECK(engine.function<std::int64_t(std::int64_t)>("next").value()(-5).value() == -4);
  CHECK(engine.function<int(int)>("next").value()(7).value() == 8);
  CHECK(engine.function<double(std::int64_t)>("half").value()(7).value() == 3.5);
  CHECK(engine.function<double(double)>("whole").value()(2.6).value() == 3.0);  // an Int64, converted
  CHECK(engine.function<void(double)>("nothing_much").value()(1).ok());
  CHECK_FALSE(engine.function<std::int8_t(std::int64_t)>("next").value()(127).ok());
  auto next = engine.function<std::int64_t(std::int64_t)>("next").value();
  CHECK(next(1).value() == 2);
  engine.run("next(i) = 10i").value();
  next.refresh().value();
  CHECK(next(1).value() == 10);
  engine.run("next(i) = error(\"no $i\")").value();
  next.refresh().value();
  CHECK(next(3).error().summary == "no 3");
  engine.run("next = 3").ok();
  CHECK(next(3).error().summary == "no 3");
}

TEST_CASE("A typed handle of what is not native is refused, with the position") {
  Engine engine;
  engine
      .run(
          "factor = 2.0\nfunction scaled(x)\n    y = x + 1\n    y * factor\nend\n"
          "total(w) = sum(Any[w[1], w[2]])\n"
          "checked(x) = x > 0 ? sqrt(x) : error(\"expected a positive number, found $x\")",
          "model.slope")
      .value();
  auto scaled = engine.function<double(double)>("scaled");
  REQUIRE_FALSE(scaled.ok());
  CHECK(scaled.error().kind == slope::ErrorKind::not_native);
  CHECK(scaled.error().position.file == "model.slope");
  CHECK(scaled.error().position.line == 4);
  CHECK(scaled.error().message.find("the call of `*` is dispatched when it runs: the types of its arguments are "
                                    "(Float64, Any)") != std::string::npos);
  auto slower = engine.function<double(double)>("scaled", slope::Dispatch::allowed).value();
  CHECK(slower(2.0).value() == 6.0);

  auto total = engine.function<double(std::span<const double>)>("total");
  REQUIRE_FALSE(total.ok());
  CHECK(total.error().position.line == 6);  // of the script, though the call stands in the library

  auto checked = engine.function<double(double)>("checked").value();  // what only leads to an error does not count
  CHECK(checked(4.0).value() == 2.0);
  CHECK(checked(-1.0).error().summary == "expected a positive number, found -1.0");

  Engine interpreting(slope::Options{.tier = slope::Tier::interpret});
  interpreting.run("factor = 2.0\nscaled(x) = x * factor").value();
  CHECK(interpreting.function<double(double)>("scaled").value()(2.0).value() == 4.0);
}

TEST_CASE("Errors say where they stand") {
  Engine engine;
  engine.run("first(w) = w[7]\nfunction stored(w)\n    store[1] = w[1]\nend\nconst store = [0.0]", "e.slope").value();
  auto first = engine.function<double(std::span<const double>)>("first").value();
  const std::vector<double> w{1.0};
  std::vector<double> g(1);
  auto outside = first(w);
  REQUIRE_FALSE(outside.ok());
  CHECK(outside.error().kind == slope::ErrorKind::runtime);
  CHECK(outside.error().position.file == "e.slope");
  CHECK(outside.error().position.line == 1);
  auto stored = engine.function<double(std::span<const double>)>("stored").value();
  auto refused = stored.value_and_gradient(w, g);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == slope::ErrorKind::not_differentiable);
  CHECK(refused.error().position.line == 3);
  auto wrong = engine.run("x = (1", "s.slope");
  CHECK(wrong.error().position.file == "s.slope");
}
