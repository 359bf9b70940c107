#include "lang/runtime/text_value.hpp"

#include "lang/runtime/library_names.hpp"

namespace slope {

namespace {

// SubString{String}, as it lies in memory: its fields are made by its constructors alone, which check them.
struct SubStringObject : Object {
  const StringObject* string;
  std::int64_t offset;
  std::int64_t length;
};

bool is_substring(Runtime& runtime, const DataType* type) {
  if (!type || type->params.size() != 1 || type->params[0] != runtime.types.builtin().string) return false;
  // The type is there, so that looking for it defines nothing.
  if (type->name->module != runtime.base || type->name->name->name != "SubString") return false;
  const Value known = library_value(runtime, KnownName::substring_type);
  return known.defined() && known.as_type == type->name->wrapper;
}

}  // namespace

bool bytes_of_text(Runtime& runtime, Value v, std::string_view& out) {
  if (v.type == runtime.types.builtin().string) {
    out = static_cast<const StringObject*>(v.object)->view();
    return true;
  }
  if (!v.defined() || !is_substring(runtime, as_data(v.type))) return false;
  const auto* part = static_cast<const SubStringObject*>(v.object);
  const std::string_view whole = part->string->view();
  // Bits that a program made in another way are not trusted.
  if (part->offset < 0 || part->length < 0 || part->offset > static_cast<std::int64_t>(whole.size()) ||
      part->length > static_cast<std::int64_t>(whole.size()) - part->offset)
    return false;
  out = whole.substr(static_cast<std::size_t>(part->offset), static_cast<std::size_t>(part->length));
  return true;
}

}  // namespace slope
