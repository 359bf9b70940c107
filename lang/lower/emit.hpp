// Emits IR for resolved forms. There is one Emitter for each function. The closures inside are emitted, with their
// types and methods, where the expression that makes them is.
//
// Every variable is a slot (a cell in a slot when closures share it), every temporary an SSA value. ir::promote_slots
// then makes SSA. A `finally` body is emitted once for each way out of its region: `exits_` is the stack of what
// leaving inner regions must do.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lang/ir/build.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/lower/form.hpp"
#include "lang/support/diagnostic.hpp"

namespace slope::lower {

// What a method's IR takes, and the interpreter's form of it.
inline std::size_t bytes_with_bytecode(const ir::Function& function) { return 2 * ir::byte_count(function); }

class Emitter {
 public:
  Emitter(Runtime& runtime, Context& ctx, Lambda& lambda, const Method* method, std::vector<Diagnostic>& diagnostics);
  std::unique_ptr<ir::Function> run();

 private:
  using Op = ir::Op;
  using Operand = ir::Operand;

  // --- emit.cpp ---
  void prologue();
  Operand emit(Form* form, bool wanted);
  Operand emit_op(Op op, std::vector<Operand> operands, std::uintptr_t aux = 0);
  Operand constant(Value v) { return builder_.constant(v); }
  Operand nothing();
  void error(Span span, std::string message);
  bool gives_up(Span span);  // interrupted, or out of memory: reported once
  Operand read(Variable* variable);
  Operand shared(Variable* variable);  // what a closure captures: the cell, or the value
  void write(Variable* variable, Operand value);
  // Whether only the library may name it, and this is not the library: then reports it.
  bool refuse_intrinsic(const Binding& binding, Span span);
  Operand read_binding(Binding* binding);
  Operand assign(Form* form);
  Operand defined(Form* form);
  Operand static_parameter_defined(Variable* variable);
  void fresh_variables(const std::vector<Variable*>& variables, bool in_block);
  std::uint32_t slot(Variable* variable);
  bool is_plain_argument(const Variable* variable) const;
  const Capture* capture_of(const Variable* variable) const;
  Operand self() const { return parameters_[lambda_.self_index]; }

  // --- emit_call.cpp ---
  Operand call(Form* form);
  Operand property(Form* form);
  Operand curly(Form* form);
  Binding* static_binding(Form* form);         // a global known now: a name, or M.name; null otherwise
  bool constant_type(Form* form, Value& out);  // a type expression over constants of Core and Base
  Operand call_base(std::string_view function, std::vector<Operand> operands);
  Operand call_native(std::string_view name, std::vector<Operand> operands);

  // --- emit_control.cpp ---
  Operand conditional(Form* form, bool wanted);
  void branch_on(Form* condition, ir::BlockId if_true, ir::BlockId if_false);
  Operand loop(Form* form);
  Operand scope(Form* form, bool wanted);
  Operand give_back(Form* form);
  Operand jump_out(Form* form);
  Operand try_region(Form* form, bool wanted);
  Operand catch_region(Form* form, bool wanted);
  void leave(std::size_t depth);

  // --- emit_closure.cpp ---
  Operand make_closure(ClosureGroup& group);
  void emit_group(ClosureGroup& group);
  void emit_method(ClosureGroup& group, Lambda& lambda);

  struct Exit {
    bool is_catch = false;               // leaving a catch block ends it
    Form* body = nullptr;                // leaving a try with `finally` runs it
    ir::BlockId handler = ir::no_block;  // outside the region
    Operand exception;
  };

  // The labels of the blocks around, innermost last.
  struct Label {
    const Form* form = nullptr;
    ir::BlockId block = ir::no_block;
    std::size_t exits = 0;  // regions around it
    bool is_placed = false;
  };
  void open_labels(const Form* block);
  Operand place_label(Form* form);
  Operand go_to(Form* form);

  Runtime& runtime_;
  Context& ctx_;
  Lambda& lambda_;
  std::vector<Diagnostic>& diagnostics_;
  std::unique_ptr<ir::Function> function_;
  ir::Builder builder_;
  std::vector<Operand> parameters_;
  std::vector<Exit> exits_;
  std::vector<Label> labels_;
  Operand return_type_;
  std::uint16_t flags_ = 0;
  int loop_depth_ = 0;
  CountedBytes counted_;  // of the function while it is made
  std::size_t counted_insts_ = 0;
  bool was_interrupted_ = false;
};

// The `where` variables around a signature, outermost first; those that do not occur are left out. `indices[i]` is then
// the static parameter number of the i-th variable, or ~0.
const Type* close_signature(Runtime& runtime, const Type* body, std::span<const TypeVar* const> vars,
                            std::vector<std::uint32_t>& indices);

}  // namespace slope::lower
