#include "lang/diff/partials.hpp"

namespace slope::diff {

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
      if (partials.active(1)) partials.add(1, op1(Op::neg_float, times(scaled, partials.result())));
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
    default:
      return false;
  }
}

}  // namespace slope::diff
