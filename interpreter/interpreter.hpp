// The first tier: runs any IR at once, typed or not.
#pragma once

#include <memory>

#include "lang/runtime/runtime.hpp"

namespace slope::interpreter {

std::unique_ptr<Interpreter> make_interpreter(Runtime& runtime);

}  // namespace slope::interpreter
