// Which accesses to elements of arrays cannot be outside, and why.
//
// Machine code tests every index of an array or string against the length that it has at that moment, whatever the code
// around says (`@inbounds` included): codegen/memory.cpp. It leaves the test out where `prove_bounds` finds one that was
// made already:
//
//   a test     a branch on `i - 1 <u length`, by which every way to the access comes
//   a loop     a variable that starts at 0 or above, grows by one, and is compared with the length in each iteration
//   dimensions the same of each index of a matrix, where the access computes `i + m * (j - 1)` from its sizes
//   making     the array was made here with a known length
//   an access  the same index of the same array was accessed before
//
// Only vectors change their length. So what is known of one holds only in a function that nothing can resize a vector in
// (`may_resize`); the length of a matrix never changes.
#pragma once

#include <string>

#include "lang/ir/cfg.hpp"

namespace slope {
class Runtime;
}

namespace slope::ir {

// Reads or writes an element of an array.
constexpr bool is_element_access(Op op) { return op == Op::array_get || op == Op::array_set || op == Op::array_init; }

// Something in the function may change an array's length.
bool may_resize(const Function& function, const Type* bottom);
// This instruction may.
bool may_resize(const Inst& inst, bool returns_to_handler, const Type* bottom);

struct BoundsProof {
  // What makes sure that the access is inside: branches that lead to it (by the block that begins behind the branch), or
  // an instruction that comes before it.
  struct Reason {
    BlockId behind = no_block;
    std::uint32_t inst = ~0u;
  };
  std::vector<Reason> reasons;
};

class BoundsProofs {
 public:
  bool is_inside(std::uint32_t inst) const { return inst < proofs_.size() && !proofs_[inst].reasons.empty(); }
  const BoundsProof& of(std::uint32_t inst) const { return proofs_[inst]; }
  // Nothing in the function changes the length of this array.
  bool has_fixed_length(Runtime& runtime, const Function& function, Operand array) const;

 private:
  friend BoundsProofs prove_bounds(Runtime& runtime, const Function& function, const Cfg& cfg);
  std::vector<BoundsProof> proofs_;  // by inst
  bool resizes_ = true;
};

BoundsProofs prove_bounds(Runtime& runtime, const Function& function, const Cfg& cfg);

// For the verifier: empty when every reason lies on every way to its access, else which does not.
std::string check_bounds_proofs(const Function& function, const Cfg& cfg, const BoundsProofs& proofs);
// A line for each access that is not tested: which tests make sure.
std::string print_bounds_proofs(const Function& function, const BoundsProofs& proofs);

}  // namespace slope::ir
