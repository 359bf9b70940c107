// An engine of the C interface for tests: what goes wrong where nobody asks for errors fails the test.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "slope/slope.h"

namespace slope::test {

struct CEngine {
  slope_engine* engine = slope_engine_new(nullptr, nullptr);
  ~CEngine() { slope_engine_free(engine); }
  void run(const char* text) {
    slope_error* error = nullptr;
    slope_value* value = slope_run(engine, text, "c.slope", &error);
    if (error) FAIL(slope_error_message(error));
    slope_value_free(value);
  }
  // What the last statement gives, as the prompt shows it, or the error in one line.
  std::string shown(const char* text) {
    slope_error* error = nullptr;
    slope_value* value = slope_run(engine, text, nullptr, &error);
    std::string repr = value ? slope_value_repr(value) : slope_error_summary(error);
    slope_value_free(value);
    slope_error_free(error);
    return repr;
  }
  slope_function* find(const char* name, const char* signature) {
    slope_error* error = nullptr;
    slope_function* function = slope_function_find(engine, name, signature, &error);
    if (error) FAIL(slope_error_message(error));
    return function;
  }
};

// The message of an error that there must be; frees it.
inline std::string taken(slope_error*& error) {
  REQUIRE(error);
  std::string message = slope_error_message(error);
  slope_error_free(error);
  error = nullptr;
  return message;
}

}  // namespace slope::test
