/* Calls what `slope build models.slope` made: prints values and gradients, a number a line, as models.slope does; checks
   gradients against differences, errors, and that too little work memory is reported. */
#include "models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { n = 4, bytes = 1 << 16 };
static char work[bytes];
static int wrong;

static void check(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "wrong: %s\n", what);
  wrong = 1;
}

static void show(const double* x, int count) {
  for (int i = 0; i < count; ++i) printf("%.17g\n", x[i]);
}

static void compare(double slope, double difference, const char* what) {
  check(fabs(slope - difference) <= 1e-5 * (1 + fabs(difference)), what);
}

static void of_vector(int32_t (*f)(const double*, int64_t, double*, void*, int64_t),
                      int32_t (*gradient)(const double*, int64_t, double*, int64_t, double*, void*, int64_t),
                      const double* x, const char* name) {
  double value, again, g[n], y[n], h = 1e-6;
  check(f(x, n, &value, work, bytes) == 0, name);
  check(gradient(x, n, g, n, &again, work, bytes) == 0, name);
  check(value == again, name);
  show(&value, 1);
  show(g, n);
  for (int i = 0; i < n; ++i) {
    double up, down;
    memcpy(y, x, sizeof y);
    y[i] = x[i] + h;
    check(f(y, n, &up, work, bytes) == 0, name);
    y[i] = x[i] - h;
    check(f(y, n, &down, work, bytes) == 0, name);
    compare(g[i], (up - down) / (2 * h), name);
  }
}

int main(void) {
  const double x[n] = {0.3, 1.7, -0.4, 2.2};
  double value, g[n], y[n];

  of_vector(rosenbrock, rosenbrock_gradient, x, "rosenbrock");
  of_vector(broadcast_rosenbrock, broadcast_rosenbrock_gradient, x, "broadcast_rosenbrock");

  check(spline_gradient(x, n, 3, g, n, &value, work, bytes) == 0, "spline");
  show(&value, 1);
  show(g, n);

  double slope;
  check(newton_gradient(7.0, &value, &slope, work, bytes) == 0, "newton");
  show(&value, 1);
  show(&slope, 1);
  compare(slope, 0.5 / sqrt(7.0), "newton");

  const double A[4] = {1.0, 3.0, 2.0, 4.5};
  check(trace_of_square_gradient(A, 2, 2, g, 2, 2, &value, work, bytes) == 0, "trace_of_square");
  show(&value, 1);
  show(g, 4);

  check(softmax(x, n, y, n, work, bytes) == 0, "softmax");
  show(y, n);

  double a, b;
  check(network_gradient(x, n, 0.8, -0.1, g, n, &value, &a, &b, work, bytes) == 0, "network");
  show(&value, 1);
  show(g, n);
  show(&a, 1);
  show(&b, 1);

  /* Errors: their kinds and lines. */
  int32_t status = spline(x, 2, 3, &value, work, bytes);
  check(MODELS_KIND(status) == MODELS_BOUNDS, "kind of a BoundsError");
  check(MODELS_LINE(status) == 20, "line of a BoundsError");
  status = spline(x, n, 0, &value, work, bytes);
  check(MODELS_KIND(status) == MODELS_DIVISION, "kind of a DivideError");
  check(MODELS_LINE(status) == 22, "line of a DivideError");
  status = trace_of_square(A, 1, 4, &value, NULL, 0);
  check(MODELS_KIND(status) == MODELS_BOUNDS, "kind of a BoundsError of a matrix");
  check(MODELS_LINE(status) == 37, "line of a BoundsError of a matrix");
  status = softmax(x, n, y, n - 1, work, bytes);
  check(MODELS_KIND(status) == MODELS_DIMENSIONS, "kind of a DimensionMismatch");
  status = rosenbrock_gradient(x, n, g, n - 1, &value, NULL, 0);
  check(MODELS_KIND(status) == MODELS_DIMENSIONS, "kind of a gradient of another size");
  status = rosenbrock(x, -1, &value, NULL, 0);
  check(MODELS_KIND(status) == MODELS_ARGUMENT, "kind of a negative length");

  /* Every size of work memory is either enough or reported; nothing outside is touched. */
  int enough = 0;
  for (int size = 0; size <= bytes; size = size < 512 ? size + 1 : size + 64) {
    char* lent = malloc((size_t)size + 64);
    memset(lent + size, 77, 64);
    status = broadcast_rosenbrock(x, n, &value, lent, size);
    for (int i = 0; i < 64; ++i) check(lent[size + i] == 77, "memory behind the work memory");
    check(status == 0 || MODELS_KIND(status) == MODELS_WORK, "work memory");
    check(!enough || status == 0, "work memory that was enough before");
    enough = status == 0;
    free(lent);
  }
  check(enough, "work memory is enough");
  return wrong;
}
