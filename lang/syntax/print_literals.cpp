#include "lang/syntax/print_literals.hpp"

#include <utf8proc.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "lang/syntax/lexer_state.hpp"
#include "lang/syntax/operators.hpp"

namespace slope::syntax {

namespace {

std::string hexadecimal(std::uint64_t value, std::size_t digits) {
  std::array<char, 16> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, 16).ptr;
  std::string text(buffer.data(), end);
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

// Shortest digits that read back the same; from 1e-4 up to 1e6 without exponent.
template <typename Float>
void write_float(std::string& out, Float value, char exponent_mark) {
  if (std::signbit(value)) out += '-';
  value = std::abs(value);
  std::array<char, 64> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = text.find('e');
  std::string digits;
  for (const char c : text.substr(0, mark)) {
    if (c != '.') digits += c;
  }
  const int exponent = std::atoi(text.data() + mark + 1);
  const bool single = exponent_mark == 'f';
  if (value != 0 && (exponent < -4 || exponent >= 6)) {
    out += digits[0];
    out += '.';
    out += digits.size() > 1 ? digits.substr(1) : "0";
    out += exponent_mark;
    out += std::to_string(exponent);
    return;
  }
  if (exponent < 0) {
    out += "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole) {
      out += digits + std::string(whole - digits.size(), '0') + ".0";
    } else {
      out += digits.substr(0, whole) + "." + digits.substr(whole);
    }
  }
  if (single) out += "f0";
}

bool is_identifier(std::string_view name) {
  for (std::size_t i = 0; i < name.size();) {
    std::size_t length = 1;
    const char32_t c = decode_utf8(name, i, length);
    if (i == 0 ? !is_identifier_start(c) : !is_identifier_part(c)) return false;
    i += length;
  }
  return !name.empty();
}

bool is_operator_name(std::string_view name) {
  constexpr std::string_view signs[] = {"::", "->", "...", ".", "$", "=", "&&", "||", ".=", ".&&", ".||"};
  for (const std::string_view sign : signs) {
    if (name == sign) return true;
  }
  if (name.size() > 1 && name[0] == '.') name.remove_prefix(1);
  if (find_operator(name)) return true;
  if (name.size() > 1 && name.back() == '=') {
    const auto base = find_operator(name.substr(0, name.size() - 1));
    return base && operator_info(*base).update;
  }
  return false;
}

}  // namespace

void write_escaped(std::string& out, std::string_view text, char quote) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 1;
    const char32_t c = decode_utf8(text, i, length);
    const char byte = text[i];
    const bool hex_follows =
        i + length < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + length])) != 0;
    if (byte == '\\' || byte == quote || (byte == '$' && quote == '"')) {
      out += '\\';
      out += byte;
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '\r') {
      out += "\\r";
    } else if (byte == '\a') {
      out += "\\a";
    } else if (byte == '\b') {
      out += "\\b";
    } else if (byte == '\v') {
      out += "\\v";
    } else if (byte == '\f') {
      out += "\\f";
    } else if (byte == '\x1b') {
      out += "\\e";
    } else if (byte == '\0') {
      out += hex_follows ? "\\x00" : "\\0";
    } else if (c == 0xfffd && length == 1) {
      out += "\\x" + hexadecimal(static_cast<unsigned char>(byte), 2);
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\x" + hexadecimal(c, 2);
    } else if (c >= 0x80 && (utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_CC ||
                             utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_CF ||
                             utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_CN ||
                             utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_CO ||
                             utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_CS)) {
      if (c > 0xffff) {
        out += "\\U" + hexadecimal(c, hex_follows ? 8 : 0);
      } else {
        out += "\\u" + hexadecimal(c, hex_follows ? 4 : 0);
      }
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
}

void write_symbol(std::string& out, std::string_view name) {
  for (const std::string_view sign : {":", "::", ":=", "=", "==", "===", "=>"}) {
    if (name == sign) {
      out += ":(" + std::string(name) + ")";
      return;
    }
  }
  if (is_identifier(name) || is_operator_name(name)) {
    out += ':';
    out += name;
    return;
  }
  out += "Symbol(\"";
  write_escaped(out, name, '"');
  out += "\")";
}

void write_literal(std::string& out, const Ast& ast, NodeId leaf) {
  const Node& node = ast.node(leaf);
  switch (node.head) {
    case Head::integer:
      if (node.flag == 0) {
        out += std::to_string(node.integer);
      } else {
        const std::uint64_t mask = node.flag == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << node.flag) - 1;
        out += "0x" + hexadecimal(static_cast<std::uint64_t>(node.integer) & mask, node.flag / 4u);
      }
      break;
    case Head::floating:
      write_float(out, node.floating, 'e');
      break;
    case Head::float32:
      write_float(out, static_cast<float>(node.floating), 'f');
      break;
    case Head::character: {
      std::string text;
      append_utf8(text, node.code_point);
      out += '\'';
      write_escaped(out, text, '\'');
      out += '\'';
      break;
    }
    case Head::string:
      out += '"';
      write_escaped(out, ast.text_of(leaf), '"');
      out += '"';
      break;
    case Head::boolean:
      out += node.integer != 0 ? "true" : "false";
      break;
    case Head::nothing:
      out += "nothing";
      break;
    case Head::value:
      out += "#= value =#";
      break;
    default:
      break;
  }
}

}  // namespace slope::syntax
