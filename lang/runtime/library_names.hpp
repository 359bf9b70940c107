// The names of the standard library that the compiler uses, checked by the C++ compiler; what they must be is in
// library_names.def.
#pragma once

#include <cstdint>
#include <span>

#include "lang/runtime/runtime.hpp"

namespace slope {

enum class KnownName : std::uint16_t {
#define LIBRARY_NAME(enumerator, module, name, kind) enumerator,
#include "lang/runtime/library_names.def"
#undef LIBRARY_NAME
};

// What a name must stand for: a generic function, a type, a function in C++, a constant of another kind.
enum class LibraryMeaning : std::uint8_t { function, type, native, constant };

struct LibraryEntry {
  Module* Runtime::*module;
  const char* name;
  LibraryMeaning meaning;
};

std::span<const LibraryEntry> library_entries();  // in the order of KnownName

// The binding of a name, made when it was waiting (postponed.cpp). Null: the library is not loaded, as in tests of the
// lower layers.
Binding* library_binding(Runtime& runtime, KnownName name);

// Its value; undefined when the library is not loaded.
Value library_value(Runtime& runtime, KnownName name);

}  // namespace slope
