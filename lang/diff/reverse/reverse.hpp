// The reverse transform of one function; the essay is at the head of reverse.cpp. These types have parts of its state,
// each with its own invariant:
//   sweeps.hpp       Flow, Sweeps: the primal's control flow; the functions that the sweeps are emitted into
//   overwritten.hpp  Overwritten: which old contents are restored
//   loops.hpp        LoopTapes: what is known of loops, and their tapes
//   saved.hpp        SavedValues: what the reverse sweep needs of the forward sweep, and where it is kept
//   adjoint.hpp      Adjoints: cotangents of SSA values, leaf by leaf
// `Reverse` is the walk and the steps of operations. Its members are defined in these files:
//   reverse.cpp      the walk: forward blocks, reverse blocks, the two entry points
//   finish.cpp       the record between two halves; both sweeps in SSA form
//   forward.cpp      the augmented forward step of each operation (shadows, rules, tapes of old values)
//   backward.cpp     the reverse step of each operation
//   rules.cpp        calls of functions that have rules
//   dynamic.cpp      values whose types are known only at run time, and calls of functions that are
//   memory.cpp       loads and stores
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "lang/diff/normal_form.hpp"
#include "lang/diff/reverse/adjoint.hpp"
#include "lang/diff/reverse/loops.hpp"
#include "lang/diff/reverse/overwritten.hpp"
#include "lang/diff/reverse/saved.hpp"
#include "lang/diff/reverse/sweeps.hpp"
#include "lang/diff/transform.hpp"

namespace slope::diff {

class Reverse : private Transform {
 public:
  enum class Form : std::uint8_t { combined, halves };
  // `stack`: halves on a stack have it (loops.hpp).
  Reverse(Environment& env, AnalysedPrimal primal, Form form, const std::shared_ptr<TapeLayout>& stack,
          Refusal& refusal);
  bool run(Derivative& result);

 private:
  // --- reverse.cpp ---
  bool combined(Derivative& result);
  bool halves(Derivative& result);
  bool forward_sweep();
  void forward_parameters();
  bool forward_block(ir::BlockId block);
  void forward_terminator(ir::BlockId block);
  CaughtUse use_of_caught(ir::Operand box) const;
  void raise_to(const ir::Block& block, const ir::Edge& edge);
  bool reverse_sweep(ir::BlockId start);
  bool reverse_block(ir::BlockId block);
  ir::Operand condition_of(ir::BlockId merge);
  void leave_reverse_block();
  void reverse_edge(ir::BlockId source, std::size_t edge,
                    const std::vector<std::vector<ir::Operand>>& parameter_cotangents, ir::BlockId target);
  ir::BlockId reverse_of(ir::BlockId block) const { return sweeps_.reverse_blocks[block]; }
  ir::Operand primal_result() const;               // invalid when the primal never returns
  std::vector<ir::Operand> argument_cotangents();  // one operand a parameter, nothing where it has none
  const Type* shadow_of_returned() const;          // the type of what a forward half returns beside its value
  ir::Operand shadow_of_result();                  // that itself

  // --- finish.cpp ---
  // What the reverse half asked for, and how many rows each loop made.
  struct Record {
    struct Kept {
      ValueIndex value;
      const Type* held;  // what its slot in the forward half may hold
      const Type* kept;  // what the record holds
      std::uintptr_t slot;
      int column = -1;  // on a stack
    };
    std::vector<Kept> values;
    const Type* type = nullptr;
    ir::Operand made;               // in the forward half
    std::vector<int> loop_columns;  // on a stack: the last row of each loop
    std::int64_t code = 0;          // of the seal that is the last field (record_seal.hpp); 0: it has none
  };
  Record write_record();
  Record write_frame();
  void read_frame(const Record& record, ir::Operand row);
  void give_back(const Record::Kept& kept, ir::Operand value);
  bool is_sealed(const Record::Kept& kept) const;
  bool needs_seal(const Record& record) const;
  void check_record(const Record& record, ir::Operand typed);
  void read_record(const Record& record, ir::Operand held);
  void clear_unmade(const Record& record);
  void clear_at_start(ir::Builder& at, std::uintptr_t slot);
  void finish_slots(ir::Function& out, ir::BlockId reverse_start = ir::no_block);

  // --- forward.cpp ---
  bool forward_inst(std::uint32_t id);
  bool forward_operation(std::uint32_t id);
  void clone_watched(std::uint32_t id);
  void forward_put_back(std::uint32_t id);
  bool calls_derivative(std::uint32_t id);  // the forward step of an invoke is that of its derivative
  bool forward_effect(std::uint32_t id);
  bool forward_shadow(std::uint32_t id);
  bool forward_call(std::uint32_t id);
  bool forward_halves(std::uint32_t id);
  bool keeps_on_own_stack(const Environment::Halves& halves) const {
    return halves.stack && halves.stack.get() == loops_.stack();
  }
  bool forward_tape(std::uint32_t id);
  bool forward_aggregate(std::uint32_t id);
  ir::Operand clone_inst(std::uint32_t id);
  bool finds_calls(const ir::Inst& inst);
  void watch_calls(bool on);
  ir::Operand shadow(ir::Operand primal);  // of memory; a fresh zero shadow for what does not vary
  void set_shadow(std::uint32_t id, ir::Operand shadow);
  ir::Operand zero_shadow_of(ir::Operand made, const Type* shadow_type);  // of memory that carries nothing yet

  // --- memory.cpp ---
  bool forward_store(std::uint32_t id);
  struct EndFunctions;
  static EndFunctions end_functions(ir::Op resize);
  void forward_resize(std::uint32_t id);
  bool forward_load(std::uint32_t id);
  ValueIndex old_content(const Place& place, ir::Operand object, ir::Operand index, const Type* type);
  void put_back(const Place& place, ir::Operand object, ir::Operand index, ir::Operand old);
  void keep_written_arrays(std::uint32_t id);
  void restore_written_arrays(std::uint32_t id);
  void keep_changed_memory(std::uint32_t id);
  void keep_watched_changes(std::uint32_t id, ir::Operand watched);
  void restore_changed_memory(std::uint32_t id);
  void resize_back(ir::Operand memory, ir::Operand content);
  bool may_be_unassigned(const Place& place) const;
  void backward_load(std::uint32_t id);
  void backward_store(std::uint32_t id);
  bool has_boxed_cotangents(const DataType* array);
  void backward_resize(std::uint32_t id);

  // --- dynamic.cpp ---
  ir::Operand shadow_as(ir::Operand primal, const Type* seen_as);  // in the forward sweep
  bool forward_dynamic(std::uint32_t id);
  bool backward_dynamic(std::uint32_t id);

  // --- backward.cpp ---
  bool backward_inst(std::uint32_t id);
  void backward_put_back(std::uint32_t id);
  bool backward_step(std::uint32_t id);
  bool backward_call(std::uint32_t id);
  bool backward_halves(std::uint32_t id);
  void backward_field(std::uint32_t id);
  void backward_indexed_field(std::uint32_t id);
  void backward_select(std::uint32_t id);
  void backward_tape(std::uint32_t id);
  void backward_aggregate(std::uint32_t id);
  void backward_new_object(std::uint32_t id);
  void backward_float(const ir::Inst& inst, std::uint32_t id);

  // --- rules.cpp ---
  bool forward_rrule(std::uint32_t id);
  bool backward_rrule(std::uint32_t id);
  void keep_for_pullback(std::uint32_t id, const std::vector<ir::Operand>& call, const DataType* call_types,
                         ir::Operand pullback, const Type* pullback_type);
  void backward_scalar_rule(std::uint32_t id);
  // `y` times the partials of `function`, whose arguments are the operands from `first` on.
  void backward_partials(std::uint32_t id, ir::Operand function, std::size_t first, ir::Operand y);
  bool forward_stateful(std::uint32_t id);
  bool backward_stateful(std::uint32_t id);
  void refuse_aliases(const ir::Inst& inst, MemoryMask overwritten);
  void refuse_memory_twice(const ir::Inst& inst);
  void refuse_shared_result(std::uint32_t id, ir::Operand value, const std::vector<ir::Operand>& copies);
  const Method* rule_method(const ir::Inst& inst);
  std::vector<ir::Operand> rule_key(ir::Builder& at, const DataType* call_types);
  ir::Operand packed_call(ir::Builder& at, const ir::Inst& inst, bool with_callee);  // operands as one tuple
  ir::Operand packed_shadows(ir::Builder& at, const ir::Inst& inst);                 // of the arguments
  ir::Operand result_cotangent(std::uint32_t id, bool& any);
  ir::Operand rule_name(ir::Builder& at, const ir::Inst& inst);
  ir::Operand arguments_before(const ir::Inst& inst, std::uint32_t id);  // copies, when rules are checked
  void check_forward_step(const ir::Inst& inst, ir::Operand before, ir::Operand value, bool compare);
  std::size_t callee_operand(const ir::Inst& inst);
  void give_rule_result(const ir::Inst& inst, ir::Operand result);
  ir::Operand checked_rule_part(const ir::Inst& inst, std::size_t i, ir::Operand part);
  void accumulate_rule_result(ir::Operand argument, ir::Operand cotangent);

  Flow flow_;
  Sweeps sweeps_;
  ir::Builder& f_;  // forward cursor
  ir::Builder& r_;  // reverse cursor
  LoopTapes loops_;
  Overwritten overwritten_;
  SavedValues values_;
  Adjoints adjoints_;

  // Insts that put memory back, with those that began to keep it; of these, what was there in the reverse sweep (slot).
  std::unordered_map<std::uint32_t, std::uint32_t> keeping_of_;
  std::unordered_map<std::uint32_t, int> found_slot_of_;
  // What steps keep of the forward sweep, by primal inst.
  std::vector<ValueIndex> extra_of_;  // old value of a store, pullback of a rule, record of a call
  std::unordered_map<std::uint32_t, ValueIndex> old_shadow_of_;         // what a store takes out of a shadow
  std::unordered_map<std::uint32_t, ValueIndex> cut_off_of_;            // what a resize cuts off
  std::unordered_map<std::uint32_t, ValueIndex> kept_for_pullback_of_;  // what a rule's forward step stored
  std::unordered_map<std::uint32_t, ValueIndex> arguments_before_of_;   // when rules are checked
  std::unordered_map<std::uint32_t, Environment::Halves> halves_of_;
  std::unordered_map<std::uint32_t, ValueIndex> stack_of_;  // the stack that was opened for a call
  // Arrays that it writes, with what they held.
  std::unordered_map<std::uint32_t, std::vector<std::pair<ir::Operand, ValueIndex>>> written_arrays_;
  ir::Operand watched_;  // what watch_changes gave before the operation that comes next
  std::unordered_map<std::uint32_t, ValueIndex> changed_memory_;  // what calls may change of other memory, before them
  struct Entry {                                                  // of a block that several edges lead to
    ValueIndex from = no_value;                                   // the number of the edge by which control came
    std::int64_t edges = 0;                                       // that are emitted so far
  };
  std::vector<Entry> entries_;  // by primal block
};

}  // namespace slope::diff
