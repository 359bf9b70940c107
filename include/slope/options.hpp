// How an engine is made.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace slope::api {

enum class Tier : unsigned char {
  interpret,  // never makes machine code
  compile,    // compiles every function before its first call
  automatic,  // compiles what is called or loops often
};

// What scripts print goes to functions that take a text; an empty one asks to write out what is held back (`flush`, and
// before standard input is read).
struct Options {
  Tier tier = Tier::automatic;
  bool check_generators = false;                      // run each generator of @generated functions twice and compare
  bool check_rules = false;                           // look at what derivative rules return, where they return it
  std::size_t heap_limit = 0;                         // bytes; 0: none. Beyond it scripts get OutOfMemoryError
  std::vector<std::string> arguments = {};            // ARGS
  std::function<void(std::string_view)> output = {};  // what scripts print; default: the process's standard output
  std::function<void(std::string_view)> error_output = {};  // what they print to stderr; default: standard error
};

}  // namespace slope::api
