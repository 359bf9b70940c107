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

// Lowers one top-level statement in `module`. Null: `diagnostics` has errors.
std::unique_ptr<ir::Function> lower_statement(Runtime& runtime, Context& ctx, Module* module,
                                              std::shared_ptr<syntax::Ast> ast, syntax::NodeId statement,
                                              std::vector<Diagnostic>& diagnostics);

// While one exists, definitions of library functions may wait until somebody asks for them (library.cpp).
class LibraryLoading {
 public:
  explicit LibraryLoading(Runtime& runtime);
  ~LibraryLoading();
  LibraryLoading(const LibraryLoading&) = delete;

 private:
  Runtime& runtime_;
};

// Lowers a method's body to method.ir. False: error raised in ctx (a syntax error found only now).
bool lower_method(Runtime& runtime, Context& ctx, Method& method);

// Natives that lowered code calls (define a method, a struct, a module, import names …), put into runtime.core.
void define_lowering_natives(Runtime& runtime);

}  // namespace slope::lower
