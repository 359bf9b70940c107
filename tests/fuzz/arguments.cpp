// Every name of Core and Base called with odd arguments (arguments.slope), each name in a process of its own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "slope/engine.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/isolated.hpp"

namespace slope::test {

namespace {

// Preparing is one use too: under the sanitizers, beside other tests, it takes seconds.
#ifdef __SANITIZE_ADDRESS__
constexpr double use_seconds = 8.0;
#else
constexpr double use_seconds = 1.0;
#endif
constexpr double slack_seconds = 0.25;  // a limit is late after this; the machine may be busy
constexpr std::size_t heap_bytes = std::size_t{64} << 20;
constexpr std::uint64_t peak_bytes = std::uint64_t{700} << 20;

struct Name {
  std::string where;  // a module
  std::string name;
  std::string title() const { return where + "." + name; }
};

Options engine_options(Tier tier) {
  Options options;
  options.tier = tier;
  options.heap_limit = heap_bytes;
  options.time_limit = use_seconds;
  options.output = [](std::string_view) {};
  options.error_output = [](std::string_view) {};
  return options;
}

Engine ready_engine(Tier tier, Page& page) {
  Engine engine(engine_options(tier));
  engine
      .define("begin_attempt",
              [&page](std::int64_t i, std::string_view text) { page.begin(static_cast<std::uint64_t>(i), text); })
      .value();
  engine.run_file(SLOPE_SOURCE_DIR "/tests/fuzz/arguments.slope").value();
  engine.run("Fuzz.prepare()").value();
  return engine;
}

std::vector<Name> all_names() {
  Options options = engine_options(Tier::interpret);
  options.time_limit = 30;  // all names of the library are entered: on a busy machine this takes its time
  Engine engine(options);
  const auto text = engine.eval<std::string>(R"(
let all = String[]
    todo = Any[(Core, "Core"), (Base, "Base")]
    while !isempty(todo)
        m, title = popfirst!(todo)
        for name in names(m; all = true)
            push!(all, title * " " * string(name))
            isdefined(m, name) || continue
            inner = try
                getfield(m, name)
            catch
                continue   # only the library may use it
            end
            inner isa Module && parentmodule(inner) === m && inner !== m && push!(todo, (inner, title * "." * string(name)))
        end
    end
    join(all, "\n")
end)");
  std::vector<Name> names;
  const std::string& lines = text.value();
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t space = lines.find(' ', at);
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    names.push_back({lines.substr(at, space - at), lines.substr(space + 1, end - space - 1)});
    at = end + 1;
  }
  return names;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '$') out += '\\';
    out += c;
  }
  return out + "\"";
}

// In the child: attempts until `count`, each use of the engine until a limit ends it.
void attempt_name(Page& page, Tier tier, const Name& name, std::uint64_t seed, std::uint64_t from,
                  std::uint64_t count) {
  Engine engine = ready_engine(tier, page);
  const std::string symbol = "Symbol(" + quoted(name.name) + ")";
  if (!engine.run("Fuzz.begin_name(" + name.where + ", " + symbol + ", " + std::to_string(seed) + ")").ok()) return;
  while (from <= count) {
    page.step = from;
    const auto begin = std::chrono::steady_clock::now();
    const auto done = engine.run("Fuzz.attempts(" + quoted(name.title()) + ", " + std::to_string(from) + ", " +
                                 std::to_string(count) + ")");
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (took > use_seconds + slack_seconds) {
      std::printf("LATE  %.2f s: %s\n", took, page.text);
      ++page.findings;
    }
    if (done.ok()) break;
    from = page.step + 1;
  }
}

const std::pair<const char*, Tier> tiers[] = {
    {"interpret", Tier::interpret}, {"auto", Tier::automatic}, {"compile", Tier::compile}};

void report(FuzzReport& found, const std::string& what) {
  found.findings.push_back(what);
  std::printf("FOUND %s\n", what.c_str());
  std::fflush(stdout);
}

void run_text(Tier tier, const std::string& text) {
  Engine engine = ready_engine(tier, shared_page());
  const auto result = engine.run("Core.eval(Fuzz, Meta.parse(" + quoted(text) + "))");
  std::printf("%s\n", result.ok() ? "a value" : result.error().summary.c_str());
}

}  // namespace

FuzzReport fuzz_arguments(const FuzzOptions& options) {
  FuzzReport found;
  const std::regex only(options.only.empty() ? "." : options.only);
  // These end the use at once, or are the command's.
  const std::regex skipped("Core\\.exit_process|.*\\.exit|.*\\.quit|Base\\.begin_attempt");
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [title, tier] : tiers) {
    if (options.tier != "all" && options.tier != title) continue;
    if (!options.text.empty()) {
      run_text(tier, options.text);
      continue;
    }
    for (const Name& name : all_names()) {
      if (!std::regex_search(name.title(), only) || std::regex_match(name.title(), skipped)) continue;
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      if (options.seconds > 0 && passed.count() > options.seconds) break;
      const std::uint64_t count = options.count ? options.count : 2000;
      std::uint64_t from = 1;
      for (std::uint64_t seed = options.seed; from <= count && seed < options.seed + 5; ++seed) {
        Page& page = shared_page();
        page.attempts = page.findings = 0;
        page.text[0] = 0;
        if (options.here) {
          attempt_name(page, tier, name, seed, from, count);
          break;
        }
        const Ending ending = isolated(
            {.seconds = 120}, [&, tier = tier](Page& shared) { attempt_name(shared, tier, name, seed, from, count); });
        found.attempts += page.attempts;
        if (page.findings != 0) found.findings.push_back("late: " + name.title());
        if (ending.well() && ending.peak_bytes > peak_bytes)
          report(found, std::to_string(ending.peak_bytes >> 20) + " MiB, tier " + title + ": " + name.title());
        if (options.verbose)
          std::printf("%s %s %llu attempts, %llu MiB\n", title, name.title().c_str(),
                      static_cast<unsigned long long>(page.attempts),
                      static_cast<unsigned long long>(ending.peak_bytes >> 20));
        if (ending.well()) break;
        report(found, ending.text() + ", tier " + title + ", seed " + std::to_string(seed) + ": " + page.text);
        from = page.step + 1;
      }
    }
  }
  return found;
}

}  // namespace slope::test
