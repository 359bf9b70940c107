// Where the heap's small objects lie.
//
//   Chunk   1 MiB, aligned to 1 MiB: a first part with the descriptors, then blocks 1…15 of 64 KiB
//   Block   cells of one size; its descriptor holds the mark bits, so marking does not touch the objects' own memory
//   cell    an object, or free: then its first word (the type) is null and its second is the next free cell
//
// From an address to its cell: the chunk (a hash set of chunk addresses says whether it is one of ours), the block by
// bits 16…19, the cell by multiplying with the reciprocal of the size. Cells from `fresh` on
// are free whatever is written there: none was handed out since the block was empty, and nobody touches them before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lang/types/object.hpp"

namespace slope {

inline constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
inline constexpr std::size_t block_bytes = std::size_t{1} << 16;
inline constexpr std::size_t blocks_per_chunk = chunk_bytes / block_bytes;  // the first is for descriptors
inline constexpr std::size_t largest_cell = 8192;

struct FreeCell {
  const DataType* type;  // null
  FreeCell* next;
};

struct Block {
  char* begin = nullptr;
  std::uint32_t cell_size = 0;
  std::uint32_t cell_count = 0;
  std::uint32_t reciprocal = 0;  // ceil(2^32 / cell_size): exact for offsets below 2^16
  std::uint32_t fresh = 0;       // first cell that was not handed out; of a block in use as FreshCells see note_fresh
  std::uint32_t marked = 0;
  std::uint8_t size_class = 0;
  bool in_use = false;
  bool has_external = false;  // an array here has memory outside of its cell
  FreeCell* free = nullptr;   // cells that wait for use: of a block that was swept ahead of need
  std::uint64_t marks[block_bytes / 16 / 64] = {};

  std::uint32_t cell_at(const void* address) const {
    std::uint64_t offset = static_cast<std::uint64_t>(static_cast<const char*>(address) - begin);
    return static_cast<std::uint32_t>(offset * reciprocal >> 32);
  }
  Object* object(std::uint32_t cell) const { return reinterpret_cast<Object*>(begin + std::size_t{cell} * cell_size); }
  bool is_marked(std::uint32_t cell) const { return marks[cell / 64] >> (cell % 64) & 1; }
  bool mark(std::uint32_t cell) {  // true when it was not
    std::uint64_t bit = std::uint64_t{1} << (cell % 64);
    if (marks[cell / 64] & bit) return false;
    marks[cell / 64] |= bit;
    ++marked;
    return true;
  }
  void clear_marks();
  // Links the cells that are free (unmarked), lowest address first, and forgets the marks.
  FreeCell* sweep();
  char* fresh_begin() const { return begin + std::size_t{fresh} * cell_size; }
  char* cells_end() const { return begin + std::size_t{cell_count} * cell_size; }
  // `at`: where the first fresh cell is by now, or null when they are not in use.
  void note_fresh(const char* at) {
    if (at) fresh = at == cells_end() ? cell_count : cell_at(at);
  }
  // Links all fresh cells in front of `list`.
  FreeCell* carve_all(FreeCell* list);
};

struct Chunk {
  Block blocks[blocks_per_chunk];
};
static_assert(sizeof(Chunk) <= block_bytes);

// The size of cell for so many bytes.
class SizeClasses {
 public:
  SizeClasses();
  std::size_t count() const { return sizes_.size(); }
  std::uint32_t size(std::uint8_t size_class) const { return sizes_[size_class]; }
  std::uint8_t for_bytes(std::size_t bytes) const { return by_granule_[(bytes + 15) / 16]; }
  // Of an array with its elements: aligned to 64 bytes, unless the elements are fewer bytes than that.
  std::uint8_t for_array_bytes(std::size_t bytes) const {
    return for_bytes(bytes < 128 ? bytes : (bytes + 63) / 64 * 64);
  }

 private:
  std::vector<std::uint32_t> sizes_;
  std::uint8_t by_granule_[largest_cell / 16 + 1];
};

// All chunks of one heap.
class BlockSpace {
 public:
  BlockSpace() = default;
  ~BlockSpace();
  BlockSpace(const BlockSpace&) = delete;

  // The block in use that contains an address, or null.
  Block* find(const void* address) const {
    std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(address);
    if (bits - lowest_ >= span_) return nullptr;
    std::uintptr_t base = bits & ~(chunk_bytes - 1);
    for (std::size_t i = slot_of(base);; i = (i + 1) & mask_) {
      if (slots_[i] == base) break;
      if (slots_[i] == 0) return nullptr;
    }
    Block& block = reinterpret_cast<Chunk*>(base)->blocks[(bits / block_bytes) % blocks_per_chunk];
    return block.in_use ? &block : nullptr;
  }
  Block* take(std::uint8_t size_class, std::uint32_t cell_size);  // null: the system has no more memory
  void release(Block* block);
  // Gives chunks without a block in use back to the system, as long as so many blocks remain.
  void trim(std::size_t blocks_kept);
  std::size_t blocks_in_use() const { return in_use_; }

 private:
  std::size_t slot_of(std::uintptr_t base) const { return (base / chunk_bytes * 0x9e3779b97f4a7c15ull >> 32) & mask_; }
  bool add_chunk();
  void rebuild();
  std::vector<Chunk*> chunks_;
  std::vector<std::uintptr_t> slots_;  // open addressing, at most a quarter full
  std::size_t mask_ = 0;
  std::uintptr_t lowest_ = 0;
  std::uintptr_t span_ = 0;
  std::vector<Block*> free_;
  std::size_t in_use_ = 0;
};

}  // namespace slope
