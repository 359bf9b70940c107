#include "lang/diff/tangent.hpp"

#include <algorithm>
#include <random>

#include "lang/runtime/library_names.hpp"

#include "lang/support/tuning.hpp"

namespace slope::diff {

TangentTypes::TangentTypes(Runtime& runtime)
    : stand_ins(runtime),
      seal_key_(std::uint64_t{std::random_device{}()} << 32 | std::random_device{}()),
      runtime_(runtime),
      builtin_(runtime.types.builtin()) {
  for (const LibraryEntry& entry : library_entries()) known_symbols_.push_back(runtime.symbol(entry.name));
  known_bindings_.resize(known_symbols_.size());
}

Value TangentTypes::value_of(KnownName name) {
  const Binding*& known = known_bindings_[static_cast<std::size_t>(name)];
  if (!known) known = library_binding(runtime_, name);
  return known ? known->value : Value();
}

// The rules:
//   type                       shadow                         cotangent
//   Float64, Float32           Nothing                        itself
//   other plain data           Nothing                        Nothing
//   immutable struct, tuple    Tuple of the fields' shadows   Tuple of the fields' cotangents (Nothing if all are)
//   Array{T,N}                 Array{element(T),N}            Nothing
//   mutable struct S           a mutable Shadow{S}            Nothing
//   Core.Box                   a mutable Shadow{Box}          Nothing
//   not concrete               DynamicTangent                 DynamicTangent (Nothing when no instance can have any)
//
// A field whose type contains the struct again (the children of a tree node, the next node of a list) has a
// DynamicTangent as its shadow. Every cycle of types goes through such a field, so all other shadows are finite. Which
// fields these are depends only on the types, never on the order in which shadows are computed. The same holds of
// cotangents: an immutable struct may have a field of its own type, which is not assigned in the last of a chain.

const Type* TangentTypes::shadow(const Type* t) {
  auto found = shadows_.find(t);
  if (found != shadows_.end()) return found->second;
  const Type* result = compute_shadow(t);
  if (result || dynamic_) shadows_[t] = result;  // else it may be known once the standard library is
  return result;
}

const DataType* TangentTypes::dynamic() {
  if (dynamic_) return dynamic_;
  Binding* binding = library_binding(runtime_, KnownName::dynamic_tangent_type);
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

const Type* TangentTypes::element(const Type* t) { return both_parts(shadow(t), cotangent(t)); }

const Type* TangentTypes::both_parts(const Type* s, const Type* c) {
  if (!s || !c) return nullptr;
  if (s == builtin_.nothing) return c;
  if (c == builtin_.nothing) return s;
  const Type* both[] = {s, c};
  return runtime_.types.tuple(both);
}

namespace {

bool plain(const DataType* d) {
  return d->object_kind == DataType::ObjectKind::string || d->object_kind == DataType::ObjectKind::immortal ||
         d->object_kind == DataType::ObjectKind::coroutine || d->storage == Storage::singleton ||
         d->storage == Storage::bits;
}

}  // namespace

bool TangentTypes::holds_memory(Value v) {
  if (!v.defined() || stand_ins.contains(v) || (known(v.type) && !has_shadow(v.type))) return false;
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

// Goes through the types that a value of type `t` may be made of, each once, until `wanted` says yes of one; it also
// says which of them to look into.
template <class Wanted>
bool TangentTypes::finds(const Type* t, Wanted&& wanted) {
  // Types that grow as they contain themselves (a P{T} that holds a P{Vector{T}}) have no end.
  constexpr std::size_t many = tuning::tangent_type_parts;
  std::unordered_set<const Type*> seen{t};
  std::vector<const Type*> left{t};
  auto add = [&](const Type* part) {
    if (seen.insert(part).second) left.push_back(part);
  };
  while (!left.empty()) {
    const Type* here = left.back();
    left.pop_back();
    if (here == builtin_.bottom) continue;
    const Answer answer = wanted(here);
    if (answer == Answer::yes || seen.size() > many) return true;
    if (answer == Answer::no) continue;
    const DataType* d = as_data(here);
    if (const UnionType* u = as_union(here)) {
      for (const Type* member : u->members) add(member);
    } else if (d && d->object_kind == DataType::ObjectKind::array) {
      add(d->params[0]);
    } else if (d) {
      for (const Field& field : d->fields) add(field.type);
    }
  }
  return false;
}

// Of a type that is no struct, array or union of such: whether it carries a derivative. `inside`: look at its parts.
TangentTypes::Answer TangentTypes::carries_by_itself(const Type* t) {
  if (is_float(t)) return Answer::yes;
  if (as_union(t)) return Answer::inside;
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete) return never_carries(t) ? Answer::no : Answer::yes;
  if (plain(d) || d->name == builtin_.type_name) return Answer::no;
  const bool known = d->object_kind == DataType::ObjectKind::array || d->object_kind == DataType::ObjectKind::fields;
  return known ? Answer::inside : Answer::yes;
}

bool TangentTypes::carries(const Type* t) {
  return finds(t, [&](const Type* part) { return carries_by_itself(part); });
}

// Memory that carries a derivative, in a value itself or in one of its parts.
bool TangentTypes::may_hold_memory(const Type* t) {
  return finds(t, [&](const Type* part) {
    if (is_float(part)) return Answer::no;
    const Answer answer = carries_by_itself(part);
    const DataType* d = as_data(part);
    if (answer != Answer::inside || !d) return answer;
    const bool memory = d->is_mutable || d->object_kind == DataType::ObjectKind::array;
    return !memory ? Answer::inside : carries(part) ? Answer::yes : Answer::no;
  });
}

// Numbers that carry a derivative, in a value itself or in one of its immutable parts.
bool TangentTypes::may_hold_numbers(const Type* t) {
  return finds(t, [&](const Type* part) {
    const DataType* d = as_data(part);
    const bool memory =
        d && d->is_concrete && (d->is_mutable || (d->object_kind != DataType::ObjectKind::fields && !is_float(part)));
    return memory ? Answer::no : carries_by_itself(part);
  });
}

bool TangentTypes::reaches(const Type* from, const Type* t) {
  return finds(from, [&](const Type* part) {
    if (part == t) return Answer::yes;
    return carries_by_itself(part) == Answer::inside ? Answer::inside : Answer::no;
  });
}

// Whether a `t` may be a part of a `from` and of the immutable structs in it. What is behind a union is in a box anyway.
bool TangentTypes::embeds(const Type* from, const DataType* t) {
  return finds(from, [&](const Type* part) {
    if (part == t) return Answer::yes;
    const DataType* d = as_data(part);
    const bool fixed =
        d && d->is_concrete && !d->is_mutable && d->object_kind == DataType::ObjectKind::fields && may_hold_numbers(d);
    return fixed ? Answer::inside : Answer::no;
  });
}

const Type* TangentTypes::numbers_of_field(const DataType* owner, std::size_t field) {
  const Type* declared = owner->fields[field].type;
  const DataType* d = as_data(declared);
  const bool may_be_inside = d && d->is_concrete && !d->fields.empty() && !d->is_mutable;
  return may_be_inside && may_hold_numbers(d) && embeds(d, owner) ? builtin_.any : declared;
}

bool TangentTypes::contains_itself(const DataType* t) {
  return std::any_of(t->fields.begin(), t->fields.end(), [&](const Field& field) { return reaches(field.type, t); });
}

// Of a field of `owner` that is declared to hold `declared`.
const Type* TangentTypes::field_shadow(const DataType* owner, const Type* declared) {
  return may_hold_memory(declared) && reaches(declared, owner) ? dynamic() : shadow(declared);
}

const Type* TangentTypes::compute_shadow(const Type* t) {
  if (!may_hold_memory(t)) return builtin_.nothing;
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete) return dynamic();
  if (d->object_kind == DataType::ObjectKind::array) {
    const Type* e = element(d->params[0]);
    if (!e) return nullptr;
    const Type* params[] = {e, d->params[1]};
    return runtime_.types.apply(d->name, params);
  }
  if (d->object_kind == DataType::ObjectKind::cell) return mutable_shadow(d);
  if (d->object_kind != DataType::ObjectKind::fields) return nullptr;
  if (d->is_mutable) return mutable_shadow(d);
  std::vector<const Type*> fields;
  for (const Field& field : d->fields) {
    fields.push_back(field_shadow(d, field.type));
    if (!fields.back()) return nullptr;
  }
  return runtime_.types.tuple(fields);
}

const Type* TangentTypes::compute_cotangent(const Type* t) {
  if (is_float(t)) return t;
  if (!may_hold_numbers(t)) return builtin_.nothing;
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete) return dynamic();
  std::vector<const Type*> fields;
  for (std::size_t i = 0; i < d->fields.size(); ++i) {
    fields.push_back(cotangent(numbers_of_field(d, i)));
    if (!fields.back()) return nullptr;
  }
  return runtime_.types.tuple(fields);
}

// Nominal, one a type: a mutable object with one tangent a field, and last whether nothing that carries a derivative
// may be stored (ShadowMaker::forbid_stores). A Box has one field of any type.
const DataType* TangentTypes::mutable_shadow(const DataType* t) {
  TypeName* name = runtime_.types.new_name(runtime_.symbol("Shadow{" + to_string(t) + "}"), runtime_.base);
  std::vector<const Symbol*> names;
  std::vector<const Type*> types;
  auto add = [&](const Symbol* field, const Type* declared) {
    names.push_back(field);
    types.push_back(both_parts(field_shadow(t, declared), cotangent(declared)));
    return types.back() != nullptr;
  };
  if (t->object_kind == DataType::ObjectKind::cell) {
    if (!add(runtime_.symbol("contents"), builtin_.any)) return nullptr;
  }
  for (const Field& field : t->fields)
    if (!add(field.name, field.type)) return nullptr;
  names.push_back(runtime_.symbol("#constant"));
  types.push_back(builtin_.boolean);
  runtime_.types.define_struct(name, {}, builtin_.any, names, types, true, 0);
  shadowed_[name->primary] = t;
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
      for (const Leaf& inner : leaves(numbers_of_field(d, i))) {
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
