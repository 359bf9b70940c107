// Which values of a typed function may refer to the same memory, and which memory nobody else can reach.
//
// Steensgaard's analysis (1996) on SSA form. Values that may be the same object, or of which one may contain the other,
// are in one group; control flow is ignored. A group is `outer` when a part of it may have come from the caller, from a
// global or from unknown code, or may have gone there. Memory of a group that is not outer can be reached only through
// values of this group, as long as the function runs: no store through another group and no unknown call changes it.
// Returning a value does not make its group outer, because nothing of the function runs after that.
#pragma once

#include <map>
#include <vector>

#include "lang/diff/memory.hpp"
#include "lang/diff/rules.hpp"
#include "lang/ir/cfg.hpp"

namespace slope::diff {

class Sharing {
 public:
  static constexpr std::uint32_t no_group = ~0u;

  // `rules`: of invokes, by inst. `reached`: by block, whether a return can be reached from it; the others' code only
  // raises, and is left out.
  Sharing(const ir::Function& function, const ir::Cfg& cfg, TangentTypes& tangents, MemoryEffects& memory,
          const std::vector<RuleKind>& rules, const std::vector<bool>& reached);

  std::uint32_t group(ir::Operand o) const;                   // no_group: holds no memory
  std::uint32_t outer_group() const { return find(outer_); }  // stands for memory that the function does not see
  bool is_outer(std::uint32_t group) const { return marked_outer_[find(group)]; }
  bool may_meet(std::uint32_t a, std::uint32_t b) const {
    return a != no_group && b != no_group && (find(a) == find(b) || (is_outer(a) && is_outer(b)));
  }

  // What an instruction, other than a store into an element or a field, may write: groups, the outer one for memory
  // that it reaches otherwise.
  const std::vector<std::uint32_t>& written_by(std::uint32_t id) const;

  // Whether MemoryEffects follows all memory in values of this type: arrays of numbers that can carry a derivative, and
  // tuples and the like of such.
  bool is_followed(const Type* type) const;

  // Whether `later` may run after `earlier` and find the same object of this group.
  bool may_follow(std::uint32_t group, std::uint32_t earlier, std::uint32_t later) const;

 private:
  std::uint32_t find(std::uint32_t node) const;
  void unite(std::uint32_t a, std::uint32_t b);
  void unite(ir::Operand a, ir::Operand b);
  void expose(ir::Operand o) { unite_outer(node(o)); }
  void unite_outer(std::uint32_t node);
  std::uint32_t node(ir::Operand o) const;
  bool holds_memory(const Type* type) const;
  bool holds_memory(ir::Operand o) const;
  void visit(std::uint32_t id);
  void visit_call(std::uint32_t id);
  std::uint32_t column(std::uintptr_t aux);

  const ir::Function& function_;
  const ir::Cfg& cfg_;
  TangentTypes& tangents_;
  MemoryEffects& memory_;
  const std::vector<RuleKind>& rules_;
  bool has_handlers_ = false;
  std::uint32_t outer_ = 0;  // node; insts come first, then it, then constants, slots and columns
  std::uint32_t first_constant_ = 0;
  std::uint32_t first_slot_ = 0;
  mutable std::vector<std::uint32_t> parent_;
  std::vector<bool> marked_outer_;                   // by root
  std::map<std::uintptr_t, std::uint32_t> columns_;  // of tapes
  std::map<std::uint32_t, std::vector<std::uint32_t>> written_;
  std::map<std::uint32_t, std::uint32_t> maker_;  // by root: the only inst that makes an object of it
  std::vector<std::uint32_t> position_;           // of insts in their blocks
  mutable std::map<const Type*, bool> holds_;
};

}  // namespace slope::diff
