// Calibrates the model of a script: the host has the data and the optimiser, the script the model; its gradient comes
// out of the compiler, into the host's own memory.
#include <slope/engine.hpp>

#include <cmath>
#include <cstdio>
#include <nlopt.hpp>
#include <vector>

using Loss = slope::Function<double(std::span<const double>, std::span<const double>)>;
struct Problem {
  Loss loss;
  std::span<const double> times;
};

int main() {
  // What was measured: amplitude 2, damping 0.3, frequency 1.5, and a disturbance.
  std::vector<double> times, values;
  for (int i = 0; i < 60; ++i) {
    const double t = 0.1 * i;
    times.push_back(t);
    values.push_back(2.0 * std::exp(-0.3 * t) * std::cos(1.5 * t) + 0.01 * std::sin(40.0 * t));
  }

  slope::Engine engine;
  engine.define("observed", [&](std::size_t i) { return values.at(i - 1); }).value();
  if (auto loaded = engine.run_file(MODEL); !loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.error().message.c_str());
    return 1;
  }
  Loss loss = engine.function<double(std::span<const double>, std::span<const double>)>("loss").value();

  // NLopt asks for the value and, where it wants one, the gradient.
  const nlopt::vfunc objective = [](const std::vector<double>& p, std::vector<double>& gradient, void* data) {
    auto& [function, given] = *static_cast<Problem*>(data);
    if (gradient.empty()) return function(p, given).value();
    return function.value_and_gradient(p, given, gradient, nullptr).value();
  };
  Problem problem{loss, times};
  nlopt::opt optimiser(nlopt::LD_LBFGS, 3);
  optimiser.set_min_objective(objective, &problem);
  optimiser.set_xtol_rel(1e-10);
  std::vector<double> p = {1.5, 0.1, 1.4};
  double value = 0;
  optimiser.optimize(p, value);
  std::printf("loss %.3g: amplitude %.3f, damping %.3f, frequency %.3f\n", value, p[0], p[1], p[2]);
  const bool right = std::abs(p[0] - 2.0) < 0.02 && std::abs(p[1] - 0.3) < 0.02 && std::abs(p[2] - 1.5) < 0.02;
  return right ? 0 : 1;
}
