// Number literals: decimal, hexadecimal, binary and octal integers, decimal and hexadecimal floats. A hexadecimal,
// binary or octal literal has the smallest unsigned type that its digits, leading zeros included, fit.
#include <cctype>
#include <charconv>
#include <limits>
#include <string>

#include "lang/syntax/lexer_state.hpp"

namespace slope::syntax {

namespace {

bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  if (is_decimal_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

std::string without_underscores(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  return digits;
}

}  // namespace

namespace {

// As Julia reads an integer that is too large for Int64.
std::string_view big_integer_macro(std::string_view spelling) {
  constexpr std::string_view most = "170141183460469231731687303715884105727";
  std::string digits;
  for (const char c : spelling)
    if (c != '_' && (c != '0' || !digits.empty())) digits += c;
  const bool fits = digits.size() < most.size() || (digits.size() == most.size() && digits <= most);
  return fits ? "@int128_str" : "@big_str";
}

}  // namespace

NodeId Lexer::integer_leaf(std::uint32_t begin, std::int64_t value, std::uint8_t width) {
  const NodeId leaf = ast_.leaf(Head::integer, span(begin, static_cast<std::uint32_t>(pos_)));
  ast_.made(leaf).integer = value;
  ast_.made(leaf).flag = width;
  return leaf;
}

// A literal for a macro of the library: @m "text".
NodeId Lexer::text_macro(std::string_view macro, std::string text, std::uint32_t begin) {
  const Span at = span(begin, static_cast<std::uint32_t>(pos_));
  const NodeId parts[] = {ast_.identifier(macro, at), ast_.string_leaf(std::move(text), at)};
  return ast_.make(Head::macrocall, at, parts);
}

void Lexer::check_after_number(std::uint32_t begin, Token& token) {
  token.flags |= flag_number;
  if (at(pos_) == '_') {
    std::size_t behind = pos_;
    while (at(behind) == '_') ++behind;
    if (std::isalpha(static_cast<unsigned char>(at(behind)))) return;  // 2_x is 2 * _x
    const std::size_t stray = pos_;
    while (at(pos_) == '_' || is_decimal_digit(at(pos_))) ++pos_;
    token.end = static_cast<std::uint32_t>(pos_);
    error(static_cast<std::uint32_t>(stray), token.end, "`_` may stand only between two digits of a number");
  }
  (void)begin;
}

void Lexer::lex_radix_number(std::uint32_t begin, int radix) {
  pos_ += 2;
  const std::size_t digits_begin = pos_;
  const auto scan = [&] {
    while (digit_value(at(pos_)) < radix ||
           (at(pos_) == '_' && pos_ > digits_begin && digit_value(at(pos_ + 1)) < radix)) {
      ++pos_;
    }
  };
  scan();
  if (radix == 16 && (at(pos_) == '.' || at(pos_) == 'p' || at(pos_) == 'P')) {
    // A hexadecimal float is one only if an exponent follows: 0x1.8p3
    const std::size_t integer_end = pos_;
    if (at(pos_) == '.') {
      ++pos_;
      while (digit_value(at(pos_)) < 16) ++pos_;
    }
    if (at(pos_) == 'p' || at(pos_) == 'P') {
      std::size_t exponent = pos_ + 1;
      if (at(exponent) == '+' || at(exponent) == '-') ++exponent;
      if (is_decimal_digit(at(exponent))) {
        pos_ = exponent;
        while (is_decimal_digit(at(pos_))) ++pos_;
        return finish_float(begin, false, true);
      }
    }
    pos_ = integer_end;
  }
  const std::string digits = without_underscores(text_.substr(digits_begin, pos_ - digits_begin));
  const auto end = static_cast<std::uint32_t>(pos_);
  std::uint64_t value = 0;
  std::uint8_t width = 64;
  const auto [stop, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value, radix);
  if (digits.empty()) {
    error(begin, end, "expected digits after `" + std::string(text_.substr(begin, 2)) + "`");
  } else {
    std::size_t bits = digits.size() * (radix == 16 ? 4 : radix == 8 ? 3 : 1);
    if (radix == 8) {
      // The first octal digit counts with the bits that it has.
      const int first = digit_value(digits[0]);
      bits = (digits.size() - 1) * 3 + (first >= 4 ? 3 : first >= 2 ? 2 : first);
    }
    width = bits <= 8 ? 8 : bits <= 16 ? 16 : bits <= 32 ? 32 : 64;
    if (bits > 64 || status != std::errc()) {
      const std::string_view spelling = text_.substr(begin, end - begin);
      push(TokenKind::literal, begin,
           text_macro(bits > 128 ? "@big_str" : "@uint128_str", std::string(spelling), begin));
      return;
    }
  }
  (void)stop;
  check_after_number(begin,
                     push(TokenKind::literal, begin, integer_leaf(begin, static_cast<std::int64_t>(value), width)));
}

void Lexer::finish_float(std::uint32_t begin, bool single, bool hexadecimal) {
  std::string digits = without_underscores(text_.substr(begin, pos_ - begin));
  std::size_t exponent = digits.find_first_of(hexadecimal ? "pP" : "eEf");
  if (single && exponent != std::string::npos) digits[exponent] = 'e';
  if (exponent != std::string::npos && exponent + 1 < digits.size() && digits[exponent + 1] == '+')
    digits.erase(exponent + 1, 1);
  const char* first = digits.data() + (hexadecimal ? 2 : 0);
  const char* last = digits.data() + digits.size();
  const auto format = hexadecimal ? std::chars_format::hex : std::chars_format::general;
  double value = 0;
  std::errc status{};
  if (single) {
    float narrow = 0;
    status = std::from_chars(first, last, narrow, format).ec;
    value = narrow;
  } else {
    status = std::from_chars(first, last, value, format).ec;
  }
  if (status == std::errc::result_out_of_range) {
    const bool tiny = exponent != std::string::npos && digits[exponent + 1] == '-';
    value = 0;
    if (!tiny)
      error(begin, static_cast<std::uint32_t>(pos_),
            "this number is too large for " + std::string(single ? "Float32" : "Float64"));
  }
  const NodeId leaf = ast_.leaf(single ? Head::float32 : Head::floating, span(begin, static_cast<std::uint32_t>(pos_)));
  ast_.made(leaf).floating = value;
  Token& token = push(TokenKind::literal, begin, leaf);
  if (text_[pos_ - 1] == '.') {
    token.flags |= flag_ends_in_dot;
    const char next = at(pos_);
    if (next != '\0' && std::string_view("+-*/\\^<>=!&|~%").find(next) != std::string_view::npos) {
      error(begin, static_cast<std::uint32_t>(pos_ + 1),
            "`" + std::string(text_.substr(begin, pos_ - begin)) + std::string(1, next) + "` may be read in two ways",
            "write a space or a digit after the number: `1 .+ x` or `1.0 + x`");
    }
  }
  check_after_number(begin, token);
}

void Lexer::lex_number() {
  const auto begin = static_cast<std::uint32_t>(pos_);
  if (text_[pos_] == '0') {
    const char radix = at(pos_ + 1);
    if (radix == 'x') return lex_radix_number(begin, 16);
    if (radix == 'b') return lex_radix_number(begin, 2);
    if (radix == 'o') return lex_radix_number(begin, 8);
  }
  const auto scan = [&] {
    while (is_decimal_digit(at(pos_)) ||
           (at(pos_) == '_' && is_decimal_digit(at(pos_ + 1)) && is_decimal_digit(at(pos_ - 1))))
      ++pos_;
  };
  scan();
  bool is_float = false;
  bool single = false;
  // `1..2` is an operator between integers, `1...` a splat
  if (at(pos_) == '.' && at(pos_ + 1) != '.') {
    is_float = true;
    ++pos_;
    if (is_decimal_digit(at(pos_))) scan();
  }
  const char mark = at(pos_);
  if (mark == 'e' || mark == 'E' || mark == 'f') {
    std::size_t exponent = pos_ + 1;
    if (at(exponent) == '+' || at(exponent) == '-') ++exponent;
    if (is_decimal_digit(at(exponent))) {
      is_float = true;
      single = mark == 'f';
      pos_ = exponent;
      while (is_decimal_digit(at(pos_))) ++pos_;
    }
  }
  if (is_float) return finish_float(begin, single, false);

  std::uint64_t value = 0;
  const std::string_view spelling = text_.substr(begin, pos_ - begin);
  std::errc status{};
  if (spelling.find('_') == std::string_view::npos) {
    status = std::from_chars(spelling.data(), spelling.data() + spelling.size(), value).ec;
  } else {
    const std::string digits = without_underscores(spelling);
    status = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
  }
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool least = status == std::errc() && value == limit + 1;
  if (status != std::errc() || value > limit + 1) {
    push(TokenKind::literal, begin, text_macro(big_integer_macro(spelling), std::string(spelling), begin));
    return;
  }
  Token& token = push(TokenKind::literal, begin, integer_leaf(begin, static_cast<std::int64_t>(value), 0));
  if (least) token.flags |= flag_too_large;
  check_after_number(begin, token);
}

}  // namespace slope::syntax
