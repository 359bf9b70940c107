#include "lang/support/source.hpp"

#include <algorithm>
#include <utility>

namespace slope {

namespace {

bool is_continuation_byte(char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; }

std::uint32_t count_code_points(std::string_view text) {
  return static_cast<std::uint32_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation_byte(c); }));
}

// An excerpt shows at most this many bytes on either side of the place it points at: generated one-line files exist.
constexpr std::size_t excerpt_reach = 100;

}  // namespace

SourceFile::SourceFile(std::string name, std::string text)
    : name_(std::move(name)), own_(std::move(text)), text_(own_) {}

SourceFile::SourceFile(std::string name, const char* text, std::size_t size)
    : name_(std::move(name)), text_(text, size) {}

const std::vector<std::uint32_t>& SourceFile::line_starts() const {
  std::call_once(lines_known_, [this] {
    line_starts_.push_back(0);
    for (std::size_t i = text_.find('\n'); i != std::string::npos; i = text_.find('\n', i + 1))
      line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
  });
  return line_starts_;
}

LineColumn SourceFile::line_column(std::uint32_t offset) const {
  const std::vector<std::uint32_t>& starts = line_starts();
  offset = std::min<std::uint32_t>(offset, static_cast<std::uint32_t>(text_.size()));
  const auto after = std::upper_bound(starts.begin(), starts.end(), offset);
  const std::uint32_t start = *(after - 1);
  LineColumn where;
  where.line = static_cast<std::uint32_t>(after - starts.begin());
  where.column = count_code_points(text_.substr(start, offset - start)) + 1;
  return where;
}

std::string_view SourceFile::line(std::uint32_t line_number) const {
  const std::vector<std::uint32_t>& starts = line_starts();
  if (line_number == 0 || line_number > starts.size()) return {};
  const std::size_t start = starts[line_number - 1];
  const std::size_t end = line_number < starts.size() ? starts[line_number] - 1 : text_.size();
  std::string_view found = text_.substr(start, end - start);
  if (!found.empty() && found.back() == '\r') found.remove_suffix(1);
  return found;
}

std::size_t SourceFile::bytes(std::string_view name, std::string_view text) {
  return sizeof(SourceFile) + sizeof(std::unique_ptr<SourceFile>) + name.size() + text.size();
}

SourceMap::SourceMap() { add("<none>", ""); }

// A later text has a higher number: who looks for the newest of a name goes by that. So only the last are used again.
FileId SourceMap::place(std::unique_ptr<SourceFile> file) {
  if (spare_.capacity() <= files_.size()) spare_.reserve(2 * files_.size() + 1);  // to remove a file needs no memory
  files_.push_back(std::move(file));
  ++added_;
  return static_cast<FileId>(files_.size() - 1);
}

FileId SourceMap::add(std::string name, std::string text) {
  return place(std::make_unique<SourceFile>(std::move(name), std::move(text)));
}

FileId SourceMap::add_shared(std::string name, std::string_view text) {
  return place(std::make_unique<SourceFile>(std::move(name), text.data(), text.size()));
}

void SourceMap::remove(FileId id) {
  if (id == 0 || !has(id)) return;
  files_[id] = nullptr;
  spare_.push_back(id);
  for (; !files_.back(); files_.pop_back()) std::erase(spare_, static_cast<FileId>(files_.size() - 1));
}

std::string SourceMap::describe(Span span) const {
  const SourceFile& source = file(span.file);
  const LineColumn where = source.line_column(span.begin);
  return source.name() + ":" + std::to_string(where.line) + ":" + std::to_string(where.column);
}

// Without the column, which takes time in proportion to the line: generated programs are often one line.
std::uint32_t SourceMap::line_of(Span span) const {
  const SourceFile& source = file(span.file);
  const auto begins_before = [&](std::uint32_t number) {
    const std::string_view line = source.line(number);
    return line.data() && line.data() - source.text().data() <= static_cast<std::ptrdiff_t>(span.begin);
  };
  std::uint32_t last = 1;  // begins before
  std::uint32_t after = 2;
  while (begins_before(after)) last = std::exchange(after, 2 * after);
  while (after - last > 1) {
    const std::uint32_t middle = last + (after - last) / 2;
    (begins_before(middle) ? last : after) = middle;
  }
  return last;
}

std::string SourceMap::excerpt(Span span) const {
  const SourceFile& source = file(span.file);
  const LineColumn where = source.line_column(span.begin);
  std::string_view line = source.line(where.line);
  const std::size_t line_start = static_cast<std::size_t>(
      line.empty() ? std::min<std::size_t>(span.begin, source.text().size()) : line.data() - source.text().data());
  std::size_t begin = std::min<std::size_t>(span.begin - std::min<std::size_t>(span.begin, line_start), line.size());
  std::size_t end = std::clamp<std::size_t>(span.end > line_start ? span.end - line_start : 0, begin, line.size());

  if (line.size() > 2 * excerpt_reach) {
    std::size_t first = begin > excerpt_reach ? begin - excerpt_reach : 0;
    while (first > 0 && is_continuation_byte(line[first])) --first;
    std::size_t last = std::min(line.size(), begin + excerpt_reach);
    while (last < line.size() && is_continuation_byte(line[last])) ++last;
    line = line.substr(first, last - first);
    begin -= first;
    end = std::clamp<std::size_t>(end - first, begin, line.size());
  }

  std::string shown;
  std::string marks;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool control = static_cast<unsigned char>(c) < 0x20 && c != '\t';
    shown += control ? ' ' : c;
    if (i < begin && !is_continuation_byte(c)) marks += c == '\t' ? '\t' : ' ';
  }
  const std::uint32_t width = std::max<std::uint32_t>(1, count_code_points(line.substr(begin, end - begin)));
  marks.append(width, '^');
  return shown + "\n" + marks + "\n";
}

}  // namespace slope
