// Memory of objects that die when the activation that made them returns (lang/ir/passes/escape.hpp finds them): a stack
// of chunks, kept for the next call like tapes. So temporaries of a gradient cost no allocation from its second call
// on. The collector does not know this memory: objects in it hold no references, and nothing in the heap refers to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lang/support/tuning.hpp"

namespace slope {

// What is free of the chunk that is being filled. Machine code takes short vectors from here as well, at fixed offsets
// (codegen/layout.cpp), in multiples of 16 bytes.
struct ScratchFront {
  char* at = nullptr;
  char* end = nullptr;
};

class ScratchMemory {
 public:
  ScratchFront front;
  ~ScratchMemory();
  // An activation that uses scratch memory: `serial` grows from one to the next.
  void enter(std::uint64_t serial) { frames_.push_back({serial, chunk_, used()}); }
  // Frees what activations since `serial` took, however they ended.
  void leave(std::uint64_t serial) {
    const Frame* first = nullptr;
    std::size_t left = frames_.size();
    while (left > 0 && frames_[left - 1].serial >= serial) first = &frames_[--left];
    if (!first) return;
    fill(first->chunk, first->used);
    frames_.resize(left);
  }
  // Aligned to 64 bytes; null when it would take more new memory than `available`.
  char* take(std::size_t bytes, std::size_t available, std::size_t& taken);
  static constexpr std::size_t most = tuning::scratch_most;  // bytes of a context

 private:
  struct Frame {
    std::uint64_t serial;
    std::size_t chunk, used;
  };
  struct Chunk {
    char* begin;
    std::size_t size;
  };
  std::size_t used() const { return chunks_.empty() ? 0 : static_cast<std::size_t>(front.at - chunks_[chunk_].begin); }
  void fill(std::size_t chunk, std::size_t used) {
    chunk_ = chunk;
    if (chunks_.empty()) return;
    front = {chunks_[chunk].begin + used, chunks_[chunk].begin + chunks_[chunk].size};
  }
  std::vector<Frame> frames_;
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // that is being filled
  std::size_t bytes_ = 0;
};

}  // namespace slope
