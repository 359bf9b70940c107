// Special functions of the C library, and digamma.
#include <cmath>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

// ψ(x): recurrence up to x >= 8, then the asymptotic series (Abramowitz and Stegun 6.3.18); reflection below zero.
double digamma(double x) {
  if (x <= 0 && x == std::floor(x)) return std::nan("");
  double sum = 0;
  if (x < 0) {
    sum = -M_PI / std::tan(M_PI * (x - std::round(x)));
    x = 1 - x;
  }
  while (x < 8) {
    sum -= 1 / x;
    x += 1;
  }
  double r = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         r * (1.0 / 12 -
              r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760 - r / 12))))));
}

// math_besselj(n, x), math_bessely(n, x)
template <double (*function)(int, double)>
bool apply_order(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "bessel", args, count, result);
  std::int64_t order = 0;
  double x = 0;
  if (!call.integer(0, order) || !call.floating(1, x)) return false;
  if (order < -100000 || order > 100000) return ctx.argument_error("the order of a Bessel function is too large");
  return call.give_float(function(static_cast<int>(order), x));
}

double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// half_bits(x): the bits of the number of 16 bits that is nearest to x, the even one of two. They are returned as a
// floating-point number, so that differentiation sees that this has no rule.
bool half_bits(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "Float16", args, count, result);
  double x = 0;
  if (!call.floating(0, x)) return false;
  const std::int64_t sign = std::signbit(x) ? 0x8000 : 0;
  const double size = std::fabs(x);
  if (std::isnan(x)) return call.give_float(0x7e00);
  if (size >= 65520) return call.give_float(static_cast<double>(sign | 0x7c00));
  // Below the least normal number, in steps of 2^-24.
  if (size < 0x1p-14)
    return call.give_float(static_cast<double>(sign | static_cast<std::int64_t>(std::nearbyint(size * 0x1p24))));
  int exponent = 0;
  const auto digits = static_cast<std::int64_t>(std::nearbyint(std::frexp(size, &exponent) * 2048));
  return call.give_float(
      static_cast<double>(sign | (((exponent + 14) << 10) + (digits - 1024))));  // 2048 digits carry into the exponent
}

// half_value(bits): the number of 16 bits with these bits.
bool half_value(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "Float32", args, count, result);
  std::int64_t bits = 0;
  if (!call.integer(0, bits)) return false;
  const int exponent = static_cast<int>(bits >> 10 & 31), digits = static_cast<int>(bits & 1023);
  double size = 0;
  if (exponent == 31) {
    size = digits == 0 ? HUGE_VAL : std::nan("");
  } else {
    size = exponent == 0 ? std::ldexp(digits, -24) : std::ldexp(1024 + digits, exponent - 25);
  }
  return call.give_float((bits & 0x8000) != 0 ? -size : size);
}

template <double (*function)(double)>
bool apply(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "math", args, count, result);
  double x = 0;
  return call.floating(0, x) && call.give_float(function(x));
}

const NativeInfo math_natives[] = {
    {"half_bits", half_bits, effect_throws, returns_float, false, false, true},
    {"half_value", half_value, effect_throws, returns_float, false, false, true},
    {"math_erf", apply<::erf>, effect_throws, returns_float, false, false, true},
    {"math_erfc", apply<::erfc>, effect_throws, returns_float, false, false, true},
    {"math_gamma", apply<::tgamma>, effect_throws, returns_float, false, false, true},
    {"math_loggamma", apply<log_gamma>, effect_throws, returns_float, false, false, true},
    {"math_digamma", apply<digamma>, effect_throws, returns_float, false, false, true},
    {"math_besselj0", apply<::j0>, effect_throws, returns_float, false, false, true},
    {"math_besselj1", apply<::j1>, effect_throws, returns_float, false, false, true},
    {"math_bessely0", apply<::y0>, effect_throws, returns_float, false, false, true},
    {"math_bessely1", apply<::y1>, effect_throws, returns_float, false, false, true},
    {"math_besselj", apply_order<::jn>, effect_throws, returns_float, false, false, true},
    {"math_bessely", apply_order<::yn>, effect_throws, returns_float, false, false, true},
};

}  // namespace

void define_math_natives(Runtime& runtime) { define_all(runtime, math_natives); }

}  // namespace slope::stdlib
