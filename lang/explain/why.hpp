// Why a call's result type is not exact: the first place where a type became abstract, how it flows from there to the
// result, the reason in words, and one change that would help.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lang/infer/infer.hpp"

namespace slope::infer {

struct WhyStep {
  Span span;
  std::string what;  // the expression, or what happens there
  const Type* type = nullptr;
};

struct Why {
  const Type* result = nullptr;  // of the call
  bool exact = false;            // dispatch can rely on it: then `steps` lead to an inner value, if there is one
  std::string kind;    // "global", "field", "element", "paths", "returns", "captured", "methods", "recursion",
                       // "splat", "constants", "limit", "argument", "unknown"; empty: every type is
                       // exact
  std::string reason;  // in words
  std::string advice;
  std::vector<WhyStep> steps;    // from the first place to the result, callees' places before their callers'
  std::vector<WhyStep> dynamic;  // calls whose method is looked up when they run
};

// What the walk asks about functions.
struct WhySource {
  // Their types before any optimisation. `unlimited`: with constants followed into callees of any size and depth.
  std::function<InferResult(Specialization& target, bool unlimited)> infer;
  // Limits that inference passed in it or at calls of it, in the order in which it did.
  std::function<std::vector<LimitPassed>(const Specialization& target)> limits;
};
Why why(Runtime& runtime, Context& ctx, Specialization& target, const WhySource& source);

// As the prompt prints it, with source lines.
std::string why_text(Runtime& runtime, const Specialization& target, const Why& found, bool color);

}  // namespace slope::infer
