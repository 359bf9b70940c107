// What a terminal shows after it was sent some bytes: enough of a VT100 for prompts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slope::test {

class Screen {
 public:
  Screen(std::size_t rows, std::size_t columns);
  void send(std::string_view bytes);

  std::string text() const;  // rows without blanks at their ends; empty rows at the end are left out
  // The same with the colours: each change of the attributes as {1;32}, {} for none.
  std::string marked() const;
  std::size_t row() const { return row_; }
  std::size_t column() const { return column_; }

 private:
  struct Cell {
    std::string character = " ";  // empty: the right half of a wide one
    std::string attributes;
  };
  void put(std::string_view character, std::size_t width);
  void line_feed();
  void control(char final, const std::string& parameters);
  void attributes(const std::string& parameters);
  std::string rendered(bool with_marks) const;

  std::size_t columns_;
  std::vector<std::vector<Cell>> rows_;
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  bool wraps_ = false;  // the last column was written: the next character goes to the next row
  std::string attributes_;
  std::string pending_;  // an unfinished sequence or character
};

}  // namespace slope::test
