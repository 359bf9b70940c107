// Calibrates the model of a script: the host has the data and the optimiser, the script the model; its gradient comes
// out of the compiler, into the host's own memory.
#include <slope/engine.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

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
  auto loss = engine.function<double(std::span<const double>, std::span<const double>)>("loss").value();

  // Gradient descent with momentum is enough for three parameters.
  std::vector<double> p = {1.5, 0.1, 1.4}, g(3), velocity(3);
  double value = 0;
  for (int step = 0; step < 2000; ++step) {
    value = loss.value_and_gradient(p, times, g, nullptr).value();
    for (std::size_t k = 0; k < p.size(); ++k) {
      velocity[k] = 0.9 * velocity[k] - 0.02 * g[k];
      p[k] += velocity[k];
    }
  }
  std::printf("loss %.3g: amplitude %.3f, damping %.3f, frequency %.3f\n", value, p[0], p[1], p[2]);
  const bool right = std::abs(p[0] - 2.0) < 0.02 && std::abs(p[1] - 0.3) < 0.02 && std::abs(p[2] - 1.5) < 0.02;
  return right ? 0 : 1;
}
