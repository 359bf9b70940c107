// Gradients that may take a given amount of memory (stdlib/derivatives/limited_memory.slope) differentiate a function
// piece by piece. Here its code is cut into segments:
//
//   a cut        the header of a loop where all live values are state (NoState), and of the loops around it. The
//                state of an activation there is the values that are live (ir/continuation.hpp)
//   a segment    the code from a cut, or from the function's beginning, to the next cut: a function of its own
//                (#self#, n, parameters of the primal…, live values…) → (loop, live values at its header…), or
//                (0, result) where the primal returns. Loops are numbered from 1.
//   of a loop    runs at most n of its passes, and goes on behind it
//   of a pass    (`within`) runs one pass, cut also at the loops in it
//
// So of the values that a segment makes, only those live at its end are needed by what comes after.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lang/derive/compiler.hpp"
#include "lang/diff/activity.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/ir.hpp"

namespace slope::derive {

struct GoneCode;

class Segments {
 public:
  explicit Segments(Derivatives& derivatives) : derivatives_(derivatives) {}

  // The loops of a function, by number from 1: which is around each (0: none; -1: it is no cut). Empty: its code cannot
  // be cut.
  std::vector<std::int64_t> loops(Context& ctx, Specialization& target);
  // The segment from the beginning (loop 0), of a loop or of a pass. Null: there is none, or an error is raised.
  const Synthetic* segment(Context& ctx, Specialization& target, std::size_t loop, bool within);
  // By parameter of a segment, callee first: what carries a derivative in the function as a whole. Null: it is none.
  const std::vector<char>* active(const Specialization& segment) const;
  void forget(const GoneCode& gone);

 private:
  struct Made {
    const Synthetic* code = nullptr;
    std::vector<char> active;
  };
  struct Program {
    std::shared_ptr<const ir::Function> primal;
    ir::LoopForest forest;
    std::vector<char> is_cut;                      // by loop: whether its header is one
    std::vector<std::vector<std::uint32_t>> live;  // by loop; the header's parameters first
    diff::Activity activity;
    std::map<std::pair<std::size_t, bool>, Made> made;
  };
  Program* program(Context& ctx, Specialization& target);
  std::vector<char> active_of(const Program& program, std::size_t loop) const;
  std::unique_ptr<ir::Function> cut(const Program& program, std::size_t loop, bool within) const;

  Derivatives& derivatives_;
  std::map<const Specialization*, Program> programs_;
};

}  // namespace slope::derive
