// Whether memory that carries derivatives occurs twice in a value (stdlib/derivatives/shared_memory.slope).
#include <unordered_set>

#include "lang/derive/natives/call.hpp"

namespace slope::derive {

namespace {

bool occurs_twice(Runtime& runtime, Value root) {
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  std::vector<const Object*> pending;
  std::unordered_set<const void*> seen;
  const auto reach_object = [&](const Object* part) {
    if (part && tangents.has_shadow(part->type)) pending.push_back(part);
  };
  const auto reach_value = [&](Value part) {
    if (is_reference(part)) reach_object(part.object);
  };
  reach_value(root);
  while (!pending.empty()) {
    const Object* object = pending.back();
    pending.pop_back();
    const DataType* type = object->type;
    if (type->object_kind == DataType::ObjectKind::array) {
      const auto* array = static_cast<const ArrayObject*>(object);
      if (array->length == 0) continue;
      if (!seen.insert(array->data).second) return true;  // maybe in another shape
      const Storage storage = storage_of(array_element_type(array));
      if (storage != Storage::dynamic && storage != Storage::reference) continue;
      if (storage == Storage::dynamic) {
        for (std::int64_t i = 0; i < array->length; ++i) reach_value(reinterpret_cast<const Value*>(array->data)[i]);
      } else {
        for (std::int64_t i = 0; i < array->length; ++i) reach_object(reinterpret_cast<Object* const*>(array->data)[i]);
      }
      continue;
    }
    if (!seen.insert(object).second) return true;
    if (type->object_kind == DataType::ObjectKind::cell) {
      reach_value(static_cast<const CellObject*>(object)->value);
    } else if (type->object_kind == DataType::ObjectKind::fields) {
      const TraceMap& map = runtime.types.trace_map(type);
      for (std::uint32_t offset : map.references)
        reach_object(*reinterpret_cast<Object* const*>(object->payload() + offset));
      for (std::uint32_t offset : map.values) reach_value(*reinterpret_cast<const Value*>(object->payload() + offset));
    }
  }
  return false;
}

// memory_occurs_twice(x) → Bool
bool memory_occurs_twice(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("memory_occurs_twice takes a value");
  result = ctx.runtime->from_bool(occurs_twice(*ctx.runtime, args[0]));
  return true;
}

const NativeInfo place_natives[] = {
    {"memory_occurs_twice", memory_occurs_twice, effect_throws | effect_reads, gives_bool},
};

}  // namespace

void define_place_natives(Runtime& runtime) {
  for (const NativeInfo& native : place_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
