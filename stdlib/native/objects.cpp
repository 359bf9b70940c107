// Objects: named tuples from names and values, copies, identity, shared memory.
#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lang/types/symbol_hash.hpp"
#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

bool tuple_elements(Call& call, std::size_t i, std::vector<Value>& out) {
  auto* d = as_data(call[i].type);
  if (!d || !d->is_tuple) return call.ctx.type_error("NamedTuple", call.builtin.tuple_any, call[i]);
  for (std::size_t k = 0; k < d->fields.size(); ++k) {
    Value index = call.runtime.from_int(static_cast<std::int64_t>(k + 1));
    Value v;
    if (!call.runtime.get_field(call.ctx, call[i], index, v)) return false;
    out.push_back(v);
  }
  return true;
}

// make_named_tuple(names::Tuple of symbols, values::Tuple)
bool make_named_tuple(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "NamedTuple", args, count, result);
  std::vector<Value> names;  // symbols, which are not on the heap
  Rooted rooted(*ctx.heap);
  std::vector<Value>& values = rooted.values;
  if (!call.arity(2) || !tuple_elements(call, 0, names) || !tuple_elements(call, 1, values)) return false;
  if (names.size() != values.size()) return ctx.argument_error("Wrong number of arguments to named tuple constructor.");
  std::vector<const Symbol*> symbols;
  std::vector<const Type*> types;
  for (Value name : names) {
    if (name.type != call.builtin.symbol) return ctx.type_error("NamedTuple", call.builtin.symbol, name);
    symbols.push_back(name.symbol);
  }
  for (Value v : values) types.push_back(v.type);
  const DataType* type = call.runtime.types.named_tuple(symbols, call.runtime.types.tuple(types));
  return call.runtime.new_object(ctx, type, values.data(), values.size(), result);
}

// A value argument of a type: the names in NamedTuple{names, T} as a constant tuple type's value.
const Type* named_tuple_type(TypeTable& types, ArgumentTypes args) {
  (void)args;
  return types.builtin().named_tuple;
}

// The elements of an array as a tuple.
bool tuple_from_array(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "tuple", args, count, result);
  ArrayObject* a = nullptr;
  if (!call.array(0, a)) return false;
  const Type* element = array_element_type(a);
  Rooted values(*call.ctx.heap);
  for (std::int64_t i = 0; i < a->length; ++i) {
    Value v = storage_of(element) == Storage::singleton
                  ? as_data(element)->instance
                  : load_stored(*call.ctx.heap, a->data + i * a->element_size, element);
    if (!v.defined())
      return ctx.raise(Value(call.builtin.undef_ref_error, call.builtin.undef_ref_error->instance.bits));
    values.values.push_back(v);
  }
  return call.runtime.new_tuple(ctx, values.values.data(), values.values.size(), result);
}

bool copy_object(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "copy_object", args, count, result);
  if (!call.arity(1)) return false;
  auto* d = as_data(args[0].type);
  if (d->object_kind != DataType::ObjectKind::fields || d->storage != Storage::reference) return call.give(args[0]);
  Object* made = call.ctx.heap->allocate(d, d->size);
  if (!made) return ctx.out_of_memory();
  std::memcpy(made->payload(), args[0].object->payload(), d->size);
  return call.give(Value(d, static_cast<const void*>(made)));
}

// An object of a mutable type none of whose fields is assigned.
bool new_undefined(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "new_undefined", args, count, result);
  const Type* t = nullptr;
  if (!call.type(0, t)) return false;
  auto* d = as_data(t);
  if (!d || !d->is_concrete || !d->is_mutable || d->object_kind != DataType::ObjectKind::fields)
    return ctx.argument_error("a concrete mutable type is needed, found " + to_string(t));
  Object* made = call.ctx.heap->allocate(d, d->size);
  if (!made) return ctx.out_of_memory();
  std::memset(made->payload(), 0, d->size);
  return call.give(Value(d, static_cast<const void*>(made)));
}

// rebuild_object(T, fields…): `new` from outside; trailing `undef` leaves fields unassigned.
bool rebuild_object(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "rebuild_object", args, count, result);
  const Type* t = nullptr;
  if (!call.type(0, t)) return false;
  auto* d = as_data(t);
  if (!d || !d->is_concrete) return ctx.argument_error("a concrete type is needed");
  return call.runtime.new_object(ctx, d, args + 1, std::min(count - 1, d->fields.size()), result);
}

// blank_object(T): an object of a mutable type whose fields are zero or unassigned, also those that always have a value.
// Whoever makes one assigns them before anybody else sees it.
bool blank_object(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "blank_object", args, count, result);
  const Type* t = nullptr;
  if (!call.arity(1) || !call.type(0, t)) return false;
  auto* d = as_data(t);
  if (!d || !d->is_concrete || !d->is_mutable || d->object_kind != DataType::ObjectKind::fields)
    return ctx.argument_error("a mutable type is needed");
  Object* made = ctx.heap->allocate(d, d->size);
  return made ? call.give(Value(d, static_cast<const void*>(made))) : ctx.out_of_memory();
}

// fields_always_set(T): how many of its first fields every object has.
bool fields_always_set(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "fields_always_set", args, count, result);
  const Type* t = nullptr;
  if (!call.arity(1) || !call.type(0, t)) return false;
  auto* d = as_data(t);
  return call.give_int(d ? d->initialized_fields : 0);
}

// The contents of a cell: a captured variable that is assigned after its capture.
bool box_contents(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "box_contents", args, count, result);
  if (!call.arity(1)) return false;
  if (args[0].type != call.builtin.cell) return ctx.type_error("box_contents", call.builtin.cell, args[0]);
  const Value held = static_cast<CellObject*>(args[0].object)->value;
  return held.defined() ? call.give(held)
                        : ctx.raise(Value(call.builtin.undef_ref_error, call.builtin.undef_ref_error->instance.bits));
}

bool new_box(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "new_box", args, count, result);
  if (!call.arity(1)) return false;
  CellObject* made = call.ctx.heap->allocate_cell();
  if (!made) return ctx.out_of_memory();
  made->value = args[0];
  return call.give(Value(call.builtin.cell, made));
}

bool object_hash(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "objectid", args, count, result);
  return call.arity(1) && call.give_int(static_cast<std::int64_t>(egal_hash(args[0])));
}

// object_hash of a symbol, for tables whose keys they are.
bool symbol_hash(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "symbol_hash", args, count, result);
  const Symbol* symbol = nullptr;
  return call.symbol(0, symbol) &&
         call.give_int(static_cast<std::int64_t>(slope::symbol_hash(call.builtin.symbol, symbol)));
}

// The memory that can be reached from a value: bytes of arrays, mutable objects as a whole. Aggregates hold none.
struct Reachable {
  Heap& heap;
  const DataType* cell;
  std::vector<std::pair<const char*, const char*>> memory{};  // [begin, end)
  std::unordered_set<const Object*> seen{};

  void add(Value v) {
    auto* d = as_data(v.type);
    if (!v.defined() || !d || d->storage != Storage::reference) return;
    bool is_array = d->object_kind == DataType::ObjectKind::array;
    if (!is_array && v.type != cell && d->object_kind != DataType::ObjectKind::fields) return;
    if (!seen.insert(v.object).second) return;
    if (is_array) return add_array(static_cast<const ArrayObject*>(v.object));
    if (v.type == cell) {
      auto* held = static_cast<CellObject*>(v.object);
      memory.emplace_back(v.object->payload(), v.object->payload() + sizeof held->value);
      return add(held->value);
    }
    if (d->is_mutable) memory.emplace_back(v.object->payload(), v.object->payload() + d->size);
    for (const Field& field : d->fields)
      if (refers(field.type)) add(load_field(heap, v.object, field));
  }
  void add_array(const ArrayObject* a) {
    memory.emplace_back(a->data, a->data + a->length * a->element_size);
    const Type* element = array_element_type(a);
    if (!refers(element)) return;
    for (std::int64_t i = 0; i < a->length; ++i) add(load_stored(heap, a->data + i * a->element_size, element));
  }
  static bool refers(const Type* declared) {
    Storage storage = storage_of(declared);
    return storage == Storage::reference || storage == Storage::dynamic;
  }
};

// same_elements(a::Array, b::Array): whether they are one memory, maybe in two shapes.
bool same_elements(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "same_elements", args, count, result);
  if (!call.arity(2)) return false;
  const auto array = [](Value v) -> const ArrayObject* {
    const DataType* d = as_data(v.type);
    return d && d->object_kind == DataType::ObjectKind::array ? static_cast<const ArrayObject*>(v.object) : nullptr;
  };
  const ArrayObject* x = array(args[0]);
  const ArrayObject* y = array(args[1]);
  if (!x || !y) return ctx.argument_error("same_elements takes two arrays");
  return call.give_bool(
      x == y || (x->data < y->data + y->length * y->element_size && y->data < x->data + x->length * x->element_size));
}

// shares_memory(a, b): whether writing to what can be reached from one may change what can be reached from the other.
bool shares_memory(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "shares_memory", args, count, result);
  if (!call.arity(2)) return false;
  auto numbers_of = [](Value v) -> const ArrayObject* {
    auto* d = as_data(v.type);
    bool is_array = d && d->object_kind == DataType::ObjectKind::array;
    return is_array && !Reachable::refers(d->params[0]) ? static_cast<const ArrayObject*>(v.object) : nullptr;
  };
  if (const ArrayObject* x = numbers_of(args[0]), *y = numbers_of(args[1]); x && y)
    return call.give_bool(x->data < y->data + y->length * y->element_size &&
                          y->data < x->data + x->length * x->element_size);
  Reachable a{*ctx.heap, call.builtin.cell}, b{*ctx.heap, call.builtin.cell};
  a.add(args[0]);
  b.add(args[1]);
  // In order of address: two that overlap meet while the earlier one has not ended.
  std::sort(a.memory.begin(), a.memory.end());
  std::sort(b.memory.begin(), b.memory.end());
  const char *end_of_a = nullptr, *end_of_b = nullptr;
  for (std::size_t i = 0, k = 0; i < a.memory.size() || k < b.memory.size();) {
    const bool from_a = k == b.memory.size() || (i < a.memory.size() && a.memory[i].first <= b.memory[k].first);
    const auto [begin, end] = from_a ? a.memory[i++] : b.memory[k++];
    if (begin == end) continue;
    if (begin < (from_a ? end_of_b : end_of_a)) return call.give_bool(true);
    const char*& last = from_a ? end_of_a : end_of_b;
    last = std::max(last, end);
  }
  return call.give_bool(false);
}

const NativeInfo objects_natives[] = {
    {"make_named_tuple", make_named_tuple, effect_makes, named_tuple_type},
    {"tuple_from_array", tuple_from_array, effect_makes | effect_reads,
     [](TypeTable& t, ArgumentTypes) -> const Type* { return t.builtin().tuple_any; }},
    {"copy_object", copy_object, effect_makes | effect_reads,
     [](TypeTable& t, ArgumentTypes args) { return args.size() == 1 ? args[0] : t.builtin().any; }},
    {"new_undefined", new_undefined, effect_makes, nullptr},
    {"rebuild_object", rebuild_object, effect_makes, nullptr},
    {"blank_object", blank_object, effect_makes, nullptr},
    {"fields_always_set", fields_always_set, effect_throws, returns_int},
    {"box_contents", box_contents, effect_throws | effect_reads, nullptr},
    {"new_box", new_box, effect_makes, [](TypeTable& t, ArgumentTypes) -> const Type* { return t.builtin().cell; }},
    {"object_hash", object_hash, effect_throws | effect_reads, returns_int},
    {"symbol_hash", symbol_hash, effect_none, returns_int, false, false, true},
    {"same_elements", same_elements, effect_throws | effect_reads, returns_bool, false, false, true},
    {"shares_memory", shares_memory, effect_throws | effect_reads, returns_bool, false, false, true},
};

}  // namespace

void define_object_natives(Runtime& runtime) { define_all(runtime, objects_natives); }

}  // namespace slope::stdlib
