#include "lang/memory/scratch.hpp"

#include <algorithm>
#include <cstdlib>

#include "lang/support/tuning.hpp"

namespace slope {

ScratchMemory::~ScratchMemory() {
  for (const Chunk& chunk : chunks_) std::free(chunk.begin);
}

char* ScratchMemory::take(std::size_t bytes, std::size_t available, std::size_t& taken) {
  constexpr std::size_t least_chunk = tuning::scratch_chunk;
  taken = 0;
  if (bytes > most) return nullptr;
  bytes = (bytes + 63) / 64 * 64;
  std::size_t chunk = chunk_;
  std::size_t used = (this->used() + 63) / 64 * 64;  // the sizes of chunks are multiples of that
  while (chunk < chunks_.size() && bytes > chunks_[chunk].size - used) {
    ++chunk;
    used = 0;
  }
  if (chunk == chunks_.size()) {
    std::size_t size =
        std::max({bytes, least_chunk, chunks_.empty() ? 0 : std::min(2 * chunks_.back().size, most / 16)});
    if (size > most - std::min(bytes_, most) || size > available) return nullptr;
    auto* begin = static_cast<char*>(std::aligned_alloc(64, size));
    if (!begin) return nullptr;
    chunks_.push_back({begin, size});
    bytes_ += size;
    taken = size;
  }
  fill(chunk, used + bytes);
  return chunks_[chunk].begin + used;
}

}  // namespace slope
