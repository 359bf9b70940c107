// Characters: classes, case and width by utf8proc, and how they are written in programs.
#include <utf8proc.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "stdlib/native/native.hpp"
#include "stdlib/native/natives.hpp"
#include "stdlib/native/utf8.hpp"

namespace slope::stdlib {

namespace {

utf8proc_category_t category(std::uint32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_printable(std::uint32_t c) {
  utf8proc_category_t kind = category(c);
  return c <= 0x10ffff && kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ZS;
}

// char_class(c, k): letter 1, upper case 2, lower case 3, space 4, numeric 5, punctuation 6, printable 7
bool char_class(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "char_class", args, count, result);
  std::uint32_t c = 0;
  std::int64_t which = 0;
  if (!call.character(0, c) || !call.integer(1, which)) return false;
  utf8proc_category_t kind = category(c);
  switch (which) {
    case 1:
      return call.give_bool(kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO);
    case 2:
      return call.give_bool(kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LT);
    case 3:
      return call.give_bool(kind == UTF8PROC_CATEGORY_LL);
    case 4:
      return call.give_bool(kind == UTF8PROC_CATEGORY_ZS);
    case 5:
      return call.give_bool(kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
    case 6:
      return call.give_bool(kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO);
    default:
      return call.give_bool(is_printable(c));
  }
}

bool char_upper(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "char_upper", args, count, result);
  std::uint32_t c = 0;
  return call.character(0, c) &&
         call.give_char(static_cast<std::uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

bool char_lower(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "char_lower", args, count, result);
  std::uint32_t c = 0;
  return call.character(0, c) &&
         call.give_char(static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

bool char_width(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "char_width", args, count, result);
  std::uint32_t c = 0;
  return call.character(0, c) && call.give_int(utf8proc_charwidth(static_cast<utf8proc_int32_t>(c)));
}

template <class Change>
std::string changed_case(std::string_view s, Change change) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t at = 0; at < s.size();)
    append_utf8(out, static_cast<std::uint32_t>(change(static_cast<utf8proc_int32_t>(next_utf8(s, at)))));
  return out;
}

bool string_upper(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_upper", args, count, result);
  std::string_view s;
  return call.string(0, s) && call.give(changed_case(s, utf8proc_toupper));
}

bool string_lower(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_lower", args, count, result);
  std::string_view s;
  return call.string(0, s) && call.give(changed_case(s, utf8proc_tolower));
}

// string_normalize(s, options): utf8proc's options, as its header numbers them.
bool string_normalize(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_normalize", args, count, result);
  std::string_view s;
  std::int64_t options = 0;
  if (!call.string(0, s) || !call.integer(1, options)) return false;
  utf8proc_uint8_t* mapped = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(s.data()), static_cast<utf8proc_ssize_t>(s.size()),
                   &mapped, static_cast<utf8proc_option_t>(options & ~std::int64_t{UTF8PROC_NULLTERM}));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(mapped, &std::free);
  if (length < 0) return ctx.argument_error(utf8proc_errmsg(length));
  return call.give(std::string(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length)));
}

// grapheme_break(a, b): may what a reader takes for one character end between the two?
bool grapheme_break(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "grapheme_break", args, count, result);
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  return call.character(0, a) && call.character(1, b) &&
         call.give_bool(utf8proc_grapheme_break(static_cast<utf8proc_int32_t>(a), static_cast<utf8proc_int32_t>(b)));
}

bool char_text(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "char_text", args, count, result);
  std::uint32_t c = 0;
  if (!call.character(0, c)) return false;
  std::string out;
  append_utf8(out, c);
  return call.give(out);
}

// One character of a literal, and the byte that follows. `quote` is escaped, and `$` in strings.
void append_escaped(std::string& out, std::uint32_t c, char quote, bool dollar, char next) {
  static constexpr std::string_view named = "\a\b\t\n\v\f\r\x1b", letters = "abtnvfre";
  char digits[16];
  if (c == 0) {
    out += '0' <= next && next <= '7' ? "\\x00" : "\\0";
  } else if (c == '\\' || (quote != 0 && c == static_cast<unsigned char>(quote)) || (dollar && c == '$')) {
    out += '\\';
    out += static_cast<char>(c);
  } else if (std::size_t k = c < 128 ? named.find(static_cast<char>(c)) : std::string_view::npos;
             k != std::string_view::npos) {
    out += '\\';
    out += letters[k];
  } else if (is_printable(c)) {
    append_utf8(out, c);
  } else {
    bool wide = std::isxdigit(static_cast<unsigned char>(next)) && c > 0x7f;
    std::snprintf(digits, sizeof digits,
                  c < 0x80 ? "\\x%02x"
                  : wide   ? (c > 0xffff ? "\\U%08x" : "\\u%04x")
                           : (c > 0xffff ? "\\U%x" : "\\u%x"),
                  c);
    out += digits;
  }
}

// string_escape(s, quoted): escape_string's text; with `quoted` also `$`, as in a literal.
bool string_escape(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "string_escape", args, count, result);
  std::string_view s;
  bool quoted = false;
  if (!call.string(0, s) || !call.boolean(1, quoted)) return false;
  std::string out;
  for (std::size_t at = 0; at < s.size();) {
    std::size_t before = at;
    std::uint32_t c = next_utf8(s, at);
    const char next = at < s.size() ? s[at] : '"';
    if (c == 0xfffd && s[before] != '\xef') {
      char digits[8];
      std::snprintf(digits, sizeof digits, "\\x%02x", static_cast<unsigned char>(s[before]));
      out += digits;
    } else {
      append_escaped(out, c, '"', quoted, next);
    }
  }
  return call.give(out);
}

std::string literal(std::uint32_t c) {
  std::string out = "'";
  append_escaped(out, c, '\'', false, '\'');
  return out + "'";
}

bool char_literal(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "char_literal", args, count, result);
  std::uint32_t c = 0;
  return call.character(0, c) && call.give(literal(c));
}

// 'a': ASCII/Unicode U+0061 (category Ll: Letter, lowercase)
bool char_description(Context& ctx, const Value* args, std::size_t count, Value& result) {
  static constexpr const char* names[] = {"Other, not assigned",
                                          "Letter, uppercase",
                                          "Letter, lowercase",
                                          "Letter, titlecase",
                                          "Letter, modifier",
                                          "Letter, other",
                                          "Mark, nonspacing",
                                          "Mark, spacing combining",
                                          "Mark, enclosing",
                                          "Number, decimal digit",
                                          "Number, letter",
                                          "Number, other",
                                          "Punctuation, connector",
                                          "Punctuation, dash",
                                          "Punctuation, open",
                                          "Punctuation, close",
                                          "Punctuation, initial quote",
                                          "Punctuation, final quote",
                                          "Punctuation, other",
                                          "Symbol, math",
                                          "Symbol, currency",
                                          "Symbol, modifier",
                                          "Symbol, other",
                                          "Separator, space",
                                          "Separator, line",
                                          "Separator, paragraph",
                                          "Other, control",
                                          "Other, format",
                                          "Other, surrogate",
                                          "Other, private use"};
  Call call(ctx, "char_description", args, count, result);
  std::uint32_t c = 0;
  if (!call.character(0, c)) return false;
  auto kind = static_cast<std::size_t>(category(c));
  char text[96];
  std::snprintf(text, sizeof text, ": %sUnicode U+%04X (category %s: %s)", c < 0x80 ? "ASCII/" : "", c,
                utf8proc_category_string(static_cast<utf8proc_int32_t>(c)),
                kind < std::size(names) ? names[kind] : "Other");
  return call.give(literal(c) + text);
}

// char_category(c): the number of Unicode's general category.
bool char_category(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Call call(ctx, "category_code", args, count, result);
  std::uint32_t c = 0;
  return call.character(0, c) && call.give_int(static_cast<std::int64_t>(category(c)));
}

const NativeInfo characters_natives[] = {
    {"char_class", char_class, effect_throws, returns_bool},
    {"char_category", char_category, effect_throws, returns_int},
    {"char_upper", char_upper, effect_throws, returns_char},
    {"char_lower", char_lower, effect_throws, returns_char},
    {"char_width", char_width, effect_throws, returns_int},
    {"char_text", char_text, effect_makes, returns_string},
    {"char_literal", char_literal, effect_makes, returns_string},
    {"char_description", char_description, effect_makes, returns_string},
    {"string_upper", string_upper, effect_makes, returns_string},
    {"string_lower", string_lower, effect_makes, returns_string},
    {"string_normalize", string_normalize, effect_makes, returns_string},
    {"grapheme_break", grapheme_break, effect_throws, returns_bool},
    {"string_escape", string_escape, effect_makes, returns_string},
};

}  // namespace

void define_character_natives(Runtime& runtime) { define_all(runtime, characters_natives); }

}  // namespace slope::stdlib
