#include "lang/diff/tangent.hpp"

namespace slope::diff {

// The rules:
//   type                      shadow                       cotangent
//   Float64, Float32          Nothing                      itself
//   other plain data          Nothing                      Nothing
//   immutable struct, tuple   Tuple of the fields' shadows Tuple of the fields' cotangents (Nothing if all are)
//   Array{T,N}                Array{element(T),N}          Nothing
//   mutable struct S          a mutable Shadow{S}          Nothing
//   Core.Box                  a mutable Shadow{Box}        Nothing
//   not concrete              DynamicTangent               DynamicTangent (Nothing when no instance can have any)
//
// A type that contains itself (through memory or an abstract field) has DynamicTangent in the place where it comes
// again.

const Type* TangentTypes::shadow(const Type* t) {
  auto found = shadows_.find(t);
  if (found != shadows_.end()) return found->second == builtin_.bottom ? dynamic() : found->second;
  shadows_[t] = builtin_.bottom;
  const Type* result = compute_shadow(t);
  if (result || dynamic_)
    shadows_[t] = result;
  else
    shadows_.erase(t);  // may be known once the standard library is
  return result;
}

const DataType* TangentTypes::dynamic() {
  if (dynamic_) return dynamic_;
  Binding* binding = runtime_.base ? runtime_.base->find(runtime_.symbol("DynamicTangent")) : nullptr;
  if (binding && binding->value.defined() && runtime_.is_type_value(binding->value))
    dynamic_ = as_data(binding->value.as_type);
  return dynamic_;
}

const Type* TangentTypes::cotangent(const Type* t) {
  auto found = cotangents_.find(t);
  if (found != cotangents_.end()) return found->second;
  const Type* result = compute_cotangent(t);
  if (result || dynamic_) cotangents_[t] = result;
  return result;
}

const Type* TangentTypes::element(const Type* t) {
  const Type* s = shadow(t);
  const Type* c = cotangent(t);
  if (!s || !c) return nullptr;
  if (s == builtin_.nothing) return c;
  if (c == builtin_.nothing) return s;
  const Type* both[] = {s, c};
  return runtime_.types.tuple(both);
}

namespace {

bool plain(const DataType* d) {
  return d->object_kind == DataType::ObjectKind::string || d->object_kind == DataType::ObjectKind::immortal ||
         d->object_kind == DataType::ObjectKind::opaque || d->storage == Storage::singleton ||
         d->storage == Storage::bits;
}

}  // namespace

bool TangentTypes::holds_memory(Value v) {
  if (!v.defined() || is_stand_in(v) || (known(v.type) && !has_shadow(v.type))) return false;
  const DataType* d = as_data(v.type);
  if (!d || d->is_mutable || d->object_kind != DataType::ObjectKind::fields || !v.object) return true;
  for (const Field& field : d->fields)
    if (holds_memory(load_field(runtime_.heap, v.object, field))) return true;
  return false;
}

// An abstract type below which nothing can carry a derivative.
bool TangentTypes::never_carries(const Type* t) {
  for (const Type* none : std::initializer_list<const Type*>{builtin_.type, builtin_.abstract_string, builtin_.integer,
                                                             builtin_.abstract_char, builtin_.exception})
    if (is_subtype(runtime_.types, t, none)) return true;
  return false;
}

const Type* TangentTypes::compute_shadow(const Type* t) {
  if (t == builtin_.bottom) return builtin_.nothing;
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete) {
    if (never_carries(t)) return builtin_.nothing;
    if (const UnionType* u = as_union(t)) {
      bool any = false;
      for (const Type* member : u->members) any |= shadow(member) != builtin_.nothing;
      if (!any) return builtin_.nothing;
    }
    return dynamic();
  }
  if (plain(d)) return builtin_.nothing;
  if (d->name == builtin_.type_name) return builtin_.nothing;
  if (d->object_kind == DataType::ObjectKind::array) {
    const Type* e = element(d->params[0]);
    if (!e) return nullptr;
    if (e == builtin_.nothing) return builtin_.nothing;
    const Type* params[] = {e, d->params[1]};
    return runtime_.types.apply(d->name, params);
  }
  if (d->object_kind == DataType::ObjectKind::cell) return mutable_shadow(d);
  if (d->object_kind != DataType::ObjectKind::fields) return nullptr;
  if (d->is_mutable) return mutable_shadow(d);
  shadows_[t] = nullptr;  // a type that contains itself has no finite tuple of shadows
  std::vector<const Type*> fields;
  bool any = false;
  for (const Field& field : d->fields) {
    const Type* s = shadow(field.type);
    if (!s) return nullptr;
    any |= s != builtin_.nothing;
    fields.push_back(s);
  }
  return any ? static_cast<const Type*>(runtime_.types.tuple(fields)) : builtin_.nothing;
}

const Type* TangentTypes::compute_cotangent(const Type* t) {
  if (is_float(t)) return t;
  const Type* s = shadow(t);
  if (!s) return nullptr;
  if (t == builtin_.bottom) return builtin_.nothing;
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete) {
    if (never_carries(t)) return builtin_.nothing;
    if (const UnionType* u = as_union(t)) {
      bool any = false;
      for (const Type* member : u->members) any |= cotangent(member) != builtin_.nothing;
      if (!any) return builtin_.nothing;
    }
    return dynamic();
  }
  if (plain(d) || d->is_mutable || d->object_kind != DataType::ObjectKind::fields) return builtin_.nothing;
  std::vector<const Type*> fields;
  bool any = false;
  for (const Field& field : d->fields) {
    const Type* c = cotangent(field.type);
    if (!c) return nullptr;
    any |= c != builtin_.nothing;
    fields.push_back(c);
  }
  return any ? static_cast<const Type*>(runtime_.types.tuple(fields)) : builtin_.nothing;
}

// Nominal, one a type: a mutable object with one tangent a field, and last whether nothing that carries a derivative
// may be stored (ShadowMaker::forbid_stores). A Box has one field of any type.
const DataType* TangentTypes::mutable_shadow(const DataType* t) {
  TypeName* name = runtime_.types.new_name(runtime_.symbol("Shadow{" + to_string(t) + "}"), runtime_.base);
  std::vector<const Symbol*> names;
  std::vector<const Type*> types;
  bool any = false;
  auto add = [&](const Symbol* field, const Type* declared) {
    names.push_back(field);
    types.push_back(element(declared));
    any |= types.back() && types.back() != builtin_.nothing;
    return types.back() != nullptr;
  };
  if (t->object_kind == DataType::ObjectKind::cell) {
    if (!add(runtime_.symbol("contents"), builtin_.any)) return nullptr;
  }
  for (const Field& field : t->fields)
    if (!add(field.name, field.type)) return nullptr;
  if (!any) return builtin_.nothing;
  names.push_back(runtime_.symbol("#constant"));
  types.push_back(builtin_.boolean);
  runtime_.types.define_struct(name, {}, builtin_.any, names, types, true, 0);
  return name->primary;
}

const std::vector<TangentTypes::Leaf>& TangentTypes::leaves(const Type* t) {
  auto found = leaves_.find(t);
  if (found != leaves_.end()) return found->second;
  std::vector<Leaf> result;
  if (is_float(t) || is_dynamic(t)) {
    result.push_back({cotangent(t), {}});
  } else if (has_cotangent(t)) {
    const DataType* d = as_data(t);
    for (std::uint32_t i = 0; i < d->fields.size(); ++i) {
      for (const Leaf& inner : leaves(d->fields[i].type)) {
        Leaf leaf = inner;
        leaf.path.insert(leaf.path.begin(), i);
        result.push_back(std::move(leaf));
      }
    }
  }
  return leaves_[t] = std::move(result);
}

const TapeLayout* TangentTypes::with_tangents(const TapeLayout* layout, std::size_t width) {
  auto [at, fresh] = layouts_.try_emplace({layout, width});
  if (fresh) {
    at->second = std::make_shared<TapeLayout>(*layout);
    for (std::size_t k = 0; k < width; ++k)
      for (const Type* column : layout->columns) {
        for (const Leaf& leaf : leaves(column)) at->second->columns.push_back(leaf.type);
        if (has_shadow(column)) at->second->columns.push_back(shadow(column));
      }
  }
  return at->second.get();
}

const Type* shadow_type(Runtime& runtime, const Type* t) { return tangent_types(runtime).shadow(t); }
const Type* cotangent_type(Runtime& runtime, const Type* t) { return tangent_types(runtime).cotangent(t); }
const Type* tangent_type(Runtime& runtime, const Type* t) { return tangent_types(runtime).element(t); }

}  // namespace slope::diff
