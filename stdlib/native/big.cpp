// Numbers of arbitrary precision, by Boost.Multiprecision. The library's types BigInt and BigFloat (stdlib/core/big.slope)
// hold words; what is here makes numbers of them and words of results.
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"

namespace slope::stdlib {

namespace {

namespace mp = boost::multiprecision;
using Integer = mp::cpp_int;
// The precision of Julia's BigFloat where nothing else is said.
constexpr unsigned float_bits = 256;
using Float =
    mp::number<mp::cpp_bin_float<float_bits, mp::digit_base_2, void, std::int32_t, -1'000'000'000, 1'000'000'000>,
               mp::et_off>;

// Functions are computed with more and rounded: Boost's last digits are not all right.
using Wide =
    mp::number<mp::cpp_bin_float<float_bits + 96, mp::digit_base_2, void, std::int32_t, -1'000'000'000, 1'000'000'000>,
               mp::et_off>;

// More is refused before it is computed: a shift or a power by a large number takes all memory there is.
constexpr std::size_t most_limbs = std::size_t{1} << 20;

// Boost's operations cannot be interrupted. What they take, in nanoseconds, for numbers of so many words; measured with
// numbers of 10^3 to 10^5 words. Products are Karatsuba's, everything else is quadratic.
double product_time(double a, double b) {
  if (a < b) std::swap(a, b);
  return 4 * a * std::pow(b, 0.585);
}
constexpr double division_word = 3, root_word = 5, digits_word = 8;

bool ends_in_time(Call& call, double nanoseconds) {
  constexpr double unnoticed = 2e7;
  return nanoseconds < unnoticed || stdlib::ends_in_time(call.ctx, nanoseconds * 1e-9);
}

double words_of(const Integer& x) { return static_cast<double>(x.backend().size()); }

Integer integer_of(const ArrayObject* limbs, bool negative) {
  Integer x;
  const auto* words = reinterpret_cast<const std::uint64_t*>(limbs->data);
  if (limbs->length > 0) mp::import_bits(x, words, words + limbs->length, 64, false);
  return negative ? Integer(-x) : x;
}

// (negative, limbs)
bool give_integer(Call& call, const Integer& x) {
  const bool negative = x < 0;
  const Integer magnitude = negative ? Integer(-x) : x;
  std::vector<std::uint64_t> words;
  if (magnitude != 0) mp::export_bits(magnitude, std::back_inserter(words), 64, false);
  if (words.size() > most_limbs) return call.ctx.out_of_memory();
  const std::int64_t dims[] = {static_cast<std::int64_t>(words.size())};
  ArrayObject* made = call.runtime.heap.allocate_array(call.runtime.types.array_of(call.builtin.uint64, 1), dims);
  if (!made) return call.ctx.out_of_memory();
  if (!words.empty()) std::memcpy(made->data, words.data(), words.size() * sizeof(std::uint64_t));
  Rooted roots(call.runtime.heap);
  roots.values.push_back(Value(made->type, static_cast<const void*>(made)));
  const Value parts[] = {call.runtime.from_bool(negative), roots.values[0]};
  Value tuple;
  return call.runtime.new_tuple(call.ctx, parts, 2, tuple) && call.give(tuple);
}

bool integer_at(Call& call, std::size_t i, Integer& out) {
  bool negative = false;
  ArrayObject* limbs = nullptr;
  if (!call.boolean(i, negative) || !call.array_of(i + 1, call.builtin.uint64, 1, limbs)) return false;
  if (static_cast<std::size_t>(limbs->length) > most_limbs) return call.ctx.out_of_memory();
  out = integer_of(limbs, negative);
  return true;
}

// big_integer(op, negative, limbs, negative, limbs): + 1, - 2, * 3, quotient 4, remainder 5, gcd 6, and 7, or 8, xor 9
bool big_integer(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_integer", args, count, result);
  std::int64_t op = 0;
  Integer a, b;
  if (!call.integer(0, op) || !integer_at(call, 1, a) || !integer_at(call, 3, b)) return false;
  switch (op) {
    case 1:
      return give_integer(call, a + b);
    case 2:
      return give_integer(call, a - b);
    case 3:
      if (mp::msb(mp::abs(a) + 1) + mp::msb(mp::abs(b) + 1) > 64 * most_limbs) return ctx.out_of_memory();
      return ends_in_time(call, product_time(words_of(a), words_of(b))) && give_integer(call, a * b);
    case 4:
    case 5:
      if (b == 0) return ctx.raise(call.builtin.divide_error->instance);
      if (!ends_in_time(call, division_word * std::max(1.0, words_of(a) - words_of(b)) * words_of(b))) return false;
      return give_integer(call, op == 4 ? Integer(a / b) : Integer(a % b));
    case 6:
      return ends_in_time(call, root_word * words_of(a) * words_of(b)) && give_integer(call, mp::gcd(a, b));
    case 7:
      return give_integer(call, a & b);
    case 8:
      return give_integer(call, a | b);
    case 9:
      return give_integer(call, a ^ b);
    default:
      return ctx.argument_error("big_integer: no such operation");
  }
}

// big_integer_by(op, negative, limbs, n): power 1, shift left 2, shift right 3 (towards minus infinity), root 4 (n = 2)
bool big_integer_by(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_integer_by", args, count, result);
  std::int64_t op = 0, n = 0;
  Integer a;
  if (!call.integer(0, op) || !integer_at(call, 1, a) || !call.integer(3, n)) return false;
  const std::size_t bits = a == 0 ? 1 : mp::msb(mp::abs(a)) + 1;
  constexpr std::int64_t most_bits = static_cast<std::int64_t>(64 * most_limbs);
  switch (op) {
    case 1:
      if (n < 0) return ctx.argument_error("the power of a BigInt is not negative");
      if (n > most_bits && a != 0 && mp::abs(a) != 1) return ctx.out_of_memory();
      if (mp::abs(a) <= 1) return give_integer(call, n == 0 ? Integer(1) : n % 2 == 0 ? Integer(a * a) : a);
      if (bits * static_cast<std::size_t>(n) > 64 * most_limbs) return ctx.out_of_memory();
      {
        // The last squares cost most.
        const double words = static_cast<double>(bits) * static_cast<double>(n) / 64;
        return ends_in_time(call, product_time(words, words)) &&
               give_integer(call, mp::pow(a, static_cast<unsigned>(n)));
      }
    case 2:
      if (n < 0 || (n > most_bits && a != 0)) return ctx.out_of_memory();
      return give_integer(call, a == 0 ? a : Integer(a << static_cast<unsigned>(n)));
    case 3: {
      if (n < 0) return ctx.argument_error("big_integer_by: a shift is not negative");
      const unsigned by = static_cast<unsigned>(std::min<std::int64_t>(n, most_bits + 1));
      if (a >= 0) return give_integer(call, a >> by);
      return give_integer(call, -(((-a - 1) >> by) + 1));
    }
    case 4:
      if (a < 0) return ctx.argument_error("the root of a negative BigInt is not real");
      return ends_in_time(call, root_word * words_of(a) * words_of(a)) && give_integer(call, mp::sqrt(a));
    default:
      return ctx.argument_error("big_integer_by: no such operation");
  }
}

// big_text(negative, limbs, base) → digits, with a sign
bool big_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_text", args, count, result);
  std::int64_t base = 0;
  Integer a;
  if (!integer_at(call, 0, a) || !call.integer(2, base)) return false;
  if (base < 2 || base > 62) return ctx.argument_error("a base is from 2 to 62");
  if (!ends_in_time(call, digits_word * words_of(a) * words_of(a))) return false;
  if (base == 10) return call.give(a.str());
  static constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string text;
  Integer rest = mp::abs(a);
  const Integer divisor = base;
  do {
    if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
    text += digits[static_cast<std::size_t>(rest % divisor)];
    rest /= divisor;
  } while (rest != 0);
  if (a < 0) text += '-';
  return call.give(std::string(text.rbegin(), text.rend()));
}

// big_parse(text, base) → (negative, limbs), or nothing
bool big_parse(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_parse", args, count, result);
  std::string_view text;
  std::int64_t base = 0;
  if (!call.string(0, text) || !call.integer(1, base)) return false;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || base < 2 || base > 36) return call.give_nothing();
  if (text.size() / 8 > 8 * most_limbs) return ctx.out_of_memory();
  Integer x;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 10
                      : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                             : 99;
    if (digit >= base) return call.give_nothing();
    if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
    x *= static_cast<unsigned>(base);
    x += static_cast<unsigned>(digit);
  }
  return give_integer(call, negative ? Integer(-x) : x);
}

// --- floats: (kind, exponent, four words, the highest last); kind: 0 zero, 1 finite, 2 infinite, 3 not a number, plus 4
// when negative. A finite one is the integer of its words, whose highest bit is set, times 2^exponent.

struct Words {
  std::int64_t kind;
  std::int64_t exponent;
  std::uint64_t word[4];
};

bool float_at(Call& call, std::size_t i, Float& out) {
  if (i >= call.count()) return call.missing(i);
  const DataType* d = as_data(call[i].type);
  if (d->object_kind != DataType::ObjectKind::fields || d->size != sizeof(Words) || d->fields.size() != 6)
    return call.ctx.argument_error("a BigFloat was expected, found a value of type " + to_string(d));
  Words words;
  std::memcpy(&words, call[i].object->payload(), sizeof words);
  const bool negative = (words.kind & 4) != 0;
  switch (words.kind & 3) {
    case 0:
      out = negative ? -Float(0) : Float(0);
      return true;
    case 1: {
      Integer mantissa;
      mp::import_bits(mantissa, words.word, words.word + 4, 64, false);
      const std::int64_t exponent =
          std::max<std::int64_t>(-2'000'000'000, std::min<std::int64_t>(words.exponent, 2'000'000'000));
      out = mp::ldexp(Float(mantissa), static_cast<int>(exponent));
      if (negative) out = -out;
      return true;
    }
    case 2:
      out = std::numeric_limits<Float>::infinity();
      if (negative) out = -out;
      return true;
    default:
      out = std::numeric_limits<Float>::quiet_NaN();
      return true;
  }
}

// Of the type of argument `like`.
bool give_big(Call& call, std::size_t like, const Float& x) {
  const DataType* type = as_data(call[like].type);
  Words words{0, 0, {}};
  if (mp::isnan(x)) {
    words.kind = 3;
  } else {
    words.kind = mp::isinf(x) ? 2 : x == 0 ? 0 : 1;
    if (mp::signbit(x)) words.kind |= 4;
    if ((words.kind & 3) == 1) {
      int exponent = 0;
      const Float fraction = mp::frexp(mp::abs(x), &exponent);  // in [0.5, 1)
      const Integer mantissa(mp::ldexp(fraction, static_cast<int>(float_bits)));
      words.exponent = static_cast<std::int64_t>(exponent) - float_bits;
      std::vector<std::uint64_t> parts;
      mp::export_bits(mantissa, std::back_inserter(parts), 64, false);
      for (std::size_t i = 0; i < parts.size() && i < 4; ++i) words.word[i] = parts[i];
    }
  }
  Object* made = call.runtime.heap.allocate(type, sizeof words);
  if (!made) return call.ctx.out_of_memory();
  std::memcpy(made->payload(), &words, sizeof words);
  return call.give(Value(type, static_cast<const void*>(made)));
}

// big_float(op, x, y)
bool big_float(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_float", args, count, result);
  std::int64_t op = 0;
  Float x, y;
  if (!call.integer(0, op) || !float_at(call, 1, x) || !float_at(call, 2, y)) return false;
  switch (op) {
    case 1:
      return give_big(call, 1, x + y);
    case 2:
      return give_big(call, 1, x - y);
    case 3:
      return give_big(call, 1, x * y);
    case 4:
      if (y == 0 && !mp::isnan(x)) {
        if (x == 0) return give_big(call, 1, std::numeric_limits<Float>::quiet_NaN());
        const Float infinity = std::numeric_limits<Float>::infinity();
        return give_big(call, 1, mp::signbit(x) != mp::signbit(y) ? Float(-infinity) : infinity);
      }
      return give_big(call, 1, x / y);
    case 5:
      return give_big(call, 1, mp::fmod(x, y));
    case 6:
      return give_big(call, 1, Float(mp::pow(Wide(x), Wide(y))));
    case 7:
      return give_big(call, 1, Float(mp::atan2(Wide(x), Wide(y))));
    default:
      return ctx.argument_error("big_float: no such operation");
  }
}

// big_function(op, x)
bool big_function(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_function", args, count, result);
  std::int64_t op = 0;
  Float x;
  if (!call.integer(0, op) || !float_at(call, 1, x)) return false;
  using Function = Wide (*)(const Wide&);
  static constexpr Function functions[] = {
      [](const Wide& v) -> Wide { return mp::sqrt(v); },  [](const Wide& v) -> Wide { return mp::exp(v); },
      [](const Wide& v) -> Wide { return mp::log(v); },   [](const Wide& v) -> Wide { return mp::sin(v); },
      [](const Wide& v) -> Wide { return mp::cos(v); },   [](const Wide& v) -> Wide { return mp::tan(v); },
      [](const Wide& v) -> Wide { return mp::asin(v); },  [](const Wide& v) -> Wide { return mp::acos(v); },
      [](const Wide& v) -> Wide { return mp::atan(v); },  [](const Wide& v) -> Wide { return mp::sinh(v); },
      [](const Wide& v) -> Wide { return mp::cosh(v); },  [](const Wide& v) -> Wide { return mp::tanh(v); },
      [](const Wide& v) -> Wide { return mp::floor(v); }, [](const Wide& v) -> Wide { return mp::ceil(v); },
      [](const Wide& v) -> Wide { return mp::trunc(v); }, [](const Wide& v) -> Wide { return mp::log2(v); },
      [](const Wide& v) -> Wide { return mp::log10(v); }, [](const Wide& v) -> Wide { return mp::expm1(v); },
      [](const Wide& v) -> Wide { return mp::log1p(v); }, [](const Wide& v) -> Wide { return mp::exp2(v); }};
  if (op < 1 || op > static_cast<std::int64_t>(std::size(functions)))
    return ctx.argument_error("big_function: no such function");
  return give_big(call, 1, Float(functions[op - 1](Wide(x))));
}

// big_from_float(prototype, x::Float64), big_from_integer(prototype, negative, limbs), big_from_text(prototype, text):
// the last gives nothing where the text is no number.
bool big_from_float(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_from_float", args, count, result);
  double x = 0;
  Float prototype;
  return float_at(call, 0, prototype) && call.floating(1, x) && give_big(call, 0, Float(x));
}
bool big_from_integer(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_from_integer", args, count, result);
  Integer x;
  Float prototype;
  return float_at(call, 0, prototype) && integer_at(call, 1, x) && give_big(call, 0, Float(x));
}
bool big_from_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_from_text", args, count, result);
  std::string_view text;
  Float prototype;
  if (!float_at(call, 0, prototype) || !call.string(1, text)) return false;
  std::string plain(text);
  if (plain.empty() || plain.size() > 100'000 || plain.find_first_not_of("0123456789+-.eE") != std::string::npos ||
      plain.find_first_of("0123456789") == std::string::npos)
    return call.give_nothing();
  try {
    return give_big(call, 0, Float(plain));
  } catch (const std::exception&) {
    return call.give_nothing();
  }
}

// big_to_integer(x): its integer part, as (negative, limbs)
bool big_to_integer(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_to_integer", args, count, result);
  Float x;
  if (!float_at(call, 0, x)) return false;
  if (mp::isnan(x) || mp::isinf(x)) return ctx.argument_error("no integer");
  int exponent = 0;
  mp::frexp(x, &exponent);
  if (exponent > static_cast<int>(64 * most_limbs)) return ctx.out_of_memory();
  return give_integer(call, Integer(mp::trunc(x)));
}
bool big_to_float(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_to_float", args, count, result);
  Float x;
  return float_at(call, 0, x) && call.give_float(x.convert_to<double>());
}
// big_compare(x, y): -1, 0, 1; 2 when one is not a number
bool big_compare(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_compare", args, count, result);
  Float x, y;
  if (!float_at(call, 0, x) || !float_at(call, 1, y)) return false;
  if (mp::isnan(x) || mp::isnan(y)) return call.give_int(2);
  return call.give_int(x < y ? -1 : x > y ? 1 : 0);
}
// big_digits(x): of a finite number "-d.ddde-12", the digits that its precision has
bool big_digits(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "big_digits", args, count, result);
  Float x;
  if (!float_at(call, 0, x)) return false;
  constexpr std::streamsize digits = 78;  // and one before the point
  return call.give(x.str(digits, std::ios_base::scientific));
}

const NativeInfo big_natives[] = {
    {"big_integer", big_integer, effect_throws | effect_allocates | effect_reads, nullptr},
    {"big_integer_by", big_integer_by, effect_throws | effect_allocates | effect_reads, nullptr},
    {"big_text", big_text, effect_throws | effect_allocates | effect_reads, returns_string},
    {"big_parse", big_parse, effect_throws | effect_allocates, nullptr},
    {"big_float", big_float, effect_throws | effect_allocates, nullptr},
    {"big_function", big_function, effect_throws | effect_allocates, nullptr},
    {"big_from_float", big_from_float, effect_throws | effect_allocates, nullptr},
    {"big_from_integer", big_from_integer, effect_throws | effect_allocates | effect_reads, nullptr},
    {"big_from_text", big_from_text, effect_throws | effect_allocates, nullptr},
    {"big_to_integer", big_to_integer, effect_throws | effect_allocates, nullptr},
    {"big_to_float", big_to_float, effect_throws, returns_float},
    {"big_compare", big_compare, effect_throws, returns_int},
    {"big_digits", big_digits, effect_throws | effect_allocates, returns_string},
};

}  // namespace

void define_big_natives(Runtime& runtime) { define_all(runtime, big_natives); }

}  // namespace slope::stdlib
