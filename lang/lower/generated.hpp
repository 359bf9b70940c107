// Generated functions: `@generated [cached] function f(x) … end`, and ordinary ones with `if @generated … else … end`.
//
// The body becomes a function of its own, the generator: its parameters are the static parameters, the callee's type
// (under the name of a callable object) and the types of the arguments. What it returns, an expression or any other
// value, is the body of the method for those types. Everything about when it runs: lang/runtime/generated.cpp.
#pragma once

#include "lang/lower/definition.hpp"

namespace slope::lower {

// The generator of a definition: defines it as a hidden function and gives its value.
bool define_generator(Runtime& runtime, Context& ctx, Module* module, const SignatureSyntax& signature,
                      Value& generator);

// Has the body an `if @generated`? (Not those of functions inside it.)
bool has_generated_part(const syntax::Ast& ast, syntax::NodeId body);

// Runs the generator for the types of `target` and lowers the result. False: an error is raised.
bool generate(Runtime& runtime, Context& ctx, Specialization& target, Source& source);

}  // namespace slope::lower
