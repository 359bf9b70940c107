// A host with nothing but an installation: a value and a gradient out of a script.
#include <slope/engine.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

int main() {
  slope::Engine engine;
  engine.run("loss(w) = sum((w .- 1) .^ 2)", "model").value();
  auto loss = engine.function<double(std::span<const double>)>("loss").value();

  const std::vector<double> w = {3.0, 1.0, 0.0};
  std::vector<double> gradient(w.size());
  const double value = loss.value_and_gradient(w, gradient).value();

  const std::vector<double> expected = {4.0, 0.0, -2.0};
  bool right = std::abs(value - 5.0) < 1e-12;
  for (std::size_t i = 0; i < w.size(); ++i) right = right && std::abs(gradient[i] - expected[i]) < 1e-12;
  std::ifstream maps("/proc/self/maps");  // where machine code comes from
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with("/libslope_codegen.so")) {
      std::printf("%s\n", line.substr(line.find('/')).c_str());
      break;
    }
  std::printf("loss %g, gradient %g %g %g\n", value, gradient[0], gradient[1], gradient[2]);
  return right ? 0 : 1;
}
