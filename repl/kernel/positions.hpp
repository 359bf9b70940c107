// Jupyter counts characters, Slope bytes of UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace slope::repl {

inline bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

inline std::size_t byte_of_character(std::string_view text, std::size_t character) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins_character(text[i]) && character-- == 0) return i;
  return text.size();
}

inline std::size_t character_of_byte(std::string_view text, std::size_t byte) {
  std::size_t count = 0;
  for (const char c : text.substr(0, byte)) count += begins_character(c);
  return count;
}

}  // namespace slope::repl
