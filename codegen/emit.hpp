// Emits one LLVM function for one typed IR function. The members of the class Emitter are defined in these files:
//   emit.cpp        blocks, terminators, prologue
//   errors.cpp      how an exception leaves an instruction: its trace entries, handlers, the way out of the function
//   values.cpp      constants, boxing and unboxing, loads and stores by storage class
//   arithmetic.cpp  integers, floats, conversions, mathematical functions
//   predicates.cpp  isa, ===, typeof, typeassert, select
//   memory.cpp      arrays, strings, fields, cells, globals, slots, tapes
//   allocation.cpp  small objects, taken from the heap without a call
//   calls.cpp       calls, natives, the general path for operations that have no inline form
//   entries.cpp     wrappers for dynamic callers and for hosts
//   ahead_emit.cpp  what is different in code for programs without an engine
//
// Rules that emitted code must never break:
//  1. An element pointer must not live across a call that may allocate unless the array pointer does.
//     Why: the collector is conservative and runs only inside calls. It recognises a pointer to an ArrayObject, not a
//     pointer to the array's elements. Two things keep the rule:
//       - every helper that may allocate is declared as writing all memory, so that LLVM has to load the element
//         pointer from the array again after the call;
//       - no result of an allocation is declared `noalias`, otherwise LLVM would conclude that the call cannot change
//         it.
//  2. A box is complete before anything else may allocate: compute the leaves, then allocate the box, then store.
//  3. Every operation that raises does so through fail_when or error_block, which add the instruction's trace entries.
//     The status of a function decides whether it may raise at all: `may_fail` in batch.cpp must agree with what is
//     emitted here.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <deque>
#include <map>

#include "codegen/ahead.hpp"
#include "codegen/call_buffers.hpp"
#include "codegen/fresh_arrays.hpp"
#include "codegen/helpers.hpp"
#include "codegen/layout.hpp"
#include "codegen/quick_code.hpp"
#include "codegen/unit.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/passes/bounds.hpp"
#include "lang/ir/passes/escape.hpp"
#include "lang/memory/tape.hpp"
#include "lang/runtime/call_sites.hpp"

namespace slope::codegen {

// Data that the code of one batch refers to by address.
struct BatchData {
  std::deque<TraceSite> trace_sites;
  CallSites<std::deque<CallCache>> call_sites;
  std::deque<QuickCode> quick;                // of the functions that get quick code
  std::vector<std::shared_ptr<void>> linked;  // machine code of other batches that this one calls
};

// Where an `invoke` leads.
struct CallTarget {
  const Signature* signature = nullptr;  // null: no compiled code, call through the runtime
  llvm::FunctionCallee callee;
};

// What emission needs from the batch that the function is part of.
class EmitHost {
 public:
  virtual ~EmitHost() = default;
  // As `caller` names it.
  virtual CallTarget resolve(Specialization& target, Unit& caller) = 0;
};

class Emitter {
 public:
  Emitter(Layout& layout, Unit& unit, BatchData& data, EmitHost& host, const ir::Function& function,
          const Signature& signature, llvm::Function* output);
  void run();

  // The wrapper for dynamic callers (BoxedEntry) of a native function.
  static void emit_boxed(Layout& layout, Unit& unit, BatchData& data, EmitHost& host, const ir::Function& function,
                         bool is_vararg, const Signature& signature, llvm::FunctionCallee native,
                         llvm::Function* output);
  // The wrapper for hosts (DirectEntry).
  static void emit_direct(Layout& layout, Unit& unit, BatchData& data, EmitHost& host, const ir::Function& function,
                          const Signature& signature, llvm::FunctionCallee native, llvm::Function* output);
  // The function of a C program (codegen/ahead.hpp).
  static void emit_ahead(Layout& layout, Unit& unit, BatchData& data, EmitHost& host, const ir::Function& function,
                         const Signature& signature, llvm::FunctionCallee native, llvm::Function* output);
  // The gradient of a function of numbers and vectors for hosts (flat::Gradient); `native` is its derivative.
  static void emit_flat_gradient(Layout& layout, Unit& unit, BatchData& data, EmitHost& host,
                                 const ir::Function& function, const Signature& signature, llvm::FunctionCallee native,
                                 llvm::ArrayRef<std::uint8_t> steps, llvm::Function* output);

 private:
  using V = llvm::Value*;

  // --- entries.cpp ---
  llvm::BasicBlock* begin_wrapper();

  // --- emit.cpp ---
  void find_tests();
  bool is_surely_array(ir::Operand o, int depth);
  void note_length(std::uint32_t id);
  void prologue();
  void make_blocks();
  void find_catch_depths();
  ir::BlockId block_of_stack_check();
  void check_stack();
  void check_interrupt();
  // In reverse postorder; blocks of an irreducible graph included.
  bool is_back_edge(const ir::Edge& edge) const {
    return cfg_.position[edge.target] <= cfg_.position[current_block_id_] && signature_.has_status;
  }
  bool only_raises(ir::BlockId block) const;
  void emit_block(ir::BlockId block);
  Val emit(const ir::Inst& inst);
  void terminator(const ir::Inst& inst, const ir::Block& block);
  void jump_to(const ir::Edge& edge);
  llvm::BasicBlock* edge_block(const ir::Edge& edge, std::vector<ir::BlockId>& taken);
  void return_value(const Val& v);

  // --- errors.cpp ---
  void fail_when(V condition);  // the current instruction raised; the error is pending in the context
  void fail();                  // always; the block is then terminated
  llvm::BasicBlock* error_block();
  llvm::BasicBlock* return_error_block();
  void return_error(const TraceSite* site);
  void note_error_edge(const TraceSite* site);
  TraceSite* current_site();
  TraceSite* trace_site(const ir::Inst& inst);

  // --- emit.cpp ---
  void link_record();
  void unlink_record();
  // Before a call that others may look at from outside. `calls_library`: of a function that LLVM knows to touch no
  // memory; the note has to stand before it all the same.
  void note_site(bool calls_library = false);
  llvm::BasicBlock* new_block(const char* name);
  V helper(Helper which, llvm::ArrayRef<V> arguments);  // b results as i1
  V pointer(const void* address);                       // as a constant
  V integer(std::int64_t n) { return llvm::ConstantInt::get(layout_.i64, static_cast<std::uint64_t>(n)); }
  V at(V base, std::int64_t bytes);
  V poison(llvm::Type* type) { return llvm::PoisonValue::get(type); }
  void branch_likely(V condition, llvm::BasicBlock* usual, llvm::BasicBlock* rare);
  void branch_unlikely(V condition, llvm::BasicBlock* rare, llvm::BasicBlock* usual);

  // --- values.cpp ---
  const Type* type_of(ir::Operand o) { return function_.type_of(o, layout_.types()); }
  Val operand(ir::Operand o);
  Val operand_as(ir::Operand o, const Type* type) { return coerce(operand(o), type); }
  Val constant(Value v, const Type* type);
  Val none(const Type* type) { return {type, {}, nullptr}; }
  Val poison_of(const Type* type);
  Val coerce(const Val& v, const Type* to);
  V payload_of(Value v);  // as a constant
  std::pair<V, V> to_dynamic(const Val& v);
  Val from_dynamic(V type, V payload, const Type* to);
  V box(const Val& v);
  Val unbox_fields(V box, const DataType* type);
  Val field_of(const Val& aggregate, std::size_t index);
  void store_fields(V payload, const DataType* type, const Val& v, Memory memory);
  // `may_be_undefined`: a null reference or type raises through undefined_reference.
  Val load_stored(V where, const Type* declared, Memory memory, bool may_be_undefined);
  // `fresh`: into an object made just now, with no allocation since; otherwise the collector is told of references.
  void store_stored(V where, const Type* declared, const Val& v, Memory memory, bool fresh = false);
  void report_reference(V type, V payload);
  V load(llvm::Type* type, V where, Memory memory);
  void store(V what, V where, Memory memory);
  void undefined_when(V condition);
  Val boolean(V bit) { return {layout_.builtin().boolean, {bit}, nullptr}; }
  V store_values(llvm::ArrayRef<Val> values);  // into the buffer for arguments of dynamic calls
  V result_buffer() { return buffers_.result(); }
  Val load_result(const Type* type);    // from the buffer for results
  void mark_result(const Val& result);  // of a call

  // --- arithmetic.cpp ---
  bool emit_arithmetic(const ir::Inst& inst, Val& result);
  bool emit_integer(const ir::Inst& inst, V a, V b, V& result);
  bool emit_division(const ir::Inst& inst, V a, V b, V& result);
  bool emit_conversion(const ir::Inst& inst, Val& result);
  bool emit_float(const ir::Inst& inst, llvm::ArrayRef<V> operands, V& result);
  V library_call(const ir::Inst& inst, const char* name, llvm::Intrinsic::ID fast, llvm::ArrayRef<V> operands);
  V as_byte(V v);  // i1 to i8, others unchanged
  V from_byte(V v, const Type* type);

  // --- predicates.cpp ---
  bool emit_predicate(const ir::Inst& inst, Val& result);
  V egal(const Val& a, const Val& b);
  V isa(const Val& v, const Type* type);
  V type_word(const Val& v);

  // --- memory.cpp ---
  bool emit_memory(const ir::Inst& inst, Val& result);
  bool emit_name(const ir::Inst& inst, Val& result);
  bool emit_cell(const ir::Inst& inst, Val& result);
  bool emit_array(const ir::Inst& inst, Val& result);
  bool emit_fields(const ir::Inst& inst, Val& result);
  bool emit_tape(const ir::Inst& inst, Val& result);
  bool emit_indexed_element(const ir::Inst& inst, Val& result);
  Val choose_mixed(const Val& tuple, V zero_based, const Type* type);
  V choose(llvm::ArrayRef<V> column, V zero_based);
  bool make_object(const DataType* type, std::span<const ir::Operand> fields, Val& result);
  const Type* tape_column(const ir::Inst& inst);
  V element_address(V array, V index, const Type* element);
  void check_element(const ir::Inst& inst, V index);
  void check_index(ir::Operand object, V index, std::int64_t length_offset, Memory memory, bool is_known,
                   V known_length = nullptr);
  ir::Place place_of(const ir::Inst& inst) const;
  V make_array(const ir::Inst& inst, llvm::ArrayRef<V> dims);
  bool known_field(const ir::Inst& inst, std::size_t& index);
  Val slot_value(std::size_t slot, const Type* type);

  // --- allocation.cpp: null is answered by raising, so nothing here is null ---
  bool allocates_inline(std::size_t bytes, std::size_t words);
  V take_cell(Heap::CellKind kind, const DataType* type, llvm::function_ref<void(V)> initialize,
              llvm::function_ref<V()> call);
  V allocate_object(const DataType* type, std::size_t fields);
  V allocate_cell(bool is_set);
  V allocate_vector(const DataType* type, V length);
  llvm::AllocaInst* in_frame(std::size_t bytes, std::size_t alignment, const char* name);
  V object_in_frame(const DataType* type, std::size_t fields);
  V vector_in_frame(const DataType* type, V length);
  V vector_in_scratch(const DataType* type, V length, llvm::function_ref<V()> call);
  void fill_header(V array, const DataType* type, V data, V length);
  void resize_by_one(V vector, V length, const Type* element, llvm::function_ref<void()> call);

  // --- calls.cpp ---
  bool emit_call(const ir::Inst& inst, Val& result);
  Val invoke(const ir::Inst& inst);
  Val given_operand(const ir::Inst& call, ir::Operand o);
  bool call_host(const ir::Inst& inst, const WordCode& host, Val& result);
  Val call_host_in_registers(const ir::Inst& inst, const WordCode& host);
  Val call_host_with_words(const ir::Inst& inst, const WordCode& host);
  void raise_host_failure(const WordCode& host, V failure);
  Val call_native_code(const Signature& signature, llvm::FunctionCallee callee, llvm::ArrayRef<Val> arguments);
  void watch_store(const ir::Inst& inst);  // loans.cpp
  Val execute(const ir::Inst& inst);       // through the operation's one definition in lang/ir/execute
  void raise_by_executing(const ir::Inst& inst);
  V aux_word(const ir::Inst& inst);  // Inst::aux, which may be an address
  Val pack_tuple(const DataType* type, llvm::ArrayRef<Val> elements);

  // --- ahead_emit.cpp ---
  std::vector<char> blocks_that_raise();
  std::vector<char> blocks_that_run();
  void raise_ahead(ir::BlockId block);
  V site_value(const TraceSite* site);
  V ahead_helper(Helper which, llvm::ArrayRef<V> arguments);
  V need(llvm::Type* result, std::string what);
  Val need_value(const ir::Inst& inst, std::string what);
  V call_ahead(const char* name, llvm::ArrayRef<V> arguments);
  V take(V bytes);
  V ahead_object(const DataType* type, std::size_t bytes);
  V ahead_array(const DataType* type, llvm::ArrayRef<V> dims);
  V ahead_tape(const TapeLayout* layout, V rows);
  V grow_ahead(V tape, V rows);
  V ahead_size(V array, V dimension, std::int64_t rank);
  llvm::Constant* ahead_constant(Value v);
  Val ahead_native(const ir::Inst& inst, const NativeInfo& info);
  // Operands of which each is an array of Float64s of a rank.
  bool are_matrices(const ir::Inst& inst, std::initializer_list<std::pair<std::size_t, int>> which);
  void raise_when(V condition, AheadError error);
  bool product_of_vector(const ir::Inst& inst, Val& result);
  bool product(const ir::Inst& inst, Val& result);

  Layout& layout_;
  Unit& unit_;
  BatchData& data_;
  EmitHost& host_;
  const ir::Function& function_;
  const Signature& signature_;
  llvm::Function* output_;
  llvm::IRBuilder<> b_;
  ir::Cfg cfg_;
  ir::BoundsProofs bounds_;         // accesses to elements that need no test
  std::vector<char> wants_length_;  // by inst: arrays whose length cannot change while accesses to them are tested
  std::vector<V> lengths_;          // by inst, of those: loaded once

  V context_ = nullptr;
  std::vector<Val> values_;                                 // by inst
  std::vector<llvm::BasicBlock*> blocks_;                   // by IR block: where control enters
  std::vector<llvm::SmallVector<llvm::PHINode*, 4>> phis_;  // by IR block: leaves of all parameters
  // Where the back edges of a loop that has several meet: LLVM would take each for a loop of its own.
  struct Latch {
    llvm::BasicBlock* block = nullptr;
    llvm::SmallVector<llvm::PHINode*, 4> phis;
  };
  std::vector<unsigned> back_edges_;  // by IR block: how many lead to it outside of handlers
  llvm::DenseMap<ir::BlockId, Latch> latches_;
  // What was free when the loop was entered.
  struct ScratchMark {
    llvm::AllocaInst* serial;
    llvm::AllocaInst* at;
    llvm::AllocaInst* end;
    bool has_inner = false;  // a loop within it notes its own beginning in each turn, which ends with the turn
  };
  void enter_scratch(bool keeps_tapes);
  void mark_scratch(ir::BlockId target, bool is_next_turn);
  void note_scratch(const ScratchMark& mark);
  void jump_to_latch(ir::BlockId header, llvm::ArrayRef<llvm::Value*> leaves);
  const ir::Inst* current_ = nullptr;
  const ir::Block* current_block_ = nullptr;
  ir::BlockId current_block_id_ = 0;
  llvm::BasicBlock* current_error_ = nullptr;
  TraceSite* current_site_ = nullptr;
  llvm::BasicBlock* return_error_ = nullptr;
  llvm::PHINode* error_site_ = nullptr;
  CallBuffers buffers_;
  FreshArrays fresh_arrays_;
  ir::BlockId stack_check_ = ir::no_block;
  std::vector<char> raises_;   // by IR block, ahead of time: every way from it raises
  std::vector<char> running_;  // by IR block, ahead of time: reached without going through one that raises
  unsigned inline_allocations_ = 0;
  V tape_mark_ = nullptr;
  V scratch_ = nullptr;  // serial of the activation, when it has objects in scratch memory
  V scratch_front_ = nullptr;
  std::map<ir::BlockId, ScratchMark> scratch_marks_;  // by header of loops whose turns make some
  std::vector<ir::Place> places_;                     // by inst: of the objects that it makes
  std::uint64_t scratch_most_ = 0;                    // bytes of one of them
  llvm::AllocaInst* record_ = nullptr;                // of lang/runtime/frames.hpp, where the engine keeps them
  V caught_base_ = nullptr;                           // how many exceptions were caught outside, at entry
  std::vector<std::uint32_t> catch_depth_;            // by IR block: how many catch blocks surround its start
  struct Slot {
    llvm::SmallVector<llvm::AllocaInst*, 2> leaves;
    llvm::AllocaInst* defined = nullptr;
    const Type* type = nullptr;
  };
  std::vector<Slot> slots_;
  std::map<std::vector<V>, llvm::AllocaInst*> indexed_copies_;  // of values that are chosen from by a number
};

}  // namespace slope::codegen
