// Floating point in both widths, through the same functions of the C library that compiled code calls, so that the
// tiers agree to the last bit.
#include <bit>
#include <cmath>
#include <optional>

#include "lang/ir/execute/groups.hpp"
#include "lang/ir/op_groups.hpp"

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

// The result as a number, or, of a comparison, in `test`.
template <class F>
F compute(FloatOp op, F a, F b, F c, std::optional<bool>& test) {
  auto tests = [&](bool is) {
    test = is;
    return F{0};
  };
  switch (op) {
    case FloatOp::eq_float:
      return tests(a == b);
    case FloatOp::ne_float:
      return tests(a != b);
    case FloatOp::lt_float:
      return tests(a < b);
    case FloatOp::le_float:
      return tests(a <= b);
    case FloatOp::add_float:
      return a + b;
    case FloatOp::sub_float:
      return a - b;
    case FloatOp::mul_float:
      return a * b;
    case FloatOp::div_float:
      return a / b;
    case FloatOp::rem_float:
      return std::fmod(a, b);
    case FloatOp::neg_float:
      return -a;
    case FloatOp::fma_float:
      return std::fma(a, b, c);
    case FloatOp::muladd_float:
      return machine_fuses() ? std::fma(a, b, c) : a * b + c;
    case FloatOp::abs_float:
      return std::fabs(a);
    case FloatOp::copysign_float:
      return std::copysign(a, b);
    case FloatOp::min_float:
      return ieee_minimum(a, b);
    case FloatOp::max_float:
      return ieee_maximum(a, b);
    case FloatOp::ceil_float:
      return std::ceil(a);
    case FloatOp::floor_float:
      return std::floor(a);
    case FloatOp::trunc_float:
      return std::trunc(a);
    case FloatOp::rint_float:
      return std::nearbyint(a);
    case FloatOp::sqrt_float:
      return std::sqrt(a);
    case FloatOp::exp_float:
      return std::exp(a);
    case FloatOp::exp2_float:
      return std::exp2(a);
    case FloatOp::expm1_float:
      return std::expm1(a);
    case FloatOp::log_float:
      return std::log(a);
    case FloatOp::log2_float:
      return std::log2(a);
    case FloatOp::log10_float:
      return std::log10(a);
    case FloatOp::log1p_float:
      return std::log1p(a);
    case FloatOp::sin_float:
      return std::sin(a);
    case FloatOp::cos_float:
      return std::cos(a);
    case FloatOp::tan_float:
      return std::tan(a);
    case FloatOp::asin_float:
      return std::asin(a);
    case FloatOp::acos_float:
      return std::acos(a);
    case FloatOp::atan_float:
      return std::atan(a);
    case FloatOp::atan2_float:
      return std::atan2(a, b);
    case FloatOp::sinh_float:
      return std::sinh(a);
    case FloatOp::cosh_float:
      return std::cosh(a);
    case FloatOp::tanh_float:
      return std::tanh(a);
    case FloatOp::cbrt_float:
      return std::cbrt(a);
    case FloatOp::hypot_float:
      return std::hypot(a, b);
    case FloatOp::pow_float:
      return std::pow(a, b);
  }
  return F{0};
}

}  // namespace

bool execute_float(const Operation& o) {
  const Type* type = o.operands[0].type;
  if (type != o.types.float64 && type != o.types.float32) return o.wrong_type(o.types.abstract_float, 0);
  for (std::size_t i = 1; i < o.count; ++i)
    if (!o.want(type, i)) return false;
  const FloatOp op = in_group<FloatOp>(o.op);
  std::optional<bool> test;
  Value v(type, std::int64_t{0});
  if (type == o.types.float64) {
    double x[3] = {0, 0, 0};
    for (std::size_t i = 0; i < o.count; ++i) x[i] = o.operands[i].float64;
    v = Value(type, compute(op, x[0], x[1], x[2], test));
  } else {
    float x[3] = {0, 0, 0};
    for (std::size_t i = 0; i < o.count; ++i) x[i] = o.operands[i].float32;
    v = Value(type, std::int64_t{std::bit_cast<std::uint32_t>(compute(op, x[0], x[1], x[2], test))});
  }
  return test ? o.give_bool(*test) : o.give(v);
}

}  // namespace slope::ir
