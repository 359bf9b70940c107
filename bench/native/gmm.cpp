// The log posterior of a Gaussian mixture (examples/gradbench/gmm.slope) and its gradient by hand in plain C++: for
// each point and component the residual Q (x - mu) is kept, and the adjoint goes back through it with the
// responsibilities as weights. Sizes d = 20, k = 25, n = 1000; the data are the fractional parts that
// bench/programs/gmm.slope makes.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/native/bench.h"
#include "bench/native/numbers.hpp"

namespace {

constexpr int dimensions = 20;
constexpr int components = 25;
constexpr int points = 1000;
constexpr int below = dimensions * (dimensions - 1) / 2;
constexpr double gamma_ = 1;

using Numbers = std::vector<double>;

const Numbers alpha = numbers(components, 1);
const Numbers mu = numbers(components * dimensions, 2);
const Numbers q = numbers(components * dimensions, 3);
const Numbers l = numbers(components * below, 4);
const Numbers x = numbers(points * dimensions, 5);

// out = Q centred, for the diagonal and the columns below it.
inline void multiply(const double* __restrict diagonal, const double* __restrict lower,
                     const double* __restrict centred, double* __restrict out) {
  for (int i = 0; i < dimensions; ++i) out[i] = diagonal[i] * centred[i];
  for (int j = 0; j < dimensions; ++j) {
    for (int i = j + 1; i < dimensions; ++i) out[i] += lower[i - j - 1] * centred[j];
    lower += dimensions - j - 1;
  }
}

double log_multigamma(double a) {
  double sum = dimensions * (dimensions - 1) / 4.0 * std::log(M_PI);
  for (int j = 1; j <= dimensions; ++j) sum += std::lgamma(a + (1 - j) / 2.0);
  return sum;
}

double log_sum_exp(const double* values, int count, double* exponentials, double& sum) {
  const double largest = *std::max_element(values, values + count);
  sum = 0;
  for (int i = 0; i < count; ++i) sum += exponentials[i] = std::exp(values[i] - largest);
  return largest + std::log(sum);
}

struct Gradient {
  Numbers alpha = Numbers(components), mu = Numbers(components * dimensions), q = Numbers(components * dimensions),
          l = Numbers(components * below);
};

template <bool with_gradient>
__attribute__((noinline)) double posterior(Gradient& g) {
  Numbers diagonals(components * dimensions);
  Numbers log_det(components);
  double value = 0;
  for (int k = 0; k < components; ++k) {
    double squares = 0;
    for (int i = 0; i < dimensions; ++i) {
      const int at = k * dimensions + i;
      diagonals[at] = std::exp(q[at]);
      log_det[k] += q[at];
      squares += diagonals[at] * diagonals[at];
      if (with_gradient) {
        g.q[at] = -gamma_ * gamma_ * diagonals[at] * diagonals[at];
        g.mu[at] = 0;
      }
    }
    for (int i = 0; i < below; ++i) {
      const double entry = l[k * below + i];
      squares += entry * entry;
      if (with_gradient) g.l[k * below + i] = -gamma_ * gamma_ * entry;
    }
    value -= gamma_ * gamma_ / 2 * squares;
    g.alpha[k] = 0;
  }
  double centred[components][dimensions];
  double residual[components][dimensions];
  double terms[components];
  double exponentials[components];
  double sum = 0;
  for (int n = 0; n < points; ++n) {
    for (int k = 0; k < components; ++k) {
      for (int i = 0; i < dimensions; ++i) centred[k][i] = x[n * dimensions + i] - mu[k * dimensions + i];
      multiply(&diagonals[k * dimensions], &l[k * below], centred[k], residual[k]);
      double squares = 0;
      for (int i = 0; i < dimensions; ++i) squares += residual[k][i] * residual[k][i];
      terms[k] = alpha[k] + log_det[k] - squares / 2;
    }
    value += log_sum_exp(terms, components, exponentials, sum);
    if (!with_gradient) continue;
    for (int k = 0; k < components; ++k) {
      const double weight = exponentials[k] / sum;
      g.alpha[k] += weight;
      double* __restrict in_q = &g.q[k * dimensions];
      double* __restrict in_mu = &g.mu[k * dimensions];
      double* __restrict in_l = &g.l[k * below];
      const double* __restrict diagonal = &diagonals[k * dimensions];
      const double* __restrict lower = &l[k * below];
      const double* __restrict r = residual[k];
      const double* __restrict c = centred[k];
      for (int i = 0; i < dimensions; ++i) {
        in_q[i] += weight * (1 - r[i] * diagonal[i] * c[i]);
        in_mu[i] += weight * r[i] * diagonal[i];
      }
      for (int j = 0; j < dimensions; ++j) {
        const double factor = weight * c[j];
        double product = 0;
        for (int i = j + 1; i < dimensions; ++i) {
          in_l[i - j - 1] -= factor * r[i];
          product += lower[i - j - 1] * r[i];
        }
        in_mu[j] += weight * product;
        in_l += dimensions - j - 1;
        lower += dimensions - j - 1;
      }
    }
  }
  const double weights = log_sum_exp(alpha.data(), components, exponentials, sum);
  for (int k = 0; k < components; ++k) g.alpha[k] -= points * exponentials[k] / sum;
  const double degrees = dimensions + 1;
  return value - points * (dimensions / 2.0 * std::log(2 * M_PI) + weights) +
         components * (degrees * dimensions * std::log(gamma_ / std::sqrt(2.0)) - log_multigamma(degrees / 2));
}

Gradient g;
double run_objective() { return posterior<false>(g); }
double run_gradient() {
  posterior<true>(g);
  double sum = 0;
  for (const Numbers* part : {&g.alpha, &g.mu, &g.q, &g.l}) {
    for (const double entry : *part) sum += std::abs(entry);
  }
  return sum;
}

}  // namespace

int main() {
  bench_samples("gmm", run_objective, 3, 20);
  bench_samples("gmm_gradient", run_gradient, 3, 20);
  return 0;
}
