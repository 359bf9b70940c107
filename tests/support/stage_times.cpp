#include "lang/support/stage_times.hpp"

#include <catch2/catch.hpp>

using slope::StageTime;
using slope::StageTimes;

TEST_CASE("Times of stages: each counts its own, the longest function first") {
  StageTimes times;
  volatile double sink = 0;
  const auto work = [&](int turns) {
    for (int i = 0; i < turns; ++i) sink = sink + 1.0;
  };
  {
    const StageTime outer(&times, StageTimes::Stage::inference, [] { return "outer"; });
    work(1000);
    const StageTime inner(&times, StageTimes::Stage::llvm, [] { return "inner"; });
    work(20'000'000);
  }
  const std::string report = times.report();
  INFO(report);
  CHECK(report.find("  inner\n") < report.find("  outer\n"));
  CHECK(report.find("  outer\n") != std::string::npos);
  CHECK(report.find("all 2 functions") != std::string::npos);
}

TEST_CASE("Who does not want times makes no names") {
  bool made = false;
  const StageTime none(nullptr, StageTimes::Stage::cache, [&] {
    made = true;
    return "name";
  });
  CHECK(!made);
}
