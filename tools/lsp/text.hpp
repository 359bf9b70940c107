// A document's text with its lines. The protocol counts lines from 0 and UTF-16 units in a line; everything here counts
// bytes from 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/lsp/json.hpp"

namespace slope::api::tools::lsp {

class Text {
 public:
  explicit Text(std::string text = {}) { set(std::move(text)); }

  const std::string& all() const { return text_; }
  std::string_view view(std::size_t begin, std::size_t end) const {
    if (begin > text_.size()) return {};
    return std::string_view(text_).substr(begin, end > begin ? end - begin : 0);
  }
  std::size_t size() const { return text_.size(); }
  std::size_t line_count() const { return line_starts_.size(); }
  std::size_t line_of(std::size_t offset) const;
  std::size_t line_start(std::size_t line) const;  // the end of the text for lines behind it
  std::size_t offset(std::size_t line, std::size_t units) const;
  std::size_t offset(const Json& position) const;
  Json position(std::size_t offset) const;
  Json range(std::size_t begin, std::size_t end) const;

  void set(std::string text);
  void change(const Json& change);  // one of `contentChanges`: a range and its new text, or the whole text

  // The name at an offset or right before it, [begin, end); empty when there is none.
  std::string_view word(std::size_t offset, std::size_t& begin) const;

 private:
  std::string text_;
  std::vector<std::uint32_t> line_starts_;
};

}  // namespace slope::api::tools::lsp
