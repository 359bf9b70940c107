#include "lang/explain/view_text.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <vector>

namespace slope::infer {

namespace {

constexpr std::size_t longest_line = 120;
constexpr std::string_view dots = "{…}";

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Braces of the text at each depth; what stands in string literals is none.
struct Braces {
  std::size_t begin;
  std::size_t end;  // one past the closing one
  std::size_t depth;
};
std::vector<Braces> braces_of(std::string_view text) {
  std::vector<Braces> found;
  std::vector<std::size_t> open;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && text[i] == '{') {
      open.push_back(i);
    } else if (!in_string && text[i] == '}' && !open.empty()) {
      found.push_back({open.back(), i + 1, open.size()});
      open.pop_back();
    }
  }
  return found;
}

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

}  // namespace

std::string shortened_type(std::string text, std::size_t most) {
  while (columns(text) > most) {
    const std::vector<Braces> all = braces_of(text);
    const Braces* deepest = nullptr;
    for (const Braces& one : all) {
      if (text.compare(one.begin, one.end - one.begin, dots) == 0) continue;
      // The last of the deepest: the front of a type says most.
      if (!deepest || one.depth >= deepest->depth) deepest = &one;
    }
    if (!deepest) break;
    text.replace(deepest->begin, deepest->end - deepest->begin, dots);
  }
  return text;
}

std::string shortened_text(const std::string& text, std::size_t most) {
  if (columns(text) <= most) return text;
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && ++count == most) break;
  return text.substr(0, end) + "…";
}

std::string source_text(const SourceMap& sources, Span span) {
  if (span.file == 0) return "";
  const std::string_view text = sources.file(span.file).text();
  if (span.end > text.size() || span.begin >= span.end) return "";
  const std::string_view part = text.substr(span.begin, span.end - span.begin);
  constexpr std::size_t longest = 60;
  const std::size_t line = part.find('\n');
  std::string shown(part.substr(0, std::min(line, longest)));
  while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xc0) == 0x80) shown.pop_back();
  return line != std::string_view::npos || part.size() > longest ? shown + " …" : shown;
}

std::string with_source_lines(std::string_view text, const SourceMap& sources, const ViewOptions& options) {
  std::unordered_map<std::string, FileId> files;
  for (FileId file = 1; file < sources.size(); ++file) files[sources.file(file).name()] = file;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t comment = line.rfind("  ; ");
    std::string code(line.substr(0, comment));
    if (!options.full) code = shortened_type(std::move(code), longest_line);
    out += code;
    if (comment != std::string_view::npos) {
      const std::string_view place = line.substr(comment + 4);
      out += "  ; ";
      out += place;
      const std::size_t colon = place.rfind(':');
      const auto file = colon == std::string_view::npos ? files.end() : files.find(std::string(place.substr(0, colon)));
      std::uint32_t number = 0;
      if (options.source && file != files.end() &&
          std::from_chars(place.data() + colon + 1, place.data() + place.size(), number).ec == std::errc()) {
        const std::string_view source = trimmed(sources.file(file->second).line(number));
        if (!source.empty()) out += "  " + shortened_text(std::string(source), longest_line);
      }
    }
    out += '\n';
  }
  return out;
}

}  // namespace slope::infer
