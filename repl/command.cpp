// Runs what the command line selects, in this order: snippets, or a file, or standard input; then the prompt if
// requested.
//
// Everything runs on a thread with a large stack. The main thread waits; the other one ends the process.
#include "repl/command.hpp"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <stdexcept>

#include "repl/build.hpp"
#include "repl/check.hpp"
#include "repl/coverage.hpp"
#include "repl/fmt.hpp"
#include "repl/inspect.hpp"
#include "repl/interrupts.hpp"
#include "repl/lsp.hpp"
#include "repl/options.hpp"
#include "repl/output.hpp"
#include "repl/paint.hpp"
#include "repl/process.hpp"
#include "repl/profile.hpp"
#include "repl/prompt.hpp"
#include "repl/subcommand.hpp"
#include "slope/tools.hpp"

namespace slope::repl {

namespace {

// An engine fills some megabytes at once. Getting these from the system in one request is several times cheaper than a
// page fault for each page; where it can't be asked for, they come by page faults.
void prepare_heap() {
#ifdef MADV_POPULATE_WRITE
  constexpr std::size_t engine_bytes = std::size_t{2} << 20;
  constexpr std::size_t page = 4096;
  void* grown = std::malloc(100'000);  // more than the heap has yet, less than what is mapped apart
  if (!grown) return;
  const auto from = (reinterpret_cast<std::uintptr_t>(grown) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  if (from < end && end - from > engine_bytes)
    madvise(reinterpret_cast<void*>(from), engine_bytes, MADV_POPULATE_WRITE);
  std::free(grown);
#endif
}

class Command {
 public:
  explicit Command(CommandLine line) : line_(std::move(line)), engine_(engine_options()) {
    tools::set_color(engine_, wants_color(line_.color, STDOUT_FILENO));
    paints_errors_ = wants_color(line_.color, STDERR_FILENO);
  }

  int run() {
    int status = 0;
    bool ran = false;
    {
      InterruptGuard guard(engine_);
      for (const Snippet& snippet : line_.snippets) {
        ran = true;
        Result<Value> result = engine_.run(snippet.code, "-e");
        if (result.ok() && snippet.prints) output_.out(result.value().repr() + "\n");
        if (!finished(result, status)) return status;
      }
      bool from_stdin =
          line_.file == "-" || (!ran && line_.file.empty() && !line_.interactive && !isatty(STDIN_FILENO));
      if (from_stdin) {
        ran = true;
        std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
        if (!finished(engine_.run(text, "<stdin>"), status)) return status;
      } else if (!line_.file.empty()) {
        ran = true;
        if (!finished(engine_.run_file(line_.file), status)) return status;
      }
    }
    if (!ran || line_.interactive) return run_prompt(engine_, output_, {line_.color, line_.startup});
    return status;
  }
  // What the script printed last may meet a full disk only now.
  int finish(int status) {
    if (const std::string times = tools::compile_times(engine_); !times.empty()) output_.err(times);
    output_.flush();
    if (output_.failure() == 0 || knows_of_failure_) return status;
    output_.err("slope: " + write_failure() + "\n");
    return status == 0 ? 1 : status;
  }

 private:
  Options engine_options() {
    Options options;
    options.tier = line_.tier;
    options.optimisation = line_.optimisation;
    options.check_generators = line_.check_generators;
    options.check_rules = line_.check_rules;
    options.trusts_inbounds = line_.trusts_inbounds;
    options.arguments = line_.arguments;
    options.cache = cache_folder();
    options.compile_threads = line_.compile_threads;
    options.capabilities = Capabilities::all();
    options.output = [this](std::string_view text) {
      output_.out(text);
      if (output_.failure() == 0) return;
      knows_of_failure_ = true;
      throw std::runtime_error(write_failure());  // an error of the script: it need not run for nothing
    };
    options.error_output = [this](std::string_view text) { output_.err(text); };
    return options;
  }

  // False: the command ends with `status`. With -i a failed script still leads to the prompt.
  bool finished(const Result<Value>& result, int& status) {
    if (result.ok()) return true;
    const Error& error = result.error();
    status = error.kind == ErrorKind::exit ? error.exit_code : 1;
    if (error.kind == ErrorKind::exit) return false;
    report_error(output_, error, paints_errors_);
    return line_.interactive;
  }

  std::string write_failure() const {
    return std::string("cannot write to standard output: ") + std::strerror(output_.failure());
  }

  CommandLine line_;
  bool paints_errors_ = false;
  bool knows_of_failure_ = false;  // the script
  Output output_;
  Engine engine_;
};

// `slope kernel …` and `slope notebook …` are a program of their own beside this one: the kernel needs libraries for the
// messages of Jupyter, which no script needs.
int run_kernel_program(char** arguments) {
  const std::string program = program_folder() + "/slope-kernel";
  std::vector<char*> all = {const_cast<char*>(program.c_str())};
  while (*arguments) all.push_back(*arguments++);
  all.push_back(nullptr);
  execv(program.c_str(), all.data());
  std::cerr << "slope: " << program << " is not there: it is made where the package xeus-dev is installed\n";
  return 1;
}

struct Task {
  CommandLine line;
  int (*subcommand)(int count, char** arguments) = nullptr;  // slope lsp, slope profile, …
  int count = 0;                                             // of its arguments
  char** arguments = nullptr;
};

// Ends the process. What the engine holds is not given back piece by piece: that would cost a tenth of a short run.
[[noreturn]] void* run_task(void* given) {
  const auto* task = static_cast<Task*>(given);
  if (task->subcommand) {
    int status = task->subcommand(task->count, task->arguments);
    if (!std::cout.flush()) {
      std::cerr << "slope: cannot write to standard output\n";
      if (status == 0) status = 1;
    }
    std::_Exit(status);
  }
  auto* command = new Command(std::move(static_cast<Task*>(given)->line));
  const int status = command->run();
  std::_Exit(command->finish(status));
}

}  // namespace

int run_command(int count, char** arguments) {
  open_closed_streams();
  int status = 0;
  Task task;
  if (count > 1 && std::string_view(arguments[1]) == "fmt") return run_fmt(count - 2, arguments + 2);
  const std::string_view first = count > 1 ? arguments[1] : "";
  if (first == "kernel" || first == "notebook") return run_kernel_program(arguments + 1);
  task.subcommand = first == "inspect"    ? run_inspect  // a script of that name is ./inspect
                    : first == "profile"  ? run_profile
                    : first == "check"    ? run_check
                    : first == "build"    ? run_build
                    : first == "coverage" ? run_coverage
                    : first == "lsp"      ? run_lsp
                                          : nullptr;
  if (task.subcommand) {
    task.count = count - 2;
    task.arguments = arguments + 2;
  } else {
    std::optional<CommandLine> line = read_command_line(count, arguments, status);
    if (!line) return status;
    task.line = std::move(*line);
  }

  // One arena that grows in large steps: a second thread's own would be grown page by page, a system call each.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TOP_PAD, 16 << 20);
  prepare_heap();

  pthread_t thread;
  const bool is_script = !task.subcommand;
  if (is_script) block_ending_signals();
  if (!start_on_large_stack(thread, run_task, &task)) run_task(&task);  // the stack there is must do
  // ^C, and a new size of the terminal, are for the thread that runs the script and waits for input.
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigaddset(&interrupt, SIGWINCH);
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  if (is_script) tend_output();
  pthread_join(thread, nullptr);
  return 0;  // not reached
}

}  // namespace slope::repl
