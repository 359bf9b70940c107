// Floating point in both widths, through the same functions of the C library that compiled code calls, so that the
// tiers agree to the last bit.
#include <bit>
#include <cmath>

#include "lang/ir/execute/groups.hpp"

namespace slope::ir {

namespace {

// Compiled code fuses where the machine has the instruction; so must we.
bool machine_fuses() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

template <class F>
F ieee_minimum(F a, F b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class F>
F ieee_maximum(F a, F b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class F>
bool compare(Op op, F a, F b, bool& out) {
  switch (op) {
    case Op::eq_float:
      out = a == b;
      return true;
    case Op::ne_float:
      out = a != b;
      return true;
    case Op::lt_float:
      out = a < b;
      return true;
    case Op::le_float:
      out = a <= b;
      return true;
    default:
      return false;
  }
}

template <class F>
F compute(Op op, F a, F b, F c) {
  switch (op) {
    case Op::add_float:
      return a + b;
    case Op::sub_float:
      return a - b;
    case Op::mul_float:
      return a * b;
    case Op::div_float:
      return a / b;
    case Op::rem_float:
      return std::fmod(a, b);
    case Op::neg_float:
      return -a;
    case Op::fma_float:
      return std::fma(a, b, c);
    case Op::muladd_float:
      return machine_fuses() ? std::fma(a, b, c) : a * b + c;
    case Op::abs_float:
      return std::fabs(a);
    case Op::copysign_float:
      return std::copysign(a, b);
    case Op::min_float:
      return ieee_minimum(a, b);
    case Op::max_float:
      return ieee_maximum(a, b);
    case Op::ceil_float:
      return std::ceil(a);
    case Op::floor_float:
      return std::floor(a);
    case Op::trunc_float:
      return std::trunc(a);
    case Op::rint_float:
      return std::nearbyint(a);
    case Op::sqrt_float:
      return std::sqrt(a);
    case Op::exp_float:
      return std::exp(a);
    case Op::exp2_float:
      return std::exp2(a);
    case Op::expm1_float:
      return std::expm1(a);
    case Op::log_float:
      return std::log(a);
    case Op::log2_float:
      return std::log2(a);
    case Op::log10_float:
      return std::log10(a);
    case Op::log1p_float:
      return std::log1p(a);
    case Op::sin_float:
      return std::sin(a);
    case Op::cos_float:
      return std::cos(a);
    case Op::tan_float:
      return std::tan(a);
    case Op::asin_float:
      return std::asin(a);
    case Op::acos_float:
      return std::acos(a);
    case Op::atan_float:
      return std::atan(a);
    case Op::atan2_float:
      return std::atan2(a, b);
    case Op::sinh_float:
      return std::sinh(a);
    case Op::cosh_float:
      return std::cosh(a);
    case Op::tanh_float:
      return std::tanh(a);
    case Op::cbrt_float:
      return std::cbrt(a);
    case Op::hypot_float:
      return std::hypot(a, b);
    default:
      return std::pow(a, b);
  }
}

}  // namespace

bool execute_float(const Operation& o) {
  const Type* type = o.operands[0].type;
  if (type != o.types.float64 && type != o.types.float32) return o.wrong_type(o.types.abstract_float, 0);
  for (std::size_t i = 1; i < o.count; ++i)
    if (!o.want(type, i)) return false;
  bool test = false;
  if (type == o.types.float64) {
    double x[3] = {0, 0, 0};
    for (std::size_t i = 0; i < o.count; ++i) x[i] = o.operands[i].float64;
    if (compare(o.op, x[0], x[1], test)) return o.give_bool(test);
    return o.give(Value(type, compute(o.op, x[0], x[1], x[2])));
  }
  float x[3] = {0, 0, 0};
  for (std::size_t i = 0; i < o.count; ++i) x[i] = o.operands[i].float32;
  if (compare(o.op, x[0], x[1], test)) return o.give_bool(test);
  float out = compute(o.op, x[0], x[1], x[2]);
  return o.give(Value(type, std::int64_t{std::bit_cast<std::uint32_t>(out)}));
}

}  // namespace slope::ir
