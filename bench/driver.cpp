// Runs the benchmarks and prints one table: Slope beside C and C++ in the same run, the two alternating, so that a
// change of the machine's speed meets both.
//
//   slope_bench --slope COMMAND --native FOLDER --top FOLDER [--rounds 3] [--against COMMAND] [name…]
//
// `--against` runs the programs with another build of Slope as well, in the same rounds: the last column is the time now
// over the time there.
//
// Programs print `sample <name> <nanoseconds>` and `result <name> <value>` (bench/programs/harness.slope,
// bench/native/bench.h). Ratios are of the minima. A row fails when the two results differ by more than 1e-9 or a limit
// is passed; the exit status is then 1.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

extern char** environ;

namespace {

struct Run {
  bool ok = false;
  double milliseconds = 0;
  double processor_milliseconds = 0;
  double peak_megabytes = 0;
  std::string out;
};

// Standard error goes to ours.
Run run_program(const std::vector<std::string>& command) {
  Run run;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return run;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  std::vector<char*> arguments;
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int failed = posix_spawn(&child, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed == 0) {
    std::array<char, 4096> buffer;
    for (ssize_t count; (count = read(ends[0], buffer.data(), buffer.size())) > 0;) {
      run.out.append(buffer.data(), static_cast<std::size_t>(count));
    }
    int status = 0;
    rusage usage = {};
    wait4(child, &status, 0, &usage);
    run.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const auto of = [](const timeval& t) {
      return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
    };
    run.processor_milliseconds = of(usage.ru_utime) + of(usage.ru_stime);
    run.peak_megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
    run.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  } else {
    std::fprintf(stderr, "cannot start %s: %s\n", command[0].c_str(), std::strerror(failed));
  }
  close(ends[0]);
  return run;
}

struct Measured {
  std::vector<double> samples;
  std::optional<double> result;

  double minimum() const { return *std::min_element(samples.begin(), samples.end()); }
  double median() const {
    auto sorted = samples;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

using Measurements = std::map<std::string, Measured>;

bool collect(const Run& run, Measurements& into) {
  std::istringstream in(run.out);
  std::string kind;
  std::string name;
  double value = 0;
  while (in >> kind >> name >> value) {
    if (kind == "sample") into[name].samples.push_back(value);
    if (kind == "result") into[name].result = value;
  }
  return run.ok;
}

std::string time_text(double nanoseconds) {
  std::array<char, 32> text;
  if (nanoseconds < 1e3) {
    std::snprintf(text.data(), text.size(), "%.0f ns", nanoseconds);
  } else if (nanoseconds < 1e6) {
    std::snprintf(text.data(), text.size(), "%.2f µs", nanoseconds / 1e3);
  } else {
    std::snprintf(text.data(), text.size(), "%.2f ms", nanoseconds / 1e6);
  }
  return text.data();
}

std::string number_text(const char* format, double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

class Table {
 public:
  explicit Table(bool compares) {
    add({"what", "Slope min", "median", "C / C++ min", "median", "ratio", "limit", ""});
    add({"---", "---:", "---:", "---:", "---:", "---:", "---:", "---"});
    if (!compares) return;
    rows_[0].push_back("now / before");
    rows_[1].push_back("---:");
  }

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  void add_to_last(std::string cell) { rows_.back().push_back(std::move(cell)); }

  void print() {
    for (auto& row : rows_) row.resize(rows_[0].size());
    std::vector<std::size_t> widths(rows_[0].size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], shown_width(row[i]));
    }
    for (const auto& row : rows_) {
      std::string line = "|";
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string padding(widths[i] - shown_width(row[i]), row[i].starts_with("---") ? '-' : ' ');
        line += " " + (i == 0 || row[i].starts_with("---") ? padding_after(row[i], padding) : padding + row[i]) + " |";
      }
      std::printf("%s\n", line.c_str());
    }
  }

 private:
  static std::string padding_after(const std::string& cell, const std::string& padding) {
    return cell.ends_with(":") ? padding + cell : cell + padding;
  }

  static std::size_t shown_width(const std::string& text) {  // code points
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }

  std::vector<std::vector<std::string>> rows_;
};

struct Settings {
  std::string slope;
  std::string native;
  std::string top;
  std::string against;  // another build's command, or empty
  int rounds = 3;
  std::vector<std::string> names;

  bool wants(const std::string& name) const {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  }
  std::string program(const std::string& name) const { return top + "/bench/programs/" + name + ".slope"; }
};

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings), table_(!settings.against.empty()) {}

  // One program on both sides.
  void compare(const std::string& program, const std::vector<std::string>& arguments) {
    std::vector<std::string> native = {settings_.native + "/slope_bench_" + program};
    std::vector<std::string> slope = {settings_.slope, settings_.program(program)};
    native.insert(native.end(), arguments.begin(), arguments.end());
    slope.insert(slope.end(), arguments.begin(), arguments.end());
    for (int round = 0; round < settings_.rounds; ++round) {
      collect(run_program(native), native_);
      run_before(slope);
      if (!collect(run_program(slope), slope_)) break;
    }
  }

  // `name` in Slope against `native_name`; no limit when it is 0.
  void compare_row(const std::string& title, const std::string& name, const std::string& native_name, double limit) {
    const auto& ours = slope_[name];
    const auto& theirs = native_[native_name];
    if (ours.samples.empty() || theirs.samples.empty() || !ours.result || !theirs.result) {
      return fail(title, "did not run");
    }
    const double ratio = ours.minimum() / theirs.minimum();
    const double scale = std::max({1.0, std::abs(*ours.result), std::abs(*theirs.result)});
    std::string verdict = limit > 0 && ratio > limit ? "too slow" : "";
    if (!(std::abs(*ours.result - *theirs.result) <= 1e-9 * scale)) verdict = "WRONG RESULT";
    if (!verdict.empty()) failed_ = true;
    table_.add({title, time_text(ours.minimum()), time_text(ours.median()), time_text(theirs.minimum()),
                time_text(theirs.median()), number_text("%.2f", ratio), limit > 0 ? number_text("%.1f", limit) : "",
                verdict});
    add_before(name);
    ratios_.push_back(ratio);
  }

  // Of the ratios since the last mean.
  void mean_row(const std::string& title) {
    double logarithms = 0;
    for (const double ratio : ratios_) logarithms += std::log(ratio);
    if (!ratios_.empty())
      table_.add({title, "", "", "", "",
                  number_text("%.2f", std::exp(logarithms / static_cast<double>(ratios_.size()))), "", ""});
    ratios_.clear();
  }

  // A program that has no counterpart.
  void measure(const std::string& program, const std::vector<std::string>& arguments = {}) {
    std::vector<std::string> command{settings_.slope, settings_.program(program)};
    command.insert(command.end(), arguments.begin(), arguments.end());
    for (int round = 0; round < settings_.rounds; ++round) {
      run_before(command);
      if (!collect(run_program(command), slope_)) break;
    }
  }

  // A program of bench/ that runs the command itself.
  void drive(const std::string& program, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{settings_.native + "/slope_bench_" + program};
    command.insert(command.end(), arguments.begin(), arguments.end());
    collect(run_program(command), slope_);
  }

  // A time that is held to a limit, in milliseconds.
  void limit_row(const std::string& title, const std::string& name, double limit_milliseconds) {
    const auto& ours = slope_[name];
    if (ours.samples.empty()) return fail(title, "did not run");
    const bool slow = ours.minimum() > limit_milliseconds * 1e6;
    failed_ = failed_ || slow;
    table_.add({title, time_text(ours.minimum()), time_text(ours.median()), "", "", "",
                number_text("%.0f ms", limit_milliseconds), slow ? "too slow" : ""});
    add_before(name);
  }

  // Something that was counted.
  void count_row(const std::string& title, const std::string& name) {
    const auto& ours = slope_[name];
    if (ours.samples.empty()) return fail(title, "did not run");
    table_.add({title, number_text("%.0f", ours.minimum()), "", "", "", "", "", ""});
  }

  void row(const std::string& title, const std::string& name) {
    const auto& ours = slope_[name];
    if (ours.samples.empty()) return fail(title, "did not run");
    table_.add({title, time_text(ours.minimum()), time_text(ours.median()), "", "", "", "", ""});
    add_before(name);
  }

  // Two Slope measurements of one program; no limit when it is 0.
  void ratio_row(const std::string& title, const std::string& name, const std::string& base, double limit = 0) {
    const auto& left = slope_[name];
    const auto& right = slope_[base];
    if (left.samples.empty() || right.samples.empty()) return;
    const double ratio = left.minimum() / right.minimum();
    const bool slow = limit > 0 && ratio > limit;
    failed_ = failed_ || slow;
    table_.add({title, "", "", "", "", number_text("%.2f", ratio), limit > 0 ? number_text("%.2f", limit) : "",
                slow ? "too slow" : ""});
  }

  // Bytes that should not be allocated.
  void nothing_allocated_row(const std::string& title, const std::string& name) {
    const auto& bytes = slope_[name];
    if (bytes.samples.empty()) return fail(title, "did not run");
    const bool some = bytes.minimum() > 0;
    failed_ = failed_ || some;
    table_.add({title, number_text("%.0f B", bytes.minimum()), "", "", "", "", "0 B", some ? "allocates" : ""});
  }

  // Whole processes, beside an empty C program.
  void process_row(const std::string& title, const std::vector<std::string>& command, double limit_milliseconds) {
    Measured ours;
    Measured theirs;
    for (int i = 0; i < 10 * settings_.rounds; ++i) {
      theirs.samples.push_back(run_program({settings_.native + "/slope_bench_empty"}).milliseconds * 1e6);
      const Run run = run_program(command);
      if (!run.ok) return fail(title, "did not run");
      ours.samples.push_back(run.milliseconds * 1e6);
    }
    const bool slow = ours.minimum() > limit_milliseconds * 1e6;
    failed_ = failed_ || slow;
    table_.add({title, time_text(ours.minimum()), time_text(ours.median()), time_text(theirs.minimum()),
                time_text(theirs.median()), "", number_text("%.0f ms", limit_milliseconds), slow ? "too slow" : ""});
  }

  // Processor time of a program that does something for the first time: without any machine code at hand, with that of
  // the library, and with what an earlier run has kept.
  void first_row(const std::string& what) {
    const std::string folder =
        std::filesystem::temp_directory_path() / ("slope-bench-" + std::to_string(getpid()) + "-code");
    const auto least = [&](const std::vector<std::string>& settings) {
      std::vector<std::string> command{"/usr/bin/env"};
      command.insert(command.end(), settings.begin(), settings.end());
      command.insert(command.end(), {settings_.slope, settings_.program("first"), what});
      Measured measured;
      for (int i = 0; i < settings_.rounds; ++i) {
        const Run run = run_program(command);
        if (!run.ok) return std::string("did not run");
        measured.samples.push_back(run.processor_milliseconds * 1e6);
      }
      return time_text(measured.minimum());
    };
    const std::string cold = least({"SLOPE_CACHE=off", "SLOPE_LIBRARY_CODE=off"});
    const std::string with_library = least({"SLOPE_CACHE=off"});
    least({"SLOPE_CACHE=" + folder});
    const std::string kept = least({"SLOPE_CACHE=" + folder});
    std::filesystem::remove_all(folder);
    for (const auto& [title, time] : {std::pair{"first " + what + ", all compiled", cold},
                                      std::pair{std::string("  with the library's machine code"), with_library},
                                      std::pair{std::string("  with its own as well"), kept}})
      table_.add({title, time, "", "", "", "", "", ""});
  }

  // What `command` takes longer than `less`, a part of it; the two alternate.
  void difference_row(const std::string& title, const std::vector<std::string>& command,
                      const std::vector<std::string>& less, double limit_milliseconds) {
    Measured whole;
    Measured part;
    for (int i = 0; i < 20 * settings_.rounds; ++i) {
      const Run run = run_program(command);
      const Run other = run_program(less);
      if (!run.ok || !other.ok) return fail(title, "did not run");
      whole.samples.push_back(run.milliseconds * 1e6);
      part.samples.push_back(other.milliseconds * 1e6);
    }
    const double least = whole.minimum() - part.minimum();
    const bool slow = least > limit_milliseconds * 1e6;
    failed_ = failed_ || slow;
    table_.add({title, time_text(least), time_text(whole.median() - part.median()), "", "", "",
                number_text("%.0f ms", limit_milliseconds), slow ? "too slow" : ""});
  }

  void memory_row(const std::string& title, const std::vector<std::string>& command, double limit_megabytes) {
    const Run run = run_program(command);
    if (!run.ok) return fail(title, "did not run");
    const bool large = run.peak_megabytes > limit_megabytes;
    failed_ = failed_ || large;
    table_.add({title, number_text("%.0f MiB", run.peak_megabytes), "", "", "", "",
                number_text("%.0f MiB", limit_megabytes), large ? "too large" : ""});
  }

  bool finish() {
    table_.print();
    return !failed_;
  }

 private:
  void fail(const std::string& title, const std::string& why) {
    failed_ = true;
    table_.add({title, "", "", "", "", "", "", why});
  }

  void run_before(std::vector<std::string> command) {
    if (settings_.against.empty()) return;
    command[0] = settings_.against;
    collect(run_program(command), before_);
  }
  void add_before(const std::string& name) {
    const auto& before = before_[name];
    if (!before.samples.empty()) table_.add_to_last(number_text("%.2f", slope_[name].minimum() / before.minimum()));
  }

  const Settings& settings_;
  Table table_;
  Measurements slope_;
  Measurements before_;
  std::vector<double> ratios_;
  Measurements native_;
  bool failed_ = false;
};

std::optional<Settings> read_settings(int count, char** arguments) {
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (!argument.starts_with("--")) {
      settings.names.push_back(argument);
      continue;
    }
    if (i + 1 == count) return std::nullopt;
    const std::string value = arguments[++i];
    if (argument == "--slope") {
      settings.slope = value;
    } else if (argument == "--native") {
      settings.native = value;
    } else if (argument == "--top") {
      settings.top = value;
    } else if (argument == "--against") {
      settings.against = value;
    } else if (argument == "--rounds") {
      settings.rounds = std::max(1, std::atoi(value.c_str()));
    } else {
      return std::nullopt;
    }
  }
  if (settings.slope.empty() || settings.native.empty() || settings.top.empty()) return std::nullopt;
  return settings;
}

}  // namespace

int main(int count, char** arguments) {
  const auto settings = read_settings(count, arguments);
  if (!settings) {
    std::fputs(
        "usage: slope_bench --slope COMMAND --native FOLDER --top FOLDER [--rounds N] [--against COMMAND] "
        "[name…]\n"
        "names: fib mandelbrot matmul kernels everyday language logistic mul derivatives start prompt first_gradient "
        "first "
        "inference "
        "overlay heap\n",
        stderr);
    return 2;
  }
  Bench bench(*settings);
  if (settings->wants("fib")) {
    bench.compare("fib", {});
    bench.compare_row("fib(30)", "fib", "fib", 1.5);
  }
  if (settings->wants("mandelbrot")) {
    bench.compare("mandelbrot", {});
    bench.compare_row("Mandelbrot 200 × 200", "mandelbrot", "mandelbrot", 1.5);
  }
  if (settings->wants("matmul")) {
    bench.compare("matmul", {});
    bench.compare_row("triple loop 200 × 200", "matmul", "matmul", 1.5);
  }
  if (settings->wants("kernels")) {
    bench.compare("kernels", {});
    for (const char* name : {"dot", "axpy", "stencil", "prefix", "nbody", "histogram", "matvec", "rows", "words",
                             "particles", "collatz", "horner32", "quaternion", "tuples", "sieve", "smooth"}) {
      bench.compare_row(std::string("kernel: ") + name, name, name, 0);
    }
  }
  if (settings->wants("everyday")) {
    bench.compare("everyday", {});
    for (const auto& [name, title] :
         {std::pair{"sort_numbers", "sort of 10,000 numbers"},
          std::pair{"sort_integers", "sort of 10,000 integers below 1000"},
          std::pair{"sort_words", "sort of 10,000 words"}, std::pair{"word_counts", "words counted in a table"},
          std::pair{"joined", "join of integers"}, std::pair{"lines", "integers printed into a buffer"},
          std::pair{"formatted", "@sprintf of an integer and a number"}, std::pair{"fields", "lines split and parsed"},
          std::pair{"pairs", "comprehension over two ranges with a condition"},
          std::pair{"areas", "areas of mixed structs"}, std::pair{"closures", "mixed closures"},
          std::pair{"distance", "edit distance of two texts"}, std::pair{"reached", "breadth-first search"},
          std::pair{"paths", "recursion with a table of results"}, std::pair{"primes", "sieve of 100,000"},
          std::pair{"deviation", "standard deviation"}, std::pair{"row_sums", "sums of rows, as views"}}) {
      bench.compare_row(std::string("everyday: ") + title, name, name, 0);
    }
  }
  if (settings->wants("language")) {
    bench.mean_row("geometric mean");
    bench.compare("language", {});
    for (const auto& [name, title] : {std::pair{"structs_3", "costs of 100,000 structs of three types"},
                                      std::pair{"structs_mapped_3", "  in a comprehension"},
                                      std::pair{"structs_6", "  of six types"},
                                      std::pair{"structs_mapped_6", "  of six types, in a comprehension"},
                                      std::pair{"bodies", "20 steps of 1,000 mutable structs of three types"},
                                      std::pair{"expression", "an expression as a tree"},
                                      std::pair{"closures", "a chain of 10,000 closures of four kinds"},
                                      std::pair{"closures_sum", "  their sum"},
                                      std::pair{"machine", "10,000 steps of operations in a vector"},
                                      std::pair{"collisions", "dispatch on two arguments, of six types"},
                                      std::pair{"hands", "  of three types without fields"},
                                      std::pair{"string_of", "string(i)"},
                                      std::pair{"string_parts", "strings of four parts, joined"},
                                      std::pair{"interpolated", "interpolation"},
                                      std::pair{"buffer", "five parts printed into a buffer"},
                                      std::pair{"join_texts", "join of string(i)"},
                                      std::pair{"join_range", "join of a range"},
                                      std::pair{"sieve", "sieve of 5·10⁶ Bools"},
                                      std::pair{"sieve_while", "  with while"},
                                      std::pair{"trees", "binary trees"},
                                      std::pair{"search_tree", "a search tree of 20,000 keys"}})
      bench.compare_row(std::string("language: ") + title, name, name, 0);
    bench.mean_row("geometric mean of these");
  }
  if (settings->wants("logistic")) {
    bench.compare("logistic", {settings->top + "/examples/data/wdbc.csv"});
    bench.compare_row("logistic loss, arrays", "loss", "loss", 0);
    bench.compare_row("logistic gradient, arrays", "gradient", "gradient", 2.0);
    bench.ratio_row("  over its own loss", "gradient", "loss");
    bench.compare_row("logistic loss, loops", "loss_loops", "loss", 0);
    bench.compare_row("logistic gradient, loops", "gradient_loops", "gradient", 0);
    bench.ratio_row("  over its own loss", "gradient_loops", "loss_loops");
  }
  if (settings->wants("mul")) {
    bench.measure("mul");
    bench.row("mul!, 16 × 32 by 32 × 8", "mul");
    bench.row("  forward step of its rule", "mul_forward");
    bench.ratio_row("  over mul!", "mul_forward", "mul", 1.24);
    bench.row("  in a gradient", "mul_gradient");
    bench.row("  with a rule without state", "mul_gradient_copying");
    bench.ratio_row("  with state over without", "mul_gradient", "mul_gradient_copying", 1.0);
    bench.nothing_allocated_row("  allocated by a call in a gradient", "mul_allocated");
  }
  for (const std::string name : {"gmm", "lstm"}) {
    if (!settings->wants(name)) continue;
    bench.compare(name, {});
    bench.compare_row("GradBench " + name, name, name, 0);
    bench.compare_row("GradBench " + name + ", gradient", name + "_gradient", name + "_gradient", 0);
    bench.ratio_row("  over its own objective", name + "_gradient", name);
  }
  if (settings->wants("start")) {
    const std::vector<std::string> nothing{settings->slope, "-e", "nothing"};
    bench.process_row("start: -e nothing", nothing, 15);
    bench.difference_row("  the engine and its library alone", nothing, {settings->slope, "--version"}, 5);
    bench.memory_row("  resident memory", nothing, 16);
  }
  if (settings->wants("prompt")) {
    const std::string state = std::filesystem::temp_directory_path() / ("slope-bench-" + std::to_string(getpid()));
    bench.drive("prompt", {settings->slope, state});
    std::filesystem::remove_all(state);
    bench.limit_row("the prompt is there, 10,000 inputs in the history", "prompt", 20);
    bench.limit_row("  a key shows", "key", 10);
    bench.limit_row("  ↑ finds an input", "history", 10);
    bench.limit_row("  ^R and five keys", "search", 60);
  }
  if (settings->wants("derivatives")) {
    bench.compare("derivatives", {});
    bench.compare_row("1000 gradients of nested conditionals", "qux", "qux", 1.5);
    bench.compare_row("1000 gradients of a fold over a tuple", "foldminus", "foldminus", 0);
    bench.compare_row("1000 plain gradients of nested conditionals", "qux_plain", "qux", 1.5);
    bench.compare_row("1000 plain gradients of a fold over a tuple", "foldminus_plain", "foldminus", 0);
    bench.compare_row("determinant by minors, 9 rows", "minors", "minors", 0);
    bench.compare_row("  its gradient", "minors_gradient", "minors_gradient", 0);
    bench.row("100 sums by a closure that assigns, of 100 numbers", "captured");
    bench.row("  their gradients", "captured_gradient");
    bench.row("a wave on 100 points, 100 steps in work arrays", "wave");
    bench.row("  its gradient", "wave_gradient");
    bench.row("diffusion on 100 points, 100 steps, work arrays that change places", "diffuse");
    bench.row("  its gradient, with respect to the coefficient, too", "diffuse_gradient");
    bench.row("Rosenbrock's function, 1000 numbers", "rosenbrock");
    bench.compare_row("  its gradient", "rosenbrock_gradient", "rosenbrock_gradient", 0);
    bench.row("a sum of 1000 sines", "sine_sum");
    bench.compare_row("  its gradient", "sine_sum_gradient", "sine_sum_gradient", 0);
    bench.row("neighbours in a matrix of 100 by 100, 10 steps", "spread");
    bench.row("  its gradient", "spread_gradient");
    bench.row("squares of 500 vectors of 20", "vectors");
    bench.row("  its gradient", "vectors_gradient");
    for (const std::string kind :
         {"struct", "layer", "object", "structs", "vector", "storing", "pullback", "jvp", "hvp", "hessian", "dynamic"})
      bench.row("  1000 calls, " + kind, "operator_" + kind);
    bench.process_row("gradient of 1000 ifs", {settings->slope, settings->program("many_branches")}, 2000);
    bench.process_row("gradient of 10,000 statements", {settings->slope, settings->program("straight_line")}, 10000);
  }
  if (settings->wants("inference")) {
    bench.measure("inference", {"rows"});
    for (const auto& [name, size] : {std::pair{"chained_locals", 10000}, std::pair{"constant_calls", 1000},
                                     std::pair{"global_reads", 10000}, std::pair{"many_methods", 1000}}) {
      const std::string row = std::string("infer_") + name + "_";
      const std::string once = row + std::to_string(size);
      bench.limit_row("inference: " + std::to_string(size) + " " + name, once, 1000);
      bench.ratio_row("  twice as many", row + std::to_string(2 * size), once, 3);
    }
  }
  if (settings->wants("overlay")) {
    bench.measure("overlay", {"rows"});
    for (const std::string graph : {"small_graph", "large_graph"}) {
      const double limit = graph == "small_graph" ? 10 : 100;
      for (const std::string how : {"from_scratch", "mostly_cached"}) {
        for (const std::string kind : {"kept", "made_again"}) {
          const std::string row = graph + "_" + how + "_" + kind;
          bench.limit_row("overlay: " + row, row, limit);
          for (const std::string count : {"calls", "allocations", "kept"})
            bench.count_row("  " + (count == "kept"    ? "bytes kept"
                                    : count == "calls" ? "generator calls"
                                                       : count),
                            row + "_" + count);
        }
        bench.ratio_row("  made again over kept", graph + "_" + how + "_made_again", graph + "_" + how + "_kept");
      }
    }
  }
  if (settings->wants("first_gradient")) {
    bench.process_row("first gradient, start included", {settings->slope, settings->program("first_gradient")}, 120);
  }
  if (settings->wants("first")) {
    for (const char* what :
         {"logistic", "gmm", "lstm", "det", "particle", "randmatstat", "hessian", "json", "matrix", "plot"})
      bench.first_row(what);
  }
  if (settings->wants("heap")) {
    bench.memory_row("10 GB of garbage, peak memory", {settings->slope, settings->program("heap")}, 100);
    bench.measure("heap_pauses");
    bench.row("worst of 3,000 frames of 1,000 objects, 10⁶ objects live", "pause_frame");
    bench.row("  a whole collection, 10⁵ live nodes", "collection_100000");
    bench.row("  10⁶", "collection_1000000");
    bench.row("  5·10⁶", "collection_5000000");
    bench.row("  10⁶ vectors of one number", "collection_vectors");
    bench.row("an object of two numbers, made and dropped", "alloc_object");
    bench.row("  a vector of two", "alloc_vector");
    bench.row("  string(i)", "alloc_string");
    bench.row("binary trees of depth 16", "trees");
  }
  return bench.finish() ? 0 : 1;
}
