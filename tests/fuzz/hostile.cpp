// Programs that mean harm (hostile/*.slope), each in an engine and a process of its own, with limits and no capabilities.
//
// Whatever they do, the process lives, the engine ends them in time and within its memory, it is of use afterwards, and the
// tiers print the same. What a program prints is not looked at otherwise: tests/scripts is the place for that.
//
// A file holds many programs. `#@ NAME [time=SECONDS] [heap=MIB] [stack=KIB] [fuel=N] [thread=KIB] [ends=limit]` begins
// one; `differs` says that its output may differ between tiers, `ends=` what its end must be.
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "slope/engine.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/isolated.hpp"

namespace slope::test {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr double slowness = 8;
constexpr bool counts_memory = false;
#else
constexpr double slowness = 1;
constexpr bool counts_memory = true;
#endif
constexpr double slack_seconds = 0.1;  // of processor time after the time limit; a busy machine may add to the clock's
constexpr double slack_mib = 64;       // beside the heap: the library's own code and types
constexpr double llvm_mib = 32;        // and LLVM's own, which it takes when it is loaded and compiles

struct Program {
  std::string name;
  std::string text;
  std::string ends = "any";  // value, error, limit
  double seconds = 30;
  double heap_mib = 64;
  double stack_kib = 0;   // Options::stack_limit
  double thread_kib = 0;  // of the thread that runs it; 0: the process's first
  double fuel = 0;
  bool may_differ = false;
};

// What the child reports on the shared page.
struct Outcome {
  double seconds = 0;
  double late = 0;  // processor time of the script's thread after its time limit
  double grown_mib = 0;
  char ends[16] = {};
  bool usable = false;
  char error[400] = {};
  std::size_t printed = 0;
  char output[40000] = {};
};
static_assert(sizeof(Outcome) <= sizeof(Page::text));

void copy_text(char* to, std::size_t room, const std::string& from) {
  const std::size_t size = std::min(room - 1, from.size());
  std::memcpy(to, from.data(), size);
  to[size] = 0;
}

double resident_mib(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::stod(line.substr(std::strlen(field) + 1)) / 1024;
  }
  return 0;
}

const char* end_name(const Error& error) {
  switch (error.kind) {
    case ErrorKind::limit:
      return "limit";
    case ErrorKind::exit:
      return "exit";
    case ErrorKind::syntax:
      return "syntax";
    default:
      return "error";
  }
}

// Processor time that a thread takes from a moment on.
class TimeAfter {
 public:
  explicit TimeAfter(double seconds) {
    pthread_getcpuclockid(pthread_self(), &clock_);
    watcher_ = std::thread([this, seconds] {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_over_; })) begin_ = now();
    });
  }
  double end() {
    const double end = now();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_over_ = true;
    }
    ended_.notify_one();
    watcher_.join();
    return begin_ < 0 ? 0 : end - begin_;
  }

 private:
  double now() const {
    timespec time{};
    clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  clockid_t clock_{};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  double begin_ = -1;
  std::thread watcher_;
};

void run_here(const Program& program, Tier tier, double patience, Outcome& outcome) {
  Options options;
  options.tier = tier;
  options.heap_limit = static_cast<std::size_t>(program.heap_mib * (1 << 20));
  // What must come to its value takes longer under a sanitizer; what never ends meets its limit as soon.
  options.time_limit = program.seconds * (program.ends == "value" ? slowness * patience : 1);
  options.stack_limit = static_cast<std::size_t>(program.stack_kib * 1024);
  options.fuel = static_cast<std::uint64_t>(program.fuel);
  options.output = [&outcome](std::string_view text) {
    const std::size_t room = sizeof(outcome.output) - 1;
    if (outcome.printed < room)
      std::memcpy(outcome.output + outcome.printed, text.data(), std::min(text.size(), room - outcome.printed));
    outcome.printed += text.size();
  };
  options.error_output = [](std::string_view) {};
  Engine engine(options);
  (void)engine.run("sum([1.0, 2.0])");
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak counts from here
  const double before = resident_mib("VmRSS:");
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  {
    TimeAfter after(options.time_limit);
    const auto result = engine.run(program.text, program.name);
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    outcome.late = after.end();
    copy_text(outcome.ends, sizeof outcome.ends, result.ok() ? "value" : end_name(result.error()));
    if (!result.ok()) copy_text(outcome.error, sizeof outcome.error, result.error().summary);
  }
  outcome.grown_mib = resident_mib("VmHWM:") - before;
  const auto after = engine.run("1 + 1");
  outcome.usable = after.ok() || std::strcmp(outcome.ends, "limit") == 0;
}

struct Job {
  const Program* program;
  Tier tier;
  double patience;
  Outcome* outcome;
};

void run_on_thread(const Program& program, Tier tier, double patience, Outcome& outcome) {
  if (program.thread_kib == 0) return run_here(program, tier, patience, outcome);
  Job job{&program, tier, patience, &outcome};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(program.thread_kib * 1024));
  pthread_t thread;
  const auto body = [](void* given) -> void* {
    const Job& job = *static_cast<Job*>(given);
    run_here(*job.program, job.tier, job.patience, *job.outcome);
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, body, &job) == 0) pthread_join(thread, nullptr);
}

Program begin_program(const std::string& line) {
  Program program;
  std::istringstream words(line.substr(2));
  words >> program.name;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "differs")
      program.may_differ = true;
    else if (key == "ends")
      program.ends = value;
    else if (key == "time")
      program.seconds = std::stod(value);
    else if (key == "heap")
      program.heap_mib = std::stod(value);
    else if (key == "stack")
      program.stack_kib = std::stod(value);
    else if (key == "thread")
      program.thread_kib = std::stod(value);
    else if (key == "fuel")
      program.fuel = std::stod(value);
    else {
      std::fprintf(stderr, "%s: what is %s?\n", program.name.c_str(), word.c_str());
      std::abort();
    }
  }
  return program;
}

std::vector<Program> read_programs(const std::filesystem::path& place) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(place)) {
    for (const auto& entry : std::filesystem::directory_iterator(place)) {
      if (entry.path().extension() == ".slope") files.push_back(entry.path());
    }
  } else {
    files.push_back(place);
  }
  std::sort(files.begin(), files.end());
  std::vector<Program> programs;
  for (const auto& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("#@", 0) == 0) {
        programs.push_back(begin_program(line));
        programs.back().name = file.stem().string() + "/" + programs.back().name;
      } else if (!programs.empty()) {
        programs.back().text += line + "\n";
      }
    }
  }
  return programs;
}

const std::pair<const char*, Tier> tiers[] = {
    {"interpret", Tier::interpret}, {"auto", Tier::automatic}, {"compile", Tier::compile}};

bool is_late(const Program& program, double patience, const Outcome& outcome) {
  if (outcome.seconds > (program.seconds * 3 * slowness + 2) * patience) return true;  // waits for something
  return outcome.late > slack_seconds * slowness * patience;
}

// What is wrong with this end; empty: nothing.
std::string fault(const Program& program, Tier tier, double patience, const Ending& ending, const Outcome& outcome) {
  char text[200] = "";
  if (!ending.well()) {
    std::snprintf(text, sizeof text, "%s", ending.text().c_str());
  } else if (is_late(program, patience, outcome)) {
    std::snprintf(text, sizeof text, "%.2f s under %.2f s, %.2f s of processor time late", outcome.seconds,
                  program.seconds, outcome.late);
  } else if (counts_memory &&
             outcome.grown_mib > program.heap_mib + slack_mib + (tier == Tier::interpret ? 0 : llvm_mib)) {
    std::snprintf(text, sizeof text, "%.0f MiB under %.0f MiB", outcome.grown_mib, program.heap_mib);
  } else if (!outcome.usable) {
    std::snprintf(text, sizeof text, "the engine is of no use afterwards");
  } else if (program.ends != "any" && program.ends != outcome.ends) {
    std::snprintf(text, sizeof text, "ends with %s, expected %s: %.120s", outcome.ends, program.ends.c_str(),
                  outcome.error);
  }
  return text;
}

}  // namespace

FuzzReport fuzz_hostile(const FuzzOptions& options) {
  FuzzReport found;
  const double patience = options.patience;
  const std::string place = options.text.empty() ? SLOPE_SOURCE_DIR "/tests/fuzz/hostile" : options.text;
  const std::regex only(options.only.empty() ? "." : options.only);
  for (const Program& program : read_programs(place)) {
    if (!std::regex_search(program.name, only)) continue;
    std::map<std::string, std::string> outputs;
    for (const auto& [title, tier] : tiers) {
      if (options.tier != "all" && options.tier != title) continue;
      Page& page = shared_page();
      Outcome& outcome = *reinterpret_cast<Outcome*>(page.text);
      Ending ending;
      // Late is what is late each time: the machine may be busy.
      for (int attempt = 0; attempt < 3; ++attempt) {
        new (&outcome) Outcome;
        if (options.here)
          run_on_thread(program, tier, patience, outcome);
        else
          ending =
              isolated({.seconds = (program.seconds * 3 + 20) * slowness * patience}, [&, tier = tier](Page& shared) {
                run_on_thread(program, tier, patience, *reinterpret_cast<Outcome*>(shared.text));
              });
        if (!ending.well() || !is_late(program, patience, outcome)) break;
      }
      ++found.attempts;
      const std::string wrong = fault(program, tier, patience, ending, outcome);
      if (!wrong.empty()) {
        found.findings.push_back(program.name);
        std::printf("FOUND %s, tier %s: %s\n", program.name.c_str(), title, wrong.c_str());
      } else if (std::strcmp(outcome.ends, "limit") != 0 && !program.may_differ) {
        outputs[std::string(outcome.output) + outcome.ends + " " + outcome.error] += std::string(" ") + title;
      }
      if (options.verbose)
        std::printf("%s %s: %s %.2f s %.0f MiB %s\n%s", title, program.name.c_str(), outcome.ends, outcome.seconds,
                    outcome.grown_mib, outcome.error, outcome.output);
      std::fflush(stdout);
    }
    if (outputs.size() > 1) {
      found.findings.push_back(program.name);
      std::printf("FOUND %s: the tiers differ\n", program.name.c_str());
      for (const auto& [output, which] : outputs) std::printf("-- %s\n%.1500s\n", which.c_str(), output.c_str());
    }
    std::fflush(stdout);
  }
  return found;
}

}  // namespace slope::test
