// Arrays of several dimensions on their way into a script (slope/array.hpp).
//
// Inside the engine every lent array is column-major and without gaps. Any other array goes through an adapter, a
// function of the engine's own that is compiled instead of the requested function:
//
//   (x1, x2, x3_1) -> f(Base.transpose(x1), Base.view(x2, Core.:…, …))
//
// A row-major array is the transpose of the same memory. A strided array is a part of the larger array that its strides
// describe; its own lengths, except the last, are passed as numbers. Derivatives go through the adapter as through any
// code.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "embed/engine_state.hpp"
#include "slope/array.hpp"

namespace slope::api::detail {

// What a function's parameters become.
struct Lowering {
  std::vector<Kind> parameters;
  std::string adapter;  // its text; empty: all parameters are as they are
};
Lowering lower_parameters(const std::string& function, std::span<const Kind> given);

// The arguments of one call, as the adapter takes them.
struct LoweredArguments {
  std::array<Datum, most_arguments> data;
  std::array<GradientTarget, most_arguments> targets;
  std::array<std::size_t, most_arguments> places;  // of each argument among them
  // Empty, or what is wrong with an argument. `targets` may be null. `copied`: the code shall get copies of the arrays,
  // made by EngineState::to_raw, without their gaps.
  std::string lower(std::span<const Kind> given, const Datum* arguments, const GradientTarget* targets,
                    bool copied = false);

 private:
  std::array<std::array<std::size_t, 7>, most_arguments> shapes_;
};

// How they move, as the forward derivative of the adapter takes it. The tangents have the shapes and strides of the
// arguments (direction_misfit); those of what the script may write are copied, for it writes to them too.
struct LoweredTangents {
  std::array<TangentGiven, most_arguments> data;
  void lower(std::span<const Kind> given, const LoweredArguments& arguments, const TangentGiven* tangents);

 private:
  std::vector<std::vector<double>> copies_;
};

// Empty, or why an array (`name`: "its tangent") does not go with the argument: another shape, layout or other strides.
std::string shape_misfit(const Datum& argument, const Datum& other, const char* name);
bool share_memory(const double* a, std::size_t a_size, const double* b, std::size_t b_size);
// Where an element lies, by its number in the order of the memory, gaps not counted.
std::size_t element_offset(const Datum& array, std::size_t number);
// Elements without gaps into an array that may have some.
void scatter(const GradientTarget& target, const double* from);

// The memory between first and last element, gaps included.
std::size_t memory_size(Kind kind, const std::size_t* extents, std::size_t size);
// Zeros in all elements, and not in the gaps.
void clear(const GradientTarget& target);
// Elements of an array of the shape that it lies in.
void copy_into(const GradientTarget& target, const double* from, std::size_t size);

}  // namespace slope::api::detail
