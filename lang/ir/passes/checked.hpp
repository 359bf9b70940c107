// The verifier after each pass. A fault is the pass's own: nothing that comes later can be trusted, so the process ends
// with the name of the pass, the fault and the function's text.
//
// On in builds with assertions; in others when the environment variable SLOPE_VERIFY is set to anything but 0, and off
// everywhere when it is 0. Functions of more than 20,000 instructions are not checked.
#pragma once

#include "lang/ir/passes/passes.hpp"

namespace slope::ir {

bool verifies_passes();  // the environment is read once

// After `pass` rewrote or made `function`.
void check_after(const Function& function, const char* pass, Typing typing = Typing::complete);

// The same of a pass that says whether it changed anything: `changed |= checked(f, "folding", fold(runtime, f));`
inline bool checked(const Function& function, const char* pass, bool changed) {
  if (changed) check_after(function, pass);
  return changed;
}

}  // namespace slope::ir
