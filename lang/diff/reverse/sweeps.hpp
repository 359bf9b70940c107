// What the parts of the reverse transform share: the control flow of the primal, and the functions that the two sweeps
// are emitted into.
#pragma once

#include <memory>
#include <vector>

#include "lang/ir/build.hpp"
#include "lang/ir/cfg.hpp"

namespace slope::diff {

inline constexpr std::uint32_t no_loop = ~0u;

// Of a primal in normal form: one return; each loop has one entering edge and one latch.
struct Flow {
  explicit Flow(const ir::Function& primal);
  std::uint32_t loop_of(ir::BlockId block) const { return forest.loop_of[block]; }  // innermost, or no_loop
  bool inside(std::uint32_t loop, ir::BlockId block) const;

  ir::Cfg cfg;
  ir::LoopForest forest;
  ir::BlockId exit = ir::no_block;  // the block that returns; none when the function always raises
  std::vector<bool> reaches_exit;   // by block
  struct Incoming {
    ir::BlockId source;
    std::size_t edge;
  };
  std::vector<std::vector<Incoming>> incoming;  // by block: edges into it, in the order of their sources
  // A block with two edges into it, of which a branch above decides: its block, and its edge for the first of the two.
  struct Decision {
    ir::BlockId branch = ir::no_block;
    std::size_t edge_of_first = 0;
  };
  Decision decision(const ir::Function& primal, ir::BlockId merge) const;
};

struct Sweeps {
  // `reverse` null: one function has both sweeps.
  Sweeps(std::unique_ptr<ir::Function> forward, std::unique_ptr<ir::Function> reverse, std::size_t primal_blocks);
  bool split() const { return reverse_half != nullptr; }

  std::unique_ptr<ir::Function> forward_half;  // in combined mode: the whole
  std::unique_ptr<ir::Function> reverse_half;  // in combined mode: null
  ir::Builder f;                               // forward cursor
  ir::Builder r;                               // reverse cursor
  std::vector<ir::BlockId> forward_blocks;     // by primal block
  std::vector<ir::BlockId> reverse_blocks;     // likewise
  ir::BlockId current_forward = ir::no_block;  // primal block being emitted
  ir::BlockId current_reverse = ir::no_block;  // likewise
};

// A slot for the builder's function.
int new_slot(ir::Builder& at, const Symbol* name, const Type* type);

}  // namespace slope::diff
