// C's formats for Slope's values: flags, width (also *), precision; conversions d i u f F e E g G a A s c x X o b p %.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/utf8.hpp"

namespace slope::stdlib {

namespace {

class Formatter {
 public:
  Formatter(Call& call, std::string_view format) : call_(call), format_(format) {}

  bool run() {
    for (std::size_t at = 0; at < format_.size();) {
      if (format_[at] != '%') {
        out += format_[at++];
        continue;
      }
      if (!conversion(++at)) return false;
    }
    if (next_ != call_.count())
      return call_.ctx.argument_error("wrong number of arguments (" + std::to_string(call_.count() - 1) +
                                      ") should be (" + std::to_string(next_ - 1) + ")");
    return true;
  }

  std::string out;

 private:
  bool conversion(std::size_t& at) {
    if (at < format_.size() && format_[at] == '%') {
      out += '%';
      ++at;
      return true;
    }
    std::string flags;
    while (at < format_.size() && std::string_view("-+ 0#'").find(format_[at]) != std::string_view::npos)
      flags += format_[at++];
    int width = -1, precision = -1;
    if (!number(at, width)) return false;
    if (at < format_.size() && format_[at] == '.') {
      ++at;
      precision = 0;
      if (!number(at, precision)) return false;
    }
    while (at < format_.size() && std::string_view("hlLqjzt").find(format_[at]) != std::string_view::npos) ++at;
    if (at >= format_.size())
      return call_.ctx.argument_error("invalid format string: \"" + std::string(format_) + "\"");
    if (width < -1) {
      flags += '-';
      width = -width;
    }
    char kind = format_[at++];
    if (next_ >= call_.count())
      return call_.ctx.argument_error("not enough arguments for format \"" + std::string(format_) + "\"");
    return item(kind, flags, width, precision, call_[next_++]);
  }

  bool number(std::size_t& at, int& n) {
    if (at < format_.size() && format_[at] == '*') {
      ++at;
      std::int64_t given = 0;
      if (!call_.integer(next_, given)) return false;
      ++next_;
      n = static_cast<int>(std::max<std::int64_t>(std::min<std::int64_t>(given, 100000), -100000));
      return true;
    }
    bool any = false;
    int value = 0;
    while (at < format_.size() && format_[at] >= '0' && format_[at] <= '9' && value < 100000) {
      value = value * 10 + (format_[at++] - '0');
      any = true;
    }
    if (any) n = value;
    return true;
  }

  bool item(char kind, const std::string& flags, int width, int precision, Value v) {
    switch (kind) {
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
      case 'b':
        return integer(kind, flags, width, precision, v);
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A': {
        double x = 0;
        if (!to_double(v, x)) return false;
        if (!std::isfinite(x)) {
          std::string text = std::isnan(x)                          ? "NaN"
                             : x < 0                                ? "-Inf"
                             : flags.find('+') != std::string::npos ? "+Inf"
                                                                    : "Inf";
          padded(text, flags, width);
          return true;
        }
        print(flags, width, precision, kind, x);
        return true;
      }
      case 'c': {
        std::string text;
        if (v.type == call_.builtin.character) {
          append_utf8(text, static_cast<std::uint32_t>(v.bits));
        } else if (v.type == call_.builtin.int64) {
          append_utf8(text, static_cast<std::uint32_t>(v.bits));
        } else {
          text = call_.runtime.show(call_.ctx, v);
        }
        padded(text, flags, width);
        return true;
      }
      case 's':
      case 'p': {
        std::string text;
        if (std::string_view bytes; bytes_of_text(call_.runtime, v, bytes)) {
          text = bytes;
        } else if (v.type == call_.builtin.character) {
          append_utf8(text, static_cast<std::uint32_t>(v.bits));
        } else {
          text = call_.runtime.show(call_.ctx, v);
        }
        if (precision >= 0) {
          std::size_t at = 0;
          for (int k = 0; k < precision && at < text.size(); ++k) next_utf8(text, at);
          text.resize(at);
        }
        padded(text, flags, width);
        return true;
      }
      default:
        return call_.ctx.argument_error(std::string("invalid format string: unknown conversion '%") + kind + "'");
    }
  }

  // Integers of any width, and floats that are integers.
  bool integer(char kind, const std::string& flags, int width, int precision, Value v) {
    const BuiltinTypes& b = call_.builtin;
    bool negative = false;
    std::uint64_t magnitude = 0;
    if (v.type == b.float64 || v.type == b.float32) {
      double x = v.type == b.float64 ? v.float64 : static_cast<double>(v.float32);
      if (!std::isfinite(x)) {
        padded(std::isnan(x) ? "NaN" : x < 0 ? "-Inf" : "Inf", flags, width);
        return true;
      }
      x = std::nearbyint(x);
      if (std::fabs(x) >= 18446744073709551616.0) {
        print(flags, width, 0, 'f', x);
        return true;
      }
      negative = x < 0;
      magnitude = static_cast<std::uint64_t>(std::fabs(x));
    } else if (v.type == b.character) {
      magnitude = static_cast<std::uint64_t>(v.bits);
    } else if (as_data(v.type)->name->is_primitive && is_subtype(call_.runtime.types, v.type, b.integer)) {
      if (is_subtype(call_.runtime.types, v.type, b.signed_)) {
        unsigned shift = 64 - 8 * as_data(v.type)->size;
        std::int64_t n = static_cast<std::int64_t>(static_cast<std::uint64_t>(v.bits) << shift) >> shift;
        negative = n < 0;
        magnitude = negative ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
      } else {
        magnitude = static_cast<std::uint64_t>(v.bits);
      }
    } else {
      return call_.ctx.argument_error("%" + std::string(1, kind) + " needs a number, got a " + to_string(v.type));
    }
    unsigned base = kind == 'x' || kind == 'X' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    const char* numerals = kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char buffer[64];
    char* first = buffer + sizeof buffer;
    for (std::uint64_t n = magnitude; n != 0; n /= base) *--first = numerals[n % base];
    std::string digits(first, buffer + sizeof buffer);
    if (digits.empty() && precision != 0) digits = "0";
    if (precision > static_cast<int>(digits.size()))
      digits.insert(0, static_cast<std::size_t>(precision) - digits.size(), '0');
    std::string prefix = negative                               ? "-"
                         : flags.find('+') != std::string::npos ? "+"
                         : flags.find(' ') != std::string::npos ? " "
                                                                : "";
    if (flags.find('#') != std::string::npos && magnitude != 0)
      prefix += kind == 'x' ? "0x" : kind == 'X' ? "0X" : kind == 'o' ? "0" : "";
    bool zeros = flags.find('0') != std::string::npos && flags.find('-') == std::string::npos && precision < 0;
    if (zeros && width > static_cast<int>(prefix.size() + digits.size()))
      digits.insert(0, static_cast<std::size_t>(width) - prefix.size() - digits.size(), '0');
    padded(prefix + digits, flags, width);
    return true;
  }

  bool to_double(Value v, double& x) {
    const BuiltinTypes& b = call_.builtin;
    if (v.type == b.float64) {
      x = v.float64;
    } else if (v.type == b.float32) {
      x = v.float32;
    } else if (as_data(v.type)->name->is_primitive && is_subtype(call_.runtime.types, v.type, b.integer)) {
      unsigned shift = 64 - 8 * as_data(v.type)->size;
      bool is_signed = is_subtype(call_.runtime.types, v.type, b.signed_);
      x = is_signed
              ? static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(v.bits) << shift) >> shift)
              : static_cast<double>(static_cast<std::uint64_t>(v.bits));
    } else {
      return call_.ctx.argument_error("a number is needed for this format, got a " + to_string(v.type));
    }
    return true;
  }

  void print(const std::string& flags, int width, int precision, char kind, double x) {
    char text[512];
    // Without flags, the library's shortest road; both round what the number is exactly to the nearest, ties to even.
    if (flags.empty() && (kind == 'f' || kind == 'e') && precision <= 100) {
      const auto format = kind == 'f' ? std::chars_format::fixed : std::chars_format::scientific;
      const auto end = std::to_chars(text, text + sizeof text, x, format, precision < 0 ? 6 : precision);
      if (end.ec == std::errc()) {
        pad(width - (end.ptr - text));
        out.append(text, end.ptr);
        return;
      }
    }
    std::string spec = "%" + flags + (width >= 0 ? std::to_string(width) : "");
    if (precision >= 0) spec += "." + std::to_string(precision);
    spec += kind;
    int size = std::snprintf(text, sizeof text, spec.c_str(), x);
    if (size < 0) return;
    if (static_cast<std::size_t>(size) < sizeof text) {
      out.append(text, static_cast<std::size_t>(size));
      return;
    }
    std::vector<char> room(static_cast<std::size_t>(size) + 1);
    std::snprintf(room.data(), room.size(), spec.c_str(), x);
    out.append(room.data(), static_cast<std::size_t>(size));
  }

  void pad(std::ptrdiff_t count) {
    if (count > 0) out.append(static_cast<std::size_t>(count), ' ');
  }

  void padded(std::string_view text, const std::string& flags, int width) {
    std::ptrdiff_t columns = 0;
    for (std::size_t at = 0; at < text.size(); ++columns) next_utf8(text, at);
    const bool left = flags.find('-') != std::string::npos;
    if (!left) pad(width - columns);
    out += text;
    if (left) pad(width - columns);
  }

  Call& call_;
  std::string_view format_;
  std::size_t next_ = 1;
};

// format_printf(format, args...)
bool format_printf(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "format_printf", args, count, result);
  std::string_view format;
  if (!call.string(0, format)) return false;
  Formatter formatter(call, format);
  return formatter.run() && call.give(formatter.out);
}

const NativeInfo format_natives[] = {{"format_printf", format_printf, effect_makes, returns_string}};

}  // namespace

void define_format_natives(Runtime& runtime) { define_all(runtime, format_natives); }

}  // namespace slope::stdlib
