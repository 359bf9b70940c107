// Forward mode on typed SSA IR: beside each value its tangents, one for each direction. It is a transform of functions,
// not dual numbers. So code that looks at a value's type sees no difference, and nested derivatives cannot confuse
// their tangents.
//
// Tangents are split as in reverse mode (diff.hpp). Memory has shadows of the same identity, which here hold the
// tangents of what the memory holds. Immutable values have what reverse mode calls a cotangent, held leaf by leaf.
// Loads and stores act on shadow and memory alike; nothing is saved and nothing restored. Tapes get more columns, so
// that a derivative made by reverse mode can be differentiated again.
//
// Several directions (`width`) share the primal: its operations run once, those on tangents once for each direction.
#pragma once

#include <memory>

#include "lang/diff/transform.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/memory/tape.hpp"

namespace slope::diff {

class Forward : private Transform {
 public:
  Forward(Environment& env, AnalysedPrimal primal, std::size_t width, Refusal& refusal);
  // Parameters: #self#, the primal's, for each direction the shadows of active memory, for each direction the tangents
  // of active values. Result: Tuple{value, shadow, tangent, shadow, tangent, …}, a pair a direction.
  bool run(Derivative& result);

 private:
  struct Direction {
    std::vector<ir::Operand> shadow;               // by primal inst
    std::vector<std::vector<ir::Operand>> leaves;  // likewise
  };

  const Type* result_type(const Type* primal);
  void make_entry();
  void make_slots();
  bool block(ir::BlockId b);
  bool inst(std::uint32_t id);
  void clone(std::uint32_t id);
  bool tape(std::uint32_t id);
  bool call(std::uint32_t id);
  bool callee_tangent(std::uint32_t id);
  bool dynamic_call(std::uint32_t id);
  void slot_set(const ir::Inst& inst);
  void slot_get(std::uint32_t id);
  void check_caught(std::uint32_t id);
  // In the current direction.
  bool tangent_of_value(std::uint32_t id);
  bool tangent_of_float(std::uint32_t id);
  void store(std::uint32_t id);
  void load(std::uint32_t id);
  bool aggregate(std::uint32_t id);

  template <class F>
  void for_each_direction(F&& f) {
    for (Direction& direction : directions_) {
      d_ = &direction;
      f();
    }
    d_ = &directions_[0];
  }
  ir::Operand value(ir::Operand primal);
  ir::Operand shadow(ir::Operand primal);
  ir::Operand shadow_as(ir::Operand primal, const Type* seen_as);
  ir::Operand fresh_shadow(ir::Operand primal);
  std::vector<ir::Operand> leaves(ir::Operand primal);                          // invalid: zero
  std::vector<ir::Operand> leaves_as(ir::Operand primal, const Type* seen_as);  // likewise

  std::unique_ptr<ir::Function> out_;
  std::unique_ptr<ir::Builder> b_;
  std::vector<ir::BlockId> blocks_;
  std::vector<ir::Operand> value_;  // by primal inst
  std::vector<Direction> directions_;
  Direction* d_ = directions_.data();  // the current one
  std::vector<std::uint32_t> slots_;   // by primal slot: the first slot of its tangents
};

}  // namespace slope::diff
