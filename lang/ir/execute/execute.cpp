#include "lang/ir/execute/execute.hpp"

#include "lang/ir/execute/groups.hpp"

namespace slope::ir {

namespace {

bool wrong_count(const Operation& o) {
  const OpInfo& info = op_info(o.op);
  bool few = o.count < static_cast<std::size_t>(info.min_operands);
  int limit = few ? info.min_operands : info.max_operands;
  return o.ctx.argument_error(std::string(op_name(o.op)) + ": too " + (few ? "few" : "many") + " arguments (expected " +
                              std::to_string(limit) + ")");
}

bool execute_group(const Operation& o) {
  switch (group_of(o.op)) {
    case OpGroup::integers:
      return execute_integer(o);
    case OpGroup::conversions:
      return execute_conversion(o);
    case OpGroup::floats:
      return execute_float(o);
    case OpGroup::arrays:
    case OpGroup::strings:
    case OpGroup::tapes:
      return execute_memory(o);
    case OpGroup::calls:
    case OpGroup::names:
    case OpGroup::objects:
    case OpGroup::exceptions:
    case OpGroup::terminators:
    case OpGroup::parameters:
      return execute_object(o);
  }
  return false;
}

}  // namespace

bool execute(Context& ctx, Op op, const Value* operands, std::size_t count, std::uintptr_t aux, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const BuiltinTypes& types = runtime.types.builtin();
  const OpInfo& info = op_info(op);
  Operation o{ctx, runtime, types, op, operands, count, aux, result};
  if (count < static_cast<std::size_t>(info.min_operands) ||
      (info.max_operands >= 0 && count > static_cast<std::size_t>(info.max_operands)))
    return wrong_count(o);

  // The common case of a dynamic program, without looking at layouts.
  if (count == 2 && operands[0].type == operands[1].type) {
    if (operands[0].type == types.int64) {
      std::int64_t a = operands[0].bits, b = operands[1].bits;
      std::uint64_t ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
      switch (op) {
        case Op::add_int:
          return o.give_int(static_cast<std::int64_t>(ua + ub));
        case Op::sub_int:
          return o.give_int(static_cast<std::int64_t>(ua - ub));
        case Op::mul_int:
          return o.give_int(static_cast<std::int64_t>(ua * ub));
        case Op::slt_int:
          return o.give_bool(a < b);
        case Op::sle_int:
          return o.give_bool(a <= b);
        case Op::eq_int:
          return o.give_bool(a == b);
        case Op::ne_int:
          return o.give_bool(a != b);
        default:
          break;
      }
    } else if (operands[0].type == types.float64) {
      double a = operands[0].float64, b = operands[1].float64;
      switch (op) {
        case Op::add_float:
          return o.give(Value(types.float64, a + b));
        case Op::sub_float:
          return o.give(Value(types.float64, a - b));
        case Op::mul_float:
          return o.give(Value(types.float64, a * b));
        case Op::div_float:
          return o.give(Value(types.float64, a / b));
        case Op::lt_float:
          return o.give_bool(a < b);
        case Op::le_float:
          return o.give_bool(a <= b);
        case Op::eq_float:
          return o.give_bool(a == b);
        default:
          break;
      }
    }
  }
  return execute_group(o);
}

}  // namespace slope::ir
