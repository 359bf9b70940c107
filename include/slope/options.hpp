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

struct Options {
  Tier tier = Tier::automatic;
  bool check_generators = false;                      // run each generator of @generated functions twice and compare
  std::size_t heap_limit = 0;                         // bytes; 0: none. Beyond it scripts get OutOfMemoryError
  std::vector<std::string> arguments = {};            // ARGS
  std::function<void(std::string_view)> output = {};  // what scripts print; default: the process's standard output
  std::function<void(std::string_view)> error_output = {};  // what they print to stderr; default: standard error
};

}  // namespace slope::api
