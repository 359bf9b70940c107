// Random differentiable programs: one function `model_N(a, b, v)` of two numbers and a vector of three, made of loops,
// branches, stores into arrays and objects, aliases, closures, calls that are not inlined, values of unknown type.
// Values stay small, so that central differences are good to several digits.
#pragma once

#include <cstdint>
#include <string>

namespace slope::test {

// What the programs call: types, functions, a check that prints a line when a gradient is wrong.
std::string program_prelude();

// The source of `model_<seed>`.
std::string random_program(std::uint64_t seed);

// A call that checks it: `check(model_<seed>, …)`.
std::string program_check(std::uint64_t seed);

}  // namespace slope::test
