/* Calls what `slope build second.slope` made, and prints what the script prints. */
#include "second.h"

#include <math.h>
#include <stdio.h>

static char work[1 << 16];
static int wrong;

static void check(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "wrong: %s\n", what);
  wrong = 1;
}

static void show(const double* x, int count) {
  for (int i = 0; i < count; ++i) printf("%.17g\n", x[i]);
}

int main(void) {
  enum { n = 3 };
  const double x[n] = {0.3, 1.7, -0.4}, v[n] = {1.0, -0.5, 2.0};
  double value, slope, h[n], t[n];
  check(rosenbrock_jvp(x, n, v, n, &value, &slope, work, sizeof work) == 0, "rosenbrock_jvp");
  check(rosenbrock_hvp(x, n, v, n, h, n, work, sizeof work) == 0, "rosenbrock_hvp");
  show(&value, 1);
  show(&slope, 1);
  show(h, n);
  check(rosenbrock_hvp(x, n, v, n - 1, h, n, work, sizeof work) != 0, "a short direction");
  check(SECOND_KIND(rosenbrock_hvp(x, n, v, n, h, n - 1, work, sizeof work)) == SECOND_DIMENSIONS, "a short result");

  const double A[6] = {1.0, 0.1, 2.0, 0.2, 0.5, 0.3}, B[6] = {0.5, 2.0, -1.0, 0.0, 1.0, 1.0};
  double H[6], s;
  check(fit_jvp(x, n, A, 2, 3, 0.7, 3, v, n, B, 2, 3, -1.5, &value, &slope, work, sizeof work) == 0, "fit_jvp");
  check(fit_hvp(x, n, A, 2, 3, 0.7, 3, v, n, B, 2, 3, -1.5, h, n, H, 2, 3, &s, work, sizeof work) == 0, "fit_hvp");
  show(&value, 1);
  show(&slope, 1);
  show(h, n);
  show(H, 6);
  show(&s, 1);

  check(softmax_jvp(x, n, v, n, h, n, t, n, work, sizeof work) == 0, "softmax_jvp");
  show(h, n);
  show(t, n);

  check(newton_jvp(7.0, 2.0, &value, &slope, work, sizeof work) == 0, "newton_jvp");
  check(newton_hvp(7.0, 2.0, &s, work, sizeof work) == 0, "newton_hvp");
  show(&value, 1);
  show(&slope, 1);
  show(&s, 1);
  check(fabs(s + 0.5 * pow(7.0, -1.5)) < 1e-9, "the second derivative of a root");
  return wrong;
}
