// UTF-8 by hand: one code point at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace slope::stdlib {

// At most four bytes; how many.
inline std::size_t write_utf8(char* to, std::uint32_t c) {
  if (c < 0x80) {
    to[0] = static_cast<char>(c);
    return 1;
  }
  const std::size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  constexpr std::uint32_t first[] = {0xc0, 0xe0, 0xf0};
  for (std::size_t i = size; --i > 0; c >>= 6) to[i] = static_cast<char>(0x80 | (c & 0x3f));
  to[0] = static_cast<char>(first[size - 2] | c);
  return size;
}

inline void append_utf8(std::string& out, std::uint32_t c) {
  char bytes[4];
  out.append(bytes, write_utf8(bytes, c));
}

// The code point at byte `at`, which moves behind it. An invalid byte gives U+FFFD and moves by one.
inline std::uint32_t next_utf8(std::string_view text, std::size_t& at) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::uint32_t b = byte(at);
  int more = b < 0x80 ? 0 : b < 0xc2 ? -1 : b < 0xe0 ? 1 : b < 0xf0 ? 2 : b < 0xf5 ? 3 : -1;
  if (more < 0 || at + static_cast<std::size_t>(more) >= text.size()) {
    ++at;
    return more == 0 ? b : 0xfffd;
  }
  std::uint32_t c = more == 0 ? b : b & (0x3fu >> more);
  for (int k = 1; k <= more; ++k) {
    std::uint32_t n = byte(at + static_cast<std::size_t>(k));
    if ((n & 0xc0) != 0x80) {
      ++at;
      return 0xfffd;
    }
    c = c << 6 | (n & 0x3f);
  }
  at += static_cast<std::size_t>(more) + 1;
  return c;
}

inline bool valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t before = at;
    if (next_utf8(text, at) == 0xfffd && text.substr(before, 3) != "\xef\xbf\xbd") return false;
  }
  return true;
}

}  // namespace slope::stdlib
