// Types, structs, tuples, closures, fields, globals, cells, expressions.
#include <vector>

#include "lang/ir/execute/groups.hpp"
#include "lang/runtime/library_names.hpp"
#include "lang/runtime/recorded_run.hpp"

namespace slope::ir {

namespace {

// What may stand where a type is built from parts: types, type variables, Vararg; other values become parameters.
const Type* type_part(const Operation& o, Value v, bool allow_value) {
  if (!v.defined()) return nullptr;
  if (v.type->is_kind || v.type == o.types.type_var || v.type == o.types.type_of_vararg) return v.as_type;
  return allow_value ? o.runtime.types.value(v) : nullptr;
}

bool give_type(const Operation& o, const Type* t) { return o.give(o.runtime.from_type(t)); }

// The operand at which applying `wrapper` begins to fail, for the message: "in Array, in T, expected Type, got …".
bool report_application(const Operation& o, const Type* wrapper, const std::vector<const Type*>& params,
                        const std::string& message) {
  TypeTable& types = o.runtime.types;
  std::size_t end = message.find(", expected ");
  if (!message.starts_with("in ") || end == std::string::npos) return o.ctx.raise_error(message);
  std::size_t bad = 0;
  std::string ignored;
  while (bad + 1 < params.size() &&
         types.apply_wrapper(wrapper, std::span<const Type* const>(params.data(), bad + 1), &ignored))
    ++bad;
  const Type* expected = o.types.type;
  const Type* t = wrapper;
  for (std::size_t i = 0; i < bad && as_union_all(t); ++i) t = types.instantiate(as_union_all(t), params[i]);
  bool is_type = params[bad]->kind != TypeKind::value;
  if (is_type && as_union_all(t)) expected = as_union_all(t)->var->upper;
  return o.ctx.type_error(message.substr(3, end - 3), expected, o.operands[bad + 1]);
}

bool apply_type(const Operation& o) {
  const Type* wrapper = type_part(o, o.operands[0], false);
  if (!wrapper) return o.ctx.type_error("Type{...} expression", o.types.union_all, o.operands[0]);
  std::vector<const Type*> params;
  for (std::size_t i = 1; i < o.count; ++i) {
    Value v = o.operands[i];
    const DataType* data = as_data(v.type);
    bool is_value = !v.type->is_kind && v.type != o.types.type_var && v.type != o.types.type_of_vararg;
    // A parameter lives as long as the type: nothing mutable can be one.
    if (is_value && data->is_mutable && v.type != o.types.module) return o.ctx.type_error("Type", o.types.type, v);
    if (is_value && (data->object_kind == DataType::ObjectKind::string))
      return o.ctx.type_error("Type", o.types.type, v);
    params.push_back(type_part(o, v, true));
  }
  std::string error;
  const Type* result = o.runtime.types.apply_wrapper(wrapper, params, &error);
  if (!result) return report_application(o, wrapper, params, error);
  return give_type(o, result);
}

bool make_union(const Operation& o) {
  std::vector<const Type*> members;
  for (std::size_t i = 0; i < o.count; ++i) {
    members.push_back(type_part(o, o.operands[i], false));
    if (!members.back()) return o.ctx.type_error("Union", o.types.type, o.operands[i]);
  }
  return give_type(o, o.runtime.types.union_of(members));
}

bool type_var(const Operation& o) {
  if (!o.want(o.types.symbol, 0)) return false;
  const Type* bounds[2] = {o.types.bottom, o.types.any};
  // Two operands: name, upper bound, as in `T<:Real`.
  std::size_t first = o.count == 2 ? 1 : 0;
  for (std::size_t i = 1; i < o.count; ++i) {
    const Type* bound = type_part(o, o.operands[i], false);
    if (!bound) return o.ctx.type_error("TypeVar", o.types.type, o.operands[i]);
    bounds[first + i - 1] = bound;
  }
  return o.give(Value(o.types.type_var, o.runtime.types.var(o.operands[0].symbol, bounds[0], bounds[1])));
}

bool union_all(const Operation& o) {
  if (!o.want(o.types.type_var, 0)) return false;
  const Type* body = type_part(o, o.operands[1], false);
  if (!body) return o.ctx.type_error("UnionAll", o.types.type, o.operands[1]);
  return give_type(o, o.runtime.types.union_all(as_var(o.operands[0].as_type), body));
}

bool make_closure(const Operation& o) {
  TypeName* name = o.aux_as<TypeName>();
  std::vector<const Type*> params;
  // A captured type is part of the closure's type, so that calls inside dispatch on it: Type{Float64}, not DataType.
  for (std::size_t i = 0; i < o.count; ++i) params.push_back(o.runtime.types.dispatch_type(o.operands[i]));
  const DataType* type = o.runtime.types.apply(name, params);
  if (type->storage == Storage::singleton) return o.give(type->instance);
  return o.runtime.new_object(o.ctx, type, o.operands, o.count, o.result);
}

bool make_struct(const Operation& o) {
  if (!o.want_type(0)) return false;
  const DataType* type = as_data(o.operands[0].as_type);
  if (!type || !type->is_concrete)
    return o.ctx.raise_error("new: " + to_string(o.operands[0].as_type) + " is not a concrete type");
  return o.runtime.new_object(o.ctx, type, o.operands + 1, o.count - 1, o.result);
}

// --- fields ---

bool is_structure(const DataType* type) { return type && type->object_kind == DataType::ObjectKind::fields; }

const Field* field_of(const Operation& o) {
  const DataType* type = as_data(o.operands[0].type);
  return is_structure(type) && o.aux < type->fields.size() ? &type->fields[o.aux] : nullptr;
}

bool field_at(const Operation& o) {
  const Field* field = field_of(o);
  if (!field) return o.ctx.bounds_error(o.operands[0], o.runtime.from_int(static_cast<std::int64_t>(o.aux) + 1));
  if (field->storage == Storage::singleton) return o.give(as_data(field->type)->instance);
  Value v = load_field(*o.ctx.heap, o.operands[0].object, *field);
  if (v.defined()) return o.give(v);
  if (field->storage == Storage::aggregate) return o.ctx.out_of_memory();  // only its box could not be made
  return o.ctx.raise(o.types.undef_ref_error->instance);
}

bool set_field_at(const Operation& o) {
  const Field* field = field_of(o);
  if (!field) return o.ctx.bounds_error(o.operands[0], o.runtime.from_int(static_cast<std::int64_t>(o.aux) + 1));
  Value v = o.operands[1];
  if (o.ctx.generating && !may_change(o.ctx, o.operands[0])) return false;
  if (v.type != field->type && !is_instance(o.runtime.types, v, field->type))
    return o.ctx.type_error("setfield!", field->type, v);
  if (field->storage != Storage::singleton)
    store_value(*o.ctx.heap, o.operands[0].object->payload() + field->offset, field->type, v);
  return o.give(v);
}

bool field_defined(const Operation& o) {
  Value object = o.operands[0], which = o.operands[1];
  if (object.type == o.types.module) {
    if (!o.want(o.types.symbol, 1)) return false;
    Binding* binding = o.runtime.resolve(object.module, which.symbol);
    return o.give_bool(binding && binding->value.defined());
  }
  const DataType* type = as_data(object.type);
  std::int64_t index = -1;
  if (which.type == o.types.symbol) {
    index = type->field_index(which.symbol);
  } else if (which.type == o.types.int64) {
    index = which.bits - 1;
  } else {
    return o.ctx.type_error("isdefined", o.types.symbol, which);
  }
  if (!is_structure(type) || index < 0 || index >= static_cast<std::int64_t>(type->fields.size()))
    return o.give_bool(false);
  const Field& field = type->fields[static_cast<std::size_t>(index)];
  const char* where = object.object ? object.object->payload() + field.offset : nullptr;
  switch (field.storage) {
    case Storage::reference: {
      void* pointer;
      std::memcpy(&pointer, where, sizeof pointer);
      return o.give_bool(pointer != nullptr);
    }
    case Storage::dynamic: {
      Value v;
      std::memcpy(static_cast<void*>(&v), where, sizeof v);
      return o.give_bool(v.defined());
    }
    default:
      return o.give_bool(true);
  }
}

// --- globals and cells ---

bool load_global(const Operation& o) {
  const Binding* binding = o.aux_as<Binding>();
  if (!binding->value.defined()) {
    // A name used before anything defined it may have come to mean another module's export since.
    const Binding* now = o.runtime.resolve(binding->module, binding->name);
    if (!now || !now->value.defined()) return o.ctx.undef_var(binding->name);
    binding = now;
  }
  return o.give(binding->value);
}

bool store_global(const Operation& o) {
  Binding* binding = o.aux_as<Binding>();
  Value v = o.operands[0];
  if (runs_generator(o.ctx)) return o.ctx.refuse_in_generator("assign the global " + binding->name->name);
  if (RecordedRun* const run = recorded_run(o.ctx)) run->assigned.insert(binding);
  if (binding->is_constant && binding->value.defined()) {
    if (egal(binding->value, v)) return o.give(v);
    // Another value of the same type is taken, with a warning; code that used the old one is compiled again.
    if (binding->value.type != v.type || v.type->is_kind)
      return o.ctx.raise_error("invalid redefinition of constant " + binding->name->name);
    if (o.runtime.sink.err)
      o.runtime.sink.err("WARNING: redefinition of constant " + binding->name->name +
                         ". This may fail, cause incorrect answers, or produce other errors.\n");
    binding->value = v;
    o.runtime.binding_changed(binding);
    return o.give(v);
  }
  if (binding->declared && !is_instance(o.runtime.types, v, binding->declared)) {
    const Binding* convert = library_binding(o.runtime, KnownName::convert);
    Value converted;
    if (convert && convert->value.defined()) {
      const Value arguments[] = {o.runtime.from_type(binding->declared), v};
      if (!o.runtime.call(o.ctx, convert->value, arguments, 2, converted)) return false;
    }
    if (!converted.defined() || !is_instance(o.runtime.types, converted, binding->declared))
      return o.ctx.type_error("global " + binding->name->name, binding->declared, v);
    binding->value = converted;
  } else {
    binding->value = v;
  }
  if (binding->version != 0) o.runtime.binding_changed(binding);  // a generator has read it (Runtime::source)
  return o.give(v);
}

bool cell_new(const Operation& o) {
  CellObject* cell = o.ctx.heap->allocate_cell();
  if (!cell) return o.ctx.out_of_memory();
  if (o.count) cell->value = o.operands[0];
  return o.give(Value(o.types.cell, cell));
}

CellObject* cell_of(const Operation& o) { return static_cast<CellObject*>(o.operands[0].object); }

bool make_expr(const Operation& o) {
  if (!o.want(o.types.symbol, 0)) return false;
  Heap& heap = *o.ctx.heap;
  std::int64_t dims[] = {static_cast<std::int64_t>(o.count) - 1};
  ArrayObject* args = heap.allocate_array(o.runtime.types.array_of(o.types.any, 1), dims);
  if (!args) return o.ctx.out_of_memory();
  for (std::size_t i = 1; i < o.count; ++i)
    store_value(*o.ctx.heap, args->data + (i - 1) * args->element_size, o.types.any, o.operands[i]);
  Value fields[] = {o.operands[0], Value(args->type, args)};
  return o.runtime.new_object(o.ctx, o.types.expr, fields, 2, o.result);
}

}  // namespace

bool execute_object(const Operation& o) {
  Value first = o.count ? o.operands[0] : Value();
  switch (o.op) {
    case Op::load_global:
      return load_global(o);
    case Op::store_global:
      return store_global(o);
    case Op::global_defined: {
      const Binding* binding = o.aux_as<Binding>();
      if (!binding->value.defined()) binding = o.runtime.resolve(binding->module, binding->name);
      return o.give_bool(binding && binding->value.defined());
    }
    case Op::check_defined:
      if (!o.want(o.types.boolean, 0)) return false;
      return first.bits ? o.give_nothing() : o.ctx.undef_var(o.aux_as<const Symbol>());
    case Op::cell_new:
      return cell_new(o);
    case Op::cell_get:
      if (!o.want(o.types.cell, 0)) return false;
      if (!cell_of(o)->value.defined()) return o.ctx.undef_var(o.aux_as<const Symbol>());
      return o.give(cell_of(o)->value);
    case Op::cell_set:
      if (!o.want(o.types.cell, 0)) return false;
      if (o.ctx.generating && !may_change(o.ctx, first)) return false;
      cell_of(o)->value = o.operands[1];
      o.ctx.heap->wrote(o.operands[1]);
      return o.give_nothing();
    case Op::cell_defined:
      if (!o.want(o.types.cell, 0)) return false;
      return o.give_bool(cell_of(o)->value.defined());

    case Op::type_of:
      return give_type(o, first.type);
    case Op::isa: {
      if (!o.want_type(1)) return false;
      const Type* type = o.operands[1].as_type;
      return o.give_bool(first.type == type || is_instance(o.runtime.types, first, type));
    }
    case Op::subtype: {
      if (!o.want_type(0) || !o.want_type(1)) return false;
      return o.give_bool(is_subtype(o.runtime.types, first.as_type, o.operands[1].as_type));
    }
    case Op::egal:
      return o.give_bool(egal(first, o.operands[1]));
    case Op::type_assert: {
      if (!o.want_type(1)) return false;
      const Type* type = o.operands[1].as_type;
      if (first.type == type || is_instance(o.runtime.types, first, type)) return o.give(first);
      return o.ctx.type_error(o.aux == assert_condition ? "if" : "typeassert", type, first);
    }
    case Op::apply_type:
      return apply_type(o);
    case Op::make_union:
      return make_union(o);
    case Op::type_var:
      return type_var(o);
    case Op::union_all:
      return union_all(o);
    case Op::tuple:
      return o.runtime.new_tuple(o.ctx, o.operands, o.count, o.result);
    case Op::make_struct:
      return make_struct(o);
    case Op::make_closure:
      return make_closure(o);
    case Op::get_field:
      return o.runtime.get_field(o.ctx, first, o.operands[1], o.result);
    case Op::set_field: {
      if (o.ctx.generating && as_data(first.type)->is_mutable && !may_change(o.ctx, first)) return false;
      if (!o.runtime.set_field(o.ctx, first, o.operands[1], o.operands[2])) return false;
      return o.give(o.operands[2]);
    }
    case Op::field_at:
      return field_at(o);
    case Op::set_field_at:
      return set_field_at(o);
    case Op::field_defined:
      return field_defined(o);
    case Op::field_count: {
      const DataType* type = as_data(first.type);
      return o.give_int(is_structure(type) ? static_cast<std::int64_t>(type->fields.size()) : 0);
    }
    case Op::select:
      if (!o.want(o.types.boolean, 0)) return false;
      return o.give(first.bits ? o.operands[1] : o.operands[2]);
    case Op::expr:
      return make_expr(o);
    case Op::throw_:
      return o.ctx.raise(first);
    default:
      return o.ctx.raise_error("internal error: " + std::string(op_name(o.op)) + " can't be executed on its own");
  }
}

}  // namespace slope::ir
