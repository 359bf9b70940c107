// @code_warntype: what inference found, laid out as Julia lays it out. Types that dispatch can't rely on stand out: in
// red, small unions in yellow; in upper case when there is no colour.
#pragma once

#include <string>

#include "lang/explain/view_text.hpp"
#include "lang/infer/infer.hpp"

namespace slope::infer {

// `result`: of Inference::infer, before any optimisation, so that the reader finds their program in it.
std::string warntype(Runtime& runtime, const Specialization& target, const InferResult& result,
                     const ViewOptions& options);

}  // namespace slope::infer
