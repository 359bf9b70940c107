// The hash of a symbol by itself: tables with symbols as keys ask for it at every look.
#pragma once

#include <cstdint>

#include "lang/types/type.hpp"

namespace slope {

struct Symbol;

std::uint64_t symbol_hash(const DataType* symbol_type, const Symbol* symbol);  // egal_hash of it

}  // namespace slope
