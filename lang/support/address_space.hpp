// Address space that a process may still map. What takes much of it asks first, so that an allocation of a few bytes
// elsewhere, whose failure nobody can handle (inside LLVM, in the host), still succeeds.
#pragma once

#include <cstddef>

namespace slope {

// Stacks of tasks leave so much to everything else; a compilation begins only where there is some of it.
constexpr std::size_t address_reserve = std::size_t{256} << 20;
constexpr std::size_t compile_reserve = std::size_t{128} << 20;

// Can so many bytes be mapped now? Takes microseconds.
bool has_address_space(std::size_t bytes);

}  // namespace slope
