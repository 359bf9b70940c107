// What every name means, and how every variable is stored. scope.cpp has the algorithm.
#pragma once

#include <vector>

#include "lang/lower/form.hpp"
#include "lang/support/diagnostic.hpp"

namespace slope::lower {

// Resolves the forms of a method or of a top-level statement, and of all closures in it.
void resolve(Runtime& runtime, Context& ctx, FormArena& arena, Lambda& root, std::vector<Diagnostic>& diagnostics);

// The binding that a global name means in `module` (its own, made when there is none yet).
Binding* global_binding(Runtime& runtime, Module* module, const Symbol* name);

}  // namespace slope::lower
