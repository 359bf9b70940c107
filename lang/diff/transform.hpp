// What both modes share: the primal with its activity, and the arguments of its calls. Tangents themselves are in
// tangent_code.hpp.
//
// Operands named `primal` belong to the primal; all others to the function that `at` emits into.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lang/diff/activity.hpp"
#include "lang/diff/tangent_code.hpp"

namespace slope::diff {

// An invoke's arguments as the callee's IR has them: a trailing vararg is one tuple.
struct Packed {
  std::vector<ir::Operand> operands;  // primal
  const Type* type = nullptr;
  bool is_tuple = false;  // a vararg: the operands are its elements
};
std::vector<Packed> packed_arguments(const ir::Function& primal, const ir::Inst& inst, Runtime& runtime);
// For each, whether a part of it carries a derivative.
std::vector<char> active_operands(const Activity& activity, const std::vector<Packed>& arguments);

// A primal in the normal form of its mode, with what is known of it.
struct AnalysedPrimal {
  std::unique_ptr<ir::Function> function;
  Activity activity;
  std::vector<Edge> edges;  // of the look-ups of its rules
};
// A copy of `primal`. Nothing when something cannot be differentiated (refusal).
std::optional<AnalysedPrimal> analysed(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                                       bool forward_mode, Refusal& refusal);

class Transform : protected TangentCode {
 protected:
  Transform(Environment& env, AnalysedPrimal primal, Refusal& refusal);
  ~Transform() = default;

  bool refuse(const ir::Inst& at, std::string reason);  // at the user's own line; false
  // The user's line as an error message ends with it, for what finds out only when it runs.
  std::string described(const ir::Inst& at);
  // An empty function that is to be made of the primal: with its name, its places in the source.
  std::unique_ptr<ir::Function> made(const std::string& prefix, const std::string& suffix = "") const;

  // In functions that are made of it: which blocks handle exceptions; …
  void copy_handlers(const std::vector<ir::BlockId>& blocks, ir::Function& made) const;  // `blocks`: by primal block
  // … and the type of what has no result (stores, tapes), which is emitted without one.
  void type_stores(ir::Function& made) const;

  const Type* type_of(ir::Operand primal) { return primal_->type_of(primal, runtime_.types); }
  bool varied(ir::Operand primal) const { return activity_.carries(primal); }
  Place place_of(const ir::Inst& inst);
  std::vector<Packed> packed_arguments(const ir::Inst& inst) {
    return diff::packed_arguments(*primal_, inst, runtime_);
  }
  // Whether the tangents of each vararg are those of its elements, not one box.
  bool has_parts_of(const std::vector<Packed>& arguments);

  Environment& env_;
  Refusal& refusal_;
  std::unique_ptr<ir::Function> primal_;
  Activity activity_;
  std::vector<Edge> edges_;
};

}  // namespace slope::diff
