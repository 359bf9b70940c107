// Forward mode on typed SSA IR: beside each value its tangent. A function of its own, not dual numbers, so that nothing
// that asks for a value's type sees a difference, and nested derivatives cannot take each other's tangents.
//
// Tangents are split as in reverse mode (diff.hpp): memory has shadows of the same identity, which here hold the
// tangents of what the memory holds; immutable values have what there is called a cotangent, held leaf by leaf. Loads
// and stores act on shadow and memory alike; nothing is saved and nothing restored. Tapes get more columns, so that a
// derivative made by reverse mode can be differentiated again.
#pragma once

#include <memory>

#include "lang/diff/activity.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/runtime/tape.hpp"

namespace slope::diff {

class Forward {
 public:
  Forward(Environment& env, std::unique_ptr<ir::Function> primal, Refusal& refusal);
  // Parameters: #self#, the primal's, the shadows of active memory, the tangents of active values. Result:
  // Tuple{value, shadow, tangent}.
  bool run(const std::vector<char>& active, Derivative& result);

 private:
  bool block(ir::BlockId b);
  bool inst(std::uint32_t id);
  bool tangent_of_value(std::uint32_t id);
  bool call(std::uint32_t id);
  bool halves(std::uint32_t id);
  bool dynamic_call(std::uint32_t id);
  bool store(std::uint32_t id);
  bool load(std::uint32_t id);
  bool aggregate(std::uint32_t id);
  bool tape(std::uint32_t id);
  void clone(std::uint32_t id);
  bool refuse(const ir::Inst& at, std::string reason);

  const Type* type_of(ir::Operand primal) { return primal_->type_of(primal, runtime_.types); }
  bool varied(ir::Operand primal) const { return primal.is_inst() && activity_.varied[primal.index()]; }
  ir::Operand value(ir::Operand primal);
  ir::Operand shadow(ir::Operand primal);
  ir::Operand shadow_as(ir::Operand primal, const Type* seen_as);
  ir::Operand as_shadow(ir::Operand shadow, const Type* from, const Type* to);
  std::vector<ir::Operand> leaves(ir::Operand primal);                          // invalid: zero
  std::vector<ir::Operand> leaves_as(ir::Operand primal, const Type* seen_as);  // likewise
  std::vector<ir::Operand> convert(const Type* from, const std::vector<ir::Operand>& leaves, const Type* to);
  ir::Operand pack(const Type* t, const std::vector<ir::Operand>& leaves, std::size_t& next);
  ir::Operand packed(const Type* t, const std::vector<ir::Operand>& leaves);
  void unpack(const Type* t, ir::Operand tangent, std::vector<ir::Operand>& leaves);
  ir::Operand zero(const Type* leaf_type);
  ir::Operand add(ir::Operand a, ir::Operand b, const Type* leaf_type);
  ir::Operand call_base(const char* name, std::vector<ir::Operand> args, const Type* type);
  ir::Operand whole(const Type* declared, const Type* held, ir::Operand shadow, const std::vector<ir::Operand>& leaves);
  void split(const Type* declared, const Type* held, ir::Operand tangent, ir::Operand& shadow,
             std::vector<ir::Operand>& leaves);

  Environment& env_;
  Runtime& runtime_;
  TangentTypes& tangents_;
  const BuiltinTypes& builtin_;
  Refusal& refusal_;
  std::unique_ptr<ir::Function> primal_;
  Activity activity_;
  std::vector<Edge> edges_;
  std::unique_ptr<ir::Function> out_;
  std::unique_ptr<ir::Builder> b_;
  std::vector<ir::BlockId> blocks_;
  std::vector<ir::Operand> value_;
  std::vector<ir::Operand> shadow_;
  std::vector<std::vector<ir::Operand>> leaves_;
};

}  // namespace slope::diff
