#include "repl/line_screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace slope::repl {

namespace {

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// The character at the start of `text`: its bytes, how it is shown, the columns that takes.
struct Glyph {
  std::size_t bytes = 1;
  std::string shown;
  std::size_t columns = 1;
};

Glyph glyph_at(std::string_view text) {
  const unsigned char first = static_cast<unsigned char>(text[0]);
  Glyph glyph;
  if (first == '\t') {
    glyph.shown = "    ";
    glyph.columns = 4;
    return glyph;
  }
  if (first < 0x20 || first == 0x7f) {
    glyph.shown = {'^', static_cast<char>(first ^ 0x40)};
    glyph.columns = 2;
    return glyph;
  }
  const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  if (length > text.size() || (length == 1 && first >= 0x80)) {
    glyph.shown = "\xef\xbf\xbd";  // U+FFFD
    return glyph;
  }
  char32_t code = length == 1 ? first : first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  glyph.bytes = length;
  glyph.shown = std::string(text.substr(0, length));
  const int width = wcwidth(static_cast<wchar_t>(code));
  glyph.columns = width < 0 ? 1 : static_cast<std::size_t>(width);
  return glyph;
}

class Rows {
 public:
  Rows(std::size_t width, bool color) : width_(std::max<std::size_t>(width, 4)), color_(color) { rows_.emplace_back(); }

  void add(const Glyph& glyph, Style style) {
    if (column_ + glyph.columns > width_) new_row();
    if (color_ && !*style_sequence(style)) style = Style::plain;
    if (color_ && style != now_) {
      if (now_ != Style::plain) rows_.back() += style_end;
      rows_.back() += style_sequence(style);
      now_ = style;
    }
    rows_.back() += glyph.shown;
    column_ += glyph.columns;
  }
  void new_row() {
    if (now_ != Style::plain) rows_.back() += style_end;
    now_ = Style::plain;
    rows_.emplace_back();
    column_ = 0;
  }
  // Where the next character will be.
  void mark(Layout& layout) {
    if (column_ == width_) new_row();
    layout.cursor_row = rows_.size() - 1;
    layout.cursor_column = column_;
  }
  std::vector<std::string> finish() {
    if (now_ != Style::plain) rows_.back() += style_end;
    return std::move(rows_);
  }

 private:
  std::size_t width_;
  bool color_;
  std::vector<std::string> rows_;
  std::size_t column_ = 0;
  Style now_ = Style::plain;
};

}  // namespace

std::size_t text_columns(std::string_view utf8) {
  std::size_t columns = 0;
  while (!utf8.empty()) {
    const Glyph glyph = glyph_at(utf8);
    columns += glyph.columns;
    utf8.remove_prefix(glyph.bytes);
  }
  return columns;
}

Layout lay_out(const StyledText& prompt, const StyledText& code, std::size_t cursor, std::size_t width,
               std::size_t indent, bool color) {
  Layout layout;
  Rows rows(width, color);
  const auto put = [&](const StyledText& from, bool is_code) {
    std::size_t at = 0;
    while (at < from.text.size()) {
      if (is_code && at == cursor) rows.mark(layout);
      if (from.text[at] == '\n') {
        rows.new_row();
        for (std::size_t i = 0; is_code && i < indent; ++i) rows.add({1, " ", 1}, Style::plain);
        ++at;
        continue;
      }
      const Glyph glyph = glyph_at(std::string_view(from.text).substr(at));
      rows.add(glyph, at < from.styles.size() ? from.styles[at] : Style::plain);
      at += glyph.bytes;
    }
    if (is_code && cursor >= from.text.size()) rows.mark(layout);
  };
  put(prompt, false);
  put(code, true);
  layout.rows = rows.finish();
  return layout;
}

LineScreen::Size LineScreen::terminal_size() {
  Size size;
  winsize found = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) == 0 && found.ws_row > 0 && found.ws_col > 0) {
    size.rows = found.ws_row;
    size.columns = found.ws_col;
  }
  return size;
}

void LineScreen::forget() {
  rows_.clear();
  row_ = 0;
}

std::string LineScreen::move_to(std::size_t row, std::size_t column) {
  std::string out = "\r";
  if (row < row_) out += "\033[" + std::to_string(row_ - row) + "A";
  out.append(row > row_ ? row - row_ : 0, '\n');
  if (row > row_) out += '\r';
  if (column > 0) out += "\033[" + std::to_string(column) + "C";
  row_ = row;
  return out;
}

void LineScreen::show(const StyledText& prompt, const StyledText& code, std::size_t cursor, std::size_t indent,
                      bool color) {
  const Size size = terminal_size();
  Layout layout = lay_out(prompt, code, cursor, size.columns, indent, color);
  // Only so many rows as there are, around the cursor.
  if (layout.rows.size() > size.rows) {
    const std::size_t last = std::max(layout.cursor_row + 1, size.rows);
    const std::size_t first = last - size.rows;
    layout.rows = {layout.rows.begin() + static_cast<std::ptrdiff_t>(first),
                   layout.rows.begin() + static_cast<std::ptrdiff_t>(last)};
    layout.cursor_row -= first;
  }
  std::string out;
  if (width_ != size.columns && !rows_.empty()) {  // the terminal has wrapped what was there: begin again
    out += move_to(0, 0) + "\033[J";
    rows_.clear();
    row_ = 0;
  }
  width_ = size.columns;
  for (std::size_t i = 0; i < layout.rows.size(); ++i) {
    if (i < rows_.size() && rows_[i] == layout.rows[i]) continue;
    // Erased before it is written: behind a full row the cursor waits in the last column, which would be erased too.
    out += move_to(i, 0) + "\033[K" + layout.rows[i];
  }
  if (layout.rows.size() < rows_.size()) out += move_to(layout.rows.size(), 0) + "\033[J";
  out += move_to(layout.cursor_row, layout.cursor_column);
  rows_ = std::move(layout.rows);
  write_all(out);
}

void LineScreen::leave() {
  if (rows_.empty()) return;
  write_all(move_to(rows_.size() - 1, 0) + "\r\n");
  forget();
}

}  // namespace slope::repl
