// Types: hash-consed, immortal for the life of their Runtime, compared by pointer.
//
//   kind       struct          meaning
//   data       DataType        a nominal type applied to parameters: Int64, Vector{Float64}, Tuple{Int64,String},
//                              typeof(f), NamedTuple{(:a,),Tuple{Int64}}; concrete or abstract; may contain variables
//   union_     UnionType       Union{A,B}; members sorted by id, flattened, at least two
//   union_all  UnionAllType    body where lower<:var<:upper
//   var        TypeVar         a variable bound by an enclosing union_all (identity by pointer)
//   vararg     VarargType      the last parameter of a Tuple: T repeated `count` times (count null: any number)
//   value      ValueType       a value as parameter: the 2 of Array{T,2}, (:a,:b) of a NamedTuple, Val{:x}
//   bottom     Type            Union{}
//
// Two union_alls that differ only in the names of their variables are the same pointer (the table keys bodies by
// de Bruijn position). `Tuple` is covariant, all other parameters are invariant. Type values have type DataType,
// UnionAll, Union or TypeofBottom as in Julia; `Type{T}` is the DataType `Type` applied to T.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lang/types/value.hpp"

namespace slope {

struct MethodTable;
struct TypeName;

enum class TypeKind : std::uint8_t { data, union_, union_all, var, vararg, value, bottom };

// How a value whose type is exactly T (or, for `dynamic`, any subtype of the declared T) is stored in a field,
// an array element or a compiled register.
enum class Storage : std::uint8_t {
  singleton,  // no bytes
  bits,       // 1, 2, 4 or 8 bytes
  aggregate,  // immutable, all fields singleton/bits/aggregate: its bytes inline, `size` and `align`
  reference,  // 8-byte pointer to a heap object or immortal; null = undefined
  dynamic,    // 16-byte Value: abstract types, unions, types with free variables
};

struct Type {
  TypeKind kind;
  bool has_free_vars = false;  // a TypeVar not bound inside
  bool is_plain = false;       // no variable, union or bottom anywhere inside: equal types are the same pointer
  bool is_kind = false;        // DataType, UnionAll, Union, TypeofBottom: the types of type values
  std::uint32_t id = 0;        // creation order; the sort key of unions
  std::uint32_t levels = 0;    // of parameters within each other
};

struct Field {
  const Symbol* name = nullptr;  // null for tuples
  const Type* type = nullptr;
  Storage storage = Storage::dynamic;
  bool is_const = false;     // declared `const` in a mutable struct
  std::uint32_t offset = 0;  // bytes from the start of the payload (after the object header when boxed)
  std::uint32_t size = 0;
};

struct DataType : Type {
  TypeName* name = nullptr;
  std::span<const Type* const> params;  // in the table's arena
  const DataType* super = nullptr;      // Any's is itself

  // Valid when `has_layout`: the type is concrete or at least its fields are known.
  std::vector<Field> fields;
  bool has_layout = false;
  bool is_concrete = false;  // can be the type of a value
  bool is_abstract = false;
  bool is_mutable = false;
  bool is_tuple = false;
  bool is_named_tuple = false;
  bool is_type_of_type = false;  // Type{T}
  bool is_isbits = false;        // storage is singleton, bits or aggregate
  Storage storage = Storage::dynamic;
  std::uint32_t size = 0;  // payload bytes: of the inline form, and of the boxed form after the 8-byte header
  std::uint32_t align = 1;
  std::uint32_t initialized_fields = 0;  // `new` needs at least so many (incomplete initialisation)
  // What kind of heap object a reference is; the heap's tracer switches on it.
  enum class ObjectKind : std::uint8_t {
    fields,
    array,
    string,
    cell,
    dict_native,
    coroutine,
    immortal
  } object_kind = ObjectKind::fields;
  Value instance;                                      // of a singleton type
  mutable const struct TraceMap* trace_map = nullptr;  // TypeTable::trace_map's; null: not looked at yet

  int field_index(const Symbol* field_name) const;  // -1 when there is none
};

struct UnionType : Type {
  std::span<const Type* const> members;
};
struct TypeVar : Type {
  const Symbol* name = nullptr;
  const Type* lower = nullptr;
  const Type* upper = nullptr;
};
struct UnionAllType : Type {
  const TypeVar* var = nullptr;
  const Type* body = nullptr;
};
struct VarargType : Type {
  const Type* element = nullptr;
  const Type* count = nullptr;  // a value (Int64) or a var, or null
};
struct ValueType : Type {
  Value value;  // bits, symbol, type or a tuple of such (immortal box)
};

// What all applications of one nominal type share.
struct TypeName {
  const Symbol* name = nullptr;
  Module* module = nullptr;
  std::vector<const TypeVar*> vars;   // its declared parameters, in order
  const DataType* primary = nullptr;  // applied to its own vars: Array{T,N}
  const Type* wrapper = nullptr;      // Array{T,N} where {T,N}; == primary when there are no parameters
  std::vector<const Symbol*> field_names;
  std::vector<const Type*> field_types;  // in terms of `vars`
  std::vector<bool> field_const;
  bool is_abstract = false;
  bool is_mutable = false;
  bool is_primitive = false;
  bool is_function = false;  // typeof(f) of a generic function, or a closure type
  bool is_closure = false;
  std::uint32_t primitive_bits = 0;
  std::uint32_t min_initialized = 0;  // fewest arguments of any `new`
  bool defined = false;               // false between declaration and body (self-referring structs)
  MethodTable* methods = nullptr;     // of calls whose callee has this type
};

inline const DataType* as_data(const Type* t) {
  return t && t->kind == TypeKind::data ? static_cast<const DataType*>(t) : nullptr;
}
inline const UnionType* as_union(const Type* t) {
  return t && t->kind == TypeKind::union_ ? static_cast<const UnionType*>(t) : nullptr;
}
inline const UnionAllType* as_union_all(const Type* t) {
  return t && t->kind == TypeKind::union_all ? static_cast<const UnionAllType*>(t) : nullptr;
}
inline const TypeVar* as_var(const Type* t) {
  return t && t->kind == TypeKind::var ? static_cast<const TypeVar*>(t) : nullptr;
}
inline const VarargType* as_vararg(const Type* t) {
  return t && t->kind == TypeKind::vararg ? static_cast<const VarargType*>(t) : nullptr;
}
inline const ValueType* as_value(const Type* t) {
  return t && t->kind == TypeKind::value ? static_cast<const ValueType*>(t) : nullptr;
}

inline bool is_concrete(const Type* t) {
  auto* d = as_data(t);
  return d && d->is_concrete;
}
inline Storage storage_of(const Type* t) {
  auto* d = as_data(t);
  return d ? d->storage : Storage::dynamic;
}
// Bytes that a field or array element declared as `t` takes.
std::uint32_t stored_size(const Type* t);
std::uint32_t stored_align(const Type* t);

// The types that C++ names. Filled by TypeTable's constructor.
struct BuiltinTypes {
  const Type* bottom;
  const Type* type;  // Type{T} where T
  const DataType *any, *data_type, *union_, *union_all, *type_of_bottom, *type_var, *type_of_vararg;
  const DataType *number, *real, *abstract_float, *integer, *signed_, *unsigned_;
  const DataType *int8, *int16, *int32, *int64, *int128_reserved, *uint8, *uint16, *uint32, *uint64;
  const DataType *float32, *float64, *boolean, *character;
  const DataType *nothing, *missing_reserved, *symbol, *string, *abstract_string, *abstract_char;
  const DataType *function, *builtin_function, *module, *tuple_any /*Tuple*/, *empty_tuple;
  const DataType* tape;       // handle of lang/memory/tape.hpp, immortal
  const DataType* cell;       // the box of a captured variable that is assigned more than once
  const DataType* coroutine;  // what a Task runs on
  const DataType *expr, *quote_node, *line_number_node, *global_ref,
      *method;  // Expr: mutable {head::Symbol, args::Vector{Any}}
  TypeName *tuple_name, *named_tuple_name, *array_name, *type_name, *abstract_array_name, *val_name, *ref_name;
  const Type *array, *vector, *matrix;  // union_alls
  const Type* abstract_array;
  const Type* named_tuple;
  // exceptions that C++ raises; all `<: Exception`
  const DataType *exception, *error_exception, *argument_error, *bounds_error, *domain_error, *method_error,
      *undef_var_error, *undef_ref_error, *inexact_error, *divide_error, *overflow_error, *type_error, *key_error,
      *dimension_mismatch, *stack_overflow_error, *out_of_memory_error, *interrupt_exception, *assertion_error,
      *load_error, *system_error, *eof_error, *string_index_error, *differentiation_error;
};

// Where a payload holds references.
struct TraceMap {
  std::vector<std::uint32_t> references;  // offsets of pointers
  std::vector<std::uint32_t> values;      // offsets of Values
};

class TypeTable {
 public:
  explicit TypeTable(class SymbolTable& symbols, class MemoryCount* memory = nullptr);
  ~TypeTable();
  TypeTable(const TypeTable&) = delete;
  const BuiltinTypes& builtin() const;

  const DataType* apply(TypeName* name, std::span<const Type* const> params);
  // `applicable` for a possibly partial application Array{Float64} (rest stays a union_all), or null with `error`.
  const Type* apply_wrapper(const Type* wrapper, std::span<const Type* const> params, std::string* error);
  const DataType* tuple(std::span<const Type* const> elements);  // last may be a vararg
  const DataType* named_tuple(std::span<const Symbol* const> names, const Type* tuple_type);
  // Has a type been made, since the last question, whose parameters lie deeper within each other than walks recurse?
  bool nested_too_deep();
  const Type* union_of(std::span<const Type* const> members);  // normalised: flattened, subsumed members dropped
  const Type* union_all(const TypeVar* var, const Type* body);
  const TypeVar* var(const Symbol* name, const Type* lower, const Type* upper);
  const Type* vararg(const Type* element, const Type* count);
  const Type* value(Value v);
  const Type* value_int(std::int64_t n);
  const DataType* type_type(const Type* t);  // Type{t}
  const DataType* array_of(const Type* element, std::int64_t dims);

  const Type* substitute(const Type* t, std::span<const TypeVar* const> vars,
                         std::span<const Type* const> replacements);
  const Type* instantiate(const UnionAllType* t,
                          const Type* argument);  // {T} applied to one argument; bounds unchecked

  // New nominal types. The TypeName is returned undefined; fields may refer to it; then `define_struct`. To have the
  // wrapper before the fields are known (they may name it), `declare` the parameters first; define_… then must be given
  // the same variables.
  TypeName* new_name(const Symbol* name, Module* module);
  std::vector<TypeName*> names() const;  // every nominal type, in order of creation
  std::size_t name_count() const;
  std::uint32_t newest_id() const;
  std::vector<const Type*> types_after(std::uint32_t id) const;  // made later, in order of creation
  std::vector<TypeName*> names_after(std::size_t count) const;   // all but the first so many
  void declare(TypeName* name, std::span<const TypeVar* const> vars);
  void define_abstract(TypeName* name, std::span<const TypeVar* const> vars, const Type* super);
  void define_primitive(TypeName* name, const Type* super, std::uint32_t bits);
  void define_struct(TypeName* name, std::span<const TypeVar* const> vars, const Type* super,
                     std::span<const Symbol* const> field_names, std::span<const Type* const> field_types,
                     bool is_mutable, std::uint32_t min_initialized);
  const DataType* function_type(const Symbol* name, Module* module);  // a fresh typeof(name) singleton, <: Function
  TypeName* closure_name(const Symbol* name, Module* module,
                         std::span<const Symbol* const> captures);  // one parameter a capture

  // Cached lookups of one runtime are keyed by this: the type of a value as dispatch sees it (Type{T} for a type
  // value).
  const Type* dispatch_type(Value v) { return v.type->is_kind ? type_type(v.as_type) : v.type; }
  // For collectors; several heaps may ask at the same time.
  const TraceMap& trace_map(const DataType* type);
  // Frees the types for which `is_dead` holds, as far as no other type refers to them. Nobody else may
  // (unreachable.cpp). All are older than those that names_after and types_after are still asked for. Addresses of
  // types are never used again.
  void free_types(const std::function<bool(const Type*)>& is_dead,
                  const std::function<bool(const TypeName*)>& is_dead_name);
  // The type `typeof(v)` gives, and the most precise type of a constant (Type{T} for types).
  const Type* type_of_constant(Value v);

 private:
  friend bool more_specific(TypeTable& types, const Type* a, const Type* b);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string to_string(const Type* t);  // as Julia prints it: Vector{Float64} prints as Array{Float64,1} in 1.5,
                                       // Vector{Float64} in 1.10; ours is 1.10's

}  // namespace slope
