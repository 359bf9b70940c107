#include "lang/diff/partials.hpp"

#include <algorithm>
#include <limits>

#include "lang/ir/op_groups.hpp"
#include "lang/ir/passes/cotangents.hpp"

namespace slope::diff {

using ir::FloatOp;
using ir::Op;
using ir::Operand;

std::optional<KnownName> elementary_function(Op op) {
  switch (op) {
    case Op::sqrt_float:
      return KnownName::sqrt;
    case Op::exp_float:
      return KnownName::exp;
    case Op::exp2_float:
      return KnownName::exp2;
    case Op::expm1_float:
      return KnownName::expm1;
    case Op::log_float:
      return KnownName::log;
    case Op::log2_float:
      return KnownName::log2;
    case Op::log10_float:
      return KnownName::log10;
    case Op::log1p_float:
      return KnownName::log1p;
    case Op::sin_float:
      return KnownName::sin;
    case Op::cos_float:
      return KnownName::cos;
    case Op::tan_float:
      return KnownName::tan;
    case Op::asin_float:
      return KnownName::asin;
    case Op::acos_float:
      return KnownName::acos;
    case Op::atan_float:
    case Op::atan2_float:
      return KnownName::atan;
    case Op::sinh_float:
      return KnownName::sinh;
    case Op::cosh_float:
      return KnownName::cosh;
    case Op::tanh_float:
      return KnownName::tanh;
    case Op::cbrt_float:
      return KnownName::cbrt;
    case Op::hypot_float:
      return KnownName::hypot;
    case Op::pow_float:
      return KnownName::power;
    default:
      return std::nullopt;
  }
}

bool may_be_infinite(const ir::Function& function, Operand o, int steps) {
  if (!o.is_inst()) return false;
  const ir::Inst& inst = function.insts[o.index()];
  switch (inst.op) {
    case Op::log_float:
    case Op::log2_float:
    case Op::log10_float:
    case Op::log1p_float:
    case Op::div_float:
    case Op::pow_float:
    case Op::invoke:
      return true;
    case Op::add_float:
    case Op::sub_float:
    case Op::mul_float:
    case Op::neg_float:
    case Op::muladd_float:
    case Op::fma_float:
    case Op::select:
      return steps > 0 && std::any_of(inst.operands.begin(), inst.operands.end(),
                                      [&](Operand part) { return may_be_infinite(function, part, steps - 1); });
    default:
      return false;
  }
}

// Long because it is the table of partial derivatives: one case for each operation.
bool emit_partials(ir::Builder& b, Runtime& runtime, const ir::Inst& inst, Operand y, const Partials& partials) {
  const Type* t = inst.type;
  const BuiltinTypes& builtin = runtime.types.builtin();
  auto op1 = [&](Op op, Operand a) { return b.emit(op, {a}, t); };
  auto op2 = [&](Op op, Operand x, Operand z) { return b.emit(op, {x, z}, t); };
  auto number = [&](double x) {
    if (t == builtin.float64) return b.constant(Value(t, x));
    Value v(t, std::int64_t{0});
    v.float32 = static_cast<float>(x);
    return b.constant(v);
  };
  auto times = [&](Operand x, Operand z) { return op2(Op::mul_float, x, z); };
  auto over = [&](Operand x, Operand z) { return op2(Op::div_float, x, z); };
  auto test = [&](Op op, Operand x, Operand z) { return b.emit(op, {x, z}, builtin.boolean); };
  auto choose = [&](Operand condition, Operand x, Operand z) { return b.emit(Op::select, {condition, x, z}, t); };
  // A factor that may be infinite: an exact zero stays zero, as for quotients below.
  auto factor = [&](std::size_t i) {
    const Operand z = partials.value(i);
    if (!partials.may_be_infinite || !partials.may_be_infinite(i)) return z;
    const double largest = t == builtin.float64 ? std::numeric_limits<double>::max()
                                                : static_cast<double>(std::numeric_limits<float>::max());
    const Operand finite = test(Op::le_float, op1(Op::abs_float, z), number(largest));
    return choose(finite, z, choose(test(Op::eq_float, y, number(0)), number(0), z));
  };
  if (ir::group_of(inst.op) != ir::OpGroup::floats) return false;
  switch (ir::in_group<FloatOp>(inst.op)) {
    case FloatOp::add_float:
      if (partials.active(0)) partials.add(0, y);
      if (partials.active(1)) partials.add(1, y);
      return true;
    case FloatOp::sub_float:
      if (partials.active(0)) partials.add(0, y);
      if (partials.active(1)) partials.add(1, op1(Op::neg_float, y));
      return true;
    case FloatOp::mul_float:
      if (partials.active(0)) partials.add(0, times(y, factor(1)));
      if (partials.active(1)) partials.add(1, times(y, factor(0)));
      return true;
    case FloatOp::div_float: {
      // An exact zero stays zero where the partials are infinite: a value that nobody used has no derivative. The
      // partials are replaced, not the products: the derivative of the products stays right where only `y` is zero.
      const Operand zero = number(0);
      const Operand singular = b.emit(
          Op::and_int, {test(Op::eq_float, y, zero), test(Op::eq_float, partials.value(1), zero)}, builtin.boolean);
      const Operand infinity = number(std::numeric_limits<double>::infinity());
      const Operand scaled = over(y, choose(singular, infinity, partials.value(1)));
      if (partials.active(0)) partials.add(0, scaled);
      if (partials.active(1))
        partials.add(1, op1(Op::neg_float, times(scaled, choose(singular, zero, partials.result()))));
      return true;
    }
    case FloatOp::rem_float: {  // x - y*trunc(x/y)
      if (partials.active(0)) partials.add(0, y);
      if (partials.active(1))
        partials.add(1, op1(Op::neg_float, times(y, op1(Op::trunc_float, over(partials.value(0), partials.value(1))))));
      return true;
    }
    case FloatOp::neg_float:
      partials.add(0, op1(Op::neg_float, y));
      return true;
    case FloatOp::fma_float:
    case FloatOp::muladd_float:
      if (partials.active(0)) partials.add(0, times(y, factor(1)));
      if (partials.active(1)) partials.add(1, times(y, factor(0)));
      if (partials.active(2)) partials.add(2, y);
      return true;
    case FloatOp::abs_float:
      partials.add(0, choose(test(Op::lt_float, partials.value(0), number(0)), op1(Op::neg_float, y),
                             choose(test(Op::eq_float, partials.value(0), number(0)), number(0), y)));
      return true;
    case FloatOp::copysign_float: {
      Operand same = test(Op::eq_float, op2(Op::copysign_float, number(1), partials.value(0)),
                          op2(Op::copysign_float, number(1), partials.value(1)));
      if (partials.active(0)) partials.add(0, choose(same, y, op1(Op::neg_float, y)));
      return true;
    }
    case FloatOp::min_float:
    case FloatOp::max_float: {
      Operand first = inst.op == Op::min_float ? test(Op::lt_float, partials.value(0), partials.value(1))
                                               : test(Op::lt_float, partials.value(1), partials.value(0));
      auto cotangent = [&](Operand x, Operand z) {
        return b.emit(Op::select, {first, x, z}, t, ir::select_of_cotangent);
      };
      if (partials.active(0)) partials.add(0, cotangent(y, number(0)));
      if (partials.active(1)) partials.add(1, cotangent(number(0), y));
      return true;
    }
    case FloatOp::sqrt_float:
    case FloatOp::exp_float:
    case FloatOp::exp2_float:
    case FloatOp::expm1_float:
    case FloatOp::log_float:
    case FloatOp::log2_float:
    case FloatOp::log10_float:
    case FloatOp::log1p_float:
    case FloatOp::sin_float:
    case FloatOp::cos_float:
    case FloatOp::tan_float:
    case FloatOp::asin_float:
    case FloatOp::acos_float:
    case FloatOp::atan_float:
    case FloatOp::atan2_float:
    case FloatOp::sinh_float:
    case FloatOp::cosh_float:
    case FloatOp::tanh_float:
    case FloatOp::cbrt_float:
    case FloatOp::hypot_float:
    case FloatOp::pow_float:
      break;  // by a rule of the library: diff/rules.cpp
    case FloatOp::eq_float:
    case FloatOp::ne_float:
    case FloatOp::lt_float:
    case FloatOp::le_float:
    case FloatOp::ceil_float:
    case FloatOp::floor_float:
    case FloatOp::trunc_float:
    case FloatOp::rint_float:
      break;  // constant between jumps
  }
  return false;
}

}  // namespace slope::diff
