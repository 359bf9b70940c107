#include "lang/memory/heap_blocks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace slope {

void Block::clear_marks() {
  marked = 0;
  std::fill(marks, marks + (cell_count + 63) / 64, std::uint64_t{0});
}

FreeCell* Block::sweep() {
  FreeCell* list = nullptr;
  FreeCell** last = &list;
  for (std::uint32_t word = 0; word * 64 < fresh; ++word) {
    std::uint64_t dead = ~marks[word];
    if (fresh - word * 64 < 64) dead &= (std::uint64_t{1} << (fresh - word * 64)) - 1;
    for (; dead; dead &= dead - 1) {
      auto* free = reinterpret_cast<FreeCell*>(object(word * 64 + static_cast<std::uint32_t>(std::countr_zero(dead))));
      free->type = nullptr;
      *last = free;
      last = &free->next;
    }
  }
  *last = nullptr;
  clear_marks();
  return list;
}

FreeCell* Block::carve_all(FreeCell* list) {
  for (std::uint32_t cell = cell_count; cell-- > fresh;) {
    auto* free = reinterpret_cast<FreeCell*>(object(cell));
    free->type = nullptr;
    free->next = list;
    list = free;
  }
  fresh = cell_count;
  return list;
}

SizeClasses::SizeClasses() {
  // Eighths of a block at the upper end; multiples of 64 from 128 on, which arrays need.
  sizes_ = {16,  32,  48,   64,   80,   96,   112,  128,  192,  256,  320,  384,  448,  512,         640,
            768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096, 5440, 6528, largest_cell};
  std::size_t size_class = 0;
  for (std::size_t granule = 0; granule <= largest_cell / 16; ++granule) {
    while (sizes_[size_class] < granule * 16) ++size_class;
    by_granule_[granule] = static_cast<std::uint8_t>(size_class);
  }
}

BlockSpace::~BlockSpace() {
  for (Chunk* chunk : chunks_) munmap(chunk, chunk_bytes);
}

void BlockSpace::rebuild() {
  std::size_t size = 16;
  while (size < chunks_.size() * 4) size *= 2;
  slots_.assign(size, 0);
  mask_ = size - 1;
  std::uintptr_t low = ~std::uintptr_t{0}, high = 0;
  for (Chunk* chunk : chunks_) {
    std::uintptr_t base = reinterpret_cast<std::uintptr_t>(chunk);
    low = std::min(low, base);
    high = std::max(high, base + chunk_bytes);
    std::size_t i = slot_of(base);
    while (slots_[i]) i = (i + 1) & mask_;
    slots_[i] = base;
  }
  lowest_ = low;
  span_ = chunks_.empty() ? 0 : high - low;
}

bool BlockSpace::add_chunk() {
  // Twice the size, to cut an aligned part out of it.
  void* raw =
      mmap(nullptr, 2 * chunk_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return false;
  auto* begin = static_cast<char*>(raw);
  std::size_t before = (chunk_bytes - reinterpret_cast<std::uintptr_t>(begin) % chunk_bytes) % chunk_bytes;
  char* base = begin + before;
  if (before) munmap(begin, before);
  if (std::size_t after = chunk_bytes - before) munmap(base + chunk_bytes, after);
  Chunk* chunk = new (base) Chunk;
  for (std::size_t i = 1; i < blocks_per_chunk; ++i) chunk->blocks[i].begin = base + i * block_bytes;
  for (std::size_t i = blocks_per_chunk; i-- > 1;) free_.push_back(&chunk->blocks[i]);
  chunks_.push_back(chunk);
  rebuild();
  return true;
}

Block* BlockSpace::take(std::uint8_t size_class, std::uint32_t cell_size) {
  if (free_.empty() && !add_chunk()) return nullptr;
  Block* block = free_.back();
  free_.pop_back();
  block->cell_size = cell_size;
  block->cell_count = static_cast<std::uint32_t>(block_bytes / cell_size);
  block->reciprocal = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + cell_size - 1) / cell_size);
  block->fresh = 0;
  block->size_class = size_class;
  block->in_use = true;
  block->has_external = false;
  block->free = nullptr;
  block->clear_marks();
  ++in_use_;
  return block;
}

void BlockSpace::release(Block* block) {
  block->in_use = false;
  block->has_external = false;
  block->free = nullptr;
  --in_use_;
  free_.push_back(block);
}

void BlockSpace::trim(std::size_t blocks_kept) {
  constexpr std::size_t usable = blocks_per_chunk - 1;
  std::size_t kept = std::max<std::size_t>(blocks_kept, in_use_) + 2 * usable;
  if (free_.size() + in_use_ <= kept) return;
  std::size_t excess = (free_.size() + in_use_ - kept) / usable;
  std::vector<Chunk*> gone;
  for (Chunk* chunk : chunks_) {
    if (gone.size() >= excess) break;
    bool unused =
        std::none_of(chunk->blocks + 1, chunk->blocks + blocks_per_chunk, [](const Block& b) { return b.in_use; });
    if (unused) gone.push_back(chunk);
  }
  if (gone.empty()) return;
  std::sort(gone.begin(), gone.end());
  auto is_gone = [&](const void* address) {
    auto base = reinterpret_cast<std::uintptr_t>(address) & ~(chunk_bytes - 1);
    return std::binary_search(gone.begin(), gone.end(), reinterpret_cast<Chunk*>(base));
  };
  std::erase_if(free_, [&](Block* b) { return is_gone(b); });
  std::erase_if(chunks_, [&](Chunk* c) { return is_gone(c); });
  for (Chunk* chunk : gone) munmap(chunk, chunk_bytes);
  rebuild();
}

}  // namespace slope
