// What is known of the primal's loops, and the tapes that they keep values on: one tape a loop, one row an execution of
// its header, one column a value.
//
// Invariant: tapes are opened once, before the outermost loop, and closed when the reverse sweep passes that point.
//
// In halves on a stack (Environment::stacked_halves) there is one tape, which the outermost caller opens. Rows of loops
// and of activations lie there in the order in which they are made, so those of a loop are not neighbours: each knows
// the one before it (LoopState::link), -1 for none. Rows of one kind use the columns that rows of other kinds use too.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "lang/diff/reverse/sweeps.hpp"
#include "lang/diff/tangent_code.hpp"
#include "lang/memory/tape.hpp"

namespace slope::diff {

class SavedValues;

using ValueIndex = std::uint32_t;  // a ForwardValue of SavedValues
inline constexpr ValueIndex no_value = ~0u;

struct LoopState {
  std::uint32_t outermost = no_loop;
  int forward_row_slot = -1;        // rows used so far: one an execution of the header
  int row_slot = -1;                // rows not yet reversed; in combined mode the same slot
  ValueIndex tape = no_value;       // handle, opened before the outermost loop
  ValueIndex start_row = no_value;  // forward_row_slot when this entry of the loop began (no_value: always 0)
  ir::Operand row;                  // row of the running iteration, in the forward header
  TapeLayout* layout = nullptr;
  int link = -1;                   // on a stack: the column that holds the row before
  ir::Operand known_rows;          // upper bound of rows of one entry, in the preheader, when the loop is counted
  std::uint32_t counter = ~0u;     // the header parameter that counts up by one from the entry, if there is one
  std::int64_t counter_start = 0;  // what it starts from: a constant, not negative
  ir::BlockId preheader = ir::no_block;
  ir::BlockId latch = ir::no_block;
};

class LoopTapes {
 public:
  LoopTapes(TangentCode& code, const ir::Function& primal, const Flow& flow, Sweeps& sweeps,
            std::shared_ptr<TapeLayout> stack);

  // --- the stack ---
  bool on_stack() const { return stack_ != nullptr; }
  const TapeLayout* stack() const { return stack_.get(); }
  ir::Operand stack_in_forward;  // parameters of the halves
  ir::Operand stack_in_reverse;
  void begin_stack(ir::Operand first_free);  // at the start of the forward sweep
  ir::Operand free_row();                    // in the forward sweep
  void set_free_row(ir::Operand row);
  ir::Operand push_row();  // takes the next one
  std::uint32_t frame_kind() const {
    return static_cast<std::uint32_t>(loops_.size());
  }  // the kind of rows of activations
  // In the reverse sweep: the row before, and what it is when the loop was entered.
  ir::Operand row_before(std::uint32_t loop, ir::Operand row);
  ir::Operand row_at_start(std::uint32_t loop, SavedValues& values);

  const std::vector<LoopState>& all() const { return loops_; }
  const LoopState& operator[](std::uint32_t loop) const { return loops_[loop]; }
  bool is_header(ir::BlockId block) const;  // of a loop

  void make_row_slots();          // at the start of the forward sweep
  void make_reverse_row_slots();  // at the start of the reverse sweep
  // In the forward sweep, at the header: the row of this iteration.
  void begin_header(std::uint32_t loop, const SavedValues& values);
  // In the block before the loop: its tape (before the outermost loop, for all inside), and room for the rows to come.
  void open(std::uint32_t loop, SavedValues& values);
  // In the reverse sweep, at the same place.
  void close(std::uint32_t loop, SavedValues& values);

  int add_column(std::uint32_t kind, const Type* type);  // a loop, or frame_kind()
  // The layouts that the code refers to: they must live as long as it.
  const std::vector<std::shared_ptr<TapeLayout>>& layouts() const { return layouts_; }
  // One function with both sweeps sees every use of its tapes: those that keep nothing go. Returns their handles.
  std::vector<ValueIndex> drop_unread();

 private:
  void find_counter(std::uint32_t loop);
  bool ends_at_header(const ir::Loop& loop) const;

  TangentCode& code_;
  const ir::Function& primal_;
  const Flow& flow_;
  Sweeps& sweeps_;
  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  std::vector<LoopState> loops_;
  std::vector<std::shared_ptr<TapeLayout>> layouts_;
  std::shared_ptr<TapeLayout> stack_;
  int free_row_slot_ = -1;
  std::map<const Type*, std::vector<int>> stack_columns_;                               // by type
  std::map<std::pair<std::uint32_t, const Type*>, std::size_t> stack_columns_of_kind_;  // how many it uses
};

}  // namespace slope::diff
