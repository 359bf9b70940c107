// What the primal overwrites, and who still needs the old contents (overwritten.cpp says which are restored). Knows the
// primal and its memory, nothing of the code being emitted.
#pragma once

#include <unordered_map>
#include <vector>

#include "lang/diff/sharing.hpp"
#include "lang/diff/transform.hpp"

namespace slope::diff {

class Overwritten {
 public:
  Overwritten(Environment& env, const ir::Function& primal, const ir::Cfg& cfg, const Activity& activity);

  // Nothing in the function may overwrite what the load reads.
  bool load_is_stable(const ir::Inst& load) const;
  // The old content of the place that `store` writes is needed.
  bool must_restore(std::uint32_t store);
  // An array whose length `resize` changes is held by a call before it, whose reverse step looks at it.
  bool is_held(ir::Operand array, std::uint32_t resize) const;
  // Arrays that carry no derivative and whose old contents are needed as a whole: written by a call or a builtin.
  std::vector<ir::Operand> arrays_to_restore(std::uint32_t id);
  // A call may change memory that the reverse step of a call before it looks at, and that neither its own reverse step
  // puts back nor arrays_to_restore names: what objects without derivatives hold, and what globals lead to.
  bool changes_recalled(std::uint32_t id);
  // Of such a call: functions that it finds when it runs may change that. (What stands for a derivative, in derivatives of
  // derivatives, calls what it is given; that has reverse steps of its own.)
  bool finds_changes(std::uint32_t id);
  // Something may be stored into this memory after instruction `id`.
  bool is_stored_after(std::uint32_t id, ir::Operand memory) const;

  // The reverse sweep repeats this load.
  void note_load(const ir::Inst& load) { looked_at_.push_back(sharing_.group(load.operands[0])); }
  // What the reverse sweep looks at, for the callers of this half. `returned`: what the primal returns, if it does.
  void report(ir::Operand returned, Derivative& result);

 private:
  // Where an array comes from, as far as two that come from different places are never the same one.
  struct Origin {
    enum class Kind : std::uint8_t { unknown, outer, made } kind = Kind::unknown;
    std::uint32_t made_by = ~0u;  // made: the inst
  };
  struct Stored {
    const Type* element = nullptr;  // null: not known
    std::uint32_t group = Sharing::no_group;
    Origin origin;
  };
  // The reverse step of `inst` may look at memory of `group`, which is its `operand`.
  struct Recall {
    static constexpr std::size_t result = ~std::size_t{0};
    static constexpr std::size_t outer = result - 1;  // memory that others hold
    std::uint32_t inst;
    std::uint32_t group;
    std::size_t operand;
  };
  void find_stores();
  void find_recalls();
  Origin origin_of(ir::Operand array) const;
  bool looks_at(const Recall& recall);
  bool rule_looks_at(const Recall& recall);
  bool find_whether_rule_looks(std::uint32_t id);
  bool is_recalled(std::uint32_t group, std::uint32_t id);
  bool is_plain_array(ir::Operand o) const;
  bool is_put_back(ir::Operand o) const;
  const Type* type_of(ir::Operand o) const { return primal_.type_of(o, runtime_.types); }
  bool varied(ir::Operand o) const { return activity_.carries(o); }

  Environment& env_;
  Runtime& runtime_;
  TangentTypes& tangents_;
  const BuiltinTypes& builtin_;
  const ir::Function& primal_;
  const Activity& activity_;
  Sharing sharing_;
  std::vector<Stored> stored_;  // arrays that are stored into (not through array_init)
  std::vector<Recall> recalls_;
  std::vector<std::uint32_t> looked_at_;  // groups that loads read which the reverse sweep repeats
  std::unordered_map<std::uint32_t, Environment::Halves> asked_halves_;  // by primal inst
  std::unordered_map<std::uint32_t, bool> rule_looks_;                   // by primal inst: at arguments
};

}  // namespace slope::diff
