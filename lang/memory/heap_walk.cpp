// A walk over the objects as they lie there, for what is not the collector: which types do they name?
#include "lang/memory/heap_impl.hpp"

namespace slope {

namespace {

bool elements_may_refer(const Type* element) {
  const Storage storage = storage_of(element);
  return storage == Storage::dynamic || storage == Storage::reference;
}

// `end`: of the memory that begins with the object.
void look_at(const Object* object, const char* end, const std::function<void(const void*, const void*)>& look) {
  switch (object->type->object_kind) {
    case DataType::ObjectKind::array: {
      const auto* array = static_cast<const ArrayObject*>(object);
      look(array, &array->data);
      if (elements_may_refer(array_element_type(array)) && array->data)
        look(array->data, array->data + array->length * static_cast<std::int64_t>(array->element_size));
      break;
    }
    case DataType::ObjectKind::string:
      look(object, object->payload());
      break;
    default:
      look(object, end);
  }
}

}  // namespace

void Heap::each_part(const std::function<void(const void* from, const void* to)>& look) const {
  note_fresh();
  for (const Impl::SizeClassState& state : impl_->state) {
    for (const Block* block : state.blocks) {
      for (std::uint32_t cell = 0; cell < block->fresh; ++cell) {
        const Object* object = block->object(cell);
        if (object->type) look_at(object, reinterpret_cast<const char*>(object) + block->cell_size, look);
      }
    }
  }
  for (const auto& [begin, region] : impl_->regions)
    if (region.is_object) look_at(region.object, reinterpret_cast<const char*>(region.end), look);
}

}  // namespace slope
