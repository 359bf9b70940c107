/* Minimises the function of model.slope by gradient descent with backtracking. */
#include <stdio.h>

#include "model.h"

enum { n = 4 };

int main(void) {
  double x[n] = {-1.2, 1.0, -0.5, 0.8}, g[n], y[n], value, next, step = 1e-3;
  for (int iteration = 0; iteration < 200000; ++iteration) {
    int32_t status = rosenbrock_gradient(x, n, g, n, &value, NULL, 0);
    if (status != 0) {
      fprintf(stderr, "error %d in line %d of model.slope\n", MODEL_KIND(status), MODEL_LINE(status));
      return 1;
    }
    double norm = 0;
    for (int i = 0; i < n; ++i) norm += g[i] * g[i];
    if (norm < 1e-16) break;
    for (step *= 2;; step /= 2) {
      for (int i = 0; i < n; ++i) y[i] = x[i] - step * g[i];
      if (rosenbrock(y, n, &next, NULL, 0) != 0 || next <= value - 0.5 * step * norm || step < 1e-12) break;
    }
    for (int i = 0; i < n; ++i) x[i] = y[i];
  }
  printf("minimum %.3g at", value);
  for (int i = 0; i < n; ++i) printf(" %.6f", x[i]);
  printf("\n");
  return 0;
}
