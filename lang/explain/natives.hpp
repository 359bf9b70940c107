// The natives of this room, which the engine defines when it is composed.
#pragma once

#include "lang/runtime/runtime.hpp"

namespace slope::explain {

void define_natives(Runtime& runtime);

void define_inspect_natives(Runtime& runtime);
void define_why_natives(Runtime& runtime);
void define_callees_natives(Runtime& runtime);

}  // namespace slope::explain
