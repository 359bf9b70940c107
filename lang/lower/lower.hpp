// From syntax to untyped SSA IR: scope analysis, macro expansion, desugaring, closure conversion, SSA construction.
//
// A text is lowered statement by statement: each top-level statement becomes a Function without parameters that is run
// before the next is lowered (so that macros, types and imports it defines are there). A method definition evaluates
// its signature and then registers a Method whose body is syntax (MethodBody) until its first call.
#pragma once

#include <memory>
#include <vector>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/diagnostic.hpp"
#include "lang/syntax/ast.hpp"

namespace slope {

// What Method::body points at.
struct MethodBody {
  std::shared_ptr<syntax::Ast> ast;
  syntax::NodeId definition = syntax::no_node;  // the function / arrow / assign node
  syntax::NodeId body = syntax::no_node;
  std::shared_ptr<const void> scope;  // lowering's own: captured variables, enclosing method
};

}  // namespace slope

namespace slope::lower {

// What a tree takes counts as memory of the engine as long as it lives.
std::shared_ptr<syntax::Ast> counted(Runtime& runtime, std::shared_ptr<syntax::Ast> tree);

// Lowers one top-level statement in `module`. Null: `diagnostics` has errors.
std::unique_ptr<ir::Function> lower_statement(Runtime& runtime, Context& ctx, Module* module,
                                              std::shared_ptr<syntax::Ast> ast, syntax::NodeId statement,
                                              std::vector<Diagnostic>& diagnostics);

// The code of a statement has been run and will be destroyed: nobody asks for the definitions in it any more.
void statement_ended(Runtime& runtime, const ir::Function& body);

// A file of the standard library.
struct LibraryPart {
  std::string_view image;            // its tree, which outlives the runtime
  FileId file = 0;                   // its number among the sources
  std::shared_ptr<syntax::Ast> ast;  // null: read from the image when it is wanted
  bool is_loaded = true;             // false: part of a module of the library, which includes it
};

// Makes the library's definitions known in Base, in load order. `index`: what they define, made when Slope was built
// and outliving the runtime; empty: it is made now. False: error raised in ctx.
bool open_library(Runtime& runtime, Context& ctx, std::vector<LibraryPart> parts, std::string_view index);

// What is kept of a method's syntax; null: of definitions that wait to be run. For lang/runtime/unreachable.cpp.
void reach_syntax(Runtime& runtime, const Method* method, Reached& reached);

// `@inbounds` of scripts means something from now on.
void trust_inbounds(Runtime& runtime);

// Lowers a method's body to method.ir. False: error raised in ctx (a syntax error found only now).
bool lower_method(Runtime& runtime, Context& ctx, Method& method);

// Natives that lowered code calls (define a method, a struct, a module, import names …), put into runtime.core.
void define_lowering_natives(Runtime& runtime);
void add_hooks(Runtime& runtime, RuntimeHooks& hooks);

}  // namespace slope::lower
