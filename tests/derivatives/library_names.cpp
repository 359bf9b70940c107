// The names of the library that the compiler knows (lang/runtime/library_names.def), against the loaded library.
#include "lang/runtime/library_names.hpp"

#include <catch2/catch.hpp>

#include "embed/engine_state.hpp"

namespace slope {
namespace {

LibraryMeaning meaning_of(const Runtime& runtime, const Value& value) {
  const BuiltinTypes& builtin = runtime.types.builtin();
  if (runtime.is_type_value(value)) return LibraryMeaning::type;
  if (value.type == builtin.builtin_function) return LibraryMeaning::native;
  const DataType* type = as_data(value.type);
  return type && type->name->is_function ? LibraryMeaning::function : LibraryMeaning::constant;
}

}  // namespace

TEST_CASE("Library names: each is defined and is what the list says") {
  api::detail::EngineState state{api::Options{}};
  Runtime& runtime = state.runtime;
  for (std::size_t i = 0; i < library_entries().size(); ++i) {
    const LibraryEntry& entry = library_entries()[i];
    INFO(entry.name);
    const Binding* binding = library_binding(runtime, static_cast<KnownName>(i));
    REQUIRE(binding);
    CHECK(binding->is_constant);
    const Value value = library_value(runtime, static_cast<KnownName>(i));
    REQUIRE(value.defined());
    CHECK(meaning_of(runtime, value) == entry.meaning);
  }
}

TEST_CASE("Library names: without the library there are none") {
  Runtime runtime;
  CHECK(library_binding(runtime, KnownName::scalar_partials) == nullptr);
  CHECK(!library_value(runtime, KnownName::dynamic_call_type).defined());
}

}  // namespace slope
