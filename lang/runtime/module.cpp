#include "lang/runtime/module.hpp"

namespace slope {

// Own names and explicit imports first, then what the modules named by `using` export. Two of them may export the same
// name: when they mean different bindings the first that has a value wins only if the others have none (Julia leaves a
// truly ambiguous name undefined).
Binding* Module::find(const Symbol* wanted) const {
  auto own = bindings.find(wanted);
  // An own binding without a value may only be the trace of an earlier use: an export found since then goes first.
  if (own != bindings.end() && own->second->value.defined()) return own->second;
  Binding* found = nullptr;
  for (Module* used : usings) {
    auto it = used->bindings.find(wanted);
    if (it == used->bindings.end()) continue;
    Binding* candidate = it->second;
    // A module re-exports an imported binding under its own `exports`; the binding's flag covers the owner's.
    bool exported = candidate->exported || used->exports(wanted);
    if (!exported || candidate == found) continue;
    if (found && found->value.defined() && candidate->value.defined()) {
      if (found->is_constant && candidate->is_constant && found->value.identical(candidate->value)) continue;
      return nullptr;
    }
    if (!found || !found->value.defined()) found = candidate;
  }
  if (!found && own != bindings.end()) return own->second;
  return found;
}

}  // namespace slope
