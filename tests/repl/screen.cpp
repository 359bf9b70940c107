#include "tests/repl/screen.hpp"

#include <wchar.h>

#include <algorithm>
#include <clocale>
#include <stdexcept>

namespace slope::test {

Screen::Screen(std::size_t rows, std::size_t columns) : columns_(columns), rows_(rows, std::vector<Cell>(columns)) {
  std::setlocale(LC_CTYPE, "C.UTF-8");  // widths of characters
}

void Screen::send(std::string_view bytes) {
  std::string all = pending_ + std::string(bytes);
  pending_.clear();
  std::size_t at = 0;
  while (at < all.size()) {
    const unsigned char c = static_cast<unsigned char>(all[at]);
    if (c == '\033') {
      if (at + 1 >= all.size()) break;
      if (all[at + 1] != '[') {
        at += 2;
        continue;
      }
      std::size_t end = at + 2;
      while (end < all.size() && (all[end] < '@' || all[end] > '~')) ++end;
      if (end >= all.size()) break;
      control(all[end], all.substr(at + 2, end - at - 2));
      at = end + 1;
    } else if (c == '\r') {
      column_ = 0;
      wraps_ = false;
      ++at;
    } else if (c == '\n') {
      line_feed();
      ++at;
    } else if (c == '\b') {
      if (column_ > 0) --column_;
      wraps_ = false;
      ++at;
    } else if (c < 0x20) {
      ++at;
    } else {
      const std::size_t length = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
      if (at + length > all.size()) break;
      char32_t code = length == 1 ? c : c & (0xffu >> (length + 1));
      for (std::size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(all[at + i]) & 0x3f);
      const int width = wcwidth(static_cast<wchar_t>(code));
      put(std::string_view(all).substr(at, length), width < 0 ? 1 : static_cast<std::size_t>(width));
      at += length;
    }
  }
  pending_ = all.substr(at);
}

void Screen::put(std::string_view character, std::size_t width) {
  if (width == 0) {  // joins the character before
    if (column_ > 0) rows_[row_][column_ - 1].character += character;
    return;
  }
  if (wraps_ || column_ + width > columns_) {
    column_ = 0;
    line_feed();
  }
  rows_[row_][column_] = {std::string(character), attributes_};
  for (std::size_t i = 1; i < width; ++i) rows_[row_][column_ + i] = {"", attributes_};
  column_ += width;
  wraps_ = column_ >= columns_;
  if (wraps_) column_ = columns_ - 1;
}

void Screen::line_feed() {
  wraps_ = false;
  if (row_ + 1 < rows_.size()) {
    ++row_;
    return;
  }
  rows_.erase(rows_.begin());
  rows_.emplace_back(columns_);
}

void Screen::control(char final, const std::string& parameters) {
  if (!parameters.empty() && parameters[0] == '?') return;  // modes of the keyboard
  const std::size_t n = parameters.empty() ? 0 : std::stoul(parameters);
  const std::size_t count = std::max<std::size_t>(n, 1);
  const auto clear = [&](std::size_t row, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) rows_[row][i] = Cell();
  };
  if (final != 'm') wraps_ = false;
  switch (final) {
    case 'm':
      attributes(parameters);
      break;
    case 'A':
      row_ -= std::min(row_, count);
      break;
    case 'B':
      row_ = std::min(row_ + count, rows_.size() - 1);
      break;
    case 'C':
      column_ = std::min(column_ + count, columns_ - 1);
      break;
    case 'D':
      column_ -= std::min(column_, count);
      break;
    case 'G':
      column_ = std::min(count, columns_) - 1;
      break;
    case 'H':
      row_ = column_ = 0;
      break;
    case 'K':
      clear(row_, n == 0 ? column_ : 0, n == 1 ? column_ + 1 : columns_);
      break;
    case 'J':
      clear(row_, n == 0 ? column_ : 0, columns_);
      for (std::size_t row = n == 0 ? row_ + 1 : 0; row < rows_.size(); ++row) clear(row, 0, columns_);
      break;
    default:
      throw std::runtime_error("the screen of the tests does not know CSI " + parameters + final);
  }
}

void Screen::attributes(const std::string& parameters) {
  attributes_ = parameters == "0" || parameters.empty() ? "" : parameters;
}

std::string Screen::rendered(bool with_marks) const {
  std::string all;
  std::size_t empty = 0;
  for (const auto& row : rows_) {
    std::string line;
    std::string now;
    std::size_t last = row.size();
    while (last > 0 && row[last - 1].character == " ") --last;
    for (std::size_t i = 0; i < last; ++i) {
      if (with_marks && row[i].attributes != now && row[i].character != " ") {
        now = row[i].attributes;
        line += "{" + now + "}";
      }
      line += row[i].character;
    }
    if (line.empty()) {
      ++empty;
      continue;
    }
    all.append(empty, '\n');
    empty = 0;
    all += line + "\n";
  }
  return all;
}

std::string Screen::text() const { return rendered(false); }
std::string Screen::marked() const { return rendered(true); }

}  // namespace slope::test
