// The state of one reverse transform; the essay is at the head of reverse.cpp. The members are defined in these files:
//   reverse.cpp      the walk: forward blocks, reverse blocks, loops, the two entry points
//   loops.cpp        what is known of loops, and their tapes
//   finish.cpp       both sweeps joined to one function in SSA form
//   saved.cpp        what the reverse sweep needs of the forward sweep, and where it is kept
//   forward.cpp      the augmented forward step of each operation (shadows, rules, tapes of old values)
//   backward.cpp     the reverse step of each operation
//   rules.cpp        calls of functions that have rules
//   dynamic.cpp      values whose types are known only at run time, and calls of functions that are
//   memory.cpp       loads and stores
//   overwritten.cpp  which old contents are restored
//   adjoint.cpp      cotangents of SSA values, leaf by leaf
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lang/diff/memory.hpp"
#include "lang/diff/sharing.hpp"
#include "lang/diff/transform.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/memory/tape.hpp"

namespace slope::diff {

using ValueIndex = std::uint32_t;  // into Reverse::values_
inline constexpr ValueIndex no_value = ~0u;
inline constexpr std::uint32_t no_loop = ~0u;

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

struct LoopState {
  std::uint32_t outermost = no_loop;
  int forward_row_slot = -1;        // rows used so far: one an execution of the header
  int row_slot = -1;                // rows not yet reversed; in combined mode the same slot
  ValueIndex tape = no_value;       // handle, opened before the outermost loop
  ValueIndex start_row = no_value;  // forward_row_slot when this entry of the loop began (no_value: always 0)
  ir::Operand row;                  // row of the running iteration, in the forward header
  TapeLayout* layout = nullptr;
  ir::Operand known_rows;          // upper bound of rows of one entry, in the preheader, when the loop is counted
  std::uint32_t counter = ~0u;     // the header parameter that counts up by one from the entry, if there is one
  std::int64_t counter_start = 0;  // what it starts from: a constant, not negative
  ir::BlockId preheader = ir::no_block;
  ir::BlockId latch = ir::no_block;
};

class Reverse : private Transform {
 public:
  Reverse(Environment& env, std::unique_ptr<ir::Function> primal, Refusal& refusal);
  bool analyse(const std::vector<char>& active);
  std::unique_ptr<ir::Function> combined();
  bool split(Derivative& result);
  void tell_recalled(Derivative& result);
  std::vector<Edge> edges;                           // rule lookups
  std::vector<std::shared_ptr<TapeLayout>> layouts;  // must live as long as the code
  std::vector<char> active_parameters;
  std::vector<SavedValue> saved() const;

 private:
  // --- reverse.cpp ---
  bool forward_sweep();
  bool reverse_sweep(ir::BlockId exit);
  bool reverse_block(ir::BlockId block);
  void leave_reverse_block(ir::BlockId block);
  void reverse_edge(ir::BlockId source, std::size_t edge,
                    const std::vector<std::vector<ir::Operand>>& parameter_cotangents, ir::BlockId target);
  ir::BlockId reverse_of(ir::BlockId block) const { return reverse_blocks_[block]; }
  std::vector<ir::Operand> argument_cotangents();       // one operand a parameter, nothing where it has none
  bool may_be_unmade(const ForwardValue& value) const;  // when the exit is reached
  void drop_unread_columns();

  // --- loops.cpp ---
  void find_loop_facts();
  void open_tapes(std::uint32_t loop);
  bool ends_at_header(const ir::Loop& loop) const;
  void begin_header(std::uint32_t loop);

  // --- finish.cpp ---
  void finish_slots(ir::Function& out, ir::BlockId reverse_start, ir::Builder& at);
  void insert_pending(ir::Function& out);
  void drop_zero_terms(ir::Function& out);
  void drop_unread_tapes();

  // --- saved.cpp ---
  ValueIndex remember(ir::Operand forward, const Type* type,
                      std::uint32_t primal = ~0u);  // made here, in the current forward block
  ir::Operand in_reverse(ValueIndex value);
  ir::Operand primal_in_reverse(ir::Operand primal);
  ir::Operand shadow_in_reverse(ir::Operand primal);
  ir::Operand row_in_reverse(std::uint32_t loop);
  bool can_recompute(std::uint32_t primal, int& budget);
  ir::Operand recompute(std::uint32_t primal);
  bool inside(std::uint32_t loop, ir::BlockId block) const;
  void note_saved(ValueIndex value, SavedValue::Where where, std::string why);
  void fill_record(ir::Builder& at, ir::Operand record);
  void after(const ForwardValue& value, ir::Op op, std::vector<ir::Operand> operands, std::uintptr_t aux);
  ir::Operand copy_constant(ir::Operand primal, ir::Function& out);

  // --- overwritten.cpp ---
  // Where an array comes from, as far as two that come from different places are never the same one.
  struct Origin {
    enum class Kind : std::uint8_t { unknown, outer, made } kind = Kind::unknown;
    std::uint32_t made_by = ~0u;  // made: the inst
  };
  // The reverse step of `inst` may look at memory of `group`, which is its `operand`.
  struct Recall {
    static constexpr std::size_t result = ~std::size_t{0};
    static constexpr std::size_t outer = result - 1;  // memory that others hold
    std::uint32_t inst;
    std::uint32_t group;
    std::size_t operand;
  };
  Origin origin_of(ir::Operand array) const;
  bool load_is_stable(const ir::Inst& load) const;
  void find_stores();
  void find_recalls();
  bool looks_at(const Recall& recall);
  bool rule_looks_at(const Recall& recall);
  bool is_recalled(std::uint32_t group, std::uint32_t id);
  bool is_held(std::uint32_t group, std::uint32_t id) const;
  bool must_restore(std::uint32_t store);
  bool is_stored_after(std::uint32_t id, ir::Operand memory) const;
  std::vector<ir::Operand> arrays_to_restore(std::uint32_t id);

  // --- forward.cpp ---
  bool forward_inst(std::uint32_t id);
  bool forward_call(std::uint32_t id);
  bool forward_halves(std::uint32_t id);
  std::vector<char> active_operands(const std::vector<Packed>& arguments) const;
  bool forward_tape(std::uint32_t id);
  bool forward_aggregate(std::uint32_t id);
  ir::Operand clone_inst(std::uint32_t id);
  ir::Operand forward(ir::Operand primal);
  ir::Operand shadow(ir::Operand primal);  // of memory; a fresh zero shadow for what does not vary
  void set_shadow(std::uint32_t id, ir::Operand shadow);

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
  bool may_be_unassigned(const Place& place) const;
  void backward_load(std::uint32_t id);
  void backward_store(std::uint32_t id);
  bool has_boxed_cotangents(const DataType* array);
  void backward_resize(std::uint32_t id);

  // --- dynamic.cpp ---
  ir::Operand shadow_as(ir::Operand primal, const Type* seen_as);  // in the forward sweep
  // Leaves of a cotangent of `primal` as a value of type `seen_as`.
  void give_cotangent(ir::Operand primal, const Type* seen_as, const std::vector<ir::Operand>& leaves);
  bool forward_dynamic(std::uint32_t id);
  bool backward_dynamic(std::uint32_t id);

  // --- backward.cpp ---
  bool backward_inst(std::uint32_t id);
  bool backward_step(std::uint32_t id);
  bool backward_call(std::uint32_t id);
  bool backward_halves(std::uint32_t id);
  void backward_tape(std::uint32_t id);
  void backward_aggregate(std::uint32_t id);
  void backward_new_object(std::uint32_t id);
  void backward_float(const ir::Inst& inst, std::uint32_t id);

  // --- rules.cpp ---
  bool forward_rrule(std::uint32_t id);
  bool backward_rrule(std::uint32_t id);
  void backward_scalar_rule(std::uint32_t id);
  // `y` times the partials of `function`, whose arguments are the operands from `first` on.
  void backward_partials(std::uint32_t id, ir::Operand function, std::size_t first, ir::Operand y);
  bool forward_stateful(std::uint32_t id);
  bool backward_stateful(std::uint32_t id);
  void refuse_aliases(const ir::Inst& inst);
  void refuse_shared_result(std::uint32_t id, ir::Operand value);
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
  void accumulate_rule_result(ir::Operand argument, ir::Operand cotangent);

  // --- adjoint.cpp ---
  struct Adjoint {
    std::vector<ir::Operand> leaves;  // current operands; invalid: zero
  };
  bool is_local(std::uint32_t id) const { return local_[id]; }
  std::vector<ir::Operand> cotangent_of(std::uint32_t id);    // invalid operands: zero
  std::vector<ir::Operand> take_cotangent(std::uint32_t id);  // and sets it to zero
  void add_cotangent(ir::Operand primal, std::size_t leaf, ir::Operand x);
  void add_cotangents(ir::Operand primal, const std::vector<ir::Operand>& leaves);
  void flush_adjoints();
  int adjoint_slot(std::uint32_t id, std::size_t leaf);
  void find_local_values();

  int new_slot(const Type* type, bool is_adjoint);

  ir::Cfg cfg_;
  ir::LoopForest forest_;
  std::vector<LoopState> loops_;
  ir::BlockId exit_ = ir::no_block;

  std::unique_ptr<ir::Function> forward_out_;
  std::unique_ptr<ir::Function> reverse_out_;  // null in combined mode: the same function
  std::unique_ptr<ir::Builder> f_;             // forward cursor
  std::unique_ptr<ir::Builder> r_;             // reverse cursor
  bool split_ = false;

  std::vector<ForwardValue> values_;
  std::vector<ValueIndex> value_of_;   // by primal inst
  std::vector<ValueIndex> shadow_of_;  // by primal inst
  std::vector<ValueIndex> extra_of_;   // by primal inst: old value of a store, pullback of a rule, record of a call
  std::unordered_map<std::uint32_t, ValueIndex> old_shadow_of_;  // by primal inst: what a store takes out of a shadow
  std::unordered_map<std::uint32_t, ValueIndex> arguments_before_of_;  // by primal inst, when rules are checked
  std::unordered_map<std::uint32_t, Environment::Halves> halves_of_;   // by primal inst
  std::vector<ValueIndex> from_of_;                                    // by primal block: which edge control came by
  std::vector<ir::BlockId> forward_blocks_;                            // by primal block
  std::vector<ir::BlockId> reverse_blocks_;
  std::vector<bool> reaches_exit_;
  std::vector<ir::Operand> parameters_;                        // of the forward function: the primal's
  std::unordered_map<ValueIndex, ir::Operand> reverse_cache_;  // of the current reverse block
  std::unordered_map<std::uint32_t, ir::Operand> recomputed_;  // likewise
  std::unordered_map<std::uint32_t, ir::Operand> row_cache_;   // likewise, by loop
  std::unordered_map<std::uint32_t, Adjoint> adjoints_;        // likewise
  std::vector<bool> local_;
  std::vector<std::uint32_t> sums_;  // insts of the reverse sweep that add cotangents
  std::unordered_map<std::uint64_t, int> adjoint_slots_;
  std::vector<int> adjoint_slot_list_;
  std::vector<ValueIndex> recorded_;  // split mode: values kept in the record, in order
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> pending_after_;  // forward inst → insts that follow it
  std::unordered_map<ir::BlockId, std::vector<std::uint32_t>> pending_start_;    // forward block → insts at its start
  std::unique_ptr<Sharing> sharing_;
  struct Stored {
    const Type* element = nullptr;  // null: not known
    std::uint32_t group = Sharing::no_group;
    Origin origin;
  };
  std::vector<Stored> stored_arrays_;  // that are stored into (not through array_init)
  std::vector<Recall> recalls_;
  std::unordered_map<std::uint32_t, Environment::Halves> asked_halves_;  // by primal inst
  std::unordered_map<std::uint32_t, bool> rule_looks_;                   // by primal inst: at arguments
  struct Looked {
    std::uint32_t inst;
    std::uint32_t group;
  };
  std::vector<Looked> looked_at_;  // by loads that the reverse sweep does again
  // By primal inst: arrays that it writes, with what they held.
  std::unordered_map<std::uint32_t, std::vector<std::pair<ir::Operand, ValueIndex>>> written_arrays_;
  std::map<std::pair<ValueIndex, ir::BlockId>, ValueIndex> after_loop_;  // kept where it is used, after its loop
  std::map<ValueIndex, SavedValue> saved_;
  ir::BlockId current_forward_ = ir::no_block;  // primal block being emitted
  ir::BlockId current_reverse_ = ir::no_block;
};

}  // namespace slope::diff
