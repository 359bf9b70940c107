// Splits what a user passes as the cotangent of a result, or as a direction, into shadows and seeds.
#include <algorithm>

#include "lang/derive/natives/call.hpp"

namespace slope::derive {

TangentSeeder::TangentSeeder(Context& ctx, Kind kind)
    : ctx_(ctx),
      runtime_(*ctx.runtime),
      tangents_(diff::tangent_types(runtime_)),
      kind_(kind),
      roots_(runtime_.heap),
      told_roots_(runtime_.heap) {}

bool TangentSeeder::call_base(const char* name, std::initializer_list<Value> arguments, Value& result) {
  Binding* binding = runtime_.base->find(runtime_.symbol(name));
  if (!runtime_.call(ctx_, binding->value, arguments.begin(), arguments.size(), result)) return false;
  roots_.values.push_back(result);
  return true;
}

bool TangentSeeder::seed(const Type* t, Value v, Value given, Value shadow, Value& seed) {
  if (diff::stack_is_low(ctx_)) return ctx_.stack_overflow();
  roots_.values.insert(roots_.values.end(), {given, shadow});
  const bool none = given.type == runtime_.nothing().type;
  if (tangents_.is_float(t)) {
    Value converted = none ? runtime_.from_float(0.0) : given;
    seed = converted;
    if (converted.type == t) return true;
    if (!call_base("convert", {runtime_.from_type(t), converted}, seed)) return false;
    return seed.type == t || ctx_.type_error("convert", t, seed);
  }
  seed = runtime_.nothing();
  if (!tangents_.differentiable(t)) return true;
  if (!is_concrete(t)) return dynamic(t, v, given, shadow, seed);
  if (shadow.type == tangents_.dynamic())
    shadow = load_field(runtime_.heap, shadow.object, tangents_.dynamic()->fields[0]);
  const DataType* d = as_data(t);
  // A record that a program has made by hand may have any shadow.
  const bool is_memory = d->is_mutable || d->object_kind != DataType::ObjectKind::fields;
  if (is_memory && !none && shadow.type != tangents_.shadow(t))
    return ctx_.type_error("the shadow", tangents_.shadow(t), shadow);
  if (d->object_kind == DataType::ObjectKind::array) return none || array(d, v, given, shadow);
  if (d->object_kind == DataType::ObjectKind::cell) return none || cell(v, given, shadow);
  if (d->is_mutable && none) return true;
  if (!none && !d->is_tuple && !call_base("fields_in_order", {runtime_.from_type(t), given}, given)) return false;
  return fields(d, v, given, shadow, seed);
}

// Of a value whose type was known only when it was there.
bool TangentSeeder::dynamic(const Type* t, Value v, Value given, Value shadow, Value& seed) {
  const bool none = given.type == runtime_.nothing().type;
  if (shadow.type == tangents_.dynamic())
    shadow = load_field(runtime_.heap, shadow.object, tangents_.dynamic()->fields[0]);
  Value number = given;
  if (v.defined()) {
    number = runtime_.nothing();
    if (!none && !this->seed(v.type, v, given, shadow, number)) return false;
  } else if (!none) {  // the shadow tells whether there is memory in it
    Value ignored;
    if (shadow.type != runtime_.nothing().type && !call_base("accumulate_cotangent!", {shadow, given}, ignored))
      return false;
    if (!call_base("numbers_only", {given}, number)) return false;
  }
  if (!tangents_.has_cotangent(t)) return true;
  roots_.values.push_back(number);
  return runtime_.new_object(ctx_, tangents_.dynamic(), &number, 1, seed);
}

// Whether this memory was told its direction before, which must have been the same.
bool TangentSeeder::is_told(const void* memory, Value given, bool& known) {
  known = false;
  if (kind_ != Kind::direction) return true;
  auto [at, fresh] = told_.try_emplace(memory, given);
  if (fresh) {
    told_roots_.values.push_back(given);
    return true;
  }
  known = true;
  Value same;
  if (!call_base("same_direction", {at->second, given}, same)) return false;
  return (same.bits & 1) || ctx_.argument_error("one array or object, held twice, is given two directions");
}

bool TangentSeeder::array(const DataType* t, Value v, Value given, Value shadow) {
  const ArrayObject* made = static_cast<const ArrayObject*>(shadow.object);
  bool known = false;
  // Another shape of an array's memory is that memory.
  if (!is_told(made->length > 0 ? static_cast<const void*>(made->data) : made, given, known)) return false;
  if (known) return true;
  Value ignored;
  if (tangents_.is_float(t->params[0])) return call_base("accumulate_cotangent!", {shadow, given}, ignored);
  const DataType* form = as_data(given.type);
  if (!form || form->object_kind != DataType::ObjectKind::array)
    if (!call_base("collect", {given}, given)) return false;
  if (as_data(given.type)->object_kind != DataType::ObjectKind::array)
    return ctx_.type_error("collect", runtime_.types.builtin().array, given);
  return elements(t, v, given, shadow);
}

bool TangentSeeder::elements(const DataType* t, Value v, Value given, Value shadow) {
  const ArrayObject* from = static_cast<const ArrayObject*>(given.object);
  ArrayObject* to = static_cast<ArrayObject*>(shadow.object);
  const bool same_size =
      array_ndims(from) == array_ndims(to) && std::equal(dims_of(from), dims_of(from) + array_ndims(from), dims_of(to));
  if (!same_size) {
    Value expected;
    Value found;
    if (!call_base("size", {shadow}, expected) || !call_base("size", {given}, found)) return false;
    return ctx_.raise_message(runtime_.types.builtin().dimension_mismatch,
                              "a " + what() + " of size " + runtime_.show(ctx_, expected) +
                                  " was expected; found one of size " + runtime_.show(ctx_, found));
  }
  const Type* of_given = array_element_type(from);
  const Type* of_shadow = array_element_type(to);
  for (std::int64_t i = 0; i < to->length; ++i) {
    auto at = [&](const ArrayObject* a, const Type* element) {
      return load_stored(runtime_.heap, a->data + i * stored_size(element), element);
    };
    const Value part = at(from, of_given);
    const Value held = at(to, of_shadow);
    // Places of a dictionary that hold nothing are not assigned.
    if (!part.defined() || !held.defined() || part.type == runtime_.nothing().type) continue;
    const std::size_t mark = roots_.values.size();
    roots_.values.insert(roots_.values.end(), {part, held});
    const Value value = v.defined() ? at(static_cast<const ArrayObject*>(v.object), t->params[0]) : Value();
    roots_.values.push_back(value);
    Value made;
    if (!place(t->params[0], value, part, held, of_shadow, made)) return false;
    if (made.defined()) store_value(runtime_.heap, to->data + i * stored_size(of_shadow), of_shadow, made);
    roots_.values.resize(mark);
  }
  return true;
}

// A place in memory: its numbers lie in the shadow itself, and are added there. `made`: what the shadow holds now;
// undefined when that is what it held.
bool TangentSeeder::place(const Type* declared, Value v, Value given, Value held, const Type* stored, Value& made) {
  made = Value();
  const bool both = tangents_.has_shadow(declared) && tangents_.has_cotangent(declared);
  Value own = both ? load_field(runtime_.heap, held.object, as_data(held.type)->fields[0]) : held;
  Value number = both ? load_field(runtime_.heap, held.object, as_data(held.type)->fields[1]) : held;
  roots_.values.insert(roots_.values.end(), {own, number});
  Value added;
  if (!seed(declared, v, given, own, added)) return false;
  if (!tangents_.has_cotangent(declared)) return true;
  roots_.values.push_back(added);
  Value parts[2] = {own, Value()};
  if (!call_base("sum_tangents", {number, added}, parts[1])) return false;
  made = parts[1];
  if (!both && !is_instance(runtime_.types, made, stored)) return ctx_.type_error("sum_tangents", stored, made);
  return !both || runtime_.new_object(ctx_, as_data(stored), parts, 2, made);
}

// A captured variable that is assigned again: its tangent is that of what it holds.
bool TangentSeeder::cell(Value v, Value given, Value shadow) {
  bool known = false;
  if (!is_told(shadow.object, given, known) || known) return !ctx_.failed();
  const Field& there = as_data(shadow.type)->fields[0];
  const Value held = load_field(runtime_.heap, shadow.object, there);
  if (!held.defined()) return ctx_.argument_error("a " + what() + " is given for a variable that is not assigned");
  const Value content = v.defined() ? static_cast<const CellObject*>(v.object)->value : Value();
  roots_.values.insert(roots_.values.end(), {held, content});
  Value made;
  if (!place(runtime_.types.builtin().any, content, given, held, there.type, made)) return false;
  if (made.defined()) store_value(runtime_.heap, shadow.object->payload() + there.offset, there.type, made);
  return true;
}

bool TangentSeeder::fields(const DataType* t, Value v, Value given, Value shadow, Value& seed) {
  const bool none = given.type == runtime_.nothing().type;
  const DataType* form = as_data(given.type);
  if (!none && (form->fields.size() != t->fields.size() || !(form->is_tuple || form->is_named_tuple)))
    return ctx_.argument_error("the " + what() + " of a " + to_string(t) + " is a tuple or a named tuple with " +
                               std::to_string(t->fields.size()) + " entries, one a field; found a value of type " +
                               to_string(given.type));
  auto value_of = [&](std::size_t i) {
    return v.defined() ? load_field(runtime_.heap, v.object, t->fields[i]) : Value();
  };
  if (t->is_mutable) {
    bool known = false;
    if (!is_told(shadow.object, given, known) || known) return !ctx_.failed();
    for (std::size_t i = 0; i < t->fields.size(); ++i) {
      const Field& there = as_data(shadow.type)->fields[i];
      const Value part = load_field(runtime_.heap, given.object, form->fields[i]);
      if (part.type == runtime_.nothing().type || there.type == runtime_.nothing().type) continue;
      const Value held = load_field(runtime_.heap, shadow.object, there);
      if (!held.defined()) return ctx_.argument_error("a " + what() + " is given for a field that is not assigned");
      roots_.values.insert(roots_.values.end(), {part, held});
      Value made;
      if (!place(t->fields[i].type, value_of(i), part, held, there.type, made)) return false;
      if (made.defined()) store_value(runtime_.heap, shadow.object->payload() + there.offset, there.type, made);
    }
    return true;
  }
  Rooted parts(runtime_.heap);
  for (std::size_t i = 0; i < t->fields.size(); ++i) {
    Value part = none ? given : load_field(runtime_.heap, given.object, form->fields[i]);
    Value part_shadow = runtime_.nothing();
    if (as_data(shadow.type)->is_tuple && as_data(shadow.type)->fields.size() == t->fields.size())
      part_shadow = load_field(runtime_.heap, shadow.object, as_data(shadow.type)->fields[i]);
    Value part_seed;
    if (!this->seed(tangents_.numbers_of_field(t, i), value_of(i), part, part_shadow, part_seed)) return false;
    parts.values.push_back(part_seed);
  }
  if (!tangents_.has_cotangent(t)) return true;
  return runtime_.new_tuple(ctx_, parts.values.data(), parts.values.size(), seed);
}

}  // namespace slope::derive
