// What engines cost: making and destroying one after the other, and memory of many that live at once.
//   slope_bench_engines [cycles] [alive]
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "slope/engine.hpp"

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double megabytes() {
  const struct mallinfo2 now = mallinfo2();
  return static_cast<double>(now.uordblks + now.hblkhd) / 1e6;
}

}  // namespace

int main(int count, char** arguments) {
  const int cycles = count > 1 ? std::atoi(arguments[1]) : 50;
  const int alive = count > 2 ? std::atoi(arguments[2]) : 50;
  auto start = std::chrono::steady_clock::now();
  { slope::Engine first; }
  std::printf("the first engine        %8.2f ms\n", milliseconds_since(start));

  double least = 1e300, most = 0, total = 0;
  const double before = megabytes();
  for (int i = 0; i < cycles; ++i) {
    start = std::chrono::steady_clock::now();
    slope::Engine engine;
    const double made = milliseconds_since(start);
    least = std::min(least, made);
    most = std::max(most, made);
    total += made;
    if (engine.eval<int>("1 + 1").value() != 2) return 1;
  }
  std::printf("%5d one after another %8.2f ms each (least %.2f, most %.2f), %.2f MB left behind\n", cycles,
              total / cycles, least, most, megabytes() - before);

  const double empty = megabytes();
  std::vector<std::unique_ptr<slope::Engine>> engines;
  for (int i = 0; i < alive; ++i) engines.push_back(std::make_unique<slope::Engine>());
  std::printf("%5d at once           %8.2f MB each\n", alive, (megabytes() - empty) / alive);
  for (auto& engine : engines)
    if (engine->eval<int>("1 + 1").value() != 2) return 1;
}
