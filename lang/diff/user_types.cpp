#include "lang/diff/user_types.hpp"

#include <algorithm>

#include "lang/support/tuning.hpp"
#include "lang/types/module.hpp"
#include "lang/types/symbol.hpp"

namespace slope::diff {

namespace {

class UserTangents {
 public:
  explicit UserTangents(TypeTable& types) : types_(types), builtin_(types.builtin()) {}

  const Type* of(const Type* t, int levels) {
    const DataType* d = as_data(t);
    if (!d || !d->is_concrete || levels == 0) return builtin_.any;
    if (is_float(d) || is_complex_float(types_, d)) return d;
    if (d == builtin_.string || d == builtin_.symbol || d->storage == Storage::singleton) return builtin_.nothing;
    if (d->object_kind == DataType::ObjectKind::array) return of_array(d);
    if (d->object_kind != DataType::ObjectKind::fields || d->is_mutable) return builtin_.any;
    if (d->fields.empty()) return d->is_isbits ? builtin_.nothing : builtin_.any;
    return of_fields(d, levels);
  }

 private:
  bool is_float(const Type* t) const { return t == builtin_.float64 || t == builtin_.float32; }

  const Type* of_array(const DataType* d) {
    if (is_float(d->params[0]) || is_complex_float(types_, d->params[0])) return d;
    const DataType* element = as_data(d->params[0]);
    const bool is_plain_number = element && element->is_concrete && element->is_isbits && element->fields.empty();
    return is_plain_number ? builtin_.nothing : builtin_.any;
  }

  const Type* of_fields(const DataType* d, int levels) {
    for (const Type* constant :
         {builtin_.abstract_string, builtin_.integer, builtin_.abstract_char, builtin_.exception})
      if (is_subtype(types_, d, constant)) return builtin_.any;
    if (may_lack_fields(d)) return builtin_.any;
    std::vector<const Type*> parts;
    std::vector<const Symbol*> names;
    for (const Field& field : d->fields) {
      parts.push_back(of(field.type, levels - 1));
      names.push_back(field.name);
      if (parts.back() == builtin_.any) return builtin_.any;
    }
    const bool is_constant =
        std::all_of(parts.begin(), parts.end(), [&](const Type* part) { return part == builtin_.nothing; });
    if (is_constant) return builtin_.nothing;
    const DataType* tuple = types_.tuple(parts);
    return d->is_tuple ? tuple : types_.named_tuple(names, tuple);
  }

  TypeTable& types_;
  const BuiltinTypes& builtin_;
};

constexpr int most_levels = tuning::user_type_levels;

bool is_of_base(const DataType* d, std::string_view name) {
  const Module* module = d->name->module;
  return d->name->name->name == name && module && module->name && module->name->name == "Base";
}

}  // namespace

bool may_hold_dictionary(const TypeTable& types, const DataType* d) {
  return std::any_of(d->fields.begin(), d->fields.end(), [&](const Field& field) {
    const DataType* held = as_data(field.type);
    return !held || held == types.builtin().any || is_of_base(held, "Dict");
  });
}

bool is_complex_float(const TypeTable& types, const Type* t) {
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete || d->is_mutable || d->fields.size() != 2 || d->params.size() != 1) return false;
  if (d->params[0] != types.builtin().float64 && d->params[0] != types.builtin().float32) return false;
  return is_of_base(d, "Complex") && d->fields[0].type == d->params[0] && d->fields[1].type == d->params[0];
}

bool holds_complex(const TypeTable& types, const Type* t) {
  if (is_complex_float(types, t)) return true;
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete) return false;
  if (d->object_kind == DataType::ObjectKind::array) return is_complex_float(types, d->params[0]);
  return (d->is_tuple || d->is_named_tuple) && std::any_of(d->fields.begin(), d->fields.end(), [&](const Field& field) {
           return holds_complex(types, field.type);
         });
}

bool may_lack_fields(const DataType* d) {
  for (std::size_t i = d->initialized_fields; i < d->fields.size(); ++i)
    if (const Storage storage = d->fields[i].storage; storage == Storage::reference || storage == Storage::dynamic)
      return true;
  return false;
}

bool has_struct_elements(TangentTypes& tangents, const DataType* d) {
  if (!d || d->object_kind != DataType::ObjectKind::array || !tangents.known(d)) return false;
  const DataType* element = as_data(d->params[0]);
  if (!element || !element->is_concrete || !element->is_isbits || element->is_mutable) return false;
  if (element->object_kind != DataType::ObjectKind::fields || tangents.has_shadow(element)) return false;
  const DataType* cotangent = as_data(tangents.cotangent(element));
  if (!cotangent || !cotangent->is_tuple || tangents.is_dynamic(element) || tangents.element(element) != cotangent)
    return false;
  const Type* seen = user_tangent_type(tangents.runtime().types, element);
  return is_concrete(seen) && seen != tangents.runtime().types.builtin().nothing;
}

bool is_object_of_numbers(TangentTypes& tangents, const DataType* d) {
  if (!d || !d->is_concrete || !d->is_mutable || d->object_kind != DataType::ObjectKind::fields) return false;
  const DataType* shadow = as_data(tangents.shadow(d));
  if (!shadow || tangents.has_cotangent(d) || shadow->fields.size() != d->fields.size() + 1 || may_lack_fields(d))
    return false;
  const Type* nothing = tangents.runtime().types.builtin().nothing;
  for (std::size_t i = 0; i < d->fields.size(); ++i) {
    const bool is_number = tangents.is_float(d->fields[i].type) && shadow->fields[i].type == d->fields[i].type;
    if (!is_number && (tangents.differentiable(d->fields[i].type) || shadow->fields[i].type != nothing)) return false;
  }
  return true;
}

const Type* user_tangent_type(TypeTable& types, const Type* t) { return UserTangents(types).of(t, most_levels); }

}  // namespace slope::diff
