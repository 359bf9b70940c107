// Definitions at run time: methods, structs and other types, modules, imports. `define` (a native) runs a Definition by
// its number. A part that fails raises in the context.
#pragma once

#include "lang/lower/form.hpp"
#include "lang/lower/state.hpp"

namespace slope::lower {

bool run_definition(Runtime& runtime, Context& ctx, Definition& definition, Value& result);

bool define_function(Runtime& runtime, Context& ctx, Definition& definition, Value& result);
bool define_macro(Runtime& runtime, Context& ctx, Definition& definition, Value& result);
bool define_struct(Runtime& runtime, Context& ctx, Definition& definition, Value& result);
bool define_abstract(Runtime& runtime, Context& ctx, Definition& definition, Value& result);
bool define_primitive(Runtime& runtime, Context& ctx, Definition& definition, Value& result);
bool define_module(Runtime& runtime, Context& ctx, Definition& definition, Value& result);
bool define_imports(Runtime& runtime, Context& ctx, Definition& definition, Value& result);
bool define_constant(Runtime& runtime, Context& ctx, Module* module, const Symbol* name, Value v);

// Library code: runs a function's or type's definition without IR. False: the statement is something else. The error is
// in ctx when it failed.
bool run_library_definition(Runtime& runtime, Context& ctx, Module* module, const std::shared_ptr<syntax::Ast>& ast,
                            syntax::NodeId statement);
bool define_postponed(Runtime& runtime, Context& ctx, Postponed what);  // of the library

// What a definition whose callee is the plain name `callee` adds methods to: the module's own function, an imported
// one, or a new one. False: an error is raised.
bool function_to_extend(Runtime& runtime, Context& ctx, Module* module, const syntax::Ast& ast, syntax::NodeId callee,
                        Value& out);

// One function definition whose signature is parsed: all its methods. `constructed`: an inner constructor's struct.
bool define_methods(Runtime& runtime, Context& ctx, Module* module, std::shared_ptr<const SignatureSyntax> signature,
                    const DefinitionHints& hints, const TypeName* constructed, const PreparedFunction* prepared,
                    Value& result, bool may_read_again = false);

// Desugars all variants of a definition now (user code: errors come early). Null: `diagnostics` has errors.
std::shared_ptr<PreparedFunction> prepare_function(Runtime& runtime, Context& ctx, Module* module,
                                                   std::shared_ptr<syntax::Ast> ast, syntax::NodeId node,
                                                   std::vector<Diagnostic>& diagnostics);

// Runs statements one after the other, each in the newest world. False: an error is raised.
bool run_statements(Runtime& runtime, Context& ctx, Module* module, std::shared_ptr<syntax::Ast> ast,
                    std::span<const syntax::NodeId> statements, Value& result);

// The body of a method to IR: of its own signature, or of one that a generator's code was put under. Null: diagnostics.
std::shared_ptr<ir::Function> lower_body(Runtime& runtime, Context& ctx, const Method& method,
                                         const std::shared_ptr<syntax::Ast>& ast,
                                         const std::shared_ptr<const SignatureSyntax>& signature,
                                         const MethodSource& source, std::vector<Diagnostic>& diagnostics);

bool is_library(const Runtime& runtime, const Module* module);  // Base, Core and modules in them
bool raise_diagnostics(Runtime& runtime, Context& ctx, const std::vector<Diagnostic>& diagnostics);
bool raise_at(Context& ctx, Span span, std::string message);

// What a documented statement that is no function defines: "P" of `struct P{T} <: Q`, "@m" of a macro; empty when
// nothing with a name.
std::string documented_name(const syntax::Ast& ast, syntax::NodeId node);

}  // namespace slope::lower
