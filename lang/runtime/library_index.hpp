// What the standard library defines, by name: the position of each definition, and which names are exported. The build
// makes it from the library's syntax alone (lang/lower/library_index.hpp), so that an engine starts without looking at
// a single definition. A name is entered into Base when it is first looked up, and its definitions are made as
// postponed.cpp says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace slope {

struct LibraryItem {
  std::uint32_t source = 0;     // number of the file, in load order
  std::uint32_t statement = 0;  // node of its tree
  std::uint32_t world = 0;      // worlds that the definitions before it take
  std::uint32_t methods = 0;    // at most so many are made
  std::uint32_t next = ~0u;     // of the same name
  std::uint32_t module = ~0u;   // of an import: the name of the module that it is from
};

enum class LibraryNameKind : std::uint32_t {
  exported,  // what it means is defined elsewhere: in Core, or by a statement that runs at the start
  function,  // its items are methods: of a function of Base, or constructors of a type of Core
  value,     // its first item gives it its value; the others are constructors of that type
  any_type,  // constructors (::Type{T})(…) where {T}, with no name
};

struct LibraryName {
  std::uint32_t text = 0;  // place of the name among the characters
  std::uint32_t size = 0;
  std::uint32_t first = ~0u;  // item
  LibraryNameKind kind = LibraryNameKind::exported;
  std::uint32_t is_exported = 0;
  std::uint32_t has_keywords = 0;  // a definition has keyword arguments
  std::uint32_t is_module = 0;
  std::uint32_t gives_way = 0;  // exported, but no name of Julia's Base: see borrowed.cpp
};

class LibraryIndex {
 public:
  static constexpr std::uint32_t none = ~0u;

  // The index in these bytes, which must be aligned to 8 and outlive it. Nothing: none, or one of another layout.
  static std::optional<LibraryIndex> read(std::string_view image);

  std::uint32_t find(std::string_view name) const;  // its number in names(), or none

  std::span<const LibraryItem> items() const { return items_; }
  std::span<const LibraryName> names() const { return names_; }
  std::span<const LibraryItem> eager() const { return eager_; }  // statements that run at the start, in their order
  std::uint32_t worlds() const { return worlds_; }               // that all items take
  std::string_view text(const LibraryName& name) const { return characters_.substr(name.text, name.size); }

 private:
  std::span<const LibraryItem> items_;
  std::span<const LibraryItem> eager_;
  std::span<const LibraryName> names_;
  std::span<const std::uint32_t> slots_;  // open addressing, by hash; a power of two
  std::string_view characters_;
  std::uint32_t worlds_ = 0;
};

// How an index is laid out: the header, the items, those of the start, the names, the slots, the characters.
struct LibraryIndexHeader {
  char magic[8] = {'s', 'l', 'o', 'p', 'e', 'l', 'i', 'b'};
  std::uint32_t format = 1;
  std::uint32_t item_size = sizeof(LibraryItem);
  std::uint32_t name_size = sizeof(LibraryName);
  std::uint32_t byte_order = 0x01020304;
  std::uint32_t items = 0;
  std::uint32_t eager = 0;
  std::uint32_t names = 0;
  std::uint32_t slots = 0;
  std::uint32_t characters = 0;
  std::uint32_t worlds = 0;
};

// The hash that the slots are ordered by: FNV-1a, the same in every build.
inline std::uint32_t library_name_hash(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash ^ hash >> 15;
}

}  // namespace slope
