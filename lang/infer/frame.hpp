// One activation of the abstract interpreter: a body, what is known of each of its instructions so far, and the work
// that remains. infer.cpp has the algorithm.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "lang/infer/infer.hpp"
#include "lang/infer/lattice.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/ir.hpp"

namespace slope::infer {

struct Frame;

// What callers know of a specialisation's result. The subject of a conditional is an argument's position.
struct Outcome {
  Specialization* target = nullptr;
  Known result = nullptr;
  std::uint32_t effects = effect_none;
  World min_world = 0;
  World max_world = newest_world;
  bool finished = false;         // published; else it may still grow
  std::unique_ptr<Frame> frame;  // while not finished
};

// A method that a call may reach, with what was found out about that.
struct Match {
  Method* method = nullptr;
  Specialization* target = nullptr;  // of the (intersected) types; null for natives and for what was not inferred
  bool exact = true;                 // the method covers all of the combination's types
  bool dispatchable = false;         // all types of the combination are dispatch types
  bool linkable = false;             // the call can be linked to `target`: what was inferred is of exactly these types
};

// One choice of members for the union-typed arguments of a call.
struct Combination {
  std::vector<const Type*> types;  // callee first
  std::vector<Match> matches;
  bool covered = true;  // the matches cover every argument tuple of these types
  bool known = true;    // false: nothing is known of the methods
};

// What the last evaluation of a call found; rewriting reads it.
struct Call {
  enum class Kind : std::uint8_t { unknown, op, native, methods } kind = Kind::unknown;
  ir::Op op = ir::Op::call;  // Kind::op
  const NativeInfo* native = nullptr;
  std::vector<const Type*> types;  // that `combinations` were made for
  std::vector<Combination> combinations;
  std::vector<Combination> leaves;  // of one combination with abstract types: some of the calls that it stands for
  std::vector<std::size_t> split;   // arguments whose union was split (0: the callee)
  bool splat_known = false;         // call_splat: how many elements each operand gives is known
  bool chosen_by_types = false;     // of Core.invoke_method: the operands are that builtin, callee, types, arguments
  bool in_cycle = false;            // an outcome used here was not finished
  bool constant_arguments = false;  // the result is of an inference with constants: narrower than the target's
};

struct Frame {
  Method* method = nullptr;
  Specialization* target = nullptr;  // null: a body that is no method's
  std::vector<Known> arguments;      // of the entry block's parameters
  std::vector<const Type*> static_params;
  std::unique_ptr<ir::Function> fn;
  ir::Cfg cfg;
  bool with_constants = false;  // inferred for one call's constants: nothing of it is kept
  bool partly_typed = false;

  // --- per instruction ---
  std::vector<Known> values;          // bottom: not reached, or never returns
  std::vector<std::uint8_t> effects;  // Effect bits
  std::vector<std::uint8_t> dirty;
  std::vector<std::uint8_t> growth;   // how often the value grew
  std::vector<std::uint8_t> refined;  // a branch says something about it somewhere
  std::vector<std::uint32_t>
      user_start;  // users[user_start[i] .. user_start[i + 1]): terminators stand for edge arguments
  std::vector<std::uint32_t> users;
  std::vector<std::uint32_t> call_index;  // into `calls`, ~0 for none
  std::vector<Call> calls;
  std::vector<std::uint32_t> refined_insts;
  std::vector<Known> constants;  // of fn->constants, filled on use

  // --- per block ---
  struct BlockState {
    bool executable = false;
    bool is_handler = false;
    ir::BlockId sole_predecessor = ir::no_block;  // the only executable one so far; several: `many`
    std::uint32_t subject = ~0u;                  // what the branch into this block says: `refinement` of this inst
    Known refinement = nullptr;
    std::uint64_t executable_edges = 0;  // bit i: edge i (bit 63 stands for all from there)
  };
  static constexpr ir::BlockId many = ir::no_block - 1;
  std::vector<BlockState> blocks;
  std::vector<std::uint64_t> pending;  // bit per position in cfg.order: block has dirty insts

  // --- slots: flow-insensitive ---
  std::vector<Known> slots;
  std::vector<std::vector<std::uint32_t>> slot_readers;
  std::vector<std::uint32_t> slot_growth;

  // --- result ---
  Known result = nullptr;
  std::uint32_t result_growth = 0;
  std::uint32_t summary_effects = effect_none;
  World min_world = 0;
  World max_world = newest_world;
  std::vector<Edge> edges;
  std::unordered_set<std::uint64_t> edge_keys;

  // --- recursion: see infer.cpp ---
  std::size_t depth = 0;   // on the stack, from 1
  std::size_t lowest = 0;  // lowest depth that an unfinished outcome used below depends on
  bool on_stack = false;
  bool recursive = false;         // its own outcome was used while it was on the stack
  bool cycle_changed = false;     // head: an outcome of the cycle grew in this iteration
  std::uint64_t stamp = 0;        // iteration of `head` in which it was last inferred; of a head: current one
  Frame* head = nullptr;          // while provisional
  std::vector<Outcome*> members;  // of a head: provisional outcomes
  Outcome* outcome = nullptr;     // its own entry; null for frames without target or with constants

  bool edge_executable(ir::BlockId b, std::size_t edge) const {
    return blocks[b].executable_edges >> (edge < 63 ? edge : 63) & 1;
  }
};

// Splits edges from branches to blocks with several predecessors, so that what a branch says has a block to hold in.
void split_critical_edges(ir::Function& function);

}  // namespace slope::infer
