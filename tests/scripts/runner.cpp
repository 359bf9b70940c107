// Runs test scripts through the command, each in every tier, and compares what they print with the expectations inside
// them (script.hpp) and between the tiers.
//
//   slope_test_scripts --slope COMMAND [--tiers interpret,compile,auto,threads] [--jobs 2] [--timeout SECONDS]
//                      [--filter TEXT] FILE_OR_FOLDER...
//
// `threads` is `auto` with compile threads; a tier may have a level of optimisation: compile-O1.
//
// A case is one script in one tier. Writes "<passed> <failed>" into the file that SLOPE_TEST_COUNTS names, and beside it,
// in a file of that name and `.times`, "<seconds> <script>" for each script, the slowest first. Scripts that were slow
// when the file was last written start first. Prints the slowest. Exit status 0 when all passed, 1 when one failed, 2
// for wrong usage.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "tests/scripts/script.hpp"

namespace {

namespace fs = std::filesystem;
using slope::test::ProcessResult;
using slope::test::Script;

struct Settings {
  std::string command;
  std::vector<std::string> tiers = {"interpret", "compile", "auto"};
  unsigned jobs = 2;
  unsigned timeout_seconds = 60;
  std::string filter;
  std::vector<fs::path> roots;
};

std::optional<Settings> read_settings(int count, char** arguments) {
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const bool is_option = argument.starts_with("--");
    if (is_option && i + 1 == count) return std::nullopt;
    const std::string value = is_option ? arguments[++i] : argument;
    if (!is_option) {
      settings.roots.emplace_back(value);
    } else if (argument == "--slope") {
      settings.command = value;
    } else if (argument == "--tiers") {
      settings.tiers.clear();
      std::istringstream in(value);
      for (std::string tier; std::getline(in, tier, ',');) settings.tiers.push_back(tier);
    } else if (argument == "--jobs") {
      settings.jobs = std::max(1, std::atoi(value.c_str()));
    } else if (argument == "--timeout") {
      settings.timeout_seconds = std::max(1, std::atoi(value.c_str()));
    } else if (argument == "--filter") {
      settings.filter = value;
    } else {
      return std::nullopt;
    }
  }
  if (settings.command.empty() || settings.roots.empty()) return std::nullopt;
  return settings;
}

// Files under a folder named `include` or `data` are read by other scripts; they are no tests.
std::vector<fs::path> find_scripts(const Settings& settings) {
  std::vector<fs::path> scripts;
  for (const auto& root : settings.roots) {
    if (!fs::is_directory(root)) {
      scripts.push_back(root);
      continue;
    }
    for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
      const auto name = it->path().filename();
      if (it->is_directory() && (name == "include" || name == "data")) it.disable_recursion_pending();
      if (it->is_regular_file() && it->path().extension() == ".slope") scripts.push_back(it->path());
    }
  }
  std::erase_if(scripts,
                [&](const fs::path& path) { return path.string().find(settings.filter) == std::string::npos; });
  std::sort(scripts.begin(), scripts.end());
  return scripts;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// What a script took, in all its tiers.
struct Duration {
  double seconds = 0;
  std::string script;
  std::string tiers;  // "compile 2.1, auto 0.7"
};

std::string seconds_text(double seconds) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << seconds;
  return text.str();
}

// Long scripts last would leave the other jobs idle. What has not run yet goes by its size.
void start_slow_ones_first(std::vector<fs::path>& scripts, const std::string& times_file) {
  std::map<std::string, double> seconds;
  std::ifstream in(times_file);
  double taken = 0;
  for (std::string script; in >> taken >> script;) seconds[script] = taken;
  const auto expected = [&](const fs::path& path) {
    const auto known = seconds.find(path.string());
    return known != seconds.end() ? known->second : static_cast<double>(fs::file_size(path)) * 1e-4;
  };
  std::map<fs::path, double> order;
  for (const fs::path& path : scripts) order[path] = fs::exists(path) ? expected(path) : 0;
  std::stable_sort(scripts.begin(), scripts.end(),
                   [&](const fs::path& a, const fs::path& b) { return order[a] > order[b]; });
}

class Runner {
 public:
  Runner(const Settings& settings, std::vector<fs::path> scripts) : settings_(settings), scripts_(std::move(scripts)) {}

  void run() {
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < settings_.jobs; ++i) {
      workers.emplace_back([this] {
        for (std::size_t next = next_++; next < scripts_.size(); next = next_++) run_script(scripts_[next]);
      });
    }
    for (auto& worker : workers) worker.join();
  }

  unsigned passed() const { return passed_; }
  unsigned failed() const { return failed_; }

  // The slowest first.
  std::vector<Duration> durations() const {
    std::vector<Duration> sorted = durations_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Duration& a, const Duration& b) { return a.seconds > b.seconds; });
    return sorted;
  }

 private:
  void run_script(const fs::path& path) {
    const Script script = slope::test::read_script(read_file(path));
    std::optional<std::string> first_output;
    std::string first_tier;
    Duration duration{0, path.string(), {}};
    for (const auto& tier : settings_.tiers) {
      const bool by_threads = tier == "threads";  // `auto`, compiled by other threads
      const std::size_t level = tier.find("-O");  // "compile-O1"
      const std::string base = by_threads ? "auto" : tier.substr(0, level);
      if (!script.tiers.empty() && std::count(script.tiers.begin(), script.tiers.end(), base) == 0) continue;
      std::vector<std::string> command = {settings_.command, "--tier=" + base};
      if (by_threads) command.push_back("--compile-threads=2");
      if (level != std::string::npos) command.push_back(tier.substr(level));
      command.insert(command.end(), script.options.begin(), script.options.end());
      command.push_back(path.string());
      command.insert(command.end(), script.arguments.begin(), script.arguments.end());
      const auto start = std::chrono::steady_clock::now();
      const ProcessResult result =
          slope::test::run_process(command, script.input, std::chrono::seconds(settings_.timeout_seconds));
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      duration.seconds += seconds;
      duration.tiers += (duration.tiers.empty() ? "" : ", ") + tier + " " + seconds_text(seconds);

      auto problem = slope::test::check_result(script, result);
      if (!problem && first_output && !script.output_varies) {
        problem = tier_difference(script, first_tier, *first_output, result.out);
      }
      if (!first_output && !problem) {
        first_output = result.out;
        first_tier = tier;
      }
      report(path, tier, problem);
    }
    const std::lock_guard lock(output_);
    durations_.push_back(std::move(duration));
  }

  static std::optional<std::string> tier_difference(const Script& script, const std::string& first_tier,
                                                    const std::string& expected, const std::string& found) {
    const auto a = slope::test::split_lines(expected);
    const auto b = slope::test::split_lines(found);
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const std::string_view left = i < a.size() ? a[i] : "(end of output)";
      const std::string_view right = i < b.size() ? b[i] : "(end of output)";
      if (slope::test::same_text(left, right, script.tolerance)) continue;
      std::ostringstream problem;
      problem << "  output line " << i + 1 << " differs from tier " << first_tier << "\n    there: " << left
              << "\n    here:  " << right << '\n';
      return problem.str();
    }
    return std::nullopt;
  }

  void report(const fs::path& path, const std::string& tier, const std::optional<std::string>& problem) {
    const std::lock_guard lock(output_);
    if (!problem) {
      ++passed_;
      return;
    }
    ++failed_;
    std::cout << "FAILED " << path.string() << " --tier=" << tier << '\n' << *problem << std::flush;
  }

  const Settings& settings_;
  std::vector<fs::path> scripts_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex output_;
  std::vector<Duration> durations_;
  unsigned passed_ = 0;
  unsigned failed_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  const auto settings = read_settings(count, arguments);
  if (!settings) {
    std::cerr << "usage: slope_test_scripts --slope COMMAND [--tiers T,T] [--jobs N] [--timeout SECONDS] "
                 "[--filter TEXT] FILE_OR_FOLDER...\n";
    return 2;
  }
  const char* counts = std::getenv("SLOPE_TEST_COUNTS");
  const std::string times_file = counts ? std::string(counts) + ".times" : "";
  std::vector<fs::path> scripts = find_scripts(*settings);
  start_slow_ones_first(scripts, times_file);
  Runner runner(*settings, std::move(scripts));
  runner.run();
  const std::vector<Duration> durations = runner.durations();
  if (durations.size() > 1) std::cout << "slowest scripts:\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(durations.size(), 5) && durations.size() > 1; ++i)
    std::cout << "  " << seconds_text(durations[i].seconds) << " s  " << durations[i].script << " ("
              << durations[i].tiers << ")\n";
  std::cout << "scripts: " << runner.passed() << " passed, " << runner.failed() << " failed\n";
  if (counts) {
    std::ofstream(counts) << runner.passed() << ' ' << runner.failed() << '\n';
    std::ofstream times(times_file);
    for (const Duration& duration : durations) times << duration.seconds << ' ' << duration.script << '\n';
  }
  return runner.failed() == 0 ? 0 : 1;
}
