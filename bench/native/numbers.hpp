// Input of the native programs, without a file: what bench/programs/*.slope makes in the same way.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

// `count` numbers between -1 and 1: fractional parts of multiples of the golden ratio.
inline std::vector<double> numbers(int count, int seed) {
  std::vector<double> made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double t = 0.6180339887498949 * (i + 1) + 0.1 * seed;
    made[static_cast<std::size_t>(i)] = 2 * (t - std::floor(t)) - 1;
  }
  return made;
}

// The linear congruential generator of these programs: 31 bits a call.
struct Generator {
  std::uint64_t state;
  std::int64_t next() {
    state = state * 0x5851f42d4c957f2dull + 0x14057b7ef767814full;
    return static_cast<std::int64_t>(state >> 33);
  }
};
