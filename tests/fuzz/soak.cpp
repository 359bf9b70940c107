// What a host does for hours, in rounds of a fraction of a second: it loads texts, defines functions again, differentiates
// them, drops handles and engines. Each kind of work is measured apart: how many bytes a round leaves behind, of malloc's
// and of the process, in the second half of its time. Goal: none.
//
// A find is a kind that leaves more than `most_bytes` of malloc's memory in a round, or more than `most_resident` of the
// process's, which types and objects are in, too; the latter grows by pages and is looked at after many rounds. `--seconds`
// is the time of each kind (3 by default), `--only` chooses kinds.
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <regex>
#include <string>

#include "slope/engine.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace slope::test {

namespace {

constexpr double most_bytes = 16;
constexpr double most_resident = 64;
constexpr std::uint64_t rounds_for_resident = 1000;
constexpr std::uint64_t least_measured = 30;  // rounds, on a machine that is slow

double malloc_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

struct Kind {
  const char* name;
  std::function<void(Engine& engine, std::uint64_t round)> work;
};

// The text with the round's number in place of each `$`.
std::string at_round(const std::string& text, std::uint64_t round) {
  std::string made;
  for (const char c : text) {
    if (c == '$')
      made += std::to_string(round % 100000);
    else
      made += c;
  }
  return made;
}

Kind script(const char* name, const std::string& text) {
  return {name, [text](Engine& engine, std::uint64_t round) { (void)engine.run(at_round(text, round)); }};
}

const Kind kinds[] = {
    script("a text", "1 + $"),
    script("a text with a loop", "s = 0\nfor i in 1:10\n  global s += i * $\nend"),
    script("a function defined again", "f(x) = x + $; f(1)"),
    script("a function and its caller", "leaf(x) = x + $; g(x) = leaf(x) * 2; g(1)"),
    script("a callee alone", "callee(x) = x + $\nif !@isdefined(caller); caller(x) = callee(x) * 2; end; caller(1)"),
    script("a gradient", "loss(x) = sum(x .* $); gradient(loss, [1.0, 2.0])"),
    script("a gradient with a loop",
           "lost(x) = (s = 0.0; for a in x; s += a^2 * $; end; s); gradient(lost, [1.0, 2.0])"),
    script("a hessian", "bowl(x) = $ * x[1]^2 * x[2]; hvp(bowl, [1.0, 2.0], [1.0, 0.0])"),
    script("a closure", "(x -> x + $)(1)"),
    script("the gradient of a closure", "gradient(x -> x^2 * $, 2.0)"),
    script("a method with keywords", "kw(x; a=$, b...) = x + a; kw(1; a=2)"),
    script("a macro", "macro m(); $; end; @m"),
    script("a generated function", "@generated made(x) = :(x + $); made(1)"),
    script("a module", "module Part; h(x) = x + $; end; Part.h(1)"),
    script("a constant", "const level = $; level + 1"),
    script("an error", "error(\"e$\")"),
    script("a caught error", "try; [1][$ + 2]; catch e; sprint(showerror, e); end"),
    script("a syntax error", "x = ($"),
    script("a task", "fetch(@async $ + 1)"),
    script("a dropped task", "schedule(Task(() -> take!(Channel(0)))); yield()"),
    script("a regular expression", "match(r\"a(b|c)+\", \"xabc$\")"),
    script("evaluated code", "eval(:(y = $ + 1))"),
    {"a handle",
     [](Engine& engine, std::uint64_t round) {
       (void)engine.run(at_round("handled(x) = x * x + $", round));
       auto handle = engine.function<double(double)>("handled");
       if (handle.ok()) (void)handle.value()(2.0);
     }},
    {"a handle's gradient",
     [](Engine& engine, std::uint64_t round) {
       (void)engine.run(at_round("handled(x) = x * x + $", round));
       auto handle = engine.function<double(double)>("handled");
       double gradient = 0;
       if (handle.ok()) (void)handle.value().value_and_gradient(2.0, gradient);
     }},
    {"a host function",
     [](Engine& engine, std::uint64_t round) {
       const auto added = static_cast<double>(round);
       (void)engine.define("host", [added](double x) { return x + added; });
       (void)engine.run("host(1.0)");
     }},
    {"a value",
     [](Engine& engine, std::uint64_t) {
       auto value = engine.run("[1.0, 2.0, 3.0]");
       if (value.ok()) (void)value.value().repr();
     }},
    {"an engine",
     [](Engine&, std::uint64_t round) {
       Engine other;
       (void)other.run(at_round("f(x) = x + $; f(1)", round));
     }},
};

struct Left {
  std::uint64_t rounds = 0;
  double malloc_a_round = 0;
  double resident_a_round = 0;
};

Left measure(const Kind& kind, Tier tier, double seconds) {
  Options options;
  options.tier = tier;
  options.output = options.error_output = [](std::string_view) {};
  Engine engine(options);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::uint64_t round = 0;
  const auto settle = [&] {
    (void)engine.run("GC.gc()");
    malloc_trim(0);
  };
  while (spent() < seconds / 2 || round < 300) kind.work(engine, round++);
  settle();
  const double malloc_before = malloc_bytes(), resident_before = resident_bytes();
  const std::uint64_t from = round;
  const std::uint64_t until = 2 * from;
  while (round < until && (spent() < 3 * seconds || round < from + least_measured)) kind.work(engine, round++);
  settle();
  const auto rounds = static_cast<double>(round - from);
  return {round - from, (malloc_bytes() - malloc_before) / rounds, (resident_bytes() - resident_before) / rounds};
}

const std::pair<const char*, Tier> tiers[] = {
    {"interpret", Tier::interpret}, {"auto", Tier::automatic}, {"compile", Tier::compile}};

}  // namespace

FuzzReport fuzz_soak(const FuzzOptions& options) {
  FuzzReport found;
  const std::regex only(options.only.empty() ? "." : options.only);
  for (const auto& [title, tier] : tiers) {
    if (options.tier != "all" && options.tier != title) continue;
    for (const Kind& kind : kinds) {
      if (!std::regex_search(kind.name, only)) continue;
      const Left left = measure(kind, tier, options.seconds != 0 ? options.seconds : 3);
      ++found.attempts;
      const bool leaks = left.malloc_a_round > most_bytes ||
                         (left.rounds >= rounds_for_resident && left.resident_a_round > most_resident);
      if (leaks) found.findings.push_back(kind.name);
      std::printf("%s %-10s %-28s %9llu rounds, %8.1f B of malloc and %8.1f B resident a round\n",
                  leaks ? "FOUND" : "     ", title, kind.name, static_cast<unsigned long long>(left.rounds),
                  left.malloc_a_round, left.resident_a_round);
      std::fflush(stdout);
    }
  }
  return found;
}

}  // namespace slope::test
