// How fast files are parsed: a library-like text, repeated to several sizes, and texts of one kind each. Throughput
// must not fall with the size.
//
//   slope_bench_parse FILE…
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lang/support/source.hpp"
#include "lang/syntax/parse.hpp"

namespace {

double megabytes_per_second(const std::string& text) {
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    slope::SourceMap sources;
    const slope::FileId file = sources.add("text.slope", text);
    const std::clock_t start = std::clock();
    const auto parsed = slope::syntax::parse(sources, file);
    const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (!parsed.diagnostics.empty()) {
      std::fprintf(stderr, "does not parse: %s\n", parsed.diagnostics[0].message.c_str());
      return 0;
    }
    best = std::max(best, static_cast<double>(text.size()) / 1e6 / std::max(taken, 1e-6));
  }
  return best;
}

std::string repeated(const std::string& unit, std::size_t size) {
  std::string text;
  text.reserve(size + unit.size());
  while (text.size() < size) text += unit;
  return text;
}

void report(const char* name, const std::string& unit) {
  std::printf("%-24s", name);
  for (const std::size_t size : {std::size_t{100000}, std::size_t{1000000}, std::size_t{10000000}})
    std::printf(" %8.1f", megabytes_per_second(repeated(unit, size)));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("%-24s %8s %8s %8s  MB/s\n", "", "0.1 MB", "1 MB", "10 MB");
  std::string library;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i]);
    library.append(std::istreambuf_iterator<char>(file), {});
    library += "\n";
  }
  if (!library.empty()) report("files given", library);
  report("short statements", "x = a + b\n");
  report("calls", "f(x, g(y, z; k = 1), [1, 2, 3])[i] = a.b.c * (x - 1)\n");
  report("functions", "function f(x::T, y=1; k=2) where {T<:Real}\n  if x > y\n    return x^2 + 3y\n  end\n  k\nend\n");
  report("strings", "s = \"text $x and $(y + 1) of it\" * raw\"plain\"\n");
  report("comments", "# a comment of the usual length, about what follows\n");
  report("one long vector", "v = [" + repeated("1.5, 2, x, ", 10000) + "0]\n");
  report("one long sum", "s = " + repeated("a * b + ", 4000) + "c\n");
  return 0;
}
