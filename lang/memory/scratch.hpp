// Memory of objects that die when the activation that made them returns (lang/ir/passes/escape.hpp finds them): a stack
// of chunks, kept for the next call like tapes. So temporaries of a gradient cost no allocation from its second call
// on. The collector does not know this memory: objects in it hold no references, and nothing in the heap refers to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lang/support/tuning.hpp"

namespace slope {

class ScratchMemory {
 public:
  ~ScratchMemory();
  // An activation that uses scratch memory: `serial` grows from one to the next.
  void enter(std::uint64_t serial) { frames_.push_back({serial, chunk_, used_}); }
  // Frees what activations since `serial` took, however they ended.
  void leave(std::uint64_t serial) {
    while (!frames_.empty() && frames_.back().serial >= serial) {
      chunk_ = frames_.back().chunk;
      used_ = frames_.back().used;
      frames_.pop_back();
    }
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
  std::vector<Frame> frames_;
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // that is being filled
  std::size_t used_ = 0;   // of it
  std::size_t bytes_ = 0;
};

}  // namespace slope
