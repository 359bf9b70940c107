// What the reverse sweep needs of the forward sweep, and where it is kept (saved.cpp says which way is taken when).
//
// Invariant: what `in_reverse` returns holds in the reverse block that is being emitted; `leave_block` ends it. The
// code that keeps a value stands right after the value is made, and is linked in by `insert_pending`.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "lang/diff/reverse/loops.hpp"
#include "lang/diff/reverse/overwritten.hpp"

namespace slope::diff {

// Something of the forward sweep that the reverse sweep may ask for.
struct ForwardValue {
  ir::Operand forward;  // its operand in the forward sweep
  const Type* type = nullptr;
  std::uint32_t loop = no_loop;  // innermost loop (of the primal) in which it is made
  ir::BlockId block =
      ir::no_block;            // forward block that makes it; saving code goes after `forward` or to the block's start
  std::uint32_t primal = ~0u;  // the primal inst whose value this is, if it may be recomputed
  int slot = -1;               // where it is kept: a slot (outside loops) …
  int column = -1;             // … or a column of its loop's tape
};

class SavedValues {
 public:
  SavedValues(TangentCode& code, const ir::Function& primal, const Flow& flow, Sweeps& sweeps, LoopTapes& loops,
              Overwritten& overwritten, Refusal& refusal);

  // --- in the forward sweep: values that are made here, in the current forward block ---
  ValueIndex remember(ir::Operand forward, const Type* type);
  void set_value(std::uint32_t id, ir::Operand forward, const Type* type);  // of the primal inst
  void set_copy(std::uint32_t id, ir::Operand forward, const Type* type);   // the same, by the primal's own operation
  void set_shadow(std::uint32_t id, ir::Operand shadow, const Type* type);  // of the primal inst
  bool has_shadow(std::uint32_t id) const { return shadow_of_[id] != no_value; }
  const ForwardValue& operator[](ValueIndex index) const { return values_[index]; }
  ir::Operand forward(ir::Operand primal);
  ir::Operand forward_shadow(ir::Operand primal) const { return values_[shadow_of_[primal.index()]].forward; }

  // --- in the reverse sweep ---
  ir::Operand in_reverse(ValueIndex value);
  ir::Operand primal_in_reverse(ir::Operand primal);
  ir::Operand shadow_in_reverse(ir::Operand primal);
  ir::Operand row_in_reverse(std::uint32_t loop);
  void leave_block();

  // The same where it costs no memory, else nothing.
  ir::Operand recomputed_in_reverse(ir::Operand primal);

  // --- when both are emitted ---
  // In split mode: the values that the record holds, in its order. Their slots are in the reverse half.
  const std::vector<ValueIndex>& recorded() const { return recorded_; }
  // A slot of the forward half for one of them; `type` is what it may hold.
  std::uintptr_t keep(ValueIndex value, const Type* type);
  bool may_be_unmade(ValueIndex value) const;  // when the exit is reached
  void insert_pending();
  void drop_unread();
  // What @code_grad reports.
  std::vector<SavedValue> report() const;

 private:
  ValueIndex remember(ir::Operand forward, const Type* type, std::uint32_t primal);
  ValueIndex after_its_loop(ValueIndex value);
  ir::Operand from_slot(ValueIndex value);
  ir::Operand from_tape(ValueIndex value);
  // `instead`: of one value that is kept in the place of the result; null: all must be there.
  bool worth_recomputing(const ForwardValue& value);
  bool can_recompute(std::uint32_t primal, int& budget, std::uint32_t* instead = nullptr);
  ir::Operand recompute(std::uint32_t primal);
  ir::Operand recompute_counter(std::uint32_t loop);
  void note(ValueIndex value, SavedValue::Where where, std::string why);
  void after(const ForwardValue& value, ir::Op op, std::vector<ir::Operand> operands, std::uintptr_t aux);

  TangentCode& code_;
  const ir::Function& primal_;
  const Flow& flow_;
  Sweeps& sweeps_;
  LoopTapes& loops_;
  Overwritten& overwritten_;
  Refusal& refusal_;
  const BuiltinTypes& builtin_;
  std::vector<ForwardValue> values_;
  std::vector<ValueIndex> value_of_;                                     // by primal inst
  std::vector<ValueIndex> shadow_of_;                                    // by primal inst
  std::vector<std::uint32_t> uses_of_;                                   // by primal inst, in the primal
  std::map<std::pair<ValueIndex, ir::BlockId>, ValueIndex> after_loop_;  // kept where it is used, after its loop
  std::vector<ValueIndex> recorded_;
  std::map<ValueIndex, SavedValue> notes_;

  struct Current {  // of the current reverse block
    std::unordered_map<ValueIndex, ir::Operand> values;
    std::unordered_map<std::uint32_t, ir::Operand> recomputed;  // by primal inst
    std::unordered_map<std::uint32_t, ir::Operand> rows;        // by loop
  };
  Current current_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> pending_after_;  // forward inst → insts that follow it
  std::unordered_map<ir::BlockId, std::vector<std::uint32_t>> pending_start_;    // forward block → insts at its start
};

}  // namespace slope::diff
