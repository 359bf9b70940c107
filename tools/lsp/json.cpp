#include "tools/lsp/json.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace slope::api::tools::lsp {

namespace {

constexpr int most_nested = 200;

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  std::optional<Json> whole() {
    std::optional<Json> found = value(0);
    blanks();
    return at_ == text_.size() ? found : std::nullopt;
  }

 private:
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  bool take(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  std::optional<Json> value(int depth) {
    blanks();
    if (at_ >= text_.size() || depth > most_nested) return std::nullopt;
    switch (text_[at_]) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"': {
        std::string made;
        if (!string(made)) return std::nullopt;
        return Json(std::move(made));
      }
      case 't':
        return word("true") ? std::optional<Json>(true) : std::nullopt;
      case 'f':
        return word("false") ? std::optional<Json>(false) : std::nullopt;
      case 'n':
        return word("null") ? std::optional<Json>(Json()) : std::nullopt;
      default:
        return number();
    }
  }

  std::optional<Json> number() {
    double x = 0;
    const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), x);
    if (read.ec != std::errc()) return std::nullopt;
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    return Json(x);
  }

  std::optional<Json> array(int depth) {
    ++at_;
    Json made = Json::array();
    if (take(']')) return made;
    do {
      std::optional<Json> item = value(depth + 1);
      if (!item) return std::nullopt;
      made.push(std::move(*item));
    } while (take(','));
    if (!take(']')) return std::nullopt;
    return made;
  }

  std::optional<Json> object(int depth) {
    ++at_;
    Json made = Json::object();
    if (take('}')) return made;
    do {
      std::string name;
      blanks();
      if (!string(name) || !take(':')) return std::nullopt;
      std::optional<Json> member = value(depth + 1);
      if (!member) return std::nullopt;
      made.set(std::move(name), std::move(*member));
    } while (take(','));
    if (!take('}')) return std::nullopt;
    return made;
  }

  bool unit(std::uint32_t& c) {
    if (at_ + 4 > text_.size()) return false;
    const auto read = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, c, 16);
    if (read.ec != std::errc() || read.ptr != text_.data() + at_ + 4) return false;
    at_ += 4;
    return true;
  }

  bool escaped(std::string& out) {
    if (at_ >= text_.size()) return false;
    const char c = text_[at_++];
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (const std::size_t known = from.find(c); known != std::string_view::npos) {
      out += to[known];
      return true;
    }
    std::uint32_t first = 0, second = 0;
    if (c != 'u' || !unit(first)) return false;
    if (first >= 0xd800 && first < 0xdc00) {  // the first half of a pair
      if (!word("\\u") || !unit(second) || second < 0xdc00 || second > 0xdfff) return false;
      first = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    }
    append_utf8(out, first);
    return true;
  }

  bool string(std::string& out) {
    if (at_ >= text_.size() || text_[at_] != '"') return false;
    ++at_;
    while (at_ < text_.size()) {
      const std::size_t end = text_.find_first_of("\"\\", at_);
      if (end == std::string_view::npos) return false;
      out.append(text_, at_, end - at_);
      at_ = end + 1;
      if (text_[end] == '"') return true;
      if (!escaped(out)) return false;
    }
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

Json Json::array(std::vector<Json> items) {
  Json made;
  made.kind_ = Kind::array;
  made.items_ = std::move(items);
  return made;
}

Json Json::object(Members members) {
  Json made;
  made.kind_ = Kind::object;
  made.members_ = std::move(members);
  return made;
}

std::optional<Json> Json::parse(std::string_view text) { return JsonReader(text).whole(); }

const Json& Json::operator[](std::string_view name) const {
  static const Json none;
  for (const auto& [own, v] : members_)
    if (own == name) return v;
  return none;
}

std::string Json::write() const {
  std::string out;
  write_to(out);
  return out;
}

void Json::write_to(std::string& out) const {
  switch (kind_) {
    case Kind::null:
      out += "null";
      break;
    case Kind::boolean:
      out += number_ != 0 ? "true" : "false";
      break;
    case Kind::number: {
      char digits[32];
      const bool whole = number_ == std::floor(number_) && std::fabs(number_) < 1e15;
      const auto end = whole ? std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(number_))
                             : std::to_chars(digits, digits + sizeof digits, number_);
      out.append(digits, end.ptr);
      break;
    }
    case Kind::string:
      write_string(out, text_);
      break;
    case Kind::array:
      out += '[';
      for (std::size_t i = 0; i < items_.size(); ++i) {
        if (i) out += ',';
        items_[i].write_to(out);
      }
      out += ']';
      break;
    case Kind::object:
      out += '{';
      for (std::size_t i = 0; i < members_.size(); ++i) {
        if (i) out += ',';
        write_string(out, members_[i].first);
        out += ':';
        members_[i].second.write_to(out);
      }
      out += '}';
      break;
  }
}

}  // namespace slope::api::tools::lsp
