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

template <double (*function)(double)>
bool apply(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "math", args, count, result);
  double x = 0;
  return call.floating(0, x) && call.give_float(function(x));
}

const NativeInfo math_natives[] = {
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
