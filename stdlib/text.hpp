// The text of the standard library, its syntax trees and the index of what they define, carried inside the binary
// (stdlib/CMakeLists.txt writes the assembler file that holds them). Sorted by name.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace slope::stdlib {

struct TextFile {
  const char* name_data;  // path under stdlib/, "rules/arrays.slope"; ends in a zero byte
  const char* text_data;
  std::size_t text_size;
  const char* image_data;
  std::size_t image_size;

  std::string_view name() const { return name_data; }
  std::string_view text() const { return {text_data, text_size}; }
  std::string_view image() const { return {image_data, image_size}; }  // lang/syntax/image.hpp; empty: none
};

extern "C" {
extern const TextFile slope_stdlib_texts[];
extern const std::size_t slope_stdlib_text_count;
extern const char slope_stdlib_index[];
extern const std::size_t slope_stdlib_index_size;
}

inline std::span<const TextFile> texts() { return {slope_stdlib_texts, slope_stdlib_text_count}; }

// What the library defines (lang/runtime/library_index.hpp).
inline std::string_view index() { return {slope_stdlib_index, slope_stdlib_index_size}; }

}  // namespace slope::stdlib
