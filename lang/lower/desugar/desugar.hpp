// Rewrites syntax to core forms: it expands macros, and replaces every syntax that is only another way to write a call,
// an assignment or a loop. The one class has its members, by subject, in these files and macro*.cpp; FormMaker makes the
// forms. Desugaring never fails: it reports an error, puts the constant `nothing` in its place, and continues, so that
// all errors of a statement are found.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lang/lower/desugar/form_maker.hpp"
#include "lang/lower/state.hpp"
#include "lang/support/diagnostic.hpp"
#include "lang/support/thread_stack.hpp"
#include "lang/syntax/ast.hpp"

namespace slope::lower {

bool as_global_ref(Runtime& runtime, Value v, Module*& module, const Symbol*& name);

using syntax::Ast;
using syntax::Head;
using syntax::no_node;
using syntax::NodeId;

class Desugar : private FormMaker {
 public:
  static bool is_builtin_macro(std::string_view name) { return find_macro(name) != nullptr; }
  Desugar(Runtime& runtime, Context& ctx, Module* module, std::shared_ptr<Ast> ast, FormArena& arena,
          std::vector<Diagnostic>& diagnostics)
      : FormMaker(runtime, ctx, arena, diagnostics), module_(module), ast_(std::move(ast)) {}

  Lambda* top_level(NodeId statement);
  // An expression in which some names are constants.
  Lambda* top_level_with(NodeId expression, std::span<const std::pair<const Symbol*, Value>> names);
  Lambda* method(std::shared_ptr<const SignatureSyntax> signature, Variant variant, const TypeName* constructed);
  // The program is to stop: lowering ends, with an error.
  bool is_interrupted(Span at);

 private:
  // --- syntax (desugar.cpp) ---
  using FormMaker::error;
  Form* error(NodeId node, std::string message, std::string help = {});
  // What Slope cannot run, in a text that is right: an error when control reaches it.
  Form* unsupported(NodeId node, std::string message, const std::string& help = {});
  std::vector<NodeId> children(NodeId node) const;
  Span span(NodeId node) const { return ast_->node(node).span; }
  const Symbol* identifier(NodeId node) const;  // null when it is none
  bool is_identifier(NodeId node, std::string_view text) const;
  Value spliced(NodeId node);
  Form* expression(NodeId node);
  Form* literal(NodeId node);
  Form* statements(NodeId block);
  Form* deferred(NodeId node, DefinitionHints hints = {});  // a definition that runs when it is reached
  Form* then_newest_world(Form* form);                      // at top level what comes after sees what the form defined
  bool needs_top_level(NodeId node, std::string_view what);
  Form* type_definition(NodeId node);

  // --- expressions (expression.cpp) ---
  Form* call_expression(NodeId node);
  Form* call_with(Span span, Form* callee, std::span<const NodeId> arguments, Form* leading);
  Form* special_call(NodeId node);
  Form* keyword_names(Span span, std::span<const NodeId> entries);
  using Evaluate =
      std::function<Form*(NodeId)>;  // what stands for an argument that was evaluated before; null: nothing was
  Form* arguments_call(Span span, std::vector<Form*> head, std::span<const NodeId> arguments,
                       const Evaluate& value_of = {});
  Form* library_c_call(NodeId node, std::span<const NodeId> arguments);
  Form* power_by_literal(NodeId node);
  Form* value_parameter(Span span, std::int64_t n);
  Form* comparison(NodeId node);
  Form* chain(Span span, std::span<const NodeId> nodes, Form* left);
  Form* all_hold(Span span, std::span<Form* const> links);
  Form* interpolated(NodeId node);
  Form* short_circuit(NodeId node, bool is_and);
  Form* property(NodeId node);
  Form* curly(NodeId node);
  Form* where(NodeId node);
  Form* type_variable(const BoundSyntax& bound, Span at);
  Form* named_or_plain_tuple(NodeId node);
  Form* named_tuple_of(Span span, std::span<const NodeId> entries, const Evaluate& value_of = {});
  Form* new_object(NodeId node, std::span<const NodeId> type_arguments, std::span<const NodeId> arguments);
  Form* field_type_form(Span span, const Type* type, std::span<const TypeVar* const> vars,
                        std::span<Form* const> forms);

  // --- indexing and arrays (array.cpp) ---
  struct Indexed {
    Form* array = nullptr;       // a use
    std::vector<Form*> setup;    // temporaries to evaluate first
    std::vector<Form*> indices;  // uses, or splats
    std::uintptr_t splats = 0;   // bit i: index i
    Form* keywords = nullptr;    // a use of a named tuple
  };
  Indexed indexed(std::span<const NodeId> written, bool reusable);
  Form* index_expression(NodeId node, std::string_view function);
  Form* indexed_call(Span span, std::string_view function, const Indexed& place, std::vector<Form*> before = {});
  Form* end_in_index(NodeId node, std::string_view function);
  Form* vector_literal(NodeId node);
  Form* concatenation(NodeId node);
  Form* dimensions_literal(NodeId node);

  // --- assignment (assignment.cpp) ---
  Form* assignment(NodeId node);
  Form* assign_to(NodeId target, Form* value);
  Form* destructure(NodeId pattern, Form* value);
  Form* destructure_properties(NodeId pattern, Form* value);
  Form* op_assignment(NodeId node);
  Form* dot_assignment(NodeId node);
  Form* broadcast_target(NodeId node, std::vector<Form*>& setup);
  Form* declaration(NodeId node, bool is_global);
  Form* constant_declaration(NodeId node, bool is_global = false);
  Form* typed_declaration(NodeId node, Form* value);

  // --- broadcasting (broadcast.cpp) ---
  Form* broadcast(NodeId node);  // lazily: Base.broadcasted(…)
  Form* broadcast_operand(NodeId node);
  Form* materialized(NodeId node);
  bool is_dotted(NodeId node) const;

  // --- control (control.cpp) ---
  Form* conditional(NodeId node);
  Form* while_loop(NodeId node);
  Form* for_loop(NodeId node);
  Form* for_nest(Span span, std::span<const NodeId> iterators, NodeId body, Form* outermost,
                 std::vector<const Symbol*> around);
  bool assigns(NodeId node, const Symbol* name) const;
  NodeId with_own_variables(NodeId node, std::vector<const Symbol*> around);
  Form* let(NodeId node);
  Form* try_expression(NodeId node);
  Form* jump_out(NodeId node, bool is_break);

  // --- functions (function.cpp) ---
  Lambda* lambda(std::shared_ptr<const SignatureSyntax> signature, Variant variant,
                 const TypeName* constructed = nullptr);
  Form* generated_in_block(NodeId node, DefinitionHints hints);
  void give_as_arguments(SignatureSyntax& signature) const;
  Form* function_definition(NodeId node, DefinitionHints hints);
  Form* anonymous(NodeId node);
  Form* closure_of(std::shared_ptr<const SignatureSyntax> signature);
  Form* do_block(NodeId node);
  // A closure over one expression, of one parameter: the pattern, or a tuple of all patterns.
  Form* simple_closure(Span span, std::span<const NodeId> patterns, bool transient, NodeId body);
  void keyword_prologue(Lambda& made, const SignatureSyntax& signature, bool keyword_method, std::vector<Form*>& out);
  Form* default_value(NodeId node, std::span<const Symbol* const> unseen);
  Form* forwarding_body(Lambda& made, const SignatureSyntax& signature, Variant variant);
  Form* constructor_body(Lambda& made, Variant variant, const TypeName* constructed);

  // --- comprehensions (comprehension.cpp) ---
  Form* generator(NodeId node, bool transient);
  Form* comprehension(NodeId node);
  Form* flattened(NodeId node, bool transient);

  // --- quoting (quote.cpp) ---
  Form* quoted(NodeId node, int depth);
  Form* quoted_node(NodeId node, int depth);
  bool has_interpolation(NodeId node, int depth) const;

  // --- macros (macro.cpp, macro_*.cpp) ---
  Form* macro_call(NodeId node);
  Form* user_macro(NodeId node, Value macro, Module* definer);
  // What a call of a macro becomes where syntax is wanted, not a value: the target of an assignment. The node itself: it
  // is no call of a macro, or one that is part of the language.
  NodeId expanded_target(NodeId node);
  Form* one_after_another(NodeId block_of_statements);
  struct BuiltinMacro;
  static std::span<const BuiltinMacro> macro_table();
  Form* undefined_macro(NodeId node, const Module* owner, std::string_view text);
  static const BuiltinMacro* find_macro(std::string_view name);
  using MacroHandler = Form* (Desugar::*)(NodeId node, std::span<const NodeId> arguments);
  Form* macro_flag(NodeId node, std::span<const NodeId> arguments, std::uint8_t flag);
  Form* macro_inbounds(NodeId node, std::span<const NodeId> arguments);
  Form* macro_jump(NodeId node, std::span<const NodeId> arguments);
  Form* macro_simd(NodeId node, std::span<const NodeId> arguments);
  Form* macro_fastmath(NodeId node, std::span<const NodeId> arguments);
  Form* macro_boundscheck(NodeId node, std::span<const NodeId> arguments);
  Form* macro_inline(NodeId node, std::span<const NodeId> arguments);
  Form* macro_noinline(NodeId node, std::span<const NodeId> arguments);
  Form* hinted_definition(NodeId node, DefinitionHints hints);
  Form* macro_generated(NodeId node, std::span<const NodeId> arguments);
  Form* macro_doc(NodeId node, std::span<const NodeId> arguments);
  Form* macro_kwdef(NodeId node, std::span<const NodeId> arguments);
  Form* macro_assert(NodeId node, std::span<const NodeId> arguments);
  Form* macro_show(NodeId node, std::span<const NodeId> arguments);
  Form* macro_time(NodeId node, std::span<const NodeId> arguments);
  Form* macro_timed(NodeId node, std::span<const NodeId> arguments);
  Form* macro_elapsed(NodeId node, std::span<const NodeId> arguments);
  Form* macro_btime(NodeId node, std::span<const NodeId> arguments);
  Form* macro_allocated(NodeId node, std::span<const NodeId> arguments);
  Form* macro_view(NodeId node, std::span<const NodeId> arguments);
  Form* macro_views(NodeId node, std::span<const NodeId> arguments);
  Form* macro_dot(NodeId node, std::span<const NodeId> arguments);
  Form* macro_printf(NodeId node, std::span<const NodeId> arguments);
  Form* macro_sprintf(NodeId node, std::span<const NodeId> arguments);
  Form* macro_testset(NodeId node, std::span<const NodeId> arguments);
  Form* complex_rule(Span at, std::span<const NodeId> parts, std::string_view rule);
  Form* macro_scalar_rule(NodeId node, std::span<const NodeId> arguments);
  Form* macro_non_differentiable(NodeId node, std::span<const NodeId> arguments);
  Form* macro_thunk(NodeId node, std::span<const NodeId> arguments);
  Form* macro_reflection(NodeId node, std::span<const NodeId> arguments);
  Form* macro_isdefined(NodeId node, std::span<const NodeId> arguments);
  Form* macro_expand(NodeId node, std::span<const NodeId> arguments);
  Form* macro_expanded(NodeId node, std::span<const NodeId> arguments);
  Form* macro_eval(NodeId node, std::span<const NodeId> arguments);
  Form* macro_raw_string(NodeId node, std::span<const NodeId> arguments);
  Form* macro_module(NodeId node, std::span<const NodeId> arguments);
  Form* macro_location(NodeId node, std::span<const NodeId> arguments);
  Form* macro_plain(NodeId node, std::span<const NodeId> arguments);
  NodeId dotted(NodeId node);                          // @.
  NodeId global_name(std::string_view name, Span at);  // Base.name as syntax
  bool split_call(NodeId node, std::vector<Form*>& setup, Form*& callee, std::vector<Form*>& arguments);
  Form* format_call(NodeId node, std::span<const NodeId> arguments);

  struct EndContext {
    Form* array;           // a temporary
    std::size_t position;  // 0-based
    std::size_t count;
    std::vector<Form*> splats;  // temporaries of the splatted indices before it
  };
  // What `new` means: the struct under construction, and the arguments of Foo{…} in the constructor's name.
  struct NewContext {
    const TypeName* type = nullptr;
    std::vector<NodeId> type_arguments;
    bool has_type_arguments = false;
  };

  Module* module_;
  std::shared_ptr<Ast> ast_;
  std::vector<Form*> loops_;  // a null entry separates functions
  std::vector<EndContext> ends_;
  NewContext new_;
  int function_depth_ = 0;
  bool eval_is_parameter_ = false;  // of a function around: `eval(x)` calls it
  int scope_depth_ = 0;             // let, for … at top level: function definitions in them are local
  bool views_ = false;
  bool quote_expansion_ = false;  // the next expansion of a macro is wanted as a value
  bool keep_expansion_ = false;   // … as syntax, in `expansion_`
  // The argument of a call that is being lowered, when it is a macro: what it becomes may be a splat.
  syntax::NodeId argument_macro_ = syntax::no_node;
  bool argument_is_splat_ = false;
  bool defines_global_ = false;  // behind `global`
  NodeId expansion_ = no_node;
  NodeId transient_node_ = no_node;  // a generator whose result does not outlive the expression around it
  Form* interrupted_ = nullptr;      // stands for all that is not looked at any more
  int depth_ = 0;
  const char* stack_limit_ = recursion_limit(3);  // scopes and code are made of the same tree
  int macro_depth_ = 0;
  NodeId top_statement_ = syntax::no_node;
};

}  // namespace slope::lower
