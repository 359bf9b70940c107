// Derivatives beside the gradient with respect to arrays of several dimensions: against central differences, in every
// layout, for functions to a number and to a vector.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "slope/engine.hpp"

using slope::ArrayView;
using slope::Engine;
using slope::Layout;
using slope::Tier;

namespace {

constexpr const char* script = R"(
energy(a, t) = sum(sin(t * a[i, j]) * a[j, i] * (2i + j) for i in 1:size(a, 1), j in 1:size(a, 2))
cube(a, t) = sum(a[i, j, k]^3 * (t + i + 2j + 4k) for i in 1:size(a, 1), j in 1:size(a, 2), k in 1:size(a, 3))
columns(a, t) = [sum(a[i, j]^2 * (i + t) for i in 1:size(a, 1)) for j in 1:size(a, 2)]
energies(a, ts...) = energy(a, ts[1])
)";

// An array with gaps of 2 after each column, and one after each matrix of them.
template <std::size_t N, Layout layout>
struct Array {
  std::array<std::size_t, N> shape, strides{};
  std::vector<double> memory;
  static constexpr double gap = 77;

  explicit Array(const std::array<std::size_t, N>& of) : shape(of) {
    if constexpr (layout == Layout::strided) {
      std::size_t step = 1;
      for (std::size_t k = 0; k < N; ++k) {
        strides[k] = step;
        step *= shape[k] + 2;
      }
      memory.assign(1 + (shape[N - 1] - 1) * strides[N - 1] + last(), gap);
    } else {
      std::size_t size = 1;
      for (std::size_t d : shape) size *= d;
      memory.assign(size, gap);
    }
  }
  ArrayView<double, N, layout> view() {
    if constexpr (layout == Layout::strided) {
      return {memory.data(), shape, strides};
    } else {
      return {memory.data(), shape};
    }
  }
  // The offsets of all elements, in the order of the memory.
  std::vector<std::size_t> offsets() const {
    std::vector<std::size_t> all;
    for (std::size_t at = 0; at < memory.size(); ++at) {
      bool inside = true;
      if constexpr (layout == Layout::strided) {
        std::size_t rest = at;
        for (std::size_t k = N; k-- > 0;) {
          inside = inside && rest / strides[k] < shape[k];
          rest %= strides[k];
        }
      }
      if (inside) all.push_back(at);
    }
    return all;
  }
  Array filled(double seed) const {
    Array made(shape);
    for (std::size_t at : offsets()) made.memory[at] = std::sin(seed + 1.7 * static_cast<double>(at));
    return made;
  }
  bool gaps_are_left() const {
    const std::vector<std::size_t> inside = offsets();
    for (std::size_t at = 0; at < memory.size(); ++at)
      if (std::find(inside.begin(), inside.end(), at) == inside.end() && memory[at] != gap) return false;
    return true;
  }

 private:
  std::size_t last() const {
    std::size_t at = 0;
    for (std::size_t k = 0; k + 1 < N; ++k) at += (shape[k] - 1) * strides[k];
    return at;
  }
};

template <class F>
double slope_of(F f) {
  const double h = 1e-5;
  return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
}

template <std::size_t N, Layout layout>
void check_derivatives(Tier tier, const char* name, const std::array<std::size_t, N>& shape) {
  Engine engine(slope::Options{.tier = tier});
  engine.run(script).value();
  using View = ArrayView<const double, N, layout>;
  auto f = engine.function<double(View, double)>(name).value();
  Array<N, layout> a = Array<N, layout>(shape).filled(0.3), v = a.filled(1.1), h(shape), g(shape), moved = a;
  const double t = 0.7, dt = -0.4;
  auto at = [&](double s, double by_t) {
    for (std::size_t i : a.offsets()) moved.memory[i] = a.memory[i] + s * v.memory[i];
    return by_t;
  };
  for (int again = 0; again < 2; ++again) {
    const auto [y, dy] = f.jvp(a.view(), t, v.view(), dt).value();
    CHECK(y == f(a.view(), t).value());
    CHECK(dy ==
          Approx(slope_of([&](double s) { return f((at(s, 0), moved.view()), t + s * dt).value(); })).epsilon(1e-8));
    CHECK(f.jvp(a.view(), t, v.view(), nullptr).value().tangent ==
          Approx(slope_of([&](double s) { return f((at(s, 0), moved.view()), t).value(); })).epsilon(1e-8));

    double ht = 99;
    f.hvp(a.view(), t, v.view(), dt, h.view(), ht).value();
    CHECK(h.gaps_are_left());
    auto slopes_at = [&](double s, std::size_t i) {
      at(s, 0);
      Array<N, layout> slopes(shape);
      double by_t = 0;
      f.value_and_gradient(moved.view(), t + s * dt, slopes.view(), by_t).value();
      return i == slopes.memory.size() ? by_t : slopes.memory[i];
    };
    for (std::size_t i : a.offsets())
      CHECK(h.memory[i] == Approx(slope_of([&](double s) { return slopes_at(s, i); })).epsilon(1e-7).margin(1e-9));
    CHECK(ht == Approx(slope_of([&](double s) { return slopes_at(s, a.memory.size()); })).epsilon(1e-7));

    f.value_and_gradient(a.view(), t, g.view(), ht).value();
    std::vector<double> row;
    CHECK(f.jacobian(a.view(), t, row, nullptr).value() == y);
    const std::vector<std::size_t> elements = a.offsets();
    REQUIRE(row.size() == elements.size());
    for (std::size_t j = 0; j < row.size(); ++j) CHECK(row[j] == Approx(g.memory[elements[j]]).margin(1e-12));

    auto back = f.pullback(a.view(), t).value();
    Array<N, layout> twice(shape);
    double by_t = 99;
    for (int run = 0; run < 2; ++run) {
      back(2.0, twice.view(), by_t).value();
      CHECK(twice.gaps_are_left());
      for (std::size_t i : elements) CHECK(twice.memory[i] == Approx(2 * g.memory[i]).margin(1e-12));
      CHECK(by_t == Approx(2 * ht));
    }
  }
}

template <Layout layout>
void check_vector_valued(Tier tier) {
  Engine engine(slope::Options{.tier = tier});
  engine.run(script).value();
  using View = ArrayView<const double, 2, layout>;
  auto f = engine.function<std::vector<double>(View, double)>("columns", slope::Dispatch::allowed).value();
  const Array<2, layout> a = Array<2, layout>({4, 3}).filled(0.2);
  Array<2, layout> x = a, v = a.filled(2.0), g({4, 3});
  std::vector<double> by_a, by_t;
  const std::vector<double> y = f.jacobian(x.view(), 1.5, by_a, by_t).value();
  REQUIRE(by_a.size() == 36);
  const std::vector<std::size_t> elements = a.offsets();
  for (std::size_t j = 0; j < 12; ++j)
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(by_a[i + 3 * j] == Approx(slope_of([&](double s) {
                                 Array<2, layout> moved = a;
                                 moved.memory[elements[j]] += s;
                                 return f(moved.view(), 1.5).value()[i];
                               }))
                                   .epsilon(1e-8)
                                   .margin(1e-9));
  const auto moved = f.jvp(x.view(), 1.5, v.view(), nullptr).value();
  const std::vector<double> seed = {1, -2, 0.5};
  auto back = f.pullback(x.view(), 1.5).value();
  back(seed, g.view(), nullptr).value();
  CHECK(g.gaps_are_left());
  double by_seed = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 12; ++j) sum += by_a[i + 3 * j] * v.memory[elements[j]];
    CHECK(moved.tangent[i] == Approx(sum));
    CHECK(moved.value[i] == y[i]);
    by_seed += seed[i] * sum;
  }
  double dot = 0;
  for (std::size_t i : elements) dot += g.memory[i] * v.memory[i];
  CHECK(dot == Approx(by_seed));
}

}  // namespace

TEST_CASE("jvp, hvp, jacobian and pullback of arrays in every layout agree with differences") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile, Tier::automatic);
  check_derivatives<2, Layout::column_major>(tier, "energy", {3, 3});
  check_derivatives<2, Layout::row_major>(tier, "energy", {3, 3});
  check_derivatives<2, Layout::strided>(tier, "energy", {3, 3});
  check_derivatives<3, Layout::column_major>(tier, "cube", {2, 3, 2});
  check_derivatives<3, Layout::row_major>(tier, "cube", {2, 3, 2});
  check_derivatives<3, Layout::strided>(tier, "cube", {2, 3, 2});
  check_derivatives<2, Layout::strided>(tier, "energies", {3, 3});  // varargs: by the library's operators
}

TEST_CASE("Jacobians and pullbacks of vectors by matrices in every layout") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  check_vector_valued<Layout::column_major>(tier);
  check_vector_valued<Layout::row_major>(tier);
  check_vector_valued<Layout::strided>(tier);
}

TEST_CASE("Derivatives of functions that write to their argument, which is written once") {
  const Tier tier = GENERATE(Tier::interpret, Tier::compile);
  Engine engine(slope::Options{.tier = tier});
  engine
      .run(
          "function squares!(a, t)\n    for i in eachindex(a)\n        a[i] = t * a[i]^2\n    end\n    return "
          "sum(a)\nend\n"
          "squares(a) = [squares!(a, 1.0), a[1]]")
      .value();
  const std::vector<double> start = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, dx(10, 1.0);
  std::vector<double> x = start, row, g(10), h(10);
  using Written = std::span<double>;
  auto f = engine.function<double(Written, double)>("squares!").value();
  const auto [y, dy] = f.jvp(x, 2.0, dx, nullptr).value();
  CHECK(y == 770);
  CHECK(dy == 220);  // Σ 2 t a
  CHECK(x[9] == 200);
  CHECK(dx == std::vector<double>(10, 1.0));  // a direction is read
  x = start;
  CHECK(f.jacobian(x, 2.0, row, nullptr).value() == 770);  // ten columns in two rounds
  for (std::size_t i = 0; i < 10; ++i) CHECK(row[i] == 4 * start[i]);
  CHECK(x[9] == 200);
  x = start;
  f.pullback(x, 2.0).value()(1.0, g, nullptr).value();
  for (std::size_t i = 0; i < 10; ++i) CHECK(g[i] == 4 * start[i]);
  CHECK(x == start);  // copied
  f.hvp(x, 2.0, dx, nullptr, h, nullptr).value();
  CHECK(h == std::vector<double>(10, 4.0));
  CHECK(f.jvp(x, 2.0, x, nullptr).error().message ==
        "jvp of `squares!`, argument 1: the tangent overlaps argument 1, which may be written");
}

TEST_CASE("Tangents and matrices that do not fit arrays") {
  Engine engine;
  engine.run(script).value();
  auto f = engine.function<double(ArrayView<const double, 2>, double)>("energy").value();
  std::vector<double> a(9, 0.5), v(9, 1.0), h(9), m(9);
  const ArrayView<const double, 2> view(a.data(), {3, 3});
  auto message = [](const auto& result) { return result.ok() ? std::string() : result.error().message; };
  CHECK(message(f.jvp(view, 1.0, v, nullptr)) ==
        "jvp of `energy`, argument 1: the argument has 3×3 elements, its tangent 9");
  CHECK(message(f.jvp(view, 1.0, ArrayView<double, 2>(v.data(), {9, 1}), nullptr)) ==
        "jvp of `energy`, argument 1: the argument has 3×3 elements, its tangent 9×1");
  CHECK(message(f.jvp(view, 1.0, ArrayView<double, 2, Layout::row_major>(v.data(), {3, 3}), nullptr)) ==
        "jvp of `energy`, argument 1: its tangent has another layout or other strides than the argument");
  CHECK(message(f.jvp(view, 1.0, 1.0, nullptr)) == "jvp of `energy`, argument 1: the tangent of an array is an array");
  CHECK(message(f.hvp(view, 1.0, ArrayView<double, 2>(v.data(), {3, 3}), nullptr,
                      ArrayView<double, 2>(v.data(), {3, 3}), nullptr)) ==
        "hvp of `energy`, argument 1: the memory for the result overlaps the direction");
  CHECK(message(f.jacobian(view, 1.0, std::span<double>(a), nullptr)) ==
        "jacobian of `energy`, argument 1: the memory for the matrix overlaps an argument");
  CHECK(message(f.jacobian(view, 1.0, m, m)) ==
        "jacobian of `energy`, argument 2: the memory for the matrix overlaps that of another");
  engine.run("first_of(a) = a[1] + a[2]").value();
  auto one = engine.function<double(ArrayView<const double, 1, Layout::strided>)>("first_of").value();
  CHECK(message(one({a.data(), {3}, {2}})) == "call of `first_of`, argument 1: the first stride is 1; found 2");
  CHECK(one({a.data(), {3}, {1}}).value() == 1.0);
}
