#include "lang/types/module.hpp"

#include <algorithm>

#include "lang/types/symbol.hpp"

namespace slope {

Binding* Module::entered(const Symbol* wanted) const {
  if (const auto at = bindings.find(wanted); at != bindings.end()) return at->second;
  return has_library ? library->enter_library_name(wanted) : nullptr;
}

Binding* Module::own(const Symbol* wanted) const {
  Binding* binding = entered(wanted);
  if (binding && binding->waiting != Binding::none_waiting) {
    library->make_postponed(*binding);
    binding = bindings.find(wanted)->second;
  }
  return binding;
}

bool Module::exports(const Symbol* wanted) const {
  return exported_names.count(wanted) != 0 || (has_library && library->library_exports(wanted->name));
}

void Module::enter_all() const {
  if (has_library) library->enter_all_library_names();
}

// Own names and explicit imports first, then what the modules named by `using` export. When two of them export the name
// with different values it means nothing here, as in Julia. Base and Core are used without being named: their names
// give way to those of the modules that are, and Base's version of a name of Core hides Core's.
Binding* Module::find(const Symbol* wanted, int depth) const {
  // An own binding without a value may only be the trace of an earlier use: an export found since then goes first.
  Binding* mine = own(wanted);
  if (mine && mine->value.defined()) return mine;
  Binding* found = nullptr;
  const Module* found_in = nullptr;
  const auto is_implicit = [&](const Module* used) {
    return used->inherits || std::ranges::any_of(usings, [&](const Module* base) { return base->inherits == used; });
  };
  if (depth < 8) {  // modules may use each other
    for (Module* used : usings) {
      Binding* candidate = nullptr;
      if (used->exports(wanted)) {
        candidate = used->find(wanted, depth + 1);
      } else if (Binding* theirs = used->own(wanted); theirs && theirs->exported) {
        candidate = theirs;
      }
      if (!candidate || candidate == found) continue;
      if (found && found->value.defined() && candidate->value.defined()) {
        if (found->is_constant && candidate->is_constant && found->value.identical(candidate->value)) continue;
        if (!candidate->module->parent && found->module->inherits == candidate->module) continue;  // Base before Core
        if (is_implicit(used)) continue;
        if (!is_implicit(found_in)) return nullptr;
        found = candidate;
        found_in = used;
        continue;
      }
      if (!found || !found->value.defined()) {
        found = candidate;
        found_in = used;
      }
    }
    if ((!found || !found->value.defined()) && inherits) {
      Binding* inherited = inherits->find(wanted, depth + 1);
      if (inherited && (!found || inherited->value.defined())) found = inherited;
    }
  }
  if ((!found || !found->value.defined()) && mine) return mine;
  return found;
}

}  // namespace slope
