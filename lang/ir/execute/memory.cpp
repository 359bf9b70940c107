// Arrays, strings and tapes. Compiled code does not check indices here, because Slope code did before. The slow path
// checks them, so that an interpreted program cannot leave an array's memory even under @inbounds.
#include <vector>

#include "lang/ir/execute/groups.hpp"
#include "lang/ir/op_groups.hpp"
#include "lang/memory/tape.hpp"

namespace slope::ir {

namespace {

ArrayObject* array_of(const Operation& o) {
  const DataType* type = as_data(o.operands[0].type);
  if (type && type->object_kind == DataType::ObjectKind::array) return static_cast<ArrayObject*>(o.operands[0].object);
  o.wrong_type(o.types.array, 0);
  return nullptr;
}

bool dims_of(const Operation& o, std::vector<std::int64_t>& dims, std::int64_t& length) {
  length = 1;
  bool empty = false;
  for (std::size_t i = 1; i < o.count; ++i) {
    if (!o.want(o.types.int64, i)) return false;
    std::int64_t n = o.operands[i].bits;
    if (n < 0) return o.ctx.argument_error("invalid Array dimensions");
    dims.push_back(n);
    empty |= n == 0;
    if (__builtin_mul_overflow(length, n ? n : 1, &length)) return o.ctx.argument_error("invalid Array dimensions");
  }
  if (empty) length = 0;
  return true;
}

bool array_new(const Operation& o) {
  if (!o.want_type(0)) return false;
  const DataType* type = as_data(o.operands[0].as_type);
  if (!type || type->object_kind != DataType::ObjectKind::array || !type->is_concrete)
    return o.ctx.raise_error("array_new: " + to_string(o.operands[0].as_type) + " is not a concrete Array type");
  std::vector<std::int64_t> dims;
  std::int64_t length = 0;
  if (!dims_of(o, dims, length)) return false;
  const ValueType* ndims = as_value(type->params[1]);
  if (!ndims || ndims->value.bits != static_cast<std::int64_t>(dims.size()))
    return o.ctx.argument_error("wrong number of dimensions for " + to_string(type));
  ArrayObject* array = o.ctx.heap->allocate_array(type, dims);
  return array ? o.give(Value(type, array)) : o.ctx.out_of_memory();
}

bool array_share(const Operation& o) {
  ArrayObject* array = array_of(o);
  if (!array) return false;
  std::vector<std::int64_t> dims;
  std::int64_t length = 0;
  if (!dims_of(o, dims, length)) return false;
  if (length != array->length)
    return o.ctx.raise_message(o.types.dimension_mismatch,
                               "new dimensions must be consistent with array size " + std::to_string(array->length));
  const DataType* type = o.runtime.types.array_of(array_element_type(array), static_cast<std::int64_t>(dims.size()));
  ArrayObject* shared = o.ctx.heap->share_array(type, array, dims);
  return shared ? o.give(Value(type, shared)) : o.ctx.out_of_memory();
}

bool array_size(const Operation& o) {
  ArrayObject* array = array_of(o);
  if (!array || !o.want(o.types.int64, 1)) return false;
  std::int64_t dimension = o.operands[1].bits;
  if (dimension < 1) return o.ctx.raise_error("arraysize: dimension out of range");
  return o.give_int(dimension > array_ndims(array) ? 1 : dims_of(array)[dimension - 1]);
}

bool array_get(const Operation& o) {
  ArrayObject* array = array_of(o);
  if (!array || !o.want(o.types.int64, 1)) return false;
  std::int64_t i = o.operands[1].bits;
  if (i < 1 || i > array->length) return o.ctx.bounds_error(o.operands[0], o.operands[1]);
  const Type* element = array_element_type(array);
  Value v = load_stored(*o.ctx.heap, array->data + (i - 1) * array->element_size, element);
  if (v.defined()) return o.give(v);
  if (storage_of(element) == Storage::aggregate) return o.ctx.out_of_memory();  // only its box could not be made
  return o.ctx.raise(o.types.undef_ref_error->instance);
}

bool fits(const Operation& o, const Type* element, Value v) {
  return v.type == element || is_instance(o.runtime.types, v, element) || o.ctx.type_error("setindex!", element, v);
}

// Of what is lent by the host, may_store has been asked before.
bool array_check(const Operation& o) {
  ArrayObject* array = array_of(o);
  return array && fits(o, array_element_type(array), o.operands[1]) && o.give_nothing();
}

bool array_set(const Operation& o) {
  ArrayObject* array = array_of(o);
  if (!array || !o.want(o.types.int64, 2)) return false;
  std::int64_t i = o.operands[2].bits;
  if (i < 1 || i > array->length) return o.ctx.bounds_error(o.operands[0], o.operands[2]);
  if (o.ctx.generating && !may_change(o.ctx, o.operands[0])) return false;
  const Type* element = array_element_type(array);
  Value v = o.operands[1];
  if (!fits(o, element, v)) return false;
  store_value(*o.ctx.heap, array->data + (i - 1) * array->element_size, element, v);
  return o.give_nothing();
}

bool array_resize(const Operation& o) {
  ArrayObject* array = array_of(o);
  if (!array || !o.want(o.types.int64, 1)) return false;
  if (o.ctx.generating && !may_change(o.ctx, o.operands[0])) return false;
  if (array_ndims(array) != 1) return o.ctx.argument_error("only a Vector can be resized");
  if (o.operands[1].bits < 0) return o.ctx.argument_error("new length must be ≥ 0");
  // What is undone goes back to a length that the memory has had; who shares it came later.
  const std::int64_t length = o.operands[1].bits;
  const bool undo =
      o.aux == undo_resize && length <= front_of(array) + capacity_of(array) && !(array->flags & array_borrowed);
  if (!undo && (array->flags & (array_borrowed | array_shared) || !(array->flags & array_owns_memory)))
    return o.ctx.raise_error("cannot resize array with shared data");
  const bool done = o.op == Op::array_resize ? o.ctx.heap->resize_vector(array, length)
                                             : o.ctx.heap->resize_vector_front(array, length);
  return done ? o.give_nothing() : o.ctx.out_of_memory();
}

bool string_operation(const Operation& o) {
  if (!o.want(o.types.string, 0)) return false;
  auto* text = static_cast<StringObject*>(o.operands[0].object);
  if (o.op == Op::string_length) return o.give_int(text->length);
  if (!o.want(o.types.int64, 1)) return false;
  std::int64_t i = o.operands[1].bits;
  if (i < 1 || i > text->length) return o.ctx.bounds_error(o.operands[0], o.operands[1]);
  return o.give(Value(o.types.uint8, std::int64_t{static_cast<unsigned char>(text->bytes[i - 1])}));
}

bool tape_operation(const Operation& o) {
  if (o.op == Op::tape_open) {
    if (!o.want(o.types.int64, 0)) return false;
    Tape* tape = o.ctx.tapes->open(o.aux_as<const TapeLayout>(), o.operands[0].bits);
    return tape && o.give(Value(o.types.tape, tape));
  }
  if (!o.want(o.types.tape, 0)) return false;
  auto* tape = static_cast<Tape*>(o.operands[0].pointer);
  if (o.op == Op::tape_close) {
    o.ctx.tapes->close(tape);
    return o.give_nothing();
  }
  if (!o.want(o.types.int64, 1)) return false;
  std::int64_t row = o.operands[1].bits;
  if (o.op == Op::tape_reserve) return o.ctx.tapes->reserve(tape, row) && o.give_nothing();
  std::uintptr_t column = tape_column_of(o.aux);
  if (row < 0 || row >= tape->capacity || column >= tape->layout->columns.size())
    return o.ctx.raise_error("internal error: a tape was read or written outside its rows");
  const Type* type = tape->layout->columns[column];
  char* where = tape->columns[column] + row * stored_size(type);
  if (o.op == Op::tape_store) {
    Value v = o.operands[2];
    if (v.type != type && !is_instance(o.runtime.types, v, type)) return o.wrong_type(type, 2);
    store_value(*o.ctx.heap, where, type, v);
    return o.give_nothing();
  }
  Value v = load_stored(*o.ctx.heap, where, type);
  if (!v.defined() && storage_of(type) == Storage::aggregate) return o.ctx.out_of_memory();
  return o.give(v);
}

}  // namespace

bool execute_memory(const Operation& o) {
  if (group_of(o.op) == OpGroup::strings) return string_operation(o);
  if (group_of(o.op) == OpGroup::tapes) return tape_operation(o);
  switch (in_group<ArrayOp>(o.op)) {
    case ArrayOp::array_new:
      return array_new(o);
    case ArrayOp::array_length: {
      ArrayObject* array = array_of(o);
      return array && o.give_int(array->length);
    }
    case ArrayOp::array_size:
      return array_size(o);
    case ArrayOp::array_get:
      return array_get(o);
    case ArrayOp::array_set:
    case ArrayOp::array_init:
      return array_set(o);
    case ArrayOp::array_check:
      return array_check(o);
    case ArrayOp::array_resize:
    case ArrayOp::array_resize_front:
      return array_resize(o);
    case ArrayOp::array_share:
      return array_share(o);
  }
  return false;
}

}  // namespace slope::ir
