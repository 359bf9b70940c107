// Objects from the outside: fields by name or position, new structs and tuples. Messages are Julia's.
#include <algorithm>

#include "lang/runtime/library_natives.hpp"
#include "lang/runtime/recorded_run.hpp"
#include "lang/runtime/runtime_impl.hpp"

namespace slope {

namespace {

// Where the fields of an object's value lie: boxed aggregates and references alike.
char* payload_of(Value v) { return v.object->payload(); }

// The 0-based index, or -1 with an error raised.
int field_position(Context& ctx, Value object, const DataType* type, Value name_or_index) {
  const BuiltinTypes& b = ctx.runtime->types.builtin();
  if (name_or_index.type == b.symbol) {
    int index = type->field_index(name_or_index.symbol);
    if (index < 0) ctx.raise_error("type " + type->name->name->name + " has no field " + name_or_index.symbol->name);
    return index;
  }
  if (name_or_index.type == b.int64) {
    std::int64_t index = name_or_index.bits;
    if (index >= 1 && index <= static_cast<std::int64_t>(type->fields.size())) return static_cast<int>(index - 1);
    ctx.bounds_error(object, name_or_index);
    return -1;
  }
  const Type* either[] = {b.symbol, b.int64};
  ctx.type_error("getfield", ctx.runtime->types.union_of(either), name_or_index);
  return -1;
}

bool global_of(Context& ctx, Module* module, Value name, Value& result) {
  Runtime& runtime = *ctx.runtime;
  if (name.type != runtime.types.builtin().symbol)
    return ctx.type_error("getfield", runtime.types.builtin().symbol, name);
  Binding* binding = runtime.resolve(module, name.symbol);
  if (!binding || !binding->value.defined()) return ctx.undef_var(name.symbol);
  if (binding->module == runtime.core && is_library_native(runtime.types.builtin(), binding->value))
    return ctx.raise_error("only the library may use Core." + name.symbol->name);
  if (ctx.generating) note_read(*ctx.generating, *binding);
  result = binding->value;
  return true;
}

// T.parameters, T.super, … of type values.
bool type_property(Context& ctx, Value object, Value name, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const Type* t = object.as_type;
  std::string_view wanted = name.type == runtime.types.builtin().symbol ? std::string_view(name.symbol->name) : "";
  auto tuple_of = [&](std::span<const Type* const> list) {
    std::vector<Value> values;
    for (const Type* item : list) values.push_back(runtime.from_type(item));
    return runtime.new_tuple(ctx, values.data(), values.size(), result);
  };
  auto give = [&](Value v) {
    result = v;
    return true;
  };
  if (auto* d = as_data(t)) {
    if (wanted == "parameters") return tuple_of(d->params);
    if (wanted == "super") return give(runtime.from_type(d->super));
    if (wanted == "name") return give(runtime.from_symbol(d->name->name));
    if (wanted == "wrapper") return give(runtime.from_type(d->name->wrapper));
    if (wanted == "size") return give(runtime.from_int(d->size));
    if (wanted == "mutable") return give(runtime.from_bool(d->is_mutable));
    if (wanted == "instance" && d->instance.defined()) return give(d->instance);
    if (wanted == "module" && d->name->module)
      return give(Value(runtime.types.builtin().module, static_cast<const void*>(d->name->module)));
    if (wanted == "types") {
      std::vector<const Type*> list;
      for (const Field& field : d->fields) list.push_back(field.type);
      return tuple_of(list);
    }
  } else if (auto* u = as_union_all(t)) {
    if (wanted == "var") return give(runtime.from_type(u->var));
    if (wanted == "body") return give(runtime.from_type(u->body));
  } else if (auto* var = as_var(t)) {
    if (wanted == "name") return give(runtime.from_symbol(var->name));
    if (wanted == "lb") return give(runtime.from_type(var->lower));
    if (wanted == "ub") return give(runtime.from_type(var->upper));
  } else if (auto* both = as_union(t)) {
    if (wanted == "a") return give(runtime.from_type(both->members[0]));
    if (wanted == "b") return give(runtime.from_type(runtime.types.union_of(both->members.subspan(1))));
  }
  return ctx.raise_error("type " + to_string(object.type) + " has no field " + std::string(wanted));
}

}  // namespace

bool Runtime::get_field(Context& ctx, Value object, Value name_or_index, Value& result) {
  const BuiltinTypes& b = types.builtin();
  if (object.type == b.module) return global_of(ctx, object.module, name_or_index, result);
  if (object.type->is_kind || object.type == b.type_var) return type_property(ctx, object, name_or_index, result);
  auto* type = as_data(object.type);
  int index = field_position(ctx, object, type, name_or_index);
  if (index < 0) return false;
  const Field& field = type->fields[static_cast<std::size_t>(index)];
  if (field.storage == Storage::singleton) {
    result = as_data(field.type)->instance;
    return true;
  }
  result = load_stored(*ctx.heap, payload_of(object) + field.offset, field.type);
  if (result.defined()) return true;
  if (field.storage == Storage::aggregate) return ctx.out_of_memory();  // no room for its box
  Value missing;
  if (!new_object(ctx, b.undef_ref_error, nullptr, 0, missing)) return false;
  return ctx.raise(missing);
}

bool Runtime::set_field(Context& ctx, Value object, Value name_or_index, Value v) {
  auto* type = as_data(object.type);
  if (!type->is_mutable || type->object_kind != DataType::ObjectKind::fields)
    return ctx.raise_error("setfield!: immutable struct of type " + to_string(type) + " cannot be changed");
  int index = field_position(ctx, object, type, name_or_index);
  if (index < 0) return false;
  const Field& field = type->fields[static_cast<std::size_t>(index)];
  if (field.is_const)
    return ctx.raise_error("setfield!: const field ." + field.name->name + " of type " + to_string(type) +
                           " cannot be changed");
  if (!is_instance(types, v, field.type)) return ctx.type_error("setfield!", field.type, v);
  if (field.storage != Storage::singleton) store_value(*ctx.heap, payload_of(object) + field.offset, field.type, v);
  return true;
}

bool Runtime::new_object(Context& ctx, const DataType* type, const Value* fields, std::size_t count, Value& result) {
  if (!type->is_concrete) {
    return ctx.raise_error(type->is_abstract
                               ? "cannot instantiate the abstract type " + to_string(type)
                               : "cannot instantiate the type " + to_string(type) + ": it has free parameters");
  }
  if (type->object_kind != DataType::ObjectKind::fields || type->name->is_primitive)
    return ctx.raise_error("new: " + to_string(type) + " is not made of fields");
  if (count > type->fields.size())
    return ctx.argument_error("new: too many arguments (expected " + std::to_string(type->fields.size()) + ")");
  if (count < type->initialized_fields)
    return ctx.argument_error("new: too few arguments (expected " + std::to_string(type->fields.size()) + ")");
  for (std::size_t i = 0; i < count; ++i) {
    const Field& field = type->fields[i];
    if (fields[i].type != field.type && !is_instance(types, fields[i], field.type))
      return ctx.type_error("new", field.type, fields[i]);
  }
  if (type->storage == Storage::singleton) {
    result = type->instance;
    return true;
  }
  Object* object = ctx.heap->allocate(type, type->size);
  if (!object) return ctx.out_of_memory();
  for (std::size_t i = 0; i < count; ++i) {
    const Field& field = type->fields[i];
    if (field.storage != Storage::singleton)
      store_value(*ctx.heap, object->payload() + field.offset, field.type, fields[i]);
  }
  result = Value(type, static_cast<const void*>(object));
  return true;
}

bool Runtime::new_tuple(Context& ctx, const Value* elements, std::size_t count, Value& result) {
  constexpr std::size_t inline_count = 16;
  const Type* few[inline_count];
  std::vector<const Type*> many;
  const Type** list = few;
  if (count > inline_count) {
    many.resize(count);
    list = many.data();
  }
  bool complete = true;
  for (std::size_t i = 0; i < count; ++i) {
    list[i] = elements[i].type;
    complete = complete && elements[i].defined();
  }
  if (!complete) {
    // Derivative code keeps values of paths that were not taken: nobody looks at them, but the tuple needs a type.
    std::vector<Value> filled(elements, elements + count);
    for (Value& v : filled)
      if (!v.defined()) v = nothing();
    return new_tuple(ctx, filled.data(), count, result);
  }
  const DataType* type = types.tuple(std::span<const Type* const>(list, count));
  if (types.nested_too_deep())
    return ctx.raise_error("tuples lie too deep within each other: use a struct or a vector");
  return new_object(ctx, type, elements, count, result);
}

}  // namespace slope
