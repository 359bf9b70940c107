// Text of numbers and numbers of text: shortest digits that read back, laid out as Julia does; integers in any base.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

std::string digits_of(std::uint64_t n, int base, std::int64_t pad) {
  char digits[72];
  auto end = std::to_chars(digits, digits + sizeof digits, n, base).ptr;
  std::string text(digits, end);
  if (pad > static_cast<std::int64_t>(text.size())) text.insert(0, static_cast<std::size_t>(pad) - text.size(), '0');
  return text;
}

bool base_and_pad(Call& call, std::int64_t& base, std::int64_t& pad) {
  if (!call.integer(1, base) || !call.integer(2, pad)) return false;
  if (base < 2 || base > 36)
    return call.ctx.argument_error("base must be between 2 and 36, got " + std::to_string(base));
  return pad <= 1000000 || call.ctx.argument_error("pad is too large");
}

bool int_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "int_text", args, count, result);
  std::int64_t n = 0, base = 0, pad = 0;
  if (!call.integer(0, n) || !base_and_pad(call, base, pad)) return false;
  if (base == 10 && pad <= 1) {
    char digits[24];
    return call.give(std::string_view(digits, std::to_chars(digits, digits + sizeof digits, n).ptr));
  }
  std::uint64_t magnitude = n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  return call.give((n < 0 ? "-" : "") + digits_of(magnitude, static_cast<int>(base), pad));
}

bool uint_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "uint_text", args, count, result);
  std::int64_t base = 0, pad = 0;
  if (!call.arity(3) || !base_and_pad(call, base, pad)) return false;
  if (args[0].type != call.builtin.uint64) return ctx.type_error("uint_text", call.builtin.uint64, args[0]);
  return call.give(digits_of(static_cast<std::uint64_t>(args[0].bits), static_cast<int>(base), pad));
}

// Digits d1 d2 … and a point position p with value 0.d1d2… × 10^p. `most` limits the number of digits (0: all).
struct Decimal {
  std::string digits;
  int point = 0;
};

Decimal decimal_of(char* text, char* end) {
  *end = 0;  // for atoi
  Decimal d;
  const char* at = text;
  for (; at != end && *at != 'e'; ++at)
    if (*at != '.') d.digits += *at;
  d.point = std::atoi(at + 1) + 1;
  return d;
}

template <class Float>
Decimal shortest(Float x, int most) {
  char text[64];
  constexpr auto scientific = std::chars_format::scientific;
  Decimal d = decimal_of(text, std::to_chars(text, text + sizeof text - 1, x, scientific).ptr);
  if (most > 0 && static_cast<int>(d.digits.size()) > most)
    d = decimal_of(text, std::to_chars(text, text + sizeof text - 1, x, scientific, most - 1).ptr);
  while (d.digits.size() > 1 && d.digits.back() == '0') d.digits.pop_back();
  return d;
}

// Plain notation for exponents from 1e-4 up to six digits before the point, else d.ddde±x. `mark` is the exponent
// letter.
template <class Float>
std::string float_digits(Float x, bool compact, const char* mark) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x < 0 ? "-Inf" : "Inf";
  std::string sign = std::signbit(x) ? "-" : "";
  if (x == 0) return sign + "0.0";
  Decimal d = shortest(std::fabs(x), compact ? 6 : 0);
  int n = static_cast<int>(d.digits.size());
  if (-4 < d.point && d.point <= 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-d.point), '0') + d.digits;
  // Rounded digits that end before the point would show an integer that the number is not.
  bool misleading =
      compact && d.point >= n &&
      std::fabs(std::fmod(static_cast<double>(std::fabs(x)) + 0.05, std::pow(10.0, d.point - n)) - 0.05) > 0.05;
  if (0 < d.point && d.point <= 6 && !misleading) {
    if (n <= d.point) return sign + d.digits + std::string(static_cast<std::size_t>(d.point - n), '0') + ".0";
    return sign + d.digits.substr(0, static_cast<std::size_t>(d.point)) + "." +
           d.digits.substr(static_cast<std::size_t>(d.point));
  }
  return sign + d.digits.substr(0, 1) + "." + (n > 1 ? d.digits.substr(1) : "0") + mark + std::to_string(d.point - 1);
}

bool float_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "float_text", args, count, result);
  double x = 0;
  bool compact = false;
  return call.floating(0, x) && call.boolean(1, compact) && call.give(float_digits(x, compact, "e"));
}

bool single(Call& call, float& x) {
  if (!call.arity(2)) return false;
  if (call[0].type != call.builtin.float32) return call.ctx.type_error("float32_text", call.builtin.float32, call[0]);
  x = call[0].float32;
  return true;
}

bool float32_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "float32_text", args, count, result);
  float x = 0;
  bool compact = false;
  if (!single(call, x) || !call.boolean(1, compact)) return false;
  return call.give(float_digits(x, compact, "e"));
}

// In an array of Float32: 1.5, 1.0f10.
bool float32_bare(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "float32_bare", args, count, result);
  float x = 0;
  bool compact = false;
  if (!single(call, x) || !call.boolean(1, compact)) return false;
  return call.give(float_digits(x, compact, "f"));
}

// As one writes a Float32: 1.5f0, 1.0f10, Inf32.
bool float32_literal(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "float32_literal", args, count, result);
  float x = 0;
  bool compact = false;
  if (!single(call, x) || !call.boolean(1, compact)) return false;
  std::string text = float_digits(x, compact, "f");
  if (!std::isfinite(x)) return call.give(text + "32");
  return call.give(text.find('f') == std::string::npos && !compact ? text + "f0" : text);
}

std::string_view without_spaces(std::string_view s) {
  auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!s.empty() && space(s.front())) s.remove_prefix(1);
  while (!s.empty() && space(s.back())) s.remove_suffix(1);
  return s;
}

// Digits of bases above 36: 0-9, A-Z, a-z.
bool read_case_sensitive(std::string_view s, int base, std::uint64_t& magnitude) {
  magnitude = 0;
  for (char c : s) {
    int digit = 62;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'A' && c <= 'Z') digit = c - 'A' + 10;
    if (c >= 'a' && c <= 'z') digit = c - 'a' + 36;
    if (digit >= base || __builtin_mul_overflow(magnitude, static_cast<std::uint64_t>(base), &magnitude) ||
        __builtin_add_overflow(magnitude, static_cast<std::uint64_t>(digit), &magnitude))
      return false;
  }
  return true;
}

// The magnitude and sign of an integer; base 0 allows 0x, 0b and 0o. False when it is none or does not fit 64 bits.
bool read_integer(std::string_view s, int base, bool& negative, std::uint64_t& magnitude) {
  s = without_spaces(s);
  negative = false;
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) {
    negative = s[0] == '-';
    s = without_spaces(s.substr(1));
  }
  if (base == 0) {
    base = 10;
    if (s.size() > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'b' || s[1] == 'o')) {
      base = s[1] == 'x' ? 16 : s[1] == 'b' ? 2 : 8;
      s.remove_prefix(2);
    }
  }
  if (s.empty() || base < 2 || base > 62) return false;
  if (base > 36) return read_case_sensitive(s, base, magnitude);
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), magnitude, base);
  return error == std::errc() && end == s.data() + s.size();
}

bool parse_int64(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "parse_int64", args, count, result);
  std::string_view s;
  std::int64_t base = 0;
  if (!call.string(0, s) || !call.integer(1, base)) return false;
  bool negative = false;
  std::uint64_t magnitude = 0;
  if (!read_integer(s, static_cast<int>(base), negative, magnitude)) return call.give_nothing();
  std::uint64_t limit = (std::uint64_t{1} << 63) - (negative ? 0 : 1);
  if (magnitude > limit) return call.give_nothing();
  return call.give_int(static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude));
}

bool parse_uint64(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "parse_uint64", args, count, result);
  std::string_view s;
  std::int64_t base = 0;
  if (!call.string(0, s) || !call.integer(1, base)) return false;
  bool negative = false;
  std::uint64_t magnitude = 0;
  if (!read_integer(s, static_cast<int>(base), negative, magnitude) || negative) return call.give_nothing();
  return call.give(Value(call.builtin.uint64, static_cast<std::int64_t>(magnitude)));
}

bool parse_float64(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "parse_float64", args, count, result);
  std::string_view s;
  if (!call.string(0, s)) return false;
  s = without_spaces(s);
  bool negative = false;
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) {
    negative = s[0] == '-';
    s.remove_prefix(1);
  }
  double x = 0;
  bool hexadecimal = s.size() > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
  // from_chars would take a second sign.
  if (s.empty() || s[0] == '-' || s[0] == '+') return call.give_nothing();
  if (hexadecimal) s.remove_prefix(2);
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), x,
                                      hexadecimal ? std::chars_format::hex : std::chars_format::general);
  if (end != s.data() + s.size() || error == std::errc::invalid_argument) return call.give_nothing();
  // Out of range in either direction is no number, as in Julia.
  if (error == std::errc::result_out_of_range) return call.give_nothing();
  return call.give_float(negative ? -x : x);
}

const NativeInfo numbers_natives[] = {
    {"int_text", int_text, effect_makes, returns_string},
    {"uint_text", uint_text, effect_makes, returns_string},
    {"float_text", float_text, effect_makes, returns_string},
    {"float32_text", float32_text, effect_makes, returns_string},
    {"float32_bare", float32_bare, effect_makes, returns_string},
    {"float32_literal", float32_literal, effect_makes, returns_string},
    {"parse_int64", parse_int64, effect_throws,
     [](TypeTable& t, ArgumentTypes) { return optional(t, t.builtin().int64); }},
    {"parse_uint64", parse_uint64, effect_throws,
     [](TypeTable& t, ArgumentTypes) { return optional(t, t.builtin().uint64); }},
    {"parse_float64", parse_float64, effect_throws,
     [](TypeTable& t, ArgumentTypes) { return optional(t, t.builtin().float64); }},
};

}  // namespace

void define_number_natives(Runtime& runtime) { define_all(runtime, numbers_natives); }

}  // namespace slope::stdlib
