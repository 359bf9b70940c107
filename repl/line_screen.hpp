// Draws the input that is being edited: prompt, code in colours, on as many rows as it needs.
//
// readline edits the text and calls this class to show it. The class remembers the rows on the terminal and the
// position of the cursor, and writes only rows that changed. Of an input taller than the terminal it shows the part
// around the cursor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "repl/paint.hpp"

namespace slope::repl {

struct StyledText {
  std::string text;
  std::vector<Style> styles;  // one a byte; empty: plain
};

// Rows of at most `width` columns; `cursor` is a byte offset of `code`. Lines after the first begin with `indent`
// blanks.
struct Layout {
  std::vector<std::string> rows;
  std::size_t cursor_row = 0;
  std::size_t cursor_column = 0;
};
Layout lay_out(const StyledText& prompt, const StyledText& code, std::size_t cursor, std::size_t width,
               std::size_t indent, bool color);

// Columns that a text without control characters takes.
std::size_t text_columns(std::string_view utf8);

class LineScreen {
 public:
  struct Size {
    std::size_t rows = 24;
    std::size_t columns = 80;
  };
  static Size terminal_size();

  // The terminal's cursor is at the start of an empty row; nothing of the input is shown.
  void forget();
  void show(const StyledText& prompt, const StyledText& code, std::size_t cursor, std::size_t indent, bool color);
  // Puts the cursor below the input, at the start of a row.
  void leave();

 private:
  std::string move_to(std::size_t row, std::size_t column);
  std::vector<std::string> rows_;
  std::size_t row_ = 0;
  std::size_t width_ = 0;
};

}  // namespace slope::repl
