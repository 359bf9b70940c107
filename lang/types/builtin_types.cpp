// The types that C++ names, in the tree that Julia's manual draws. `Val` is defined here because dispatch on constants
// is part of the compiler's business; `Ref{T}` is the abstract type alone (its implementations are Slope code).
#include <initializer_list>

#include "lang/types/type_table_impl.hpp"

namespace slope {

namespace {

using ObjectKind = DataType::ObjectKind;

// Defines types in a few words each.
class Definer {
 public:
  Definer(TypeTable& table, SymbolTable& symbols) : table_(table), symbols_(symbols) {}

  const TypeVar* var(const char* name, const Type* upper = nullptr) {
    return table_.var(symbols_.intern(name), nullptr, upper);
  }
  TypeName* name(const char* text) { return table_.new_name(symbols_.intern(text), nullptr); }

  const DataType* abstract(const char* text, const Type* super) {
    TypeName* n = name(text);
    table_.define_abstract(n, {}, super);
    return n->primary;
  }
  const DataType* primitive(const char* text, const Type* super, std::uint32_t bits) {
    TypeName* n = name(text);
    table_.define_primitive(n, super, bits);
    return n->primary;
  }
  struct FieldSpec {
    const char* name;
    const Type* type;
  };
  const DataType* structure(const char* text, const Type* super, std::initializer_list<FieldSpec> fields,
                            bool is_mutable = false) {
    TypeName* n = name(text);
    define(n, {}, super, fields, is_mutable);
    return n->primary;
  }
  void define(TypeName* n, std::span<const TypeVar* const> vars, const Type* super,
              std::initializer_list<FieldSpec> fields, bool is_mutable) {
    std::vector<const Symbol*> names;
    std::vector<const Type*> types;
    for (const FieldSpec& field : fields) {
      names.push_back(symbols_.intern(field.name));
      types.push_back(field.type);
    }
    table_.define_struct(n, vars, super, names, types, is_mutable, static_cast<std::uint32_t>(fields.size()));
  }
  // A heap object that is not made of fields.
  const DataType* opaque(const char* text, const Type* super, ObjectKind kind, bool is_mutable) {
    auto* d = const_cast<DataType*>(structure(text, super, {}, is_mutable));
    make_reference(d, kind);
    return d;
  }
  static void make_reference(DataType* d, ObjectKind kind) {
    d->storage = Storage::reference;
    d->object_kind = kind;
    d->is_isbits = false;
    d->instance = Value();
    d->size = 8;
    d->align = 8;
  }

 private:
  TypeTable& table_;
  SymbolTable& symbols_;
};

}  // namespace

// Long because it is the list of built-in types, in the order in which they need each other.
void TypeTable::Impl::fill_builtin() {
  BuiltinTypes& b = builtin;
  Definer def(table, symbols);
  bottom_type.is_plain = false;
  bottom_type.id = 0;
  b.bottom = &bottom_type;

  // Any is its own supertype, so it is made by hand; everything else may name it.
  TypeName* any_name = def.name("Any");
  any_name->is_abstract = true;
  any_name->defined = true;
  DataType* any = find_or_make(any_name, {});
  any->super = any;
  any->is_abstract = true;
  any_name->primary = any;
  any_name->wrapper = any;
  b.any = any;

  // Type{T} and the kinds of type values.
  b.type_name = def.name("Type");
  const TypeVar* type_params[] = {def.var("T")};
  table.define_abstract(b.type_name, type_params, b.any);
  b.type = b.type_name->wrapper;
  auto kind = [&](const char* name) {
    auto* d = const_cast<DataType*>(def.opaque(name, b.type_name->primary, ObjectKind::immortal, false));
    d->is_kind = true;
    return d;
  };
  b.data_type = kind("DataType");
  b.union_all = kind("UnionAll");
  b.union_ = kind("Union");
  b.type_of_bottom = kind("TypeofBottom");
  b.type_var = def.opaque("TypeVar", b.any, ObjectKind::immortal, false);
  const_cast<DataType*>(b.type_var)->is_kind = false;
  b.type_of_vararg = def.opaque("TypeofVararg", b.any, ObjectKind::immortal, false);

  // Tuple{Vararg{Any}}
  b.tuple_name = def.name("Tuple");
  b.tuple_name->defined = true;
  const Type* anything[] = {table.vararg(b.any, nullptr)};
  b.tuple_any = table.tuple(anything);
  b.tuple_name->primary = b.tuple_any;
  b.tuple_name->wrapper = b.tuple_any;
  b.empty_tuple = table.tuple({});
  for (const DataType* tuple : {b.tuple_any, b.empty_tuple}) const_cast<DataType*>(tuple)->super = b.any;

  b.number = def.abstract("Number", b.any);
  b.real = def.abstract("Real", b.number);
  b.abstract_float = def.abstract("AbstractFloat", b.real);
  b.integer = def.abstract("Integer", b.real);
  b.signed_ = def.abstract("Signed", b.integer);
  b.unsigned_ = def.abstract("Unsigned", b.integer);
  b.boolean = def.primitive("Bool", b.integer, 8);
  b.int8 = def.primitive("Int8", b.signed_, 8);
  b.int16 = def.primitive("Int16", b.signed_, 16);
  b.int32 = def.primitive("Int32", b.signed_, 32);
  b.int64 = def.primitive("Int64", b.signed_, 64);
  b.uint8 = def.primitive("UInt8", b.unsigned_, 8);
  b.uint16 = def.primitive("UInt16", b.unsigned_, 16);
  b.uint32 = def.primitive("UInt32", b.unsigned_, 32);
  b.uint64 = def.primitive("UInt64", b.unsigned_, 64);
  b.float32 = def.primitive("Float32", b.abstract_float, 32);
  b.float64 = def.primitive("Float64", b.abstract_float, 64);
  b.abstract_char = def.abstract("AbstractChar", b.any);
  b.character = def.primitive("Char", b.abstract_char, 32);

  b.nothing = def.structure("Nothing", b.any, {});
  b.symbol = def.opaque("Symbol", b.any, ObjectKind::immortal, false);
  b.abstract_string = def.abstract("AbstractString", b.any);
  b.string = def.opaque("String", b.abstract_string, ObjectKind::string, false);
  b.module = def.opaque("Module", b.any, ObjectKind::immortal, true);
  b.function = def.abstract("Function", b.any);
  const DataType* builtin_super = def.abstract("Builtin", b.function);
  b.builtin_function =
      def.primitive("BuiltinFunction", builtin_super, 64);  // an encoded op or a NativeInfo: no heap pointer
  b.tape = def.opaque("Tape", b.any, ObjectKind::immortal, true);
  b.cell = def.opaque("Box", b.any, ObjectKind::cell, true);
  b.coroutine = def.opaque("Coroutine", b.any, ObjectKind::coroutine, true);
  b.method = def.opaque("Method", b.any, ObjectKind::immortal, true);

  // NamedTuple{names, T<:Tuple}
  b.named_tuple_name = def.name("NamedTuple");
  const TypeVar* named[] = {def.var("names"), def.var("T", b.tuple_any)};
  table.define_struct(b.named_tuple_name, named, b.any, {}, {}, false, 0);
  b.named_tuple = b.named_tuple_name->wrapper;

  // Arrays
  b.abstract_array_name = def.name("AbstractArray");
  const TypeVar* abstract_params[] = {def.var("T"), def.var("N")};
  table.define_abstract(b.abstract_array_name, abstract_params, b.any);
  b.abstract_array = b.abstract_array_name->wrapper;
  TypeName* dense_name = def.name("DenseArray");
  const TypeVar* dense_params[] = {def.var("T"), def.var("N")};
  const Type* dense_args[] = {dense_params[0], dense_params[1]};
  table.define_abstract(dense_name, dense_params, table.apply(b.abstract_array_name, dense_args));
  b.array_name = def.name("Array");
  const TypeVar* array_params[] = {def.var("T"), def.var("N")};
  const Type* array_args[] = {array_params[0], array_params[1]};
  table.define_struct(b.array_name, array_params, table.apply(dense_name, array_args), {}, {}, true, 0);
  b.array = b.array_name->wrapper;
  auto of_dims = [&](std::int64_t dims) {
    const TypeVar* element = def.var("T");
    const Type* args[] = {element, table.value_int(dims)};
    return table.union_all(element, table.apply(b.array_name, args));
  };
  b.vector = of_dims(1);
  b.matrix = of_dims(2);

  b.val_name = def.name("Val");
  const TypeVar* val_params[] = {def.var("x")};
  table.define_struct(b.val_name, val_params, b.any, {}, {}, false, 0);
  b.ref_name = def.name("Ref");
  const TypeVar* ref_params[] = {def.var("T")};
  table.define_abstract(b.ref_name, ref_params, b.any);

  // Expressions
  const Type* nothing_or_symbol[] = {b.nothing, b.symbol};
  b.expr = def.structure("Expr", b.any, {{"head", b.symbol}, {"args", table.array_of(b.any, 1)}}, true);
  b.quote_node = def.structure("QuoteNode", b.any, {{"value", b.any}});
  b.line_number_node =
      def.structure("LineNumberNode", b.any, {{"line", b.int64}, {"file", table.union_of(nothing_or_symbol)}});
  b.global_ref = def.structure("GlobalRef", b.any, {{"mod", b.module}, {"name", b.symbol}});

  fill_exceptions();
}

void TypeTable::Impl::fill_exceptions() {
  BuiltinTypes& b = builtin;
  Definer def(table, symbols);
  const DataType* e = b.exception = def.abstract("Exception", b.any);
  b.error_exception = def.structure("ErrorException", e, {{"msg", b.abstract_string}});
  b.argument_error = def.structure("ArgumentError", e, {{"msg", b.any}});
  b.bounds_error = def.structure("BoundsError", e, {{"a", b.any}, {"i", b.any}});
  b.domain_error = def.structure("DomainError", e, {{"val", b.any}, {"msg", b.any}});
  b.method_error = def.structure("MethodError", e, {{"f", b.any}, {"args", b.any}, {"world", b.uint64}});
  b.undef_var_error = def.structure("UndefVarError", e, {{"var", b.symbol}});
  b.undef_ref_error = def.structure("UndefRefError", e, {});
  b.inexact_error = def.structure("InexactError", e, {{"func", b.symbol}, {"T", b.any}, {"val", b.any}});
  b.divide_error = def.structure("DivideError", e, {});
  b.overflow_error = def.structure("OverflowError", e, {{"msg", b.any}});
  b.type_error =
      def.structure("TypeError", e, {{"func", b.symbol}, {"context", b.any}, {"expected", b.type}, {"got", b.any}});
  b.key_error = def.structure("KeyError", e, {{"key", b.any}});
  b.dimension_mismatch = def.structure("DimensionMismatch", e, {{"msg", b.abstract_string}});
  b.stack_overflow_error = def.structure("StackOverflowError", e, {});
  b.out_of_memory_error = def.structure("OutOfMemoryError", e, {});
  b.interrupt_exception = def.structure("InterruptException", e, {});
  b.assertion_error = def.structure("AssertionError", e, {{"msg", b.any}});
  b.load_error = def.structure("LoadError", e, {{"file", b.abstract_string}, {"line", b.int64}, {"error", b.any}});
  b.system_error =
      def.structure("SystemError", e, {{"prefix", b.abstract_string}, {"errnum", b.int32}, {"extrainfo", b.any}});
  b.eof_error = def.structure("EOFError", e, {});
  b.string_index_error = def.structure("StringIndexError", e, {{"string", b.abstract_string}, {"index", b.int64}});
  b.differentiation_error = def.structure("DifferentiationError", e, {{"msg", b.abstract_string}});
}

}  // namespace slope
