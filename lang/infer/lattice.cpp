#include "lang/infer/lattice.hpp"

#include <algorithm>

#include "lang/support/tuning.hpp"
#include "lang/types/object.hpp"

namespace slope::infer {

namespace {

constexpr int max_partial_depth = tuning::partial_depth;
constexpr std::size_t max_partial_fields = tuning::partial_fields;

std::uint64_t mix(std::uint64_t h, std::uint64_t x) {
  h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}
std::uint64_t mix(std::uint64_t h, const void* p) { return mix(h, reinterpret_cast<std::uint64_t>(p)); }

// Values whose identity is their payload need no look inside.
bool compares_by_payload(Value v) {
  Storage storage = storage_of(v.type);
  if (as_data(v.type)->object_kind == DataType::ObjectKind::immortal) return true;  // types, symbols, modules
  return storage == Storage::bits || storage == Storage::singleton || as_data(v.type)->is_mutable;
}

std::uint64_t hash_of(const Lattice& e) {
  std::uint64_t h = mix(static_cast<std::uint64_t>(e.kind) + 1, e.type);
  if (e.is_constant()) h = mix(mix(h, e.value.type), compares_by_payload(e.value) ? e.value.bits : egal_hash(e.value));
  if (e.is_conditional()) h = mix(h, e.subject);
  for (Known field : e.fields) h = mix(h, field);
  return h;
}

bool same(const Lattice& a, const Lattice& b) {
  if (a.kind != b.kind || a.type != b.type || a.subject != b.subject || a.fields != b.fields) return false;
  return !a.is_constant() || a.value.identical(b.value) || egal(a.value, b.value);
}

int partial_depth(Known a) {
  if (!a->is_partial()) return 0;
  int depth = 0;
  for (Known field : a->fields) depth = std::max(depth, partial_depth(field));
  return depth + 1;
}

}  // namespace

const Type* type_parameter(const BuiltinTypes& builtin, const Type* type) {
  const DataType* data = as_data(type);
  return data && data->name == builtin.type_name && data->params.size() == 1 && !data->has_free_vars ? data->params[0]
                                                                                                     : nullptr;
}

bool is_dispatch_type(const BuiltinTypes& builtin, const Type* type) {
  if (type->is_kind) return false;
  return is_concrete(type) || type_parameter(builtin, type);
}

int known_field_count(const Type* type) {
  const DataType* data = as_data(type);
  if (!data) return -1;
  if (data->is_tuple) {
    if (!data->params.empty() && as_vararg(data->params.back())) return -1;
    return static_cast<int>(data->params.size());
  }
  if (!data->is_concrete || data->is_kind || data->object_kind != DataType::ObjectKind::fields) return -1;
  return static_cast<int>(data->fields.size());
}

const Type* declared_field_type(const BuiltinTypes& builtin, const Type* type, std::size_t index) {
  const DataType* data = as_data(type);
  int count = known_field_count(type);
  if (count < 0) return builtin.any;
  if (index >= static_cast<std::size_t>(count)) return builtin.bottom;
  const Type* field = data->is_tuple ? data->params[index] : data->fields[index].type;
  return field->has_free_vars ? builtin.any : field;
}

LatticeTable::LatticeTable(Runtime& runtime, Context& scratch, int union_limit)
    : runtime_(runtime),
      scratch_(scratch),
      builtin_(runtime.types.builtin()),
      union_limit_(union_limit),
      kept_(runtime.heap) {
  Lattice nothing;
  nothing.type = builtin_.bottom;
  bottom_ = intern(std::move(nothing));
  by_type_[builtin_.bottom] = bottom_;
  any_ = of_type(builtin_.any);
  boolean_ = of_type(builtin_.boolean);
  true_ = constant(runtime.from_bool(true));
  false_ = constant(runtime.from_bool(false));
}

Known LatticeTable::intern(Lattice&& element) {
  std::uint64_t hash = hash_of(element);
  auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (same(*it->second, element)) return it->second;
  if (element.is_constant() && !compares_by_payload(element.value)) kept_.values.push_back(element.value);
  elements_.push_back(std::move(element));
  by_hash_.emplace(hash, &elements_.back());
  return &elements_.back();
}

Known LatticeTable::of_type(const Type* type) {
  auto [it, fresh] = by_type_.try_emplace(type, nullptr);
  if (!fresh) return it->second;
  Known result = nullptr;
  const DataType* data = as_data(type);
  if (const Type* parameter = type_parameter(builtin_, type)) {
    result = constant(runtime_.from_type(parameter));
  } else if (data && data->is_concrete && data->instance.defined()) {
    result = constant(data->instance);
  } else {
    Lattice element;
    element.kind = Lattice::Kind::type;
    element.type = type;
    result = intern(std::move(element));
  }
  by_type_[type] = result;  // `it` may be stale: constant() can come back here
  return result;
}

Known LatticeTable::constant(Value v) {
  Lattice element;
  element.kind = Lattice::Kind::constant;
  element.type = runtime_.types.type_of_constant(v);
  element.value = v;
  return intern(std::move(element));
}

Known LatticeTable::partial(const DataType* type, std::span<const Known> fields) {
  bool better = false;
  bool all_constant = true;
  int depth = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i]->is_bottom()) return bottom_;
    if (!fields[i]->is_constant()) all_constant = false;
    if (fields[i] != of_type(declared_field_type(builtin_, type, i))) better = true;
    depth = std::max(depth, partial_depth(fields[i]));
  }
  if (!better || fields.size() > max_partial_fields || depth >= max_partial_depth) return of_type(type);
  if (all_constant && is_concrete(type)) {
    std::vector<Value> values;
    for (Known field : fields) values.push_back(field->value);
    Value v;
    bool made = type->is_tuple ? runtime_.new_tuple(scratch_, values.data(), values.size(), v)
                               : runtime_.new_object(scratch_, type, values.data(), values.size(), v);
    if (made) return constant(v);
    scratch_.take_error();
  }
  Lattice element;
  element.kind = Lattice::Kind::partial;
  element.type = type;
  for (Known field : fields) element.fields.push_back(without_condition(field));
  return intern(std::move(element));
}

Known LatticeTable::conditional(std::uint32_t subject, Known if_true, Known if_false) {
  if (if_true->is_bottom() && if_false->is_bottom()) return bottom_;
  if (if_true->is_bottom()) return false_;
  if (if_false->is_bottom()) return true_;
  Lattice element;
  element.kind = Lattice::Kind::conditional;
  element.type = builtin_.boolean;
  element.subject = subject;
  element.fields = {if_true, if_false};
  return intern(std::move(element));
}

Known LatticeTable::join_fields(const DataType* type, Known a, Known b) {
  std::vector<Known> fields;
  int count = known_field_count(type);
  for (int i = 0; i < count; ++i) fields.push_back(join(field(a, i), field(b, i)));
  return partial(type, fields);
}

Known LatticeTable::join(Known a, Known b) {
  if (a == b || b->is_bottom()) return a;
  if (a->is_bottom()) return b;
  if (a == any_ || b == any_) return any_;
  if (a->is_conditional() && b->is_conditional() && a->subject == b->subject)
    return conditional(a->subject, join(a->fields[0], b->fields[0]), join(a->fields[1], b->fields[1]));
  a = without_condition(a);
  b = without_condition(b);
  if (a == b) return a;
  if (a->type == b->type) {
    if ((a->is_partial() || a->is_constant()) && (b->is_partial() || b->is_constant())) {
      const DataType* data = as_data(a->type);
      if (data && !data->is_mutable && known_field_count(data) > 0) return join_fields(data, a, b);
    }
    return of_type(a->type);
  }
  return of_type(type_merge(runtime_.types, a->type, b->type, union_limit_));
}

bool LatticeTable::less_or_equal(Known a, Known b) {
  if (a == b || a->is_bottom() || b == any_) return true;
  if (b->is_bottom()) return false;
  switch (b->kind) {
    case Lattice::Kind::type:
      return a->type == b->type || is_subtype(runtime_.types, a->type, b->type);
    case Lattice::Kind::conditional:
      return a->is_conditional() && a->subject == b->subject && less_or_equal(a->fields[0], b->fields[0]) &&
             less_or_equal(a->fields[1], b->fields[1]);
    case Lattice::Kind::partial:
      if (a->type != b->type || !(a->is_partial() || a->is_constant())) return false;
      for (std::size_t i = 0; i < b->fields.size(); ++i)
        if (!less_or_equal(field(a, i), b->fields[i])) return false;
      return true;
    default:
      return false;
  }
}

Known LatticeTable::widen(Known a, int step) {
  if (a->is_bottom() || a == any_) return a;
  if (step >= 3) return any_;
  if (step == 2 && as_union(a->type)) {
    const Type* all = builtin_.bottom;
    for (const Type* member : as_union(a->type)->members)
      all = all == builtin_.bottom ? member : type_join(runtime_.types, all, member);
    return of_type(all);
  }
  return of_type(a->type);
}

Known LatticeTable::narrow(Known a, const Type* type) {
  if (a->is_bottom() || type == builtin_.any) return a;
  if (a->is_constant()) return is_member(a->value, type) ? a : bottom_;
  if (a->type == type || is_subtype(runtime_.types, a->type, type)) return a;
  if (const UnionType* split = as_union(a->type)) {
    // Member by member, so that nothing is lost to a coarse intersection.
    std::vector<const Type*> left;
    for (const Type* member : split->members) {
      const Type* common = is_subtype(runtime_.types, member, type) ? member : intersect(runtime_.types, member, type);
      if (common != builtin_.bottom) left.push_back(common);
    }
    return of_type(left.empty() ? builtin_.bottom : runtime_.types.union_of(left));
  }
  const Type* common = is_subtype(runtime_.types, type, a->type) ? type : intersect(runtime_.types, a->type, type);
  return common->has_free_vars ? a : of_type(common);
}

Known LatticeTable::remove(Known a, const Type* type) {
  if (a->is_bottom()) return a;
  if (a->is_constant()) return is_member(a->value, type) ? bottom_ : a;
  if (is_subtype(runtime_.types, a->type, type)) return bottom_;
  const UnionType* split = as_union(a->type);
  if (!split) return a;
  std::vector<const Type*> left;
  for (const Type* member : split->members)
    if (!is_subtype(runtime_.types, member, type)) left.push_back(member);
  return left.size() == split->members.size() ? a : of_type(runtime_.types.union_of(left));
}

Known LatticeTable::field(Known object, std::size_t index) {
  if (object->is_partial()) return index < object->fields.size() ? object->fields[index] : bottom_;
  if (const UnionType* split = as_union(object->type)) {
    Known all = bottom_;
    for (const Type* member : split->members) all = join(all, field(of_type(member), index));
    return all;
  }
  if (object->is_constant() && !object->value.type->is_kind) {
    const DataType* data = as_data(object->value.type);
    int count = known_field_count(data);
    if (count >= 0 && index >= static_cast<std::size_t>(count)) return bottom_;
    if (count >= 0 && !data->is_mutable) {
      Value v;
      if (runtime_.get_field(scratch_, object->value, runtime_.from_int(static_cast<std::int64_t>(index) + 1), v))
        return constant(v);
      scratch_.take_error();
      return bottom_;
    }
  }
  const DataType* data = as_data(object->type);
  if (data && data->is_tuple && !data->params.empty()) {
    if (const VarargType* rest = as_vararg(data->params.back()); rest && !data->has_free_vars) {
      if (index + 1 < data->params.size()) return of_type(data->params[index]);
      return rest->element->has_free_vars ? any_ : of_type(rest->element);
    }
  }
  return of_type(declared_field_type(builtin_, object->type, index));
}

}  // namespace slope::infer
