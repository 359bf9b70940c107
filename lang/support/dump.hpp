// SLOPE_DUMP=ir,typed,grad,llvm: which stages of what is compiled are printed to standard error, for people who work on
// the compiler. Users have @code_lowered and similar macros.
#pragma once

#include <string_view>

namespace slope {

bool dump_wants(std::string_view stage);

}  // namespace slope
