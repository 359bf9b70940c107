#include "bench/native/bench.h"

static volatile int64_t size = 200;

static int64_t escape_time(double re, double im, int64_t limit) {
  double x = 0.0;
  double y = 0.0;
  int64_t count = 0;
  while (count < limit && x * x + y * y <= 4.0) {
    const double next = x * x - y * y + re;
    y = 2.0 * x * y + im;
    x = next;
    ++count;
  }
  return count;
}

__attribute__((noinline)) static int64_t mandelbrot(int64_t n, int64_t limit) {
  int64_t total = 0;
  for (int64_t row = 0; row < n; ++row) {
    const double im = 2.0 * (double)row / (double)n - 1.0;
    for (int64_t column = 0; column < n; ++column) {
      const double re = 3.0 * (double)column / (double)n - 2.0;
      total += escape_time(re, im, limit);
    }
  }
  return total;
}

static double run(void) { return (double)mandelbrot(size, 200); }

int main(void) {
  bench_samples("mandelbrot", run, 1, 10);
  return 0;
}
