// A value and its gradient out of a script.
#include <slope/engine.hpp>

#include <cstdio>

int main() {
  slope::Engine engine;
  engine.run("bump(x, width) = exp(-(x / width)^2)").value();
  auto bump = engine.function<double(double, double)>("bump").value();

  double by_x = 0, by_width = 0;
  const double value = bump.value_and_gradient(0.5, 2.0, by_x, by_width).value();
  std::printf("bump(0.5, 2) = %.6f, slope %.6f along x, %.6f along the width\n", value, by_x, by_width);
}
