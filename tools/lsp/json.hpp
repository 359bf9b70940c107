// JSON values: what the messages of the language server are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slope::api::tools::lsp {

class Json {
 public:
  enum class Kind : unsigned char { null, boolean, number, string, array, object };
  using Members = std::vector<std::pair<std::string, Json>>;

  Json() = default;  // null
  Json(bool b) : kind_(Kind::boolean), number_(b ? 1 : 0) {}
  Json(int n) : kind_(Kind::number), number_(n) {}
  Json(std::size_t n) : kind_(Kind::number), number_(static_cast<double>(n)) {}
  Json(double x) : kind_(Kind::number), number_(x) {}
  Json(std::string text) : kind_(Kind::string), text_(std::move(text)) {}
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(const char* text) : Json(std::string(text)) {}
  static Json array(std::vector<Json> items = {});
  static Json object(Members members = {});

  static std::optional<Json> parse(std::string_view text);  // nothing: it is not JSON
  std::string write() const;

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool boolean() const { return kind_ == Kind::boolean && number_ != 0; }
  double number() const { return kind_ == Kind::number ? number_ : 0; }
  std::size_t size_number() const { return number_ > 0 && number_ < 4e9 ? static_cast<std::size_t>(number()) : 0; }
  const std::string& text() const { return text_; }
  const std::vector<Json>& items() const { return items_; }
  const Json& operator[](std::string_view name) const;  // null where there is no such member
  void push(Json item) { items_.push_back(std::move(item)); }
  void set(std::string name, Json v) { members_.emplace_back(std::move(name), std::move(v)); }
  bool operator==(const Json& other) const { return kind_ == other.kind_ && write() == other.write(); }

 private:
  void write_to(std::string& out) const;

  Kind kind_ = Kind::null;
  double number_ = 0;
  std::string text_;
  std::vector<Json> items_;
  Members members_;
};

}  // namespace slope::api::tools::lsp
