/* What every native program prints: `sample <name> <nanoseconds>` a repetition and `result <name> <value>` once, the
   same lines as bench/programs/harness.slope. Each sample is the mean over `batch` calls. */
#ifndef SLOPE_BENCH_NATIVE_BENCH_H
#define SLOPE_BENCH_NATIVE_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline int64_t bench_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void bench_samples(const char* name, double (*run)(void), int batch, int repetitions) {
  volatile double result = 0;
  for (int k = 0; k < batch; ++k) result = run();
  for (int i = 0; i < repetitions; ++i) {
    const int64_t start = bench_now();
    for (int k = 0; k < batch; ++k) result = run();
    const int64_t elapsed = bench_now() - start;
    printf("sample %s %lld\n", name, (long long)(elapsed / batch));
  }
  printf("result %s %.17g\n", name, result);
}

#endif
