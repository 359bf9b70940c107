// What the interpreter runs: an ir::Function, flattened so that one dispatch loop can run it.
//
//   registers   one Value for each inst that has a result, then one for each remaining slot;
//               constants are not copied into registers, instructions read them in place
//   operand     32 bits as in ir::Operand: with the top bit set a constant, otherwise a register
//   edge        the moves that a jump makes into the parameters of its target, in an order in which no source is
//               overwritten before it is read (a cycle of moves uses one spare register)
//
// A loop of the IR stays a loop here. The interpreter counts how often it takes an edge back to a loop header, and asks
// the tiers for native code when the count is high.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lang/ir/ir.hpp"
#include "lang/runtime/call_sites.hpp"

namespace slope::interpreter {

struct Instruction {
  ir::Op op : 8;
  std::uint32_t operand_count : 24;  // a call may have 100,000 arguments
  std::uint32_t destination;
  std::uint32_t first_operand;  // index into Bytecode::operands
  std::uint32_t inst;           // of the IR, for positions
  std::uintptr_t aux;           // the op's payload; terminators: index of the first edge; calls: index of the call site
};

static_assert(static_cast<unsigned>(ir::Op::count_) <= 256 && sizeof(Instruction) == 24);
inline constexpr std::size_t most_operands = (std::size_t{1} << 24) - 1;

struct Move {
  std::uint32_t destination;
  std::uint32_t source;  // operand
};

struct EdgeCode {
  std::uint32_t target_pc = 0;
  std::uint32_t first_move = 0;
  std::uint32_t move_count = 0;
  std::uint32_t loop = ~0u;  // index into Bytecode::loops when this is an edge back to a loop's header
};

struct LoopCode {
  ir::BlockId header;
  bool asked = false;               // the live values below are known
  bool possible = true;             // on-stack replacement can work
  std::vector<std::uint32_t> live;  // registers to hand over, in the order of ir::live_at_loop
};

struct BlockRange {
  std::uint32_t first_pc;
  std::uint32_t handler_pc;   // ~0: none
  std::uint32_t catch_depth;  // catch blocks that are running at the block's start
};

struct Bytecode {
  const ir::Function* function = nullptr;
  std::vector<Instruction> code;
  std::vector<std::uint32_t> operands;
  std::vector<EdgeCode> edges;
  std::vector<Move> moves;
  std::vector<LoopCode> loops;
  std::vector<BlockRange> blocks;  // ascending first_pc
  CallSites<std::vector<CallCache>> call_sites;
  std::uint32_t register_count = 0;        // values and the spare register
  std::uint32_t slot_count = 0;            // after the registers
  std::uint32_t scratch_count = 0;         // after the slots: the arguments of the widest call
  std::vector<std::uint32_t> parameters;   // registers of the entry block's parameters
  std::vector<std::uint32_t> register_of;  // by inst; kept only when there are loops, for on-stack replacement
  bool uses_catch = false;

  const BlockRange& range_of(std::uint32_t pc) const;
  std::uint32_t frame_size() const { return register_count + slot_count + scratch_count; }
};

std::shared_ptr<Bytecode> emit(const ir::Function& function);

}  // namespace slope::interpreter
