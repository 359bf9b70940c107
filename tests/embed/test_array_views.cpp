// Arrays of several dimensions over the host's memory.
#include "slope/array.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "slope/engine.hpp"

using slope::ArrayView;
using slope::Engine;
using slope::Layout;
using slope::Tier;

namespace {

slope::Options in_tier(Tier tier) {
  slope::Options options;
  options.tier = tier;
  return options;
}

std::vector<double> counting(std::size_t n) {
  std::vector<double> v(n);
  std::iota(v.begin(), v.end(), 1.0);
  return v;
}

}  // namespace

TEST_CASE("Views of every layout are the same array to a script") {
  Engine engine(in_tier(GENERATE(Tier::interpret, Tier::compile)));
  engine
      .run(
          "f(a) = sum(a[i, j] * (10i + j) for i in 1:size(a, 1), j in 1:size(a, 2)) + 1000size(a, 1)\n"
          "g(a) = sum(a[i, j, k] * (100i + 10j + k) for i in 1:size(a, 1), j in 1:size(a, 2), k in 1:size(a, 3))")
      .value();
  // 2×3: a[i, j] = 10i + j
  const std::vector<double> columns = {11, 21, 12, 22, 13, 23}, rows = {11, 12, 13, 21, 22, 23};
  const std::vector<double> gaps = {11, 21, -1, -1, 12, 22, -1, -1, 13, 23};
  const double wanted = 11 * 11 + 12 * 12 + 13 * 13 + 21 * 21 + 22 * 22 + 23 * 23 + 2000;
  auto c = engine.function<double(ArrayView<const double, 2>)>("f").value();
  auto r = engine.function<double(ArrayView<const double, 2, Layout::row_major>)>("f").value();
  auto s = engine.function<double(ArrayView<const double, 2, Layout::strided>)>("f").value();
  CHECK(c({columns.data(), {2, 3}}).value() == wanted);
  CHECK(r({rows.data(), {2, 3}}).value() == wanted);
  CHECK(s({gaps.data(), {2, 3}, {1, 4}}).value() == wanted);
  CHECK(s({columns.data(), {2, 3}}).value() == wanted);
  CHECK(c({columns.data(), {0, 3}}).error().type == "ArgumentError");  // the sum of nothing

  // 2×2×3
  std::vector<double> cube(12), cube_rows(12), cube_gaps(5 * 3 * 3, -1);
  double sum = 0;
  ArrayView<double, 3> a(cube.data(), {2, 2, 3});
  ArrayView<double, 3, Layout::row_major> b(cube_rows.data(), {2, 2, 3});
  ArrayView<double, 3, Layout::strided> d(cube_gaps.data(), {2, 2, 3}, {1, 5, 15});
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int k = 0; k < 3; ++k) {
        const double x = std::sin(i + 2 * j + 4 * k);
        a(i, j, k) = b(i, j, k) = d(i, j, k) = x;
        sum += x * (100 * (i + 1) + 10 * (j + 1) + k + 1);
      }
  CHECK(engine.function<double(ArrayView<const double, 3>)>("g").value()(a).value() == Approx(sum));
  auto g_rows = engine.function<double(ArrayView<const double, 3, Layout::row_major>)>("g").value();
  CHECK(g_rows(b).value() == Approx(sum));
  std::vector<double> slopes(12);
  CHECK(g_rows.value_and_gradient(b, ArrayView<double, 3, Layout::row_major>(slopes.data(), {2, 2, 3})).value() ==
        Approx(sum));
  CHECK(slopes[0] == 111);
  CHECK(slopes[1] == 112);  // the last index runs fastest
  CHECK(slopes[11] == 223);
  // 2×1×2×2, row-major: h(a) = Σ a² · (first index)
  engine.run("h(a) = sum(a[i, j, k, l]^2 * i for i in 1:2, j in 1:1, k in 1:2, l in 1:2)").value();
  using Rows4 = ArrayView<const double, 4, Layout::row_major>;
  auto h = engine.function<double(Rows4)>("h").value();
  const std::vector<double> four = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<double> into(8);
  CHECK(h.value_and_gradient({four.data(), {2, 1, 2, 2}},
                             ArrayView<double, 4, Layout::row_major>(into.data(), {2, 1, 2, 2}))
            .value() == 30 + 2 * 174);
  CHECK(into == std::vector<double>{2, 4, 6, 8, 20, 24, 28, 32});
  CHECK(engine.function<double(ArrayView<const double, 3, Layout::strided>)>("g").value()(d).value() == Approx(sum));
}

TEST_CASE("Gradients go into the host's memory in its layout, and not into the gaps") {
  Engine engine(in_tier(GENERATE(Tier::interpret, Tier::compile)));
  engine
      .run("f(a, x) = sum((a * x) .^ 2)\ng(a) = sum(a[i, j] ^ 2 * (10i + j) for i in 1:size(a, 1), j in 1:size(a, 2))")
      .value();
  const std::vector<double> columns = {1, 2, 3, 4, 5, 6};  // 2×3
  const std::vector<double> rows = {1, 3, 5, 2, 4, 6};
  const std::vector<double> x = {1, -1, 2};
  // ∂/∂a of |a x|² is 2 (a x) xᵀ, with a x = (8, 10); ∂/∂x is 2 aᵀ(a x).
  const std::vector<double> wanted = {16, 20, -16, -20, 32, 40}, wanted_rows = {16, -16, 32, 20, -20, 40};
  const std::vector<double> wanted_x = {56, 128, 200};

  std::vector<double> g(6, 99), gx(3, 99);
  auto c = engine.function<double(ArrayView<const double, 2>, std::span<const double>)>("f").value();
  CHECK(c.value_and_gradient({columns.data(), {2, 3}}, x, ArrayView<double, 2>(g.data(), {2, 3}), gx).value() == 164);
  CHECK(g == wanted);
  CHECK(gx == wanted_x);
  std::fill(g.begin(), g.end(), 99);
  CHECK(c.value_and_gradient({columns.data(), {2, 3}}, x, ArrayView<double, 2>(g.data(), {2, 3}), nullptr).value() ==
        164);
  CHECK(g == wanted);

  using Rows = ArrayView<const double, 2, Layout::row_major>;
  auto r = engine.function<double(Rows, std::span<const double>)>("f").value();
  std::fill(g.begin(), g.end(), 99);
  CHECK(r.value_and_gradient({rows.data(), {2, 3}}, x, ArrayView<double, 2, Layout::row_major>(g.data(), {2, 3}), gx)
            .value() == 164);
  CHECK(g == wanted_rows);
  CHECK(gx == wanted_x);

  using Strided = ArrayView<const double, 2, Layout::strided>;
  auto s = engine.function<double(Strided)>("g").value();
  const std::vector<double> gaps = {1, 2, -1, 3, 4, -1, 5, 6};
  std::vector<double> into(8, 99);
  double sum = 0;
  std::vector<double> wanted_gaps = {22, 84, 99, 72, 176, 99, 130, 276};  // 2 a (10i + j)
  for (double i : {11.0 * 1, 21.0 * 4, 12.0 * 9, 22.0 * 16, 13.0 * 25, 23.0 * 36}) sum += i;
  CHECK(s.value_and_gradient({gaps.data(), {2, 3}, {1, 3}},
                             ArrayView<double, 2, Layout::strided>(into.data(), {2, 3}, {1, 3}))
            .value() == sum);
  CHECK(into == wanted_gaps);
}

TEST_CASE("Workspaces take views") {
  Engine engine(in_tier(Tier::compile));
  engine.run("f(a) = sum(a[i, j] ^ 2 * i for i in 1:size(a, 1), j in 1:size(a, 2))").value();
  using Rows = ArrayView<const double, 2, Layout::row_major>;
  auto f = engine.function<double(Rows)>("f").value();
  auto workspace = f.workspace().value();
  const std::vector<double> rows = {1, 2, 3, 4};
  std::vector<double> g(4, 99);
  CHECK(f(workspace, {rows.data(), {2, 2}}).value() == 1 + 4 + 18 + 32);
  CHECK(
      f.value_and_gradient(workspace, {rows.data(), {2, 2}}, ArrayView<double, 2, Layout::row_major>(g.data(), {2, 2}))
          .value() == 55);
  CHECK(g == std::vector<double>{2, 4, 12, 16});
}

TEST_CASE("Scripts write to memory that is lent for it, and to no other") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(in_tier(tier));
  engine.run("function scale!(a, x)\n    for i in eachindex(a)\n        a[i] *= x[1]\n    end\n    return a[1]\nend")
      .value();
  std::vector<double> memory = counting(4), x = {3};
  auto f = engine.function<double(ArrayView<double, 2>, std::span<const double>)>("scale!").value();
  CHECK(f({memory.data(), {2, 2}}, x).value() == 3.0);
  CHECK(memory == std::vector<double>{3, 6, 9, 12});
  auto g = engine.function<double(std::span<double>, std::span<const double>)>("scale!").value();
  CHECK(g(memory, x).value() == 9.0);
  CHECK(memory == std::vector<double>{9, 18, 27, 36});
  const auto refused = engine.function<double(std::span<const double>, std::span<const double>)>("scale!");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == slope::ErrorKind::not_native);
  CHECK(refused.error().message.find("writes to its argument 1, which is lent to be read") != std::string::npos);
  CHECK(refused.error().position.line == 1);

  const auto overlap = g(memory, std::span<const double>(memory.data() + 3, 1));
  REQUIRE_FALSE(overlap.ok());
  CHECK(overlap.error().message == "call of `scale!`, argument 1 may be written and overlaps argument 2");
}

TEST_CASE("Places of another shape, layout or with bad strides are refused") {
  Engine engine;
  engine.run("f(a) = sum(a[i, j] ^ 2 for i in 1:size(a, 1), j in 1:size(a, 2))").value();
  std::vector<double> a = counting(12), g(12);
  auto f = engine.function<double(ArrayView<const double, 2>)>("f").value();
  auto message = [](const auto& result) { return result.ok() ? std::string() : result.error().message; };
  CHECK(message(f.value_and_gradient({a.data(), {3, 4}}, ArrayView<double, 2>(g.data(), {4, 3}))) ==
        "gradient of `f`, argument 1: the argument has 3×4 elements, the memory for its gradient 4×3");
  CHECK(message(f.value_and_gradient({a.data(), {3, 4}}, std::span<double>(g))).find("3×4 elements") !=
        std::string::npos);
  CHECK(message(f.value_and_gradient({a.data(), {3, 4}}, ArrayView<double, 2, Layout::row_major>(g.data(), {3, 4}))) ==
        "gradient of `f`, argument 1: the memory for its gradient has another layout or other strides than the "
        "argument");
  CHECK(message(f.value_and_gradient({a.data(), {3, 4}}, ArrayView<double, 2>(a.data(), {3, 4}))) ==
        "gradient of `f`, argument 1: the memory for the gradient overlaps an argument");
  auto s = engine.function<double(ArrayView<const double, 2, Layout::strided>)>("f").value();
  CHECK(message(s({a.data(), {3, 2}, {2, 4}})) == "call of `f`, argument 1: the first stride is 1; found 2");
  CHECK(message(s({a.data(), {3, 2}, {1, 2}})) ==
        "call of `f`, argument 1: stride 2: expected a multiple of 1, at least 3; found 2");
}

TEST_CASE("Views cross by value too") {
  Engine engine;
  const std::vector<double> rows = {1, 2, 3, 4, 5, 6};
  engine.set("m", ArrayView<const double, 2, Layout::row_major>(rows.data(), {2, 3})).value();
  CHECK(engine.eval<std::string>("repr(m)").value() == "[1.0 2.0 3.0; 4.0 5.0 6.0]");
  auto view = engine.eval<ArrayView<const double, 2>>("m").value();
  CHECK(view.extent(0) == 2);
  CHECK(view.extent(1) == 3);
  CHECK(view(1, 2) == 6);
  CHECK(engine.eval<ArrayView<const double, 2>>("[1, 2]").error().message.find("expected a matrix of real numbers") !=
        std::string::npos);
  engine.define("corner", [](ArrayView<const double, 2> a) { return a(a.extent(0) - 1, a.extent(1) - 1); }).value();
  CHECK(engine.eval<double>("corner(m')").value() == 6.0);
  std::vector<double> held = {1, 2, 3, 4};
  engine.define("square", [&] { return ArrayView<const double, 2>(held.data(), {2, 2}); }).value();
  CHECK(engine.eval<std::string>("repr(square() * 2)").value() == "[2.0 6.0; 4.0 8.0]");
}

namespace {

// In a frame of its own: what it leaves on the stack is overwritten, so that the collector finds nothing there.
template <class Release>
[[gnu::noinline]] void give_away(Engine& engine, const char* name, std::vector<double>& memory, Release release) {
  engine.set(name, engine.adopt(memory, std::move(release)).value()).value();
}

}  // namespace

TEST_CASE("Memory that is given away is released once, after its last use") {
  std::vector<int> released(3);
  std::vector<double> a = counting(6), b = counting(4), c = counting(2);
  {
    Engine engine;
    slope::Value m = engine
                         .adopt(ArrayView<double, 2>(a.data(), {2, 3}),
                                [&](double* p) {
                                  CHECK(p == a.data());
                                  ++released[0];
                                })
                         .value();
    engine.set("m", m).value();
    m = slope::Value();
    CHECK(engine.eval<double>("m[2, 3] += 1; sum(m)").value() == 22);
    CHECK(a[5] == 7);
    engine.run("v = vec(m)\nm = nothing").value();  // shares the memory
    engine.collect_garbage();
    CHECK(released[0] == 0);
    CHECK(engine.eval<double>("v[6]").value() == 7);
    for (const char* change : {"push!(v, 1.0)", "pop!(v)", "pushfirst!(v, 1.0)", "popfirst!(v)", "deleteat!(v, 1)"})
      CHECK_FALSE(engine.run(change).ok());
    CHECK(engine.eval<double>("sum(v)").value() == 22);

    give_away(engine, "b", b, [&](double*) {
      ++released[1];
      CHECK(engine.eval<int>("1 + 1").value() == 2);  // a release may use the engine
      throw std::runtime_error("a release threw");
    });
    engine.run("b = nothing; v = nothing; [i for i in 1:100]; sqrt(2.0)").value();
    for (int i = 0; i < 5 && (released[0] == 0 || released[1] == 0); ++i) {
      engine.run("x = zeros(1000); sum(x); deep(n) = n == 0 ? 0 : 1 + deep(n - 1); deep(100)").value();
      engine.collect_garbage();
    }
#ifdef NDEBUG
    // Without optimisation dead values stay in this function's frame, which the collector has to respect.
    CHECK(released == std::vector<int>{1, 1, 0});
#endif
    engine
        .set("c", engine
                      .adopt(c,
                             [&](double*) {
                               ++released[2];
                               CHECK(engine.eval<int>("1 + 1").value() == 2);  // also at its end
                             })
                      .value())
        .value();
  }
  CHECK(released == std::vector<int>{1, 1, 1});
}

TEST_CASE("Arrays that share a lent array's memory end with the loan too") {
  Engine engine(in_tier(GENERATE(Tier::interpret, Tier::compile)));
  engine
      .run(
          "kept = nothing\nfunction f(a)\n    c = Any[vec(a)]\n    push!(c, reshape(c[1], 1, 4))\n    global kept = c\n"
          "    return a[1]\nend\n"
          "g(a) = sum(vec(a) .* reshape(vec(a), 4))")
      .value();
  auto memory = std::make_unique<std::vector<double>>(counting(4));
  auto f = engine.function<double(ArrayView<const double, 2>)>("f", slope::Dispatch::allowed).value();
  CHECK(f({memory->data(), {2, 2}}).error().message.find("`f` keeps an array that is lent for the call alone") == 0);
  memory.reset();
  // What it kept all the same shows no memory of the host.
  CHECK(engine.eval<bool>("all(isnan, kept[1]) && all(isnan, kept[2]) && size(kept[2]) == (1, 4)").value());
  const std::vector<double> more = counting(4);
  auto g = engine.function<double(ArrayView<const double, 2>)>("g").value();
  std::vector<double> into(4);
  for (int i = 0; i < 3; ++i) {
    CHECK(g({more.data(), {2, 2}}).value() == 30);
    CHECK(g.value_and_gradient({more.data(), {2, 2}}, ArrayView<double, 2>(into.data(), {2, 2})).value() == 30);
    CHECK(into == std::vector<double>{2, 4, 6, 8});
    engine.collect_garbage();
  }
}
