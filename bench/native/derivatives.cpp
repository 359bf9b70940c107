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

}  // namespace

int main() {
  bench_samples("qux", qux_gradients, 20, 20);
  bench_samples("foldminus", fold_gradients, 20, 20);
}
