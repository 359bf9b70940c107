// `slope_fuzz TARGET [options]`: runs a fuzz target; exit status 1 when it found something.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace slope::test;

const FuzzTarget targets[] = {
    {"arguments", "every name of Core and Base with odd arguments", fuzz_arguments},
    {"hostile", "programs that mean harm (tests/fuzz/hostile, or the file or folder of --text)", fuzz_hostile},
    {"faults", "small programs while an allocation fails (--count: how many for each)", fuzz_faults},
    {"kept", "containers whose memory ends while they grow lose nothing (--count: limits for each)", fuzz_kept_data},
    {"grammar", "random programs from a grammar (--seed, --count): the tiers print the same", fuzz_grammar},
    {"inputs", "JSON, CSV, regexes, serialized values, texts, messages, changed at random (--seconds for each)",
     fuzz_inputs},
    {"soak", "what a host does for hours leaves no memory behind (--seconds for each kind)", fuzz_soak},
};

int help() {
  std::puts(
      "usage: slope_fuzz TARGET [--seed N] [--seconds S] [--count N] [--only REGEX] [--tier T] [--text T] "
      "[--patience FACTOR] [--verbose] [--here]");
  for (const FuzzTarget& target : targets) std::printf("  %-14s %s\n", target.name, target.what);
  return 2;
}

bool read_options(int argc, char** argv, FuzzOptions& options) {
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose" || name == "--here") {
      (name == "--here" ? options.here : options.verbose) = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    if (name == "--seed")
      options.seed = std::stoull(value);
    else if (name == "--seconds")
      options.seconds = std::stod(value);
    else if (name == "--count")
      options.count = std::stoull(value);
    else if (name == "--only")
      options.only = value;
    else if (name == "--tier")
      options.tier = value;
    else if (name == "--text")
      options.text = value;
    else if (name == "--patience")
      options.patience = std::stod(value);
    else
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  FuzzOptions options;
  if (argc < 2 || !read_options(argc, argv, options)) return help();
  for (const FuzzTarget& target : targets) {
    if (std::strcmp(target.name, argv[1]) != 0) continue;
    const FuzzReport found = target.run(options);
    std::printf("%llu attempts, %zu findings\n", static_cast<unsigned long long>(found.attempts),
                found.findings.size());
    if (const char* path = std::getenv("SLOPE_TEST_COUNTS"))
      std::ofstream(path) << (found.findings.empty() ? 1 : 0) << ' ' << found.findings.size() << '\n';
    return found.findings.empty() ? 0 : 1;
  }
  return help();
}
