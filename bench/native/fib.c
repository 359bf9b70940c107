#include "bench/native/bench.h"

static volatile int64_t argument = 30; /* read anew each time, or the call is folded away */

__attribute__((noinline)) static int64_t fib(int64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static double run(void) { return (double)fib(argument); }

int main(void) {
  bench_samples("fib", run, 1, 10);
  return 0;
}
