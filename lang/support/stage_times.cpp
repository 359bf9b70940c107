#include "lang/support/stage_times.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <numeric>

namespace slope {

std::uint64_t StageTimes::now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

void StageTimes::charge() {
  const std::uint64_t at = now();
  if (!running_.empty())
    by_function_[running_.back().function].of[static_cast<std::size_t>(running_.back().stage)] += at - since_;
  since_ = at;
}

void StageTimes::begin(Stage stage, std::string function) {
  charge();
  if (stage == Stage::llvm) ++by_function_[function].compiled;
  running_.push_back({stage, std::move(function)});
}

void StageTimes::end() {
  charge();
  running_.pop_back();
}

std::string StageTimes::report() const {
  constexpr std::size_t most_rows = 40;
  struct Row {
    std::string function;
    Times times;
    std::uint64_t all;
  };
  std::vector<Row> rows;
  Row sums{"all " + std::to_string(by_function_.size()) + " functions", {}, 0};
  for (const auto& [function, times] : by_function_) {
    rows.push_back({function, times, std::accumulate(times.of.begin(), times.of.end(), std::uint64_t{0})});
    for (std::size_t i = 0; i < times.of.size(); ++i) sums.times.of[i] += times.of[i];
    sums.times.compiled += times.compiled;
    sums.all += rows.back().all;
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.all != b.all ? a.all > b.all : a.function < b.function; });
  if (rows.size() > most_rows) rows.resize(most_rows);
  rows.push_back(std::move(sums));
  std::string text = "processor time of compiling, in ms\n";
  char line[64];
  const auto add = [&](const char* format, auto value) {
    std::snprintf(line, sizeof line, format, value);
    text += line;
  };
  for (const char* head : {"sum", "infer", "derive", "optimise", "emit", "LLVM", "cache", "link"}) add("%9s", head);
  text += "  units\n";
  for (const Row& row : rows) {
    add("%9.1f", static_cast<double>(row.all) / 1e6);
    for (const std::uint64_t time : row.times.of) add("%9.1f", static_cast<double>(time) / 1e6);
    add("%7llu", static_cast<unsigned long long>(row.times.compiled));
    text += "  " + row.function + '\n';
  }
  return text;
}

}  // namespace slope
