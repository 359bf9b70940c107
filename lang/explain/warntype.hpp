// @code_warntype: what inference found, in Julia's layout. Types on which dispatch cannot rely stand out: red, small
// unions yellow; in upper case without colours.
#pragma once

#include <string>

#include "lang/explain/view_text.hpp"
#include "lang/infer/infer.hpp"

namespace slope::infer {

// `result`: of Inference::infer, before any optimisation, so that the reader finds their program in it.
std::string warntype(Runtime& runtime, const Specialization& target, const InferResult& result,
                     const ViewOptions& options);

}  // namespace slope::infer
