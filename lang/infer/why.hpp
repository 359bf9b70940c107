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
                       // "splat", "callee", "argument", "unknown"; empty: every type is exact
  std::string reason;  // in words
  std::string advice;
  std::vector<WhyStep> steps;    // from the first place to the result, callees' places before their callers'
  std::vector<WhyStep> dynamic;  // calls whose method is looked up when they run
};

// `result` is that of inferring `target`, before any optimisation; `infer_callee` gives the same of callees.
Why why(Runtime& runtime, Specialization& target, const InferResult& result, World world,
        const std::function<InferResult(Specialization&)>& infer_callee);

// As the prompt prints it, with source lines.
std::string why_text(Runtime& runtime, const Specialization& target, const Why& found, bool color);

}  // namespace slope::infer
