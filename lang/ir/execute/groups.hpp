// The parts of `execute`, by subject. Operand counts are already checked.
#pragma once

#include "lang/ir/execute/execute.hpp"

namespace slope::ir {

struct Operation {
  Context& ctx;
  Runtime& runtime;
  const BuiltinTypes& types;
  Op op;
  const Value* operands;
  std::size_t count;
  std::uintptr_t aux;
  Value& result;

  template <class T>
  T* aux_as() const {
    return reinterpret_cast<T*>(aux);
  }
  bool give(Value v) const {
    result = v;
    return true;
  }
  bool give_bool(bool b) const { return give(Value(types.boolean, std::int64_t{b})); }
  bool give_int(std::int64_t n) const { return give(Value(types.int64, n)); }
  bool give_nothing() const { return give(types.nothing->instance); }
  bool wrong_type(const Type* expected, std::size_t operand) const {
    return ctx.type_error(std::string(op_name(op)), expected, operands[operand]);
  }
  bool want(const Type* expected, std::size_t operand) const {
    return operands[operand].type == expected || wrong_type(expected, operand);
  }
  bool want_type(std::size_t operand) const {
    return (operands[operand].defined() && operands[operand].type->is_kind) || wrong_type(types.type, operand);
  }
};

bool execute_integer(const Operation& o);
bool execute_conversion(const Operation& o);
bool execute_float(const Operation& o);
bool execute_object(const Operation& o);  // objects, types, globals, cells
bool execute_memory(const Operation& o);  // arrays, strings, tapes

}  // namespace slope::ir
