// Cotangents of the primal's SSA values in the reverse sweep, leaf by leaf.
//
// Invariant: a cotangent slot is zero whenever its value is not live. Definitions clear it, because in a loop they run
// again.
#pragma once

#include <unordered_map>
#include <vector>

#include "lang/diff/activity.hpp"
#include "lang/diff/reverse/sweeps.hpp"
#include "lang/diff/tangent_code.hpp"

namespace slope::diff {

class Adjoints {
 public:
  Adjoints(TangentCode& code, const ir::Function& primal, const Activity& activity, const Flow& flow, ir::Builder& at);

  // The cotangent's leaves where the sweep is now. Invalid operands: zero.
  std::vector<ir::Operand> of(std::uint32_t id);
  std::vector<ir::Operand> take(std::uint32_t id);  // and sets it to zero
  void add(ir::Operand primal, std::size_t leaf, ir::Operand x);
  void add(ir::Operand primal, const std::vector<ir::Operand>& leaves);
  // Leaves of a cotangent of `primal` as a value of type `seen_as`.
  void add_as(ir::Operand primal, const Type* seen_as, const std::vector<ir::Operand>& leaves);
  void leave_block();

  // When the sweep is emitted: slots are zero where it starts; …
  void start_at_zero(ir::BlockId start);
  // … and once they are SSA values, no sum adds to a zero that is in sight.
  void drop_zero_terms();

 private:
  bool is_local(std::uint32_t id) const { return local_[id]; }
  int slot(std::uint32_t id, std::size_t leaf);

  TangentCode& code_;
  const ir::Function& primal_;
  const Activity& activity_;
  const Flow& flow_;
  ir::Builder& at_;
  std::vector<bool> local_;                                              // by primal inst: all uses are in its block
  std::unordered_map<std::uint32_t, std::vector<ir::Operand>> current_;  // of the current block: operands by leaf
  std::unordered_map<std::uint64_t, int> slots_;                         // by inst and leaf
  std::vector<int> slot_list_;
  std::vector<std::uint32_t> sums_;  // insts of the reverse sweep that add cotangents
};

}  // namespace slope::diff
