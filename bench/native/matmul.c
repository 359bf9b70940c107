#include <stdlib.h>

#include "bench/native/bench.h"

static volatile int64_t size = 200;
static double *a, *b, *c;

/* Column-major, the inner loop down a column, as in bench/programs/matmul.slope. */
__attribute__((noinline)) static void multiply(int64_t n, double* restrict to, const double* restrict left,
                                               const double* restrict right) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) to[i + j * n] = 0.0;
    for (int64_t k = 0; k < n; ++k) {
      const double factor = right[k + j * n];
      for (int64_t i = 0; i < n; ++i) to[i + j * n] += left[i + k * n] * factor;
    }
  }
}

static double run(void) {
  const int64_t n = size;
  multiply(n, c, a, b);
  return c[0] + c[n * n / 2] + c[n * n - 1];
}

int main(void) {
  const int64_t n = size;
  a = malloc(sizeof(double) * (size_t)(n * n));
  b = malloc(sizeof(double) * (size_t)(n * n));
  c = malloc(sizeof(double) * (size_t)(n * n));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      a[i + j * n] = (double)(i + 1) / (double)(j + 1);
      b[i + j * n] = (double)((i + 1) * (j + 1) % 7);
    }
  }
  bench_samples("matmul", run, 5, 10);
  free(a);
  free(b);
  free(c);
  return 0;
}
