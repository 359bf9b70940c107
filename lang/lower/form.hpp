// Core forms: the small tree between syntax and IR.
//
//   syntax (AST, Julia's surface) → desugar → forms → resolve (scope.cpp) → forms with variables → emit → IR
//
// Desugaring expands macros and leaves some twenty kinds of form, in which names are still symbols. The resolver then
// decides for each name which variable (or global binding) it means, which variables closures capture, and whether a
// capture is by value or needs a cell. Only then is IR emitted. In it every variable is a slot, which ir::promote_slots
// turns into SSA.
//
// Forms live in a FormArena and refer to each other freely. A tree is used once, except where noted (`finally` bodies
// are emitted once for each exit).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "lang/ir/ir.hpp"
#include "lang/lower/signature.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/memory_count.hpp"
#include "lang/support/source.hpp"
#include "lang/types/module.hpp"

namespace slope::lower {

struct Lambda;

// A loop, with the ones around it in the same function.
struct LoopNode {
  const LoopNode* parent = nullptr;
  std::uint32_t depth = 0;
};
struct Form;

enum class FormKind : std::uint8_t {
  constant,         // value
  name,             // `name` as written; resolved: `variable`, or `binding` of a global
  global,           // `binding`: a global of a known module (Base's for desugared code)
  self,             // the callee of the running function
  temporary,        // (e): evaluates e once, where it stands; `use` forms refer to its result
  use,              // target = a `temporary` that was evaluated before
  call,             // (f, args…); splats: bit i of `aux` = child i is splatted
  operation,        // (operands…); op, aux
  property,         // (object); `name`: a.b, or a global of a module known now
  curly,            // (T, args…)
  assign,           // (name or global, value); gives the value
  block,            // (forms…); gives the last
  if_,              // (condition, then [, else])
  loop,             // (condition or null, body [, step]); break and continue name it by `target`
  break_,           // target
  continue_,        // target
  return_,          // (value)
  scope,            // (body): variables assigned first in here are local to it. flag: ScopeFlags; with a `name`: the
                    // function's own variable of this name is not seen, what is around the function is
  local,            // declares `name`; children: [type]
  outer_local,      // `name` must be a local variable of the function around (for outer …)
  global_name,      // declares that `name` means the global
  try_,             // (body, catch body or null, finally or null, else or null); the catch variable is assigned inside
  caught,           // the exception of the innermost catch block
  closure,          // lambdas: a function value
  local_function,   // name = closure with (more) methods `lambdas`; children: [the definition as a global one]
  defined,          // (name): is the variable assigned?
  flagged,          // (body): instructions inside get `flag` bits (InstFlags)
  define_constant,  // (value); `name`: global constant of the module
  label,            // `name`: a place in the block that holds it
  goto_,            // `name`: goes on at the label, which is in this block or in one around it
};

enum ScopeFlags : std::uint8_t {
  scope_soft = 0,
  scope_hard = 1,
};

// One variable of one function (or of a top-level statement's local scope).
struct Variable {
  const Symbol* name = nullptr;
  Lambda* owner = nullptr;
  Span span;
  bool is_argument = false;
  bool is_static_parameter = false;
  std::uint32_t index = 0;  // argument: entry block parameter; static parameter: its index
  const TypeVar* type_var = nullptr;
  Form* declared_type = nullptr;  // of `x::T`; resolved anew at each assignment
  // Facts that decide how it is kept.
  const LoopNode* declared_in = nullptr;  // innermost loop around its scope
  std::uint32_t plain_assignments = 0;    // without those by definitions of its local function
  bool assigned_by_closure = false;
  bool captures_itself = false;  // a local function that uses its own name
  bool in_block = false;         // of an inner scope form, which makes it anew each time
  bool definite = false;         // surely assigned at the point the resolver has reached
  bool needs_cell = false;
  struct ClosureGroup* group = nullptr;  // the local function it names
  struct Event {
    std::uint32_t time;
    const LoopNode* loop;
  };
  std::vector<Event> assigned;
  std::vector<Event> captured;
  // Emission.
  std::uint32_t slot = ~0u;
};

struct Form {
  FormKind kind = FormKind::constant;
  std::uint8_t flag = 0;
  ir::Op op = ir::Op::unreachable;
  Span span;
  std::vector<Form*> children;
  Value value;
  const Symbol* name = nullptr;
  Variable* variable = nullptr;
  Binding* binding = nullptr;
  Module* module = nullptr;  // name: whose globals it sees, null = the function's own
  Form* target = nullptr;
  std::vector<Lambda*> lambdas;  // closure, local_function: one a variant
  std::uintptr_t aux = 0;
  std::vector<Variable*> variables;  // scope: declared in it
  ClosureGroup* group = nullptr;     // closure, local_function: once resolved
  ir::Operand result;                // temporary, once emitted
  // loop, while it is emitted
  ir::BlockId break_block = ir::no_block;
  ir::BlockId continue_block = ir::no_block;
  std::size_t exits = 0;  // exits (finally, catch) that were open where the loop began
};

// A variable of an enclosing function that this one uses.
struct Capture {
  Variable* variable = nullptr;
  bool self = false;      // the local function's own name: the callee itself
  bool by_value = false;  // such a name seen from a closure further in
  bool escapes = false;   // what uses it may run later than the expression that makes the closure
  const Symbol* field = nullptr;
  ir::Operand value;  // emission: loaded at entry
  std::uint32_t static_index = ~0u;
};

// The methods of one closure value: all definitions of a local function, or the variants of one anonymous function.
struct ClosureGroup {
  const Symbol* name = nullptr;
  Variable* variable = nullptr;  // of a local function
  std::vector<Lambda*> methods;
  std::vector<Capture> captures;  // union over the methods; the fields of the closure
  bool resolved = false;
  TypeName* type_name = nullptr;  // once emitted
  Lambda* parent = nullptr;
};

// A function to emit: a method, a top-level statement, or a closure's method.
struct Lambda {
  Span span;
  const Symbol* name = nullptr;
  Module* module = nullptr;
  std::shared_ptr<const SignatureSyntax> signature;  // null: top level
  Variant variant;
  std::vector<Variable*> parameters;  // the callee first
  std::uint32_t self_index = 0;       // 2 for a keyword method: (kwcall, names, f, …)
  bool is_vararg = false;
  int inline_hint = 0;
  std::vector<Variable*> static_parameters;
  Form* return_type = nullptr;
  Form* body = nullptr;
  bool transient = false;  // consumed by the very expression that makes it (comprehensions)
  // Resolver.
  Lambda* parent = nullptr;
  ClosureGroup* group = nullptr;
  std::vector<Variable*> variables;  // all variables that the function owns
  std::vector<Capture> captures;
  std::vector<const Type*> parameter_types;  // closures: of parameters[1…]
  bool types_name_variables = false;         // a global method's signature names variables of the block it stands in
};

class FormArena {
 public:
  explicit FormArena(MemoryCount& memory) : memory_(memory) {}
  Form* form(FormKind kind, Span span) {
    if (forms_.size() % forms_between_counts == forms_between_counts - 1) count();
    Form& made = forms_.emplace_back();
    made.kind = kind;
    made.span = span;
    return &made;
  }
  Variable* variable(const Symbol* name, Lambda* owner, Span span) {
    Variable& made = variables_.emplace_back();
    made.name = name;
    made.owner = owner;
    made.span = span;
    return &made;
  }
  Lambda* lambda() { return &lambdas_.emplace_back(); }
  const LoopNode* loop(const LoopNode* parent) {
    LoopNode& made = loops_.emplace_back();
    made.parent = parent;
    made.depth = parent == nullptr ? 1 : parent->depth + 1;
    return &made;
  }
  ClosureGroup* group() { return &groups_.emplace_back(); }
  // What it takes now counts as memory of the engine as long as it lives.
  void count() {
    constexpr std::size_t empty_deques = 5 * 576;
    constexpr std::size_t children_bytes = 32;
    const std::size_t now = sizeof(FormArena) + empty_deques + forms_.size() * (sizeof(Form) + children_bytes) +
                            variables_.size() * sizeof(Variable) + lambdas_.size() * sizeof(Lambda) +
                            groups_.size() * sizeof(ClosureGroup) + loops_.size() * sizeof(LoopNode);
    counted_.add(memory_, now - known_);
    known_ = now;
  }

  // What may be types, modules and bindings in it.
  void reach(Reached& reached) const {
    const auto each = [&](const auto& parts) {
      for (const auto& part : parts) reached.words(&part, &part + 1);
    };
    each(forms_);
    each(variables_);
    each(lambdas_);
    each(groups_);
    for (const Lambda& lambda : lambdas_)
      reached.words(lambda.parameter_types.data(), lambda.parameter_types.data() + lambda.parameter_types.size());
    for (const Form& form : forms_) reached.place(form.span);
    for (const Variable& variable : variables_) reached.place(variable.span);
    for (const Lambda& lambda : lambdas_) {
      reached.place(lambda.span);
      if (lambda.signature) reach_signature(*lambda.signature, reached);
    }
  }

 private:
  static constexpr std::size_t forms_between_counts = 1024;

  MemoryCount& memory_;
  CountedBytes counted_;
  std::size_t known_ = 0;  // counted already
  std::deque<Form> forms_;
  std::deque<Variable> variables_;
  std::deque<Lambda> lambdas_;
  std::deque<ClosureGroup> groups_;
  std::deque<LoopNode> loops_;
};

}  // namespace slope::lower
