#include "lang/diff/stand_in.hpp"

#include <cstring>
#include <vector>

#include "lang/memory/tape.hpp"
#include "lang/types/subtype.hpp"

namespace slope::diff {

Value StandIns::of(const Type* t) {
  static Tape no_tape;  // never opened
  if (auto known = known_.find(t); known != known_.end()) return known->second;
  const DataType* d = as_data(t);
  if (d == runtime_.types.builtin().tape) return Value(d, &no_tape);
  if (!is_concrete(t))
    return is_subtype(runtime_.types, runtime_.types.builtin().nothing, t) ? runtime_.nothing() : Value();
  if (d->object_kind == DataType::ObjectKind::array) return array(d);
  if (d->object_kind == DataType::ObjectKind::fields && !d->is_isbits && !d->fields.empty()) return structure(d);
  return {};
}

Value StandIns::keep(const DataType* d, Object* made) {
  if (!made) return {};
  const Value value(d, made);
  made_.values.push_back(value);
  objects_.insert(made);
  return known_[d] = value;
}

Value StandIns::array(const DataType* d) {
  const ValueType* rank = as_value(d->params[1]);
  if (!rank) return {};
  const std::vector<std::int64_t> dims(static_cast<std::size_t>(rank->value.bits), 0);
  return keep(d, runtime_.heap.allocate_array(d, dims));
}

// Of a type that leads back to itself it is one that holds itself. A field for which there is nothing stays undefined
// in a mutable one, as an incomplete object's; others are not made then.
Value StandIns::structure(const DataType* d) {
  Object* made = runtime_.heap.allocate(d, d->size);
  const Value value = keep(d, made);
  if (!made) return {};
  std::memset(made->payload(), 0, d->size);
  for (const Field& field : d->fields) {
    const DataType* held = as_data(field.type);
    if (held && held->is_isbits) continue;  // zero bits
    if (const Value part = of(field.type); part.defined()) {
      store_value(runtime_.heap, made->payload() + field.offset, field.type, part);
    } else if (!d->is_mutable) {
      objects_.erase(made);
      return known_[d] = Value();
    }
  }
  return value;
}

}  // namespace slope::diff
