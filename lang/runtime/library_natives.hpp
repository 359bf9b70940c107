// Natives that only the library may use. What they take belongs together in ways that they cannot test: the parts of a
// record of a derivative, memory that is kept and who keeps it. Lowering refuses their names in scripts
// (lang/lower/intrinsics.hpp), `getfield(Core, name)` raises, and lowered code shows them by name alone.
#pragma once

#include <string_view>

#include "lang/types/value.hpp"

namespace slope {

struct BuiltinTypes;

bool is_library_native(std::string_view name);
bool is_library_native(const BuiltinTypes& types, Value v);

}  // namespace slope
