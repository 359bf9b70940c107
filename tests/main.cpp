// The entry point of every Catch2 test program. Beside Catch's report it writes "<passed> <failed>" test cases into
// the file that SLOPE_TEST_COUNTS names, for the sum over all programs.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

namespace {

struct CountListener : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testRunEnded(const Catch::TestRunStats& stats) override {
    if (const char* path = std::getenv("SLOPE_TEST_COUNTS")) {
      const auto& cases = stats.totals.testCases;
      std::ofstream(path) << cases.passed + cases.failedButOk << ' ' << cases.failed << '\n';
    }
  }
};

CATCH_REGISTER_LISTENER(CountListener)

}  // namespace
