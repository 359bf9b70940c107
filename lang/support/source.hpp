// Source text and positions in it.
//
// A SourceFile owns one text (a file, a prompt entry, a string given to `eval`) and its line table. A SourceMap owns
// the files of one engine and names each by a 32-bit FileId; a Span is then a file and a byte range, 12 bytes, cheap
// enough to sit on every AST node and every IR instruction. Line and column are computed only when something is shown.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace slope {

using FileId = std::uint32_t;

struct Span {
  FileId file = 0;
  std::uint32_t begin = 0;  // byte offset of the first byte
  std::uint32_t end = 0;    // byte offset past the last byte
};

struct LineColumn {
  std::uint32_t line = 1;    // 1-based
  std::uint32_t column = 1;  // 1-based, in Unicode code points
};

class SourceFile {
 public:
  SourceFile(std::string name, std::string text);
  SourceFile(std::string name, const char* text, std::size_t size);  // a text that outlives this
  SourceFile(const SourceFile&) = delete;
  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  std::size_t bytes() const { return bytes(name_, own_); }
  static std::size_t bytes(std::string_view name, std::string_view text);  // that the file of such a text takes
  LineColumn line_column(std::uint32_t offset) const;
  std::string_view line(std::uint32_t line_number) const;  // without its newline; empty past the end

 private:
  const std::vector<std::uint32_t>& line_starts() const;  // found when first wanted: few texts are ever shown

  std::string name_;
  std::string own_;
  std::string_view text_;
  mutable std::once_flag lines_known_;
  mutable std::vector<std::uint32_t> line_starts_;
};

class SourceMap {
 public:
  SourceMap();  // file 0 is the empty file "<none>"
  FileId add(std::string name, std::string text);
  FileId add_shared(std::string name, std::string_view text);  // not copied: `text` outlives this
  // No position in it is kept anywhere. Its number is that of the empty file, and used again when it was the last.
  void remove(FileId id);
  const SourceFile& file(FileId id) const { return files_[id] ? *files_[id] : *files_[0]; }
  bool has(FileId id) const { return id < files_.size() && files_[id]; }
  std::size_t size() const { return files_.size(); }  // numbers, also those of removed files
  std::size_t count() const { return files_.size() - spare_.size(); }
  std::size_t added() const { return added_; }  // ever

  std::string describe(Span span) const;   // "file:line:column"
  std::uint32_t line_of(Span span) const;  // 1-based line of the span's begin
  std::string excerpt(Span span) const;    // the line, and under it a caret line; two lines, newline-ended

 private:
  FileId place(std::unique_ptr<SourceFile> file);

  std::deque<std::unique_ptr<SourceFile>> files_;
  std::vector<FileId> spare_;  // has room for all
  std::size_t added_ = 0;
};

}  // namespace slope
