// How a derivative of a handle is computed: chosen once for what is asked (with respect to which arguments, in which
// directions), then kept, so that asking in turn for several sets of arguments analyses and compiles each once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "embed/functions/lent_shape.hpp"
#include "lang/derive/cache.hpp"
#include "lang/runtime/backend.hpp"

namespace slope::api::detail {

class LentArrays;

enum class Road : std::uint8_t {
  words,    // machine code takes the arguments as words, and the host's memory as arrays
  values,   // the code of the derivative is called with Values
  library,  // the language's own operators: for varargs, callables that hold memory, arguments of any type
};

// The entry for words takes (the arguments, a shadow for each active array, the seed) and gives (the value, the
// derivatives of the numbers).
struct GradientPlan : std::enable_shared_from_this<GradientPlan> {
  Road road = Road::library;
  std::vector<char> wanted;          // with respect to what, callee first
  derive::GradientCode code;         // of words and values
  std::vector<std::size_t> numbers;  // of words: the arguments whose derivatives it returns, in order
  DirectCode direct;                 // of words

  bool is_for(std::size_t count, const GradientTarget* targets) const {
    for (std::size_t i = 0; i < count; ++i)
      if ((wanted[i + 1] != 0) != targets[i].wanted) return false;
    return true;
  }
  // Of words. The arrays are lent by the caller (Lending). False: an error is pending in the context.
  bool run(Context& ctx, std::span<const Kind> parameters, LentArrays* lent, const Datum* arguments,
           const GradientTarget* targets, double& value) const;
};

struct ForwardPlan {
  Road road = Road::library;
  const Specialization* primal = nullptr;  // the function's code or its gradient's
  std::vector<char> moving;                // by parameter of the primal
  std::size_t width = 1;                   // directions at once
  derive::Tangent code;                    // of words and values
  DirectCode direct;                       // of words
  bool looked = false;                     // for an entry for words
};

}  // namespace slope::api::detail
