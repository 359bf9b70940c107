#include "lang/diff/partials.hpp"

#include "lang/ir/op_groups.hpp"

namespace slope::diff {

using ir::FloatOp;
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
  auto over = [&](Operand x, Operand z) { return op2(Op::div_float, x, z); };
  auto plus = [&](Operand x, Operand z) { return op2(Op::add_float, x, z); };
  auto minus = [&](Operand x, Operand z) { return op2(Op::sub_float, x, z); };
  auto test = [&](Op op, Operand x, Operand z) { return b.emit(op, {x, z}, builtin.boolean); };
  auto choose = [&](Operand condition, Operand x, Operand z) { return b.emit(Op::select, {condition, x, z}, t); };
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
      if (partials.active(0)) partials.add(0, times(y, partials.value(1)));
      if (partials.active(1)) partials.add(1, times(y, partials.value(0)));
      return true;
    case FloatOp::div_float: {
      Operand scaled = over(y, partials.value(1));
      if (partials.active(0)) partials.add(0, scaled);
      if (partials.active(1)) partials.add(1, op1(Op::neg_float, times(scaled, partials.result())));
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
      if (partials.active(0)) partials.add(0, times(y, partials.value(1)));
      if (partials.active(1)) partials.add(1, times(y, partials.value(0)));
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
      if (partials.active(0)) partials.add(0, choose(first, y, number(0)));
      if (partials.active(1)) partials.add(1, choose(first, number(0), y));
      return true;
    }
    case FloatOp::sqrt_float:
      partials.add(0, over(y, times(number(2), partials.result())));
      return true;
    case FloatOp::exp_float:
      partials.add(0, times(y, partials.result()));
      return true;
    case FloatOp::exp2_float:
      partials.add(0, times(times(y, partials.result()), number(0.69314718055994530942)));
      return true;
    case FloatOp::expm1_float:
      partials.add(0, times(y, plus(partials.result(), number(1))));
      return true;
    case FloatOp::log_float:
      partials.add(0, over(y, partials.value(0)));
      return true;
    case FloatOp::log2_float:
      partials.add(0, over(y, times(partials.value(0), number(0.69314718055994530942))));
      return true;
    case FloatOp::log10_float:
      partials.add(0, over(y, times(partials.value(0), number(2.30258509299404568402))));
      return true;
    case FloatOp::log1p_float:
      partials.add(0, over(y, plus(partials.value(0), number(1))));
      return true;
    case FloatOp::sin_float:
      partials.add(0, times(y, op1(Op::cos_float, partials.value(0))));
      return true;
    case FloatOp::cos_float:
      partials.add(0, op1(Op::neg_float, times(y, op1(Op::sin_float, partials.value(0)))));
      return true;
    case FloatOp::tan_float:
      partials.add(0, times(y, plus(number(1), times(partials.result(), partials.result()))));
      return true;
    case FloatOp::asin_float:
      partials.add(0, over(y, op1(Op::sqrt_float, minus(number(1), times(partials.value(0), partials.value(0))))));
      return true;
    case FloatOp::acos_float:
      partials.add(0, op1(Op::neg_float,
                          over(y, op1(Op::sqrt_float, minus(number(1), times(partials.value(0), partials.value(0)))))));
      return true;
    case FloatOp::atan_float:
      partials.add(0, over(y, plus(number(1), times(partials.value(0), partials.value(0)))));
      return true;
    case FloatOp::atan2_float: {
      Operand square = plus(times(partials.value(0), partials.value(0)), times(partials.value(1), partials.value(1)));
      Operand scaled = over(y, square);
      if (partials.active(0)) partials.add(0, times(scaled, partials.value(1)));
      if (partials.active(1)) partials.add(1, op1(Op::neg_float, times(scaled, partials.value(0))));
      return true;
    }
    case FloatOp::sinh_float:
      partials.add(0, times(y, op1(Op::cosh_float, partials.value(0))));
      return true;
    case FloatOp::cosh_float:
      partials.add(0, times(y, op1(Op::sinh_float, partials.value(0))));
      return true;
    case FloatOp::tanh_float:
      partials.add(0, times(y, minus(number(1), times(partials.result(), partials.result()))));
      return true;
    case FloatOp::cbrt_float:
      partials.add(0, over(y, times(number(3), times(partials.result(), partials.result()))));
      return true;
    case FloatOp::hypot_float:
      if (partials.active(0)) partials.add(0, times(y, over(partials.value(0), partials.result())));
      if (partials.active(1)) partials.add(1, times(y, over(partials.value(1), partials.result())));
      return true;
    case FloatOp::pow_float: {
      if (partials.active(0)) {  // y x^(y-1), zero when the exponent is
        Operand partial =
            times(partials.value(1), op2(Op::pow_float, partials.value(0), minus(partials.value(1), number(1))));
        partials.add(0, times(y, choose(test(Op::eq_float, partials.value(1), number(0)), number(0), partial)));
      }
      if (partials.active(1)) {  // x^y log(x), zero at x = 0
        Operand zero_base = test(Op::eq_float, partials.value(0), number(0));
        Operand safe = choose(zero_base, number(1), partials.value(0));
        partials.add(1, times(y, choose(zero_base, number(0), times(partials.result(), op1(Op::log_float, safe)))));
      }
      return true;
    }
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
