// Colours: of code that is typed, of errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace slope::repl {

enum class ColorChoice { automatic, always, never };

// Whether to colour what goes to a file descriptor: the choice, else a terminal that is not dumb and no NO_COLOR.
bool wants_color(ColorChoice choice, int descriptor);

// How a byte of a text looks; the values are indices of style_sequence.
enum class Style : std::uint8_t {
  plain,
  keyword,
  string,
  number,
  comment,
  macro,
  symbol,
  function,
  operation,
  bracket,
  error,
  matched,  // a bracket and its partner
  prompt,
  help_prompt,
  shell_prompt,
};
const char* style_sequence(Style style);  // of SGR; empty for plain
inline constexpr const char* style_end = "\033[0m";

// One style a byte. `cursor`: the bracket at or before it and its partner stand out; npos: none.
std::vector<Style> styles_of(std::string_view code, std::size_t cursor = std::string_view::npos);
std::string painted_code(std::string_view code);
// A message of the engine: "ERROR:" and "error:" stand out, quoted lines of source are coloured, carets too.
std::string painted_error(std::string_view message);

}  // namespace slope::repl
