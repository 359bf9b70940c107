// How an engine is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "slope/error.hpp"

namespace slope::api {

enum class Tier : unsigned char {
  interpret,  // never makes machine code
  compile,    // compiles every function before its first call
  automatic,  // compiles what is called or loops often
};

// What is done to make machine code fast. Results do not depend on it.
enum class Optimisation : unsigned char {
  none,    // ready ten times sooner than with `full`, five to ten times slower
  passes,  // a few of LLVM's passes, once each, and quick selection of instructions: ready four times sooner than with
           // `full`, two to five times slower, loops over matrices up to fifteen times
  full,
};

struct LineStep;   // slope/hooks.hpp
class Allocation;  // the same

// What scripts may do outside the engine; nothing unless granted. Any other access is an error that names the
// capability. Standard output needs no capability: it goes where Options::output says.
struct Capabilities {
  std::vector<std::string> read = {};   // folders in which, and below which, files may be read and listed
  std::vector<std::string> write = {};  // and written, made, moved, removed
  bool environment = false;             // variables; without: ENV is empty
  bool time = false;                    // clocks, and waiting
  bool random = false;                  // random seeds from the system; without: the same numbers in every run
  bool input = false;                   // standard input

  static Capabilities all() { return {{"/"}, {"/"}, true, true, true, true}; }
};

// A limit applies to one use of the engine from outside: a run, a call, a gradient, with everything in it. When a
// script reaches a limit, the engine stops it: none of its `catch` and `finally` blocks runs, and the host gets an
// error of kind `limit` that names the limit and the position. 0: no limit.
//
// What scripts print goes to functions that take a text. An empty text requests to write out buffered text (`flush`,
// and before standard input is read).
struct Options {
  Tier tier = Tier::automatic;
  bool check_generators = false;  // run each generator of @generated functions twice and compare
  bool check_rules = false;       // check what derivative rules return, where they return it
  // Believe `@inbounds`, in scripts and in the library: machine code then tests an index only where the code says so, and
  // a wrong script can read and write any memory of the process. Without: `@inbounds` means nothing in scripts, and no
  // code leaves an array.
  bool trusts_inbounds = false;
  // Keep records of running functions, for slope/profile.hpp and Allocation::position. Loops pay nothing; the shortest
  // calls of machine code take a third longer.
  bool profile = false;
  // Count the lines that run (slope/hooks.hpp), or call a function for each. Scripts are then interpreted, whatever the
  // tier, and optimisation removes nothing. `on_line` may interrupt the engine, but not use it, and may not throw.
  bool coverage = false;
  std::function<void(const LineStep&)> on_line = {};
  // Called for each allocation on the engine's heap. It may not use the engine or throw. With `profile` it knows lines.
  std::function<void(const Allocation&)> on_allocation = {};
  bool debuggers = false;                          // GDB sees compiled functions, with lines
  bool perf = false;                               // perf sees them, by `perf record -k mono` and `perf inject --jit`
  Optimisation optimisation = Optimisation::full;  // of machine code
  // A folder in which machine code is kept from one start to the next: what has been compiled before is read from there
  // (docs/embedding.md). It is made where it is missing, and has a limit of 512 MiB. Empty: none. Only a folder that no
  // other user can write to is used.
  std::string cache = {};
  // Threads that compile what gets hot while the script goes on in the interpreter: no call waits for LLVM. They belong
  // to the process, and its engines share them; 0: the calling thread compiles. With Tier::automatic only; results are
  // the same.
  unsigned compile_threads = 0;
  double pause_target = 0.001;  // seconds that the garbage collector may work without a break, about
  std::size_t heap_limit = 0;   // bytes of the heap; names, types and code count beyond 32 MiB
  std::uint64_t fuel = 0;       // calls and loop iterations
  double time_limit = 0;        // seconds of wall-clock time
  std::size_t stack_limit = 0;  // bytes of the calling thread's stack: the depth of recursion
  std::size_t tape_limit = 0;   // bytes of tapes, in which gradients keep what loops compute; 0: as heap_limit
  Capabilities capabilities = {};
  // The text of a file that a script includes, by its path (relative ones: from the including file's folder). Default:
  // the file system, where the capability `read` grants it or the file lies in or below a folder of Engine::run_file.
  std::function<Result<std::string>(const std::string& path)> load_source = {};
  // Folders in which `using X` looks for packages, before those of LOAD_PATH. What is read there is read as by
  // `include`.
  std::vector<std::string> load_path = {};
  std::vector<std::string> arguments = {};  // ARGS
  // Receives what scripts print; default: the process's standard output. An exception from it is an error of the
  // script, as from a host function.
  std::function<void(std::string_view)> output = {};
  // Receives what they print to stderr; default: standard error. An exception from it is dropped.
  std::function<void(std::string_view)> error_output = {};
};

}  // namespace slope::api
