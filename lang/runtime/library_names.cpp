#include "lang/runtime/library_names.hpp"

namespace slope {

std::span<const LibraryEntry> library_entries() {
  static constexpr LibraryEntry entries[] = {
#define LIBRARY_NAME(enumerator, module, name, kind) {&Runtime::module, name, LibraryMeaning::kind},
#include "lang/runtime/library_names.def"
#undef LIBRARY_NAME
  };
  return entries;
}

// Interning and one look into the module's table: a name is looked up when a derivative is made, not when it runs.
Binding* library_binding(Runtime& runtime, KnownName name) {
  const LibraryEntry& entry = library_entries()[static_cast<std::size_t>(name)];
  const Module* module = runtime.*entry.module;
  return module ? module->find(runtime.symbol(entry.name)) : nullptr;
}

Value library_value(Runtime& runtime, KnownName name) {
  const Binding* binding = library_binding(runtime, name);
  return binding ? binding->value : Value();
}

}  // namespace slope
