#include "lang/derive/array_copies.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace slope::derive {

namespace {

constexpr std::size_t least_part = 1024;  // bytes

// Parts and the vector that names them take about as much.
std::int64_t elements_in_part(std::size_t bytes, std::size_t element_size) {
  const auto square = static_cast<std::size_t>(std::sqrt(static_cast<double>(bytes * sizeof(Value))));
  return static_cast<std::int64_t>(
      std::max(std::bit_ceil(std::max(square, least_part)) / element_size, std::size_t{1}));
}

const ArrayObject* parts_of(const Object* copy) {
  return static_cast<const ArrayObject*>(static_cast<const CellObject*>(copy)->value.object);
}
Value* values_of(const ArrayObject* parts) { return reinterpret_cast<Value*>(parts->data); }
const ArrayObject* part_at(const ArrayObject* parts, std::int64_t i) {
  return static_cast<const ArrayObject*>(values_of(parts)[1 + i].object);
}
std::size_t bytes_of(const ArrayObject* array) { return static_cast<std::size_t>(array->length) * array->element_size; }

}  // namespace

std::int64_t ArrayCopies::length(const Object* copy) { return values_of(parts_of(copy))[0].bits; }

bool ArrayCopies::each_part(const Object* copy,
                            const std::function<bool(std::size_t, const char*, std::size_t)>& visit) {
  const ArrayObject* parts = parts_of(copy);
  std::size_t offset = 0;
  for (std::int64_t i = 0; i + 1 < parts->length; ++i) {
    const ArrayObject* part = part_at(parts, i);
    if (!visit(offset, part->data, bytes_of(part))) return false;
    offset += bytes_of(part);
  }
  return true;
}

Object* ArrayCopies::copy(Heap& heap, const ArrayObject* array, const char* content, std::int64_t length) {
  const std::size_t element_size = array->element_size;
  const DataType* part_type = runtime_.types.array_of(array_element_type(array), 1);
  const std::int64_t in_part = elements_in_part(static_cast<std::size_t>(length) * element_size, element_size);
  const std::int64_t count = (length + in_part - 1) / in_part;
  Rooted roots(heap);
  const ArrayObject* before = nullptr;
  if (const auto known = last_.find(array); known != last_.end()) {
    const ArrayObject* parts = parts_of(known->second);
    roots.values.push_back(Value(known->second->type, static_cast<const void*>(known->second)));
    if (parts->length > 1 && part_at(parts, 0)->type == part_type && part_at(parts, 0)->length == in_part)
      before = parts;
  }
  const auto is_as_before = [&](std::int64_t i) {
    if (!before || i + 1 >= before->length) return false;
    const ArrayObject* part = part_at(before, i);
    return part->length == std::min(in_part, length - i * in_part) &&
           std::memcmp(part->data, content + static_cast<std::size_t>(i * in_part) * element_size, bytes_of(part)) == 0;
  };
  std::int64_t same = 0;
  while (same < count && is_as_before(same)) ++same;
  if (same == count && before && count + 1 == before->length) return roots.values[0].object;

  const std::int64_t dims[] = {count + 1};
  ArrayObject* parts = heap.allocate_array(runtime_.types.array_of(runtime_.types.builtin().any, 1), dims);
  if (!parts) return nullptr;
  roots.values.push_back(Value(parts->type, static_cast<const void*>(parts)));
  values_of(parts)[0] = runtime_.from_int(length);
  for (std::int64_t i = 0; i < count; ++i) {
    if (i < same || (i > same && is_as_before(i))) {
      values_of(parts)[1 + i] = values_of(before)[1 + i];
      continue;
    }
    const std::int64_t size[] = {std::min(in_part, length - i * in_part)};
    ArrayObject* part = heap.allocate_array(part_type, size);
    if (!part) return nullptr;
    std::memcpy(part->data, content + static_cast<std::size_t>(i * in_part) * element_size, bytes_of(part));
    heap.rewrote(part);
    values_of(parts)[1 + i] = Value(part->type, static_cast<const void*>(part));
    heap.rewrote(parts);
  }
  heap.rewrote(parts);
  CellObject* copy = heap.allocate_cell();
  if (!copy) return nullptr;
  copy->value = Value(parts->type, static_cast<const void*>(parts));
  heap.rewrote(copy);
  last_[array] = copy;
  return copy;
}

bool ArrayCopies::is_copy_of(const ArrayObject* array, Value copy) const {
  const BuiltinTypes& builtin = runtime_.types.builtin();
  if (copy.type != builtin.cell) return false;
  const Value held = static_cast<const CellObject*>(copy.object)->value;
  if (held.type != runtime_.types.array_of(builtin.any, 1)) return false;
  const auto* parts = static_cast<const ArrayObject*>(held.object);
  if (parts->length < 1 || values_of(parts)[0].type != builtin.int64) return false;
  const DataType* part_type = runtime_.types.array_of(array_element_type(array), 1);
  std::int64_t length = 0;
  for (std::int64_t i = 1; i < parts->length; ++i) {
    if (values_of(parts)[i].type != part_type) return false;
    length += static_cast<const ArrayObject*>(values_of(parts)[i].object)->length;
  }
  return length == values_of(parts)[0].bits;
}

}  // namespace slope::derive
