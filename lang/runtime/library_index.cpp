#include "lang/runtime/library_index.hpp"

#include <cstddef>
#include <cstring>

namespace slope {

std::optional<LibraryIndex> LibraryIndex::read(std::string_view image) {
  LibraryIndexHeader header;
  const LibraryIndexHeader expected;
  if (image.size() < sizeof header || reinterpret_cast<std::uintptr_t>(image.data()) % 8 != 0) return std::nullopt;
  std::memcpy(&header, image.data(), sizeof header);
  if (std::memcmp(&header, &expected, offsetof(LibraryIndexHeader, items)) != 0) return std::nullopt;
  const std::size_t size = sizeof header + (std::size_t{header.items} + header.eager) * sizeof(LibraryItem) +
                           std::size_t{header.names} * sizeof(LibraryName) +
                           std::size_t{header.slots} * sizeof(std::uint32_t) + header.characters;
  if (image.size() != size || header.slots == 0 || (header.slots & (header.slots - 1)) != 0) return std::nullopt;

  LibraryIndex index;
  const char* at = image.data() + sizeof header;
  const auto take = [&]<class T>(std::span<const T>& part, std::uint32_t count) {
    part = {reinterpret_cast<const T*>(at), count};
    at += part.size_bytes();
  };
  take(index.items_, header.items);
  take(index.eager_, header.eager);
  take(index.names_, header.names);
  take(index.slots_, header.slots);
  index.characters_ = {at, header.characters};
  index.worlds_ = header.worlds;
  return index;
}

std::uint32_t LibraryIndex::find(std::string_view name) const {
  if (slots_.empty()) return none;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = library_name_hash(name) & mask; slots_[at] != none; at = (at + 1) & mask)
    if (text(names_[slots_[at]]) == name) return slots_[at];
  return none;
}

}  // namespace slope
