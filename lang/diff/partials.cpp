#include "lang/diff/partials.hpp"

#include <limits>

namespace slope::diff {

using ir::Op;
using ir::Operand;

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
  auto plus = [&](Operand x, Operand z) { return op2(Op::add_float, x, z); };
  auto minus = [&](Operand x, Operand z) { return op2(Op::sub_float, x, z); };
  auto test = [&](Op op, Operand x, Operand z) { return b.emit(op, {x, z}, builtin.boolean); };
  auto choose = [&](Operand condition, Operand x, Operand z) { return b.emit(Op::select, {condition, x, z}, t); };
  // An exact zero stays zero where a partial is infinite: of a value that nobody used the derivative is none. The
  // partial is replaced, not the product: the derivative of the product itself stays right where only `y` is zero.
  auto both = [&](Operand p, Operand q) { return b.emit(Op::and_int, {p, q}, builtin.boolean); };
  auto over = [&](Operand x, Operand z) {
    const Operand singular = both(test(Op::eq_float, x, number(0)), test(Op::eq_float, z, number(0)));
    return op2(Op::div_float, x, choose(singular, number(std::numeric_limits<double>::infinity()), z));
  };
  auto times_unbounded = [&](Operand x, Operand z) {
    const Operand infinite = test(Op::eq_float, op1(Op::abs_float, z), number(std::numeric_limits<double>::infinity()));
    return times(x, choose(both(test(Op::eq_float, x, number(0)), infinite), number(0), z));
  };
  switch (inst.op) {
    case Op::add_float:
      if (partials.active(0)) partials.add(0, y);
      if (partials.active(1)) partials.add(1, y);
      return true;
    case Op::sub_float:
      if (partials.active(0)) partials.add(0, y);
      if (partials.active(1)) partials.add(1, op1(Op::neg_float, y));
      return true;
    case Op::mul_float:
      if (partials.active(0)) partials.add(0, times(y, partials.value(1)));
      if (partials.active(1)) partials.add(1, times(y, partials.value(0)));
      return true;
    case Op::div_float: {
      Operand scaled = over(y, partials.value(1));
      if (partials.active(0)) partials.add(0, scaled);
      if (partials.active(1)) partials.add(1, op1(Op::neg_float, times_unbounded(scaled, partials.result())));
      return true;
    }
    case Op::rem_float: {  // x - y*trunc(x/y)
      if (partials.active(0)) partials.add(0, y);
      if (partials.active(1))
        partials.add(1, op1(Op::neg_float, times(y, op1(Op::trunc_float, over(partials.value(0), partials.value(1))))));
      return true;
    }
    case Op::neg_float:
      partials.add(0, op1(Op::neg_float, y));
      return true;
    case Op::fma_float:
    case Op::muladd_float:
      if (partials.active(0)) partials.add(0, times(y, partials.value(1)));
      if (partials.active(1)) partials.add(1, times(y, partials.value(0)));
      if (partials.active(2)) partials.add(2, y);
      return true;
    case Op::abs_float:
      partials.add(0, choose(test(Op::lt_float, partials.value(0), number(0)), op1(Op::neg_float, y),
                             choose(test(Op::eq_float, partials.value(0), number(0)), number(0), y)));
      return true;
    case Op::copysign_float: {
      Operand same = test(Op::eq_float, op2(Op::copysign_float, number(1), partials.value(0)),
                          op2(Op::copysign_float, number(1), partials.value(1)));
      if (partials.active(0)) partials.add(0, choose(same, y, op1(Op::neg_float, y)));
      return true;
    }
    case Op::min_float:
    case Op::max_float: {
      Operand first = inst.op == Op::min_float ? test(Op::lt_float, partials.value(0), partials.value(1))
                                               : test(Op::lt_float, partials.value(1), partials.value(0));
      if (partials.active(0)) partials.add(0, choose(first, y, number(0)));
      if (partials.active(1)) partials.add(1, choose(first, number(0), y));
      return true;
    }
    case Op::sqrt_float:
      partials.add(0, over(y, times(number(2), partials.result())));
      return true;
    case Op::exp_float:
      partials.add(0, times_unbounded(y, partials.result()));
      return true;
    case Op::exp2_float:
      partials.add(0, times(times_unbounded(y, partials.result()), number(0.69314718055994530942)));
      return true;
    case Op::expm1_float:
      partials.add(0, times_unbounded(y, plus(partials.result(), number(1))));
      return true;
    case Op::log_float:
      partials.add(0, over(y, partials.value(0)));
      return true;
    case Op::log2_float:
      partials.add(0, over(y, times(partials.value(0), number(0.69314718055994530942))));
      return true;
    case Op::log10_float:
      partials.add(0, over(y, times(partials.value(0), number(2.30258509299404568402))));
      return true;
    case Op::log1p_float:
      partials.add(0, over(y, plus(partials.value(0), number(1))));
      return true;
    case Op::sin_float:
      partials.add(0, times(y, op1(Op::cos_float, partials.value(0))));
      return true;
    case Op::cos_float:
      partials.add(0, op1(Op::neg_float, times(y, op1(Op::sin_float, partials.value(0)))));
      return true;
    case Op::tan_float:
      partials.add(0, times(y, plus(number(1), times(partials.result(), partials.result()))));
      return true;
    case Op::asin_float:
      partials.add(0, over(y, op1(Op::sqrt_float, minus(number(1), times(partials.value(0), partials.value(0))))));
      return true;
    case Op::acos_float:
      partials.add(0, op1(Op::neg_float,
                          over(y, op1(Op::sqrt_float, minus(number(1), times(partials.value(0), partials.value(0)))))));
      return true;
    case Op::atan_float:
      partials.add(0, over(y, plus(number(1), times(partials.value(0), partials.value(0)))));
      return true;
    case Op::atan2_float: {
      Operand square = plus(times(partials.value(0), partials.value(0)), times(partials.value(1), partials.value(1)));
      Operand scaled = over(y, square);
      if (partials.active(0)) partials.add(0, times(scaled, partials.value(1)));
      if (partials.active(1)) partials.add(1, op1(Op::neg_float, times(scaled, partials.value(0))));
      return true;
    }
    case Op::sinh_float:
      partials.add(0, times_unbounded(y, op1(Op::cosh_float, partials.value(0))));
      return true;
    case Op::cosh_float:
      partials.add(0, times_unbounded(y, op1(Op::sinh_float, partials.value(0))));
      return true;
    case Op::tanh_float:
      partials.add(0, times(y, minus(number(1), times(partials.result(), partials.result()))));
      return true;
    case Op::cbrt_float:
      partials.add(0, over(y, times(number(3), times(partials.result(), partials.result()))));
      return true;
    case Op::hypot_float:
      if (partials.active(0)) partials.add(0, times(y, over(partials.value(0), partials.result())));
      if (partials.active(1)) partials.add(1, times(y, over(partials.value(1), partials.result())));
      return true;
    case Op::pow_float: {
      if (partials.active(0)) {  // y x^(y-1), zero when the exponent is
        Operand partial =
            times(partials.value(1), op2(Op::pow_float, partials.value(0), minus(partials.value(1), number(1))));
        partials.add(0,
                     times_unbounded(y, choose(test(Op::eq_float, partials.value(1), number(0)), number(0), partial)));
      }
      if (partials.active(1)) {  // x^y log(x), zero at x = 0
        Operand zero_base = test(Op::eq_float, partials.value(0), number(0));
        Operand safe = choose(zero_base, number(1), partials.value(0));
        partials.add(
            1, times_unbounded(y, choose(zero_base, number(0), times(partials.result(), op1(Op::log_float, safe)))));
      }
      return true;
    }
    default:
      return false;
  }
}

}  // namespace slope::diff
