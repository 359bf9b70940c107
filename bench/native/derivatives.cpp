// The gradients of bench/programs/derivatives.slope, written by hand.
#include <array>
#include <cmath>
#include <vector>

#include "bench/native/bench.h"

namespace {

// Value and derivative with respect to x.
__attribute__((noinline)) double qux(bool a, bool b, double x, double& dx) {
  const double s = std::sin(x), c = std::cos(x);
  const double aa = a ? s : c;
  const double daa = a ? c : -s;
  if (b) {
    const double y = 1 / std::cosh(aa);
    dx = -y * std::tanh(aa) * daa;
    return y;
  }
  const double y = std::tanh(aa);
  dx = (1 - y * y) * daa;
  return y;
}

__attribute__((noinline)) double foldminus(const std::array<double, 16>& t, std::array<double, 16>& gradient) {
  double value = t[0];
  gradient[0] = 1;
  for (std::size_t i = 1; i < t.size(); ++i) {
    value -= t[i];
    gradient[i] = -1;
  }
  return value;
}

double qux_gradients() {
  double s = 0;
  for (int i = 1; i <= 1000; ++i) {
    double dx = 0;
    s += qux(i % 2 == 0, i % 3 == 0, 0.001 * i, dx);
    s += dx;
  }
  return s;
}

double fold_gradients() {
  static const std::vector<std::array<double, 16>> ts = [] {
    std::vector<std::array<double, 16>> made(8);
    for (std::size_t k = 0; k < made.size(); ++k)
      for (std::size_t i = 0; i < 16; ++i)
        made[k][i] = 0.1 * static_cast<double>(i + 1) + 0.01 * static_cast<double>(k);
    return made;
  }();
  double s = 0;
  for (int i = 1; i <= 1000; ++i) {
    std::array<double, 16> gradient{};
    s += foldminus(ts[static_cast<std::size_t>(i) % ts.size()], gradient) + gradient[1] + 0.001 * i;
  }
  return s;
}

// The determinant by expansion over minors, and its gradient: what the recursion returned is computed again.
constexpr int rows = 9;
__attribute__((noinline)) double minors(const double* a, int column, unsigned free) {
  if (free == 0) return 1;
  double total = 0, sign = 1;
  for (unsigned rest = free; rest != 0; rest &= rest - 1) {
    const int row = __builtin_ctz(rest);
    total += sign * a[column * rows + row] * minors(a, column + 1, free ^ 1u << row);
    sign = -sign;
  }
  return total;
}
__attribute__((noinline)) void minors_gradient(const double* a, int column, unsigned free, double seed, double* g) {
  double sign = 1;
  for (unsigned rest = free; rest != 0; rest &= rest - 1) {
    const int row = __builtin_ctz(rest);
    g[column * rows + row] += seed * sign * minors(a, column + 1, free ^ 1u << row);
    minors_gradient(a, column + 1, free ^ 1u << row, seed * sign * a[column * rows + row], g);
    sign = -sign;
  }
}
std::array<double, rows * rows> minors_matrix() {
  std::array<double, rows * rows> a{};
  for (int k = 0; k < rows * rows; ++k) a[static_cast<std::size_t>(k)] = std::sin(1.0 + k);
  return a;
}
double minors_gradients() {
  const auto a = minors_matrix();
  std::array<double, rows * rows> g{};
  minors_gradient(a.data(), 0, (1u << rows) - 1, 1, g.data());
  double s = 0;
  for (double x : g) s += x;
  return s;
}

// Rosenbrock's function of 1,000 numbers, whose gradient is a new vector, and the derivative of a sum of sines.
std::vector<double> thousand() {
  std::vector<double> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1 + 0.5 * std::sin(0.1 * static_cast<double>(i + 1));
  x[0] = 0.1 + 1e-9;
  return x;
}
__attribute__((noinline)) std::vector<double> rosenbrock_gradient(const std::vector<double>& x) {
  std::vector<double> g(x.size());
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double t = x[i + 1] - x[i] * x[i];
    g[i] -= 400 * x[i] * t + 2 * (1 - x[i]);
    g[i + 1] += 200 * t;
  }
  return g;
}
double rosenbrock_gradients() {
  static const std::vector<double> x = thousand();
  return rosenbrock_gradient(x)[499];
}
__attribute__((noinline)) double sine_sum_derivative(double x) {
  double s = 0;
  for (int i = 1; i <= 1000; ++i) s += std::cos(x * i);
  return s;
}

}  // namespace

int main() {
  bench_samples("rosenbrock_gradient", rosenbrock_gradients, 20, 20);
  bench_samples(
      "sine_sum_gradient", [] { return sine_sum_derivative(0.3); }, 20, 5);
  bench_samples(
      "minors",
      [] {
        const auto a = minors_matrix();
        return minors(a.data(), 0, (1u << rows) - 1);
      },
      10, 1);
  bench_samples("minors_gradient", minors_gradients, 10, 1);
  bench_samples("qux", qux_gradients, 20, 20);
  bench_samples("foldminus", fold_gradients, 20, 20);
}
