// The regularised logistic loss and its gradient by hand, as fast as plain C++ gets it: both passes over the matrix run
// down its columns, so that they vectorise without reassociating a sum; one exponential serves the loss and its slope.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/native/bench.h"

namespace {

struct Problem {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> x;  // column-major, standardised
  std::vector<double> y;  // 0 or 1
  double lambda = 0.01;
};

Problem problem;
std::vector<double> weights;
std::vector<double> margin;
std::vector<double> gradient;

Problem read_problem(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);  // counts and class names
  std::vector<std::vector<double>> rows;
  while (std::getline(in, line)) {
    std::vector<double> row;
    const char* at = line.c_str();
    for (char* end = nullptr;; at = end + 1) {
      row.push_back(std::strtod(at, &end));
      if (*end != ',') break;
    }
    rows.push_back(row);
  }
  Problem p;
  p.rows = rows.size();
  p.columns = rows[0].size() - 1;
  p.x.resize(p.rows * p.columns);
  for (std::size_t j = 0; j < p.columns; ++j) {
    double mean = 0;
    for (const auto& row : rows) mean += row[j];
    mean /= static_cast<double>(p.rows);
    double variance = 0;
    for (const auto& row : rows) variance += (row[j] - mean) * (row[j] - mean);
    const double deviation = std::sqrt(variance / static_cast<double>(p.rows));
    for (std::size_t i = 0; i < p.rows; ++i) p.x[i + j * p.rows] = (rows[i][j] - mean) / deviation;
  }
  for (const auto& row : rows) p.y.push_back(row.back());
  return p;
}

void multiply(const Problem& p, const double* w, double* __restrict z) {
  for (std::size_t i = 0; i < p.rows; ++i) z[i] = 0;
  for (std::size_t j = 0; j < p.columns; ++j) {
    const double* __restrict column = p.x.data() + j * p.rows;
    const double factor = w[j];
    for (std::size_t i = 0; i < p.rows; ++i) z[i] += column[i] * factor;
  }
}

__attribute__((noinline)) double loss(const Problem& p, const double* w, double* z) {
  multiply(p, w, z);
  double total = 0;
  for (std::size_t i = 0; i < p.rows; ++i) {
    total += std::log1p(std::exp(-std::abs(z[i]))) + std::max(z[i], 0.0) - p.y[i] * z[i];
  }
  double squares = 0;
  for (std::size_t j = 0; j < p.columns; ++j) squares += w[j] * w[j];
  return total / static_cast<double>(p.rows) + 0.5 * p.lambda * squares;
}

__attribute__((noinline)) double loss_and_gradient(const Problem& p, const double* w, double* __restrict z,
                                                   double* __restrict g) {
  multiply(p, w, z);
  const double scale = 1.0 / static_cast<double>(p.rows);
  double total = 0;
  for (std::size_t i = 0; i < p.rows; ++i) {
    const double e = std::exp(-std::abs(z[i]));
    total += std::log1p(e) + std::max(z[i], 0.0) - p.y[i] * z[i];
    const double probability = (z[i] >= 0 ? 1.0 : e) / (1.0 + e);
    z[i] = (probability - p.y[i]) * scale;
  }
  double squares = 0;
  for (std::size_t j = 0; j < p.columns; ++j) {
    const double* __restrict column = p.x.data() + j * p.rows;
    double lanes[8] = {};  // independent sums: the compiler may not split one by itself
    std::size_t i = 0;
    for (; i + 8 <= p.rows; i += 8) {
      for (std::size_t k = 0; k < 8; ++k) lanes[k] += column[i + k] * z[i + k];
    }
    double sum = 0;
    for (; i < p.rows; ++i) sum += column[i] * z[i];
    for (const double lane : lanes) sum += lane;
    g[j] = sum + p.lambda * w[j];
    squares += w[j] * w[j];
  }
  return total * scale + 0.5 * p.lambda * squares;
}

double run_loss() { return loss(problem, weights.data(), margin.data()); }

double run_gradient() {
  double sum = loss_and_gradient(problem, weights.data(), margin.data(), gradient.data());
  for (std::size_t j = 0; j < gradient.size(); ++j) sum += static_cast<double>(j + 1) * gradient[j];
  return sum;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: logistic wdbc.csv\n", stderr);
    return 2;
  }
  problem = read_problem(arguments[1]);
  margin.resize(problem.rows);
  gradient.resize(problem.columns);
  for (std::size_t j = 0; j < problem.columns; ++j) weights.push_back(0.01 * static_cast<double>(j + 1) - 0.15);
  bench_samples("loss", run_loss, 50, 20);
  bench_samples("gradient", run_gradient, 50, 20);
  return 0;
}
