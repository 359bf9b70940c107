// Type expressions of signatures and structs, evaluated directly from syntax, without IR: names, T{…}, `where`, module
// paths, typeof(f), literals. Any other expression is lowered and run.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lang/ir/ir.hpp"
#include "lang/lower/signature.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::lower {

class TypeExpression {
 public:
  TypeExpression(Runtime& runtime, Context& ctx, Module* module, std::shared_ptr<syntax::Ast> ast)
      : runtime_(runtime), ctx_(ctx), module_(module), ast_(std::move(ast)) {}

  // Names that are not globals: `where` variables, the struct being defined. Later entries hide earlier ones.
  std::vector<std::pair<const Symbol*, Value>> names;
  // Asked for names that are not in `names`, before globals. False: it raised.
  std::function<bool(const Symbol* name, Span at, Value& out, bool& found)> outer;
  // A struct under definition: its application is allowed though it is not complete.
  TypeName* incomplete = nullptr;

  // False: an error is pending in the context (`error_span` says where).
  bool evaluate(syntax::NodeId node, Value& out);
  bool type(syntax::NodeId node, const Type*& out);  // also requires a type
  // Makes the variable of a `where` entry and adds it to `names`.
  bool declare(syntax::NodeId entry, const TypeVar*& out);
  Span error_span;

 private:
  bool fail(syntax::NodeId node, std::string message);
  bool name(syntax::NodeId node, Value& out);
  bool application(syntax::NodeId node, Value& out);
  bool apply(syntax::NodeId node, Value base, std::vector<const Type*>& parameters, Value& out);
  bool parameter(syntax::NodeId node, const Type*& out, std::vector<const TypeVar*>& fresh);
  bool general(syntax::NodeId node, Value& out);

  Runtime& runtime_;
  Context& ctx_;
  Module* module_;
  std::shared_ptr<syntax::Ast> ast_;
};

// Lowers one expression with some names bound to values (TypeExpression's way out). Null: `diagnostics` has errors.
std::unique_ptr<ir::Function> lower_expression(Runtime& runtime, Context& ctx, Module* module,
                                               std::shared_ptr<syntax::Ast> ast, syntax::NodeId node,
                                               std::span<const std::pair<const Symbol*, Value>> names,
                                               std::vector<Diagnostic>& diagnostics);

}  // namespace slope::lower
