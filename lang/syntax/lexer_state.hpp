// The lexer's working state, shared by its source files: lexer.cpp (white space, names, operators), lexer_numbers.cpp,
// lexer_strings.cpp (strings, interpolation, characters) and escapes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/syntax/lexer.hpp"

namespace slope::syntax {

char32_t decode_utf8(std::string_view text, std::size_t at, std::size_t& length);  // 0xfffd, length 1 if malformed

// Finds the interned id of a spelling without going through the tree's general map: one probe, mostly.
class NameCache {
 public:
  struct Entry {
    std::string_view spelling;
    std::uint32_t hash = 0;
    NameId name = 0;
    TokenKind kind = TokenKind::identifier;
    Precedence precedence = Precedence::none;
    std::uint32_t payload = 0;
  };
  NameCache() : entries_(256) {}
  Entry& slot(std::string_view spelling, std::uint32_t hash);  // the entry, or a free one (empty spelling) to fill
  void filled() {
    if (++count_ * 2 > entries_.size()) grow();
  }

 private:
  void grow();
  std::vector<Entry> entries_;
  std::size_t count_ = 0;
};

class Lexer {
 public:
  Lexer(std::string_view text, FileId file, Ast& ast, LexResult& result);
  void run(const ParseOptions& options);

 private:
  // A piece of string text between interpolations. It becomes text only when the whole string is known, because the
  // indentation that a """ string sheds depends on all its lines.
  struct Segment {
    std::size_t token;
    std::uint32_t begin;
    std::uint32_t end;
  };
  struct OpenString {
    bool triple;
    std::uint32_t begin;        // of the opening quote
    std::size_t first_segment;  // in segments_
    std::uint32_t paren_depth;  // inside `$(…)`: open parentheses; 0: in text
  };

  // lexer.cpp
  std::size_t bytes_with_next_token() const;
  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  std::string_view rest() const { return text_.substr(pos_); }
  Token& push(TokenKind kind, std::uint32_t begin, std::uint32_t payload = 0);
  void error(std::uint32_t begin, std::uint32_t end, std::string message, std::string help = "");
  Span span(std::uint32_t begin, std::uint32_t end) const { return {file_, begin, end}; }
  void skip_space();
  std::size_t wide_space() const;  // the length of a space of Unicode, 0: there is none
  void skip_block_comment();
  void lex_token();
  void lex_identifier();
  void lex_unicode();
  void lex_unknown(std::uint32_t begin);
  void lex_dot();
  bool lex_operator(std::uint32_t begin, bool dotted);
  void push_operator(std::uint32_t begin, OperatorId id, bool dotted);
  bool after_operand() const;
  bool dollar_is_operator() const;
  char32_t decode(std::size_t at, std::size_t& length) const { return decode_utf8(text_, at, length); }
  NameId intern_name(std::string_view spelling);

  // lexer_numbers.cpp
  void lex_number();
  void lex_radix_number(std::uint32_t begin, int radix);
  void finish_float(std::uint32_t begin, bool single, bool hexadecimal);
  void check_after_number(std::uint32_t begin, Token& token);
  NodeId text_macro(std::string_view macro, std::string text, std::uint32_t begin);
  NodeId integer_leaf(std::uint32_t begin, std::int64_t value, std::uint8_t width);

  // lexer_strings.cpp
  void lex_string_start();
  void lex_string_text();
  void lex_raw_string();
  void lex_character();
  void lex_command(std::uint32_t begin, std::string_view macro = "@cmd");
  OpenString finish_segments();
  void close_string(std::uint32_t text_end);
  bool closes_string(std::size_t at, bool triple) const;
  std::string common_indent(std::size_t first_segment) const;
  void push_whole_string(TokenKind kind, std::uint32_t begin, const Segment& whole, bool triple);
  std::string segment_text(const Segment& segment, bool triple, bool first, std::string_view indent, bool raw);
  void append_escape(std::string& out, std::uint32_t& at, std::uint32_t end);
  void unterminated(std::uint32_t begin, std::string_view what, std::string_view closer);

  std::string_view text_;
  FileId file_;
  Ast& ast_;
  LexResult& result_;
  std::size_t pos_ = 0;
  std::uint8_t pending_flags_ = 0;  // what stood before the token to come
  NameCache names_;
  std::vector<OpenString> open_strings_;
  std::vector<Segment> segments_;
};

bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);
void append_utf8(std::string& out, char32_t c);

}  // namespace slope::syntax
