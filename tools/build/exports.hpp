// What `slope build` exports: functions with the types of their arguments, and for each C function that is made of one,
// the Slope function that it is compiled from.
#pragma once

#include <string>
#include <vector>

#include "embed/engine_state.hpp"

namespace slope::api::tools::ahead {

// A number, or an array of numbers.
struct Datum {
  std::string name;  // in C
  const Type* type = nullptr;
  const Type* element = nullptr;  // of an array
  int rank = 0;                   // 0: a number
  bool is_result = false;
  bool is_array() const { return rank > 0; }
};

// A C function.
struct CFunction {
  std::string symbol;
  std::string meaning;           // for the header
  std::string wrapper;           // name of the Slope function
  std::string text;              // its definition
  std::vector<Datum> arguments;  // of the wrapper
  std::vector<Datum> results;    // numbers that it returns
  Specialization* target = nullptr;
};

// A function that is exported.
struct Export {
  std::string text;    // as it was asked for
  std::string callee;  // its name in Slope
  std::string symbol;  // its name in C
  std::vector<Datum> arguments;
  const Type* result = nullptr;
  Position position;
  Specialization* target = nullptr;
};

// Finds the function and its types. Not empty: what is wrong.
std::string resolve(detail::EngineState& engine, const std::string& text, Export& found);
// Not empty: why there is none.
std::string value_function(const Export& of, std::size_t number, CFunction& made);
std::string gradient_function(const Export& of, std::size_t number, CFunction& made);
std::string jvp_function(const Export& of, std::size_t number, CFunction& made);
std::string hvp_function(const Export& of, std::size_t number, CFunction& made);

bool is_float_array(const Type* type, const BuiltinTypes& types);
const char* c_type(const Type* number, const BuiltinTypes& types);  // null: none

}  // namespace slope::api::tools::ahead
