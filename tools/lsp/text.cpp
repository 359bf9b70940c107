#include "tools/lsp/text.hpp"

#include <algorithm>
#include <cctype>

namespace slope::api::tools::lsp {

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }
std::size_t units_of(char first) { return static_cast<unsigned char>(first) >= 0xf0 ? 2 : 1; }
bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '!' || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

void Text::set(std::string text) {
  text_ = std::move(text);
  line_starts_.assign(1, 0);
  for (std::size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1))
    line_starts_.push_back(static_cast<std::uint32_t>(at + 1));
}

void Text::change(const Json& change) {
  const Json& range = change["range"];
  if (range.is_null()) return set(change["text"].text());
  const std::size_t begin = offset(range["start"]);
  const std::size_t end = std::max(begin, offset(range["end"]));
  std::string text = std::move(text_);
  text.replace(begin, end - begin, change["text"].text());
  set(std::move(text));
}

std::size_t Text::line_of(std::size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<std::size_t>(after - line_starts_.begin()) - 1;
}

std::size_t Text::line_start(std::size_t line) const {
  return line < line_starts_.size() ? line_starts_[line] : text_.size();
}

std::size_t Text::offset(std::size_t line, std::size_t units) const {
  std::size_t at = line_start(line);
  while (at < text_.size() && text_[at] != '\n' && units > 0) {
    units -= std::min(units, units_of(text_[at]));
    ++at;
    while (at < text_.size() && is_continuation(text_[at])) ++at;
  }
  return at;
}

std::size_t Text::offset(const Json& position) const {
  return offset(position["line"].size_number(), position["character"].size_number());
}

Json Text::position(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  const std::size_t line = line_of(offset);
  std::size_t units = 0;
  for (std::size_t at = line_starts_[line]; at < offset; ++at)
    if (!is_continuation(text_[at])) units += units_of(text_[at]);
  return Json::object({{"line", line}, {"character", units}});
}

Json Text::range(std::size_t begin, std::size_t end) const {
  return Json::object({{"start", position(begin)}, {"end", position(end)}});
}

std::string_view Text::word(std::size_t offset, std::size_t& begin) const {
  offset = std::min(offset, text_.size());
  std::size_t end = offset;
  begin = offset;
  while (begin > 0 && is_name_part(text_[begin - 1])) --begin;
  while (end < text_.size() && is_name_part(text_[end])) ++end;
  if (begin == end || std::isdigit(static_cast<unsigned char>(text_[begin]))) return {};
  // `a != b`: the `!` is no part of the name.
  if (text_[end - 1] == '!' && end < text_.size() && text_[end] == '=') --end;
  while (begin < end && text_[begin] == '!') ++begin;
  if (begin > 0 && text_[begin - 1] == '@' && begin < end) --begin;
  return view(begin, end);
}

}  // namespace slope::api::tools::lsp
