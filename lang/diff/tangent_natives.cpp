// Shadows and tangents of run-time values: what `gradient` passes to derivative code, and what it returns to the user.
#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "lang/diff/tangent.hpp"
#include "lang/diff/user_types.hpp"

namespace slope::diff {

TangentTypes& tangent_types(Runtime& runtime) {
  if (!runtime.derivative_state) runtime.derivative_state = std::make_shared<TangentTypes>(runtime);
  return *static_cast<TangentTypes*>(runtime.derivative_state.get());
}

// A flag of arrays, beside ArrayFlags: stores into a shadow's memory are refused.
constexpr std::uint32_t array_stores_forbidden = 1u << 31;

ShadowMaker::ShadowMaker(Context& ctx)
    : ctx_(ctx), runtime_(*ctx.runtime), tangents_(tangent_types(runtime_)), made_(runtime_.heap) {}

bool ShadowMaker::shadow(Value v, Value& result) {
  if (stack_is_low(ctx_)) return ctx_.stack_overflow();
  const Type* type = tangents_.shadow(v.type);
  if (!type) return ctx_.argument_error("a value of type " + to_string(v.type) + " cannot carry a derivative");
  result = runtime_.nothing();
  if (type == runtime_.types.builtin().nothing) return true;
  const DataType* d = as_data(v.type);
  if (!v.pointer && (d->storage == Storage::reference || d->storage == Storage::aggregate))
    return of_undefined(type, result);
  if (d->object_kind == DataType::ObjectKind::array || d->is_mutable) {
    if (const std::size_t known = index_.of(v.object); known != ObjectNumbers::none) {
      result = made_.values[known];
      return true;
    }
  }
  if (d->object_kind == DataType::ObjectKind::array) return array(v, result);
  return fields(v, as_data(type), result);
}

// Of a value that no path has made, or of a field that is not assigned: nothing looks at it.
bool ShadowMaker::of_undefined(const Type* shadow, Value& result) {
  result = runtime_.nothing();
  const DataType* d = as_data(shadow);
  if (!d || !d->is_concrete || d->storage == Storage::singleton) return true;
  if (shadow == tangents_.dynamic()) return zero(shadow, result);
  if (!d->is_mutable || d->object_kind == DataType::ObjectKind::array) {
    result = tangents_.stand_ins.of(shadow);
    if (result.defined()) return true;
  }
  Object* made = runtime_.heap.allocate(d, d->size);
  if (!made) return ctx_.out_of_memory();
  std::memset(made->payload(), 0, d->size);
  result = Value(d, made);
  return true;
}

// The places of a struct or tuple, which are made before the object that holds them; a struct that holds itself is made
// first, and filled after.
bool ShadowMaker::fields(Value v, const DataType* type, Value& result) {
  const DataType* d = as_data(v.type);
  Rooted parts(runtime_.heap);
  if (!d->is_mutable) {
    for (std::size_t i = 0; i < d->fields.size(); ++i) {
      Value part;
      Value value = load_field(runtime_.heap, v.object, d->fields[i]);
      if (!(value.defined() ? shadow(value, part) : of_undefined(type->params[i], part))) return false;
      if (type->params[i] == tangents_.dynamic() && part.type != tangents_.dynamic() &&
          !runtime_.new_object(ctx_, tangents_.dynamic(), &part, 1, part))
        return false;
      parts.values.push_back(part);
    }
    return runtime_.new_tuple(ctx_, parts.values.data(), parts.values.size(), result);
  }
  Object* made = runtime_.heap.allocate(type, type->size);
  if (!made) return ctx_.out_of_memory();
  std::memset(made->payload(), 0, type->size);
  result = Value(type, made);
  keep(v.object, result);
  for (std::size_t i = 0; i + 1 < type->fields.size(); ++i) {
    bool is_cell = d->object_kind == DataType::ObjectKind::cell;
    const Type* declared = is_cell ? runtime_.types.builtin().any : d->fields[i].type;
    Value value =
        is_cell ? static_cast<CellObject*>(v.object)->value : load_field(runtime_.heap, v.object, d->fields[i]);
    if (!value.defined()) {
      if (!is_cell) continue;  // nor is the shadow's
      value = runtime_.nothing();
    }
    Value part;
    if (!element(value, declared, type->fields[i].type, part)) return false;
    store_value(runtime_.heap, made->payload() + type->fields[i].offset, type->fields[i].type, part);
  }
  return true;
}

// What mutable memory declared to hold `declared` has in its shadow for `v`, as `stored`: a zero cotangent, a shadow,
// or both.
bool ShadowMaker::element(Value v, const Type* declared, const Type* stored, Value& result) {
  if (!tangents_.has_shadow(declared)) return zero(tangents_.cotangent(declared), result);
  if (stored != tangents_.dynamic() && !tangents_.has_cotangent(declared)) return shadow(v, result);
  Rooted both(runtime_.heap);
  both.values.resize(2);
  if (!shadow(v, both.values[0])) return false;
  const Type* held = tangents_.has_cotangent(declared) ? as_data(stored)->params[0] : stored;
  if (held == tangents_.dynamic() &&
      !runtime_.new_object(ctx_, tangents_.dynamic(), &both.values[0], 1, both.values[0]))
    return false;
  if (!tangents_.has_cotangent(declared)) {
    result = both.values[0];
    return true;
  }
  if (!zero(tangents_.cotangent(declared), both.values[1])) return false;
  return runtime_.new_tuple(ctx_, both.values.data(), 2, result);
}

bool ShadowMaker::zero(const Type* cotangent, Value& result) {
  const BuiltinTypes& builtin = runtime_.types.builtin();
  if (cotangent == builtin.float64) {
    result = runtime_.from_float(0.0);
  } else if (cotangent == builtin.float32) {
    result = Value(cotangent, std::int64_t{0});
  } else if (cotangent == builtin.nothing) {
    result = runtime_.nothing();
  } else if (cotangent == tangents_.dynamic()) {
    Value nothing = runtime_.nothing();
    return runtime_.new_object(ctx_, tangents_.dynamic(), &nothing, 1, result);
  } else {
    Rooted parts(runtime_.heap);
    for (const Type* part : as_data(cotangent)->params) {
      Value v;
      if (!zero(part, v)) return false;
      parts.values.push_back(v);
    }
    return runtime_.new_tuple(ctx_, parts.values.data(), parts.values.size(), result);
  }
  return true;
}

void ShadowMaker::keep(const Object* object, Value shadow) {
  index_.set(object, made_.values.size());
  made_.values.push_back(shadow);
}

bool ShadowMaker::array(Value v, Value& result) {
  const ArrayObject* source = static_cast<const ArrayObject*>(v.object);
  const DataType* type = as_data(tangents_.shadow(v.type));
  std::vector<std::int64_t> dims;
  for (int i = 0; i < array_ndims(source); ++i) dims.push_back(dims_of(source)[i]);
  if (Object* lender = owner_of(source)) {  // another shape of an array's memory: another shape of its shadow's
    Value owner;
    if (!shadow(Value(lender->type, lender), owner)) return false;
    ArrayObject* shared = runtime_.heap.share_array(type, static_cast<ArrayObject*>(owner.object), dims);
    if (!shared) return ctx_.out_of_memory();
    result = Value(type, shared);
    keep(v.object, result);
    return true;
  }
  ArrayObject* made = runtime_.heap.allocate_array(type, dims);
  if (!made) return ctx_.out_of_memory();
  result = Value(type, made);
  keep(v.object, result);
  const Type* declared = array_element_type(source);
  const Type* stored = type->params[0];
  std::uint32_t from = stored_size(declared);
  std::uint32_t to = stored_size(stored);
  if (!tangents_.has_shadow(declared) && as_data(stored)->is_isbits) {  // all zero bits: floats and tuples of floats
    std::memset(made->data, 0, static_cast<std::size_t>(made->length) * to);
    return true;
  }
  const bool has_shadow = tangents_.has_shadow(declared);
  if (has_shadow) index_.reserve(static_cast<std::size_t>(source->length));
  if (const DataType* inner = as_data(declared); inner && inner->is_concrete &&
                                                 inner->object_kind == DataType::ObjectKind::array &&
                                                 stored == declared && tangents_.is_float(inner->params[0]))
    return arrays_of_numbers(source, made);
  for (std::int64_t i = 0; i < source->length; ++i) {
    Value value = load_stored(runtime_.heap, source->data + i * from, declared);
    if (!value.defined() && has_shadow) continue;
    Value part;
    if (!element(value, declared, stored, part)) return false;
    store_value(runtime_.heap, made->data + i * to, stored, part);
  }
  return true;
}

// Many, maybe: what is the same for all is found once.
bool ShadowMaker::arrays_of_numbers(const ArrayObject* source, ArrayObject* made) {
  const Type* type = array_element_type(source);
  const auto ndims = static_cast<std::size_t>(as_value(as_data(type)->params[1])->value.bits);
  made_.values.reserve(made_.values.size() + static_cast<std::size_t>(source->length));
  for (std::int64_t i = 0; i < source->length; ++i) {
    auto* element = reinterpret_cast<ArrayObject* const*>(source->data)[i];
    if (!element) continue;
    Value shadow_of_element;
    if (const std::size_t known = index_.of(element); known != ObjectNumbers::none) {
      shadow_of_element = made_.values[known];
    } else if (owner_of(element)) {
      if (!shadow(Value(type, element), shadow_of_element)) return false;
    } else {
      ArrayObject* zeros = runtime_.heap.allocate_array(as_data(type), {dims_of(element), ndims});
      if (!zeros) return ctx_.out_of_memory();
      std::memset(zeros->data, 0, static_cast<std::size_t>(zeros->length) * zeros->element_size);
      shadow_of_element = Value(type, zeros);
      keep(element, shadow_of_element);
    }
    store_value(runtime_.heap, made->data + i * stored_size(type), type, shadow_of_element);
  }
  return true;
}

bool ShadowMaker::overlaps(const ShadowMaker& other) const {
  return index_.any_of([&](const Object* object) { return other.index_.of(object) != ObjectNumbers::none; });
}

void ShadowMaker::forbid_stores() {
  for (Value v : made_.values) {
    const DataType* d = as_data(v.type);
    if (d->object_kind == DataType::ObjectKind::array)
      static_cast<ArrayObject*>(v.object)->flags |= array_stores_forbidden;
    else
      store_value(runtime_.heap, v.object->payload() + d->fields.back().offset, d->fields.back().type,
                  runtime_.from_bool(true));
  }
}

bool has_forbidden_stores(Runtime& runtime, Value shadow, const std::vector<const Type*>* written) {
  const DataType* d = as_data(shadow.type);
  if (!d || !shadow.object) return false;
  const bool is_array = d->object_kind == DataType::ObjectKind::array;
  if (is_array && written && tangent_types(runtime).is_float(d->params[0]) &&
      !std::binary_search(written->begin(), written->end(), static_cast<const Type*>(d)))
    return false;
  if (is_array) return (static_cast<ArrayObject*>(shadow.object)->flags & array_stores_forbidden) != 0;
  if (d->is_mutable) return load_field(runtime.heap, shadow.object, d->fields.back()).bits & 1;
  if (!d->is_tuple && d != tangent_types(runtime).dynamic()) return false;
  for (const Field& field : d->fields)
    if (has_forbidden_stores(runtime, load_field(runtime.heap, shadow.object, field), written)) return true;
  return false;
}

namespace {

// (shadow, cotangent) of a value → what the user sees: the number, the array, a tuple, a named tuple of the fields,
// nothing.
class TangentFinisher {
 public:
  explicit TangentFinisher(Context& ctx)
      : ctx_(ctx), runtime_(*ctx.runtime), tangents_(tangent_types(runtime_)), kept_(runtime_.heap) {}

  bool finish(Value v, Value shadow, Value cotangent, Value& result) {
    if (stack_is_low(ctx_)) return ctx_.stack_overflow();
    const Type* t = v.type;
    result = runtime_.nothing();
    if (!tangents_.differentiable(t)) return true;
    unbox(shadow);
    unbox(cotangent);
    if (tangents_.is_float(t)) {
      result = number(cotangent, t);
      return true;
    }
    const DataType* d = as_data(t);
    const bool is_memory = d->is_mutable || d->object_kind != DataType::ObjectKind::fields;
    if (is_memory && shadow.type == runtime_.types.builtin().nothing) return true;  // it is not active
    if (is_memory && !is_shadow_of(v, shadow))
      return ctx_.argument_error("the shadow of a value of type " + to_string(t) + " is not one of its shape");
    if (d->object_kind == DataType::ObjectKind::array) return array(v, shadow, result);
    if (tangents_.has_shadow(t) && d->is_mutable) {  // it may reach itself
      if (auto known = finished_.find(v.object); known != finished_.end()) {
        result = known->second;
        return true;
      }
      finished_[v.object] = runtime_.nothing();
    }
    if (d->object_kind == DataType::ObjectKind::cell) {
      Value content = static_cast<CellObject*>(v.object)->value;
      Value parts[2];
      split(runtime_.types.builtin().any, load_field(runtime_.heap, shadow.object, as_data(shadow.type)->fields[0]),
            parts[0], parts[1]);
      return !content.defined() || finish(content, parts[0], parts[1], result);
    }
    Rooted parts(runtime_.heap);
    std::vector<const Symbol*> names;
    for (std::size_t i = 0; i < d->fields.size(); ++i) {
      const Field& field = d->fields[i];
      Value value = load_field(runtime_.heap, v.object, field);
      Value field_shadow = runtime_.nothing();
      Value field_cotangent = runtime_.nothing();
      if (d->is_mutable) {
        Value stored = load_field(runtime_.heap, shadow.object, as_data(shadow.type)->fields[i]);
        split(field.type, stored, field_shadow, field_cotangent);
      } else {
        if (as_data(shadow.type)->is_tuple && as_data(shadow.type)->fields.size() == d->fields.size())
          field_shadow = load_field(runtime_.heap, shadow.object, as_data(shadow.type)->fields[i]);
        // What a rule gave for a value of unknown type may be a named tuple, or a complex number.
        if (const DataType* parts = as_data(cotangent.type);
            parts->object_kind == DataType::ObjectKind::fields && parts->fields.size() == d->fields.size())
          field_cotangent = load_field(runtime_.heap, cotangent.object, parts->fields[i]);
      }
      Value part = runtime_.nothing();
      if (value.defined() && !finish(value, field_shadow, field_cotangent, part)) return false;
      parts.values.push_back(part);
      names.push_back(field.name);
    }
    Value tuple;
    if (!runtime_.new_tuple(ctx_, parts.values.data(), parts.values.size(), tuple)) return false;
    if (d->is_tuple) {
      result = tuple;
      return true;
    }
    if (is_complex_float(runtime_.types, d)) return runtime_.new_object(ctx_, d, parts.values.data(), 2, result);
    if (!runtime_.new_object(ctx_, runtime_.types.named_tuple(names, tuple.type), parts.values.data(),
                             parts.values.size(), result))
      return false;
    if (d->is_mutable) {
      kept_.values.push_back(result);
      finished_[v.object] = result;
    }
    return true;
  }

 private:
  void unbox(Value& tangent) {
    if (tangent.type == tangents_.dynamic())
      tangent = load_field(runtime_.heap, tangent.object, tangents_.dynamic()->fields[0]);
  }

  // Shadows come from records that a program can make by hand.
  bool is_shadow_of(Value v, Value shadow) const {
    if (shadow.type != tangents_.shadow(v.type)) return false;
    return as_data(v.type)->object_kind != DataType::ObjectKind::array ||
           static_cast<const ArrayObject*>(v.object)->length == static_cast<const ArrayObject*>(shadow.object)->length;
  }

  // Zero for what is no number: `nothing`.
  Value number(Value cotangent, const Type* t) {
    const BuiltinTypes& builtin = runtime_.types.builtin();
    double x = cotangent.type == builtin.float64   ? cotangent.float64
               : cotangent.type == builtin.float32 ? static_cast<double>(cotangent.float32)
               : cotangent.type == builtin.int64   ? static_cast<double>(cotangent.bits)
                                                   : 0.0;
    if (t == builtin.float64) return runtime_.from_float(x);
    Value result(t, std::int64_t{0});
    result.float32 = static_cast<float>(x);
    return result;
  }

  void split(const Type* declared, Value stored, Value& shadow, Value& cotangent) {
    shadow = cotangent = runtime_.nothing();
    if (!stored.defined()) return;
    if (!tangents_.has_shadow(declared)) {
      cotangent = stored;
    } else if (!tangents_.has_cotangent(declared)) {
      shadow = stored;
    } else {
      shadow = load_field(runtime_.heap, stored.object, as_data(stored.type)->fields[0]);
      cotangent = load_field(runtime_.heap, stored.object, as_data(stored.type)->fields[1]);
    }
  }

  bool array(Value v, Value shadow, Value& result) {
    const ArrayObject* source = static_cast<const ArrayObject*>(v.object);
    const Type* declared = array_element_type(source);
    if (tangents_.is_float(declared)) {  // the shadow is the gradient
      result = shadow;
      static_cast<ArrayObject*>(result.object)->flags &= ~array_stores_forbidden;
      return true;
    }
    if (shadow.type == runtime_.types.builtin().nothing) return true;
    if (is_complex_float(runtime_.types, declared)) return array_of_complex(v, shadow, result);
    std::vector<std::int64_t> dims;
    for (int i = 0; i < array_ndims(source); ++i) dims.push_back(dims_of(source)[i]);
    const ArrayObject* shadows = static_cast<const ArrayObject*>(shadow.object);
    const Type* stored = array_element_type(shadows);
    if (stored == declared && arrays_of_numbers(*source, *shadows, dims, result)) return true;
    Rooted parts(runtime_.heap);
    parts.values.reserve(static_cast<std::size_t>(source->length));
    const Type* element = source->length == 0 ? user_tangent_type(runtime_.types, declared) : nullptr;
    for (std::int64_t i = 0; i < source->length; ++i) {
      Value value = load_stored(runtime_.heap, source->data + i * stored_size(declared), declared);
      if (!value.defined()) {
        parts.values.push_back(runtime_.nothing());
        element = runtime_.types.builtin().any;
        continue;
      }
      Value element_shadow = runtime_.nothing();
      Value element_cotangent = runtime_.nothing();
      split(declared, load_stored(runtime_.heap, shadows->data + i * stored_size(stored), stored), element_shadow,
            element_cotangent);
      Value part;
      if (!finish(value, element_shadow, element_cotangent, part)) return false;
      parts.values.push_back(part);
      if (!element) element = part.type;
      if (element != part.type) element = runtime_.types.builtin().any;
    }
    ArrayObject* made =
        runtime_.heap.allocate_array(runtime_.types.array_of(element ? element : runtime_.types.builtin().any,
                                                             static_cast<std::int64_t>(dims.size())),
                                     dims);
    if (!made) return ctx_.out_of_memory();
    element = array_element_type(made);
    for (std::int64_t i = 0; i < source->length; ++i)
      store_value(runtime_.heap, made->data + i * stored_size(element), element,
                  parts.values[static_cast<std::size_t>(i)]);
    result = Value(made->type, made);
    return true;
  }

  // The shadows of arrays of numbers are what the user sees. False: some are something else.
  bool arrays_of_numbers(const ArrayObject& source, const ArrayObject& shadows, const std::vector<std::int64_t>& dims,
                         Value& result) {
    const DataType* type = as_data(array_element_type(&source));
    if (!type || !type->is_concrete || type->object_kind != DataType::ObjectKind::array ||
        !tangents_.is_float(type->params[0]) || source.length == 0)
      return false;
    auto* const* given = reinterpret_cast<ArrayObject* const*>(source.data);
    auto* const* found = reinterpret_cast<ArrayObject* const*>(shadows.data);
    for (std::int64_t i = 0; i < source.length; ++i)
      if (!given[i] || !found[i] || given[i]->length != found[i]->length) return false;
    ArrayObject* made = runtime_.heap.allocate_array(shadows.type, dims);
    if (!made) return false;
    for (std::int64_t i = 0; i < source.length; ++i) {
      found[i]->flags &= ~array_stores_forbidden;
      store_value(runtime_.heap, made->data + i * stored_size(type), type, Value(type, found[i]));
    }
    result = Value(made->type, made);
    return true;
  }

  // The shadow has pairs of numbers.
  bool array_of_complex(Value v, Value shadow, Value& result) {
    const auto* source = static_cast<const ArrayObject*>(v.object);
    const auto* pairs = static_cast<const ArrayObject*>(shadow.object);
    const std::vector<std::int64_t> dims(dims_of(source), dims_of(source) + array_ndims(source));
    ArrayObject* made = runtime_.heap.allocate_array(as_data(v.type), dims);
    if (!made) return ctx_.out_of_memory();
    std::memcpy(made->data, pairs->data, static_cast<std::size_t>(made->length) * made->element_size);
    result = Value(made->type, made);
    return true;
  }

  Context& ctx_;
  Runtime& runtime_;
  TangentTypes& tangents_;
  Rooted kept_;
  std::unordered_map<const Object*, Value> finished_;
};

}  // namespace

bool make_zero_shadow(Context& ctx, Value v, Value& result) { return ShadowMaker(ctx).shadow(v, result); }
bool finish_tangent(Context& ctx, Value v, Value shadow, Value cotangent, Value& result) {
  return TangentFinisher(ctx).finish(v, shadow, cotangent, result);
}

namespace {

bool check_tuple(Context& ctx, const char* name, const Value& v) {
  const DataType* d = as_data(v.type);
  if (d && d->is_tuple) return true;
  return ctx.type_error(name, ctx.runtime->types.builtin().tuple_any, v);
}

Value tuple_part(Context& ctx, Value tuple, std::size_t i) {
  return load_field(ctx.runtime->heap, tuple.object, as_data(tuple.type)->fields[i]);
}

// zero_shadows(values::Tuple) → Tuple, shared objects with shared shadows.
bool zero_shadows(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("zero_shadows takes one tuple");
  if (!check_tuple(ctx, "zero_shadows", args[0])) return false;
  ShadowMaker maker(ctx);
  Rooted parts(ctx.runtime->heap);
  for (std::size_t i = 0; i < as_data(args[0].type)->fields.size(); ++i) {
    Value part;
    if (!maker.shadow(tuple_part(ctx, args[0], i), part)) return false;
    parts.values.push_back(part);
  }
  return ctx.runtime->new_tuple(ctx, parts.values.data(), parts.values.size(), result);
}

// finish_tangents(values::Tuple, shadows::Tuple, cotangents::Tuple) → Tuple
bool finish_tangents(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 3) return ctx.argument_error("finish_tangents takes three tuples");
  for (std::size_t i = 0; i < 3; ++i)
    if (!check_tuple(ctx, "finish_tangents", args[i])) return false;
  for (std::size_t i = 1; i < 3; ++i)
    if (as_data(args[i].type)->fields.size() != as_data(args[0].type)->fields.size())
      return ctx.argument_error("finish_tangents takes three tuples of one length");
  TangentFinisher finisher(ctx);
  Rooted parts(ctx.runtime->heap);
  for (std::size_t i = 0; i < as_data(args[0].type)->fields.size(); ++i) {
    Value part;
    if (!finisher.finish(tuple_part(ctx, args[0], i), tuple_part(ctx, args[1], i), tuple_part(ctx, args[2], i), part))
      return false;
    parts.values.push_back(part);
  }
  return ctx.runtime->new_tuple(ctx, parts.values.data(), parts.values.size(), result);
}

// constant_shadow(value): a zero shadow of memory that stays constant.
bool constant_shadow(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("constant_shadow takes one value");
  ShadowMaker maker(ctx);
  if (!maker.shadow(args[0], result)) return false;
  maker.forbid_stores();
  return true;
}

// zero_cotangent(value): zeros in the shape of its numbers.
bool zero_cotangent(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("zero_cotangent takes one value");
  const Type* type = tangent_types(*ctx.runtime).cotangent(args[0].type);
  if (!type) return ctx.argument_error("a value of type " + to_string(args[0].type) + " cannot carry a derivative");
  return ShadowMaker(ctx).zero(type, result);
}

bool is_rule(Context& ctx, const Value* args) {
  return ctx.runtime->is_type_value(args[0]) && args[1].type == ctx.runtime->types.builtin().int64;
}

// take_rule_state(call_types::Type, rule::Int): a free state of a rule in this context; nothing when there is none.
bool take_rule_state(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2 || !is_rule(ctx, args)) return ctx.argument_error("take_rule_state takes call types and a rule");
  result = ctx.runtime->nothing();
  if (!ctx.tapes) return true;
  std::vector<Value>& free = ctx.tapes->rule_states(args[0].as_type, args[1].bits);
  if (free.empty()) return true;
  result = free.back();
  free.pop_back();
  return true;
}

// give_rule_state(call_types::Type, rule::Int, state): it is free again.
bool give_rule_state(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 3 || !is_rule(ctx, args))
    return ctx.argument_error("give_rule_state takes call types, a rule and a state");
  result = ctx.runtime->nothing();
  if (ctx.tapes) ctx.tapes->rule_states(args[0].as_type, args[1].bits).push_back(args[2]);
  return true;
}

// carries_derivative(value) → Bool: whether it holds numbers or memory that can carry one.
bool carries_derivative(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("carries_derivative takes one value");
  result = ctx.runtime->from_bool(tangent_types(*ctx.runtime).differentiable(args[0].type));
  return true;
}

// tangent_kinds(T::Type) → Int: 1 when a place that holds a T has a shadow, 2 a cotangent, 3 both.
bool tangent_kinds(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || !ctx.runtime->is_type_value(args[0])) return ctx.argument_error("tangent_kinds takes one type");
  TangentTypes& tangents = tangent_types(*ctx.runtime);
  const Type* type = args[0].as_type;
  result = ctx.runtime->from_int((tangents.has_shadow(type) ? 1 : 0) + (tangents.has_cotangent(type) ? 2 : 0));
  return true;
}

// user_tangent(T::Type) → the type of what users see of a derivative of a T (user_types.hpp)
bool user_tangent(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || !ctx.runtime->is_type_value(args[0])) return ctx.argument_error("user_tangent takes one type");
  result = ctx.runtime->from_type(user_tangent_type(ctx.runtime->types, args[0].as_type));
  return true;
}

// dictionary_holder(T::Type) → T, or Nothing: no field of it can hold a dictionary. A type, for inference to know it.
bool dictionary_holder(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || !ctx.runtime->is_type_value(args[0])) return ctx.argument_error("dictionary_holder takes one type");
  const DataType* type = as_data(args[0].as_type);
  const bool is_holder = !type || may_hold_dictionary(ctx.runtime->types, type);
  result = ctx.runtime->from_type(is_holder ? args[0].as_type : ctx.runtime->types.builtin().nothing);
  return true;
}

// shadowed_type(S::Type) → the mutable type that has this shadow; `nothing`: it is no shadow of such.
bool shadowed_type(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1 || !ctx.runtime->is_type_value(args[0])) return ctx.argument_error("shadowed_type takes one type");
  const DataType* type = tangent_types(*ctx.runtime).shadowed(args[0].as_type);
  result = type ? ctx.runtime->from_type(type) : ctx.runtime->nothing();
  return true;
}

// A number that differs when the content of a value does: what a pullback compares before it runs its function again.
class Fingerprint {
 public:
  explicit Fingerprint(Context& ctx) : runtime_(*ctx.runtime), kept_(ctx.runtime->heap) {}
  std::uint64_t of(Value v) {
    add(v);
    return state_;
  }

 private:
  void mix(std::uint64_t bits) { state_ = (state_ ^ bits) * 0x9e3779b97f4a7c15u + (state_ >> 29); }
  void add(Value v) {
    mix(reinterpret_cast<std::uintptr_t>(v.type));
    const DataType* d = v.defined() ? as_data(v.type) : nullptr;
    if (!d) return;
    if (d->storage == Storage::bits || d->storage == Storage::singleton ||
        d->object_kind == DataType::ObjectKind::immortal)
      return mix(static_cast<std::uint64_t>(v.bits));
    if (d->object_kind == DataType::ObjectKind::string) {
      for (char c : static_cast<const StringObject*>(v.object)->view()) mix(static_cast<unsigned char>(c));
      return;
    }
    bool shared =
        d->is_mutable || d->object_kind == DataType::ObjectKind::array || d->object_kind == DataType::ObjectKind::cell;
    if (shared && !seen_.insert(v.object).second) return;
    kept_.values.push_back(v);
    if (d->object_kind == DataType::ObjectKind::array) return array(static_cast<const ArrayObject*>(v.object));
    if (d->object_kind == DataType::ObjectKind::cell) return add(static_cast<const CellObject*>(v.object)->value);
    if (d->object_kind != DataType::ObjectKind::fields) return;
    for (const Field& field : d->fields) add(load_field(runtime_.heap, v.object, field));
  }
  void array(const ArrayObject* a) {
    const Type* element = array_element_type(a);
    std::uint32_t size = stored_size(element);
    mix(static_cast<std::uint64_t>(a->length));
    const DataType* d = as_data(element);
    if (!d || !d->is_isbits) {
      for (std::int64_t i = 0; i < a->length; ++i) add(load_stored(runtime_.heap, a->data + i * size, element));
      return;
    }
    std::size_t bytes = static_cast<std::size_t>(a->length) * size;
    for (std::size_t at = 0; at < bytes; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, a->data + at, std::min<std::size_t>(8, bytes - at));
      mix(word);
    }
  }

  Runtime& runtime_;
  Rooted kept_;
  std::set<const Object*> seen_;
  std::uint64_t state_ = 0x243f6a8885a308d3u;
};

bool fingerprint(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("fingerprint takes one value");
  result = ctx.runtime->from_int(static_cast<std::int64_t>(Fingerprint(ctx).of(args[0])));
  return true;
}

// Every array has a shadow: one that nobody looks at is not made, so the native is said not to throw.
const Type* constant_shadow_type(TypeTable& types, std::span<const Type* const> given) {
  const DataType* array = given.size() == 1 ? as_data(given[0]) : nullptr;
  const bool is_array = array && array->is_concrete && array->object_kind == DataType::ObjectKind::array;
  const Type* element = is_array ? array->params[0] : nullptr;
  if (element == types.builtin().float64 || element == types.builtin().float32) return array;
  return types.builtin().any;
}
// Type{…} of the answer, which inference knows from the argument's type.
const Type* gives_user_tangent(TypeTable& types, std::span<const Type* const> arguments) {
  const DataType* given = arguments.size() == 1 ? as_data(arguments[0]) : nullptr;
  const Type* told = given && given->is_type_of_type ? given->params[0] : nullptr;
  return told && !told->has_free_vars ? types.type_type(user_tangent_type(types, told)) : types.builtin().type;
}
const Type* gives_dictionary_holder(TypeTable& types, std::span<const Type* const> arguments) {
  const DataType* given = arguments.size() == 1 ? as_data(arguments[0]) : nullptr;
  const DataType* asked = given && given->is_type_of_type ? as_data(given->params[0]) : nullptr;
  if (!asked || !asked->is_concrete) return types.builtin().type;
  return types.type_type(may_hold_dictionary(types, asked) ? asked : types.builtin().nothing);
}
const Type* gives_bool(TypeTable& types, std::span<const Type* const>) { return types.builtin().boolean; }
const Type* gives_int(TypeTable& types, std::span<const Type* const>) { return types.builtin().int64; }

const NativeInfo tangent_natives[] = {
    {"take_rule_state", take_rule_state, effect_throws | effect_reads | effect_writes, nullptr, false, false, true},
    {"give_rule_state", give_rule_state, effect_throws | effect_writes, nullptr, false, false, true},
    {"fingerprint", fingerprint, effect_reads | effect_allocates, gives_int},
    {"tangent_kinds", tangent_kinds, effect_throws, gives_int},
    {"user_tangent", user_tangent, effect_throws, gives_user_tangent},
    {"dictionary_holder", dictionary_holder, effect_throws, gives_dictionary_holder},
    {"shadowed_type", shadowed_type, effect_reads, nullptr},
    {"carries_derivative", carries_derivative, effect_reads, gives_bool},
    {"zero_shadows", zero_shadows, effect_throws | effect_allocates | effect_reads, nullptr},
    {"constant_shadow", constant_shadow, effect_allocates | effect_reads, constant_shadow_type},
    {"finish_tangents", finish_tangents, effect_throws | effect_allocates | effect_reads, nullptr},
    {"zero_cotangent", zero_cotangent, effect_throws | effect_allocates, nullptr},
};

}  // namespace

void define_tangent_natives(Runtime& runtime) {
  for (const NativeInfo& native : tangent_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::diff
