#include "lang/diff/tangent.hpp"

namespace slope::diff {

// The rules:
//   type                      shadow                       cotangent
//   Float64, Float32          Nothing                      itself
//   other plain data          Nothing                      Nothing
//   immutable struct, tuple   Tuple of the fields' shadows Tuple of the fields' cotangents (Nothing if all are)
//   Array{T,N}                Array{element(T),N}          Nothing
//   mutable struct S          a mutable Shadow{S}          Nothing
//   not concrete              unknown                      unknown

const Type* TangentTypes::shadow(const Type* t) {
  auto found = shadows_.find(t);
  if (found != shadows_.end()) return found->second;
  const Type* result = compute_shadow(t);
  shadows_[t] = result;
  return result;
}

const Type* TangentTypes::cotangent(const Type* t) {
  auto found = cotangents_.find(t);
  if (found != cotangents_.end()) return found->second;
  const Type* result = compute_cotangent(t);
  cotangents_[t] = result;
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

const Type* TangentTypes::compute_shadow(const Type* t) {
  if (t == builtin_.bottom) return builtin_.nothing;
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete) {
    // An abstract type below which nothing can carry a derivative is known all the same.
    for (const Type* none : std::initializer_list<const Type*>{
             builtin_.type, builtin_.abstract_string, builtin_.integer, builtin_.abstract_char, builtin_.exception})
      if (is_subtype(runtime_.types, t, none)) return builtin_.nothing;
    return nullptr;
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
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete || plain(d) || d->is_mutable || d->object_kind != DataType::ObjectKind::fields)
    return builtin_.nothing;
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

const DataType* TangentTypes::mutable_shadow(const DataType* t) {
  TypeName* name = runtime_.types.new_name(runtime_.symbol("Shadow{" + to_string(t) + "}"), runtime_.base);
  // Registered before its fields are looked at: a struct that refers to itself is not supported (unknown).
  std::vector<const Symbol*> names;
  std::vector<const Type*> types;
  bool any = false;
  bool unknown = false;
  shadows_[t] = nullptr;
  for (const Field& field : t->fields) {
    names.push_back(field.name);
    const Type* e = element(field.type);
    unknown |= !e;
    any |= e && e != builtin_.nothing;
    types.push_back(e ? e : builtin_.any);
  }
  if (unknown) return nullptr;
  if (!any) return builtin_.nothing;
  runtime_.types.define_struct(name, {}, builtin_.any, names, types, true, 0);
  return name->primary;
}

const std::vector<TangentTypes::Leaf>& TangentTypes::leaves(const Type* t) {
  auto found = leaves_.find(t);
  if (found != leaves_.end()) return found->second;
  std::vector<Leaf> result;
  if (is_float(t)) {
    result.push_back({t, {}});
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

const Type* shadow_type(Runtime& runtime, const Type* t) { return tangent_types(runtime).shadow(t); }
const Type* cotangent_type(Runtime& runtime, const Type* t) { return tangent_types(runtime).cotangent(t); }
const Type* tangent_type(Runtime& runtime, const Type* t) { return tangent_types(runtime).element(t); }

}  // namespace slope::diff
