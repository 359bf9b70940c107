// A position in a line of IR text, and the small things that are read from it.
#pragma once

#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include "lang/runtime/runtime.hpp"

namespace slope::ir {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool at_end() {
    skip_spaces();
    return at_ >= text_.size();
  }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  std::size_t position() const { return at_; }
  void set_position(std::size_t position) { at_ = position; }
  std::string_view rest() const { return text_.substr(at_); }

  // The token, after spaces; false and nothing read when something else comes.
  bool take(std::string_view token) {
    skip_spaces();
    if (!rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  // A whole word: `loop` but not `loops`.
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!rest().starts_with(word) || is_name_char(peek(word.size()))) return false;
    at_ += word.size();
    return true;
  }
  static bool is_name_char(char c) {
    auto u = static_cast<unsigned char>(c);
    return std::isalnum(u) || c == '_' || c == '!' || u >= 128;
  }
  bool at_name() const {
    return is_name_char(peek()) && !std::isdigit(static_cast<unsigned char>(peek())) && peek() != '!';
  }
  // A plain name, or one in quotes.
  bool name(std::string& out) {
    skip_spaces();
    if (peek() == '"') return quoted(out);
    if (!at_name()) return false;
    std::size_t begin = at_;
    while (is_name_char(peek())) ++at_;
    out = text_.substr(begin, at_ - begin);
    return true;
  }
  bool quoted(std::string& out) {
    if (peek() != '"') return false;
    out.clear();
    for (++at_; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c != '\\') {
        out += c;
        continue;
      }
      c = peek(1);
      ++at_;
      if (c == 'n') {
        out += '\n';
      } else if (c == 'x' && at_ + 2 < text_.size()) {
        out += static_cast<char>(std::stoi(std::string(text_.substr(at_ + 1, 2)), nullptr, 16));
        at_ += 2;
      } else {
        out += c;
      }
    }
    return false;
  }
  bool unsigned_number(std::uint64_t& out) {
    skip_spaces();
    if (!std::isdigit(static_cast<unsigned char>(peek()))) return false;
    for (out = 0; std::isdigit(static_cast<unsigned char>(peek())); ++at_)
      out = out * 10 + static_cast<std::uint64_t>(peek() - '0');
    return true;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// A type as to_string prints it, names resolved from Main. Null with `error`.
const Type* read_type(Runtime& runtime, TextCursor& cursor, std::string& error);
// What a name stands for, seen from Main; undefined when nothing.
Value read_global(Runtime& runtime, const std::string& name);

}  // namespace slope::ir
