// Strings, characters and their escapes.
//
// A string without interpolation is one literal token. One with interpolation is string_begin, then string_text and
// string_dollar with the tokens of the interpolated expression, then string_end; the main loop comes back here after
// each interpolated expression. A """ string loses the line break after its opening quotes and the indentation that all
// its lines share (lines of only white space do not count, the line of the closing quotes does).
#include <algorithm>
#include <utility>

#include "lang/syntax/lexer_state.hpp"

namespace slope::syntax {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

void Lexer::unterminated(std::uint32_t begin, std::string_view what, std::string_view closer) {
  ++result_.unterminated;
  const auto opener = static_cast<std::uint32_t>(std::min<std::size_t>(begin + closer.size(), text_.size()));
  error(begin, opener, "this " + std::string(what) + " is never closed",
        "expected " + std::string(closer) + " before the end of the text");
}

// Appends what the escape at `at` (its backslash) means and moves `at` past it.
void Lexer::append_escape(std::string& out, std::uint32_t& at, std::uint32_t end) {
  const std::uint32_t begin = at;
  ++at;
  if (at >= end) {
    error(begin, at, "a backslash needs a character after it");
    return;
  }
  const char c = text_[at++];
  const auto number = [&](int base, int most) {
    std::uint32_t value = 0;
    int read = 0;
    while (read < most && at < end && hex_value(text_[at]) >= 0 && hex_value(text_[at]) < base) {
      value = value * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(hex_value(text_[at++]));
      ++read;
    }
    return std::pair(value, read);
  };
  switch (c) {
    case 'n':
      out += '\n';
      return;
    case 't':
      out += '\t';
      return;
    case 'r':
      out += '\r';
      return;
    case 'a':
      out += '\a';
      return;
    case 'b':
      out += '\b';
      return;
    case 'v':
      out += '\v';
      return;
    case 'f':
      out += '\f';
      return;
    case 'e':
      out += '\x1b';
      return;
    case '\\':
    case '"':
    case '\'':
    case '$':
    case '`':
      out += c;
      return;
    case '\r':
    case '\n':
      // a line that goes on: the break and the next line's indentation are not part of the string
      if (c == '\r' && at < end && text_[at] == '\n') ++at;
      while (at < end && is_blank(text_[at])) ++at;
      return;
    case 'x': {
      const auto [value, read] = number(16, 2);
      if (read == 0) error(begin, at, "expected one or two hexadecimal digits after `\\x`");
      out += static_cast<char>(value);
      return;
    }
    case 'u':
    case 'U': {
      const auto [value, read] = number(16, c == 'u' ? 4 : 8);
      if (read == 0) {
        error(begin, at, std::string("expected hexadecimal digits after `\\") + c + "`");
      } else if (value > 0x10ffff) {
        error(begin, at, "there is no such code point", "the largest is \\U10ffff");
      } else {
        append_utf8(out, value);
      }
      return;
    }
    default:
      break;
  }
  if (c >= '0' && c <= '7') {
    --at;
    const auto value = number(8, 3).first;
    if (value > 255) error(begin, at, "an octal escape goes up to `\\377`");
    out += static_cast<char>(value);
    return;
  }
  std::size_t length = 1;
  decode(begin + 1, length);
  at = std::min<std::uint32_t>(begin + 1 + static_cast<std::uint32_t>(length), end);
  error(begin, at, "there is no escape `" + std::string(text_.substr(begin, at - begin)) + "`",
        "a backslash itself is written `\\\\`");
}

bool Lexer::closes_string(std::size_t i, bool triple) const {
  return at(i) == '"' && (!triple || (at(i + 1) == '"' && at(i + 2) == '"'));
}

// The white space that all lines of the open string's segments share.
std::string Lexer::common_indent(std::size_t first_segment) const {
  std::optional<std::string_view> common;
  for (std::size_t s = first_segment; s < segments_.size(); ++s) {
    const std::string_view text = text_.substr(segments_[s].begin, segments_[s].end - segments_[s].begin);
    for (std::size_t i = text.find('\n'); i != std::string_view::npos; i = text.find('\n', i + 1)) {
      std::size_t stop = i + 1;
      while (stop < text.size() && is_blank(text[stop])) ++stop;
      const bool blank_line = stop < text.size() && (text[stop] == '\n' || text[stop] == '\r');
      // (a run that ends a segment stands before an interpolation or the closing quotes, and counts)
      if (blank_line) continue;
      const std::string_view indent = text.substr(i + 1, stop - i - 1);
      if (!common) {
        common = indent;
      } else {
        std::size_t same = 0;
        while (same < common->size() && same < indent.size() && (*common)[same] == indent[same]) ++same;
        common = common->substr(0, same);
      }
    }
  }
  return std::string(common.value_or(""));
}

std::string Lexer::segment_text(const Segment& segment, bool triple, bool first, std::string_view indent, bool raw) {
  std::string out;
  out.reserve(segment.end - segment.begin);
  std::uint32_t i = segment.begin;
  const auto skip_indent = [&] {
    std::size_t skipped = 0;
    while (skipped < indent.size() && i < segment.end && text_[i] == indent[skipped]) {
      ++i;
      ++skipped;
    }
  };
  if (triple && first) {
    if (at(i) == '\r' && at(i + 1) == '\n' && i + 1 < segment.end) ++i;
    if (i < segment.end && text_[i] == '\n') {
      ++i;
      skip_indent();
    }
  }
  while (i < segment.end) {
    const char c = text_[i];
    if (c == '\n' || (c == '\r' && i + 1 < segment.end && text_[i + 1] == '\n')) {
      i += c == '\r' ? 2 : 1;
      out += '\n';
      if (triple) skip_indent();
    } else if (c != '\\') {
      out += c;
      ++i;
    } else if (!raw) {
      append_escape(out, i, segment.end);
    } else {
      // In a raw string a backslash escapes only a quote, or a backslash in a run that ends at a quote.
      std::uint32_t run = 0;
      while (i + run < segment.end && text_[i + run] == '\\') ++run;
      const bool before_quote = i + run >= segment.end || text_[i + run] == '"';
      if (before_quote) {
        out.append(run / 2, '\\');
        i += run;
        if (run % 2 == 1 && i < segment.end) {
          out += '"';
          ++i;
        }
      } else {
        out.append(run, '\\');
        i += run;
      }
    }
  }
  return out;
}

// A string without interpolation, from `begin` to here; `whole` is what is between its quotes.
void Lexer::push_whole_string(TokenKind kind, std::uint32_t begin, const Segment& whole, bool triple) {
  std::string indent;
  if (triple) {
    segments_.push_back(whole);
    indent = common_indent(segments_.size() - 1);
    segments_.pop_back();
  }
  std::string text = segment_text(whole, triple, true, indent, kind == TokenKind::raw_string);
  push(kind, begin, ast_.string_leaf(std::move(text), span(begin, static_cast<std::uint32_t>(pos_))));
}

void Lexer::lex_string_start() {
  const auto begin = static_cast<std::uint32_t>(pos_);
  const bool triple = at(pos_ + 1) == '"' && at(pos_ + 2) == '"';
  const std::uint32_t quotes = triple ? 3 : 1;
  std::size_t i = pos_ + quotes;
  while (i < text_.size() && text_[i] != '$' && !closes_string(i, triple)) i += text_[i] == '\\' ? 2 : 1;
  if (i < text_.size() && text_[i] == '"') {
    const Segment whole{0, begin + quotes, static_cast<std::uint32_t>(i)};
    pos_ = i + quotes;
    push_whole_string(TokenKind::literal, begin, whole, triple);
    return;
  }
  pos_ += quotes;
  Token& token = push(TokenKind::string_begin, begin);
  if (triple) token.flags |= flag_triple;
  open_strings_.push_back({triple, begin, segments_.size(), 0});
}

// Text up to the next `$` or the closing quotes.
void Lexer::lex_string_text() {
  OpenString& open = open_strings_.back();
  const auto begin = static_cast<std::uint32_t>(pos_);
  while (pos_ < text_.size() && text_[pos_] != '$' && !closes_string(pos_, open.triple)) {
    pos_ = std::min(pos_ + (text_[pos_] == '\\' ? 2 : 1), text_.size());
  }
  const auto end = static_cast<std::uint32_t>(pos_);
  // A """ string keeps empty segments: where one begins matters to the indentation.
  if (end > begin || open.triple) {
    segments_.push_back({result_.tokens.size(), begin, end});
    push(TokenKind::string_text, begin);
  }
  if (pos_ >= text_.size()) return;
  if (text_[pos_] == '"') return close_string(end);

  ++pos_;
  push(TokenKind::string_dollar, end);
  std::size_t length = 1;
  const char32_t next = pos_ < text_.size() ? decode(pos_, length) : U' ';
  if (next == U'(') {
    const auto paren = static_cast<std::uint32_t>(pos_++);
    push(TokenKind::left_paren, paren);
    open.paren_depth = 1;
  } else if (is_identifier_start(next)) {
    const auto name_begin = static_cast<std::uint32_t>(pos_);
    while (pos_ < text_.size()) {
      const char32_t c = decode(pos_, length);
      if (!is_identifier_part(c) || (c == U'!' && at(pos_ + 1) == '=')) break;
      pos_ += length;
    }
    push(TokenKind::identifier, name_begin, intern_name(text_.substr(name_begin, pos_ - name_begin)));
  } else {
    error(end, static_cast<std::uint32_t>(pos_), "expected a name or `(` after `$` in a string",
          "a dollar sign itself is written `\\$`");
    push(TokenKind::invalid, static_cast<std::uint32_t>(pos_));
  }
}

// Turns the segments of the innermost open string into text, now that all its lines are known.
Lexer::OpenString Lexer::finish_segments() {
  const OpenString open = open_strings_.back();
  open_strings_.pop_back();
  const std::string indent = open.triple ? common_indent(open.first_segment) : std::string();
  for (std::size_t s = open.first_segment; s < segments_.size(); ++s) {
    const Segment segment = segments_[s];
    const bool first = segment.begin == open.begin + (open.triple ? 3 : 1);
    std::string text = segment_text(segment, open.triple, first, indent, false);
    result_.tokens[segment.token].payload = ast_.string_leaf(std::move(text), span(segment.begin, segment.end));
  }
  segments_.resize(open.first_segment);
  return open;
}

void Lexer::close_string(std::uint32_t text_end) {
  const OpenString open = finish_segments();
  pos_ = std::min<std::size_t>(text_.size(), text_end + (open.triple ? 3u : 1u));
  push(TokenKind::string_end, text_end);
}

void Lexer::lex_raw_string() {
  const auto begin = static_cast<std::uint32_t>(pos_);
  const bool triple = at(pos_ + 1) == '"' && at(pos_ + 2) == '"';
  const std::uint32_t quotes = triple ? 3 : 1;
  std::size_t i = pos_ + quotes;
  while (i < text_.size() && !closes_string(i, triple)) i += text_[i] == '\\' ? 2 : 1;
  i = std::min(i, text_.size());
  const Segment whole{0, static_cast<std::uint32_t>(std::min<std::size_t>(begin + quotes, i)),
                      static_cast<std::uint32_t>(i)};
  if (i >= text_.size()) {
    unterminated(begin, "string", triple ? "\"\"\"" : "\"");
    pos_ = i;
  } else {
    pos_ = i + quotes;
  }
  push_whole_string(TokenKind::raw_string, begin, whole, triple);
}

// `command`, which Julia gives to the macro @cmd as text; x`command` to @x_cmd.
void Lexer::lex_command(std::uint32_t begin, std::string_view macro) {
  const std::string_view quotes = text_.substr(begin).starts_with("```") ? "```" : "`";
  std::size_t i = begin + quotes.size();
  while (i < text_.size() && text_.substr(i, quotes.size()) != quotes) i += text_[i] == '\\' ? 2 : 1;
  i = std::min(i, text_.size());
  std::string text(text_.substr(begin + quotes.size(), i - begin - quotes.size()));
  pos_ = i;
  if (i >= text_.size()) {
    unterminated(begin, "command", std::string(quotes));
  } else {
    pos_ += quotes.size();
  }
  push(TokenKind::literal, begin, text_macro(macro, std::move(text), begin));
}

void Lexer::lex_character() {
  const auto begin = static_cast<std::uint32_t>(pos_++);
  std::string text;
  if (at(pos_) == '\'' && at(pos_ + 1) == '\'') {
    text = "'";  // ''' is the quote itself
    ++pos_;
  } else if (at(pos_) == '\\') {
    auto i = static_cast<std::uint32_t>(pos_);
    append_escape(text, i, static_cast<std::uint32_t>(text_.size()));
    pos_ = i;
  } else if (pos_ < text_.size() && text_[pos_] != '\'' && (text_[pos_] != '\n' || at(pos_ + 1) == '\'')) {
    std::size_t length = 1;
    decode(pos_, length);
    text = text_.substr(pos_, length);
    pos_ += length;
  }
  const auto after = static_cast<std::uint32_t>(pos_);
  if (at(pos_) == '\'') {
    ++pos_;
  } else {
    // Up to a closing quote on the same line it is taken for a string in the wrong quotes.
    const std::size_t line_end = std::min(text_.find('\n', pos_), text_.size());
    const std::size_t quote = text_.find('\'', pos_);
    const bool closed = quote != std::string_view::npos && quote < line_end && !text.empty();
    pos_ = closed ? quote + 1 : after;
    if (closed) {
      error(begin, static_cast<std::uint32_t>(pos_), "a character literal holds one character",
            "a string is written in double quotes: \"…\"");
    } else {
      error(begin, std::max(after, begin + 1), "expected `'` to close the character literal");
    }
    text = " ";
  }
  std::size_t length = 1;
  char32_t c = U' ';
  if (text.empty()) {
    error(begin, static_cast<std::uint32_t>(pos_), "a character literal holds one character, this one none");
  } else {
    c = decode_utf8(text, 0, length);
    if (length != text.size() || (c == 0xfffd && length == 1)) {
      error(begin, static_cast<std::uint32_t>(pos_), "this is not a Unicode character");
      c = U' ';
    }
  }
  const NodeId leaf = ast_.leaf(Head::character, span(begin, static_cast<std::uint32_t>(pos_)));
  ast_.made(leaf).code_point = c;
  push(TokenKind::literal, begin, leaf);
}

}  // namespace slope::syntax
