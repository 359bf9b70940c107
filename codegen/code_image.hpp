// Machine code of the library that was made when Slope was built: one file beside the code generator, mapped and never
// written. Its keys are those of the cache on disk (object_cache.hpp), so a function is found by what it was made from,
// whoever asks for it; on a machine with another processor nothing is found and all is compiled as without the image.
//
// The file: a CodeImageHead, an entry for each object in ascending order of the keys, the objects. codegen/image/pack.cpp
// writes it.
#pragma once

#include <array>
#include <cstdint>

namespace slope::codegen {

using CodeKey = std::array<std::uint8_t, 32>;

inline constexpr char code_image_magic[16] = "slope image 1\n";
inline constexpr const char* code_image_name = "slope_library.code";

struct CodeImageHead {
  char magic[16];
  std::uint64_t bytes;  // of the whole file
  std::uint64_t count;
};

struct CodeImageEntry {
  CodeKey key;
  CodeKey hash;  // of the object
  std::uint64_t offset;
  std::uint64_t bytes;
};

}  // namespace slope::codegen
