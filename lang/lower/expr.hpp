// Syntax as values: `Expr`, `Symbol`, `QuoteNode`, `LineNumberNode`, in the shapes of Julia's parser, and back.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lang/runtime/runtime.hpp"
#include "lang/syntax/ast.hpp"

namespace slope::lower {

// One level of a node as Julia's Expr has it: a leaf value, or a head and parts.
struct ExprPart {
  syntax::NodeId node = syntax::no_node;
  Value value;  // defined: a constant part
};
struct ExprShape {
  Value leaf;  // defined: no Expr
  std::string head;
  std::vector<ExprPart> parts;
};
ExprShape shape_of(Runtime& runtime, Context& ctx, const syntax::Ast& ast, syntax::NodeId node);

// GlobalRef(module, :name) as a value; and its parts, false when it is none.
Value global_reference(Runtime& runtime, Context& ctx, Module* module, std::string_view name);
bool reference_parts(Runtime& runtime, Context& ctx, Value v, Module*& module, const Symbol*& name);

// False: an error is raised (out of memory).
bool to_value(Runtime& runtime, Context& ctx, const syntax::Ast& ast, syntax::NodeId node, Value& out);

// What a macro returned is hygienic: names it assigns are fresh, other names mean globals of its module, and only
// what is inside `esc(…)` means what it would mean where the macro was called.
struct Hygiene {
  Module* module = nullptr;
  std::unordered_map<const Symbol*, std::string> renamed;
};
// no_node with `error` set when the value is no expression.
syntax::NodeId from_value(Runtime& runtime, Context& ctx, syntax::Ast& ast, Span span, Value v, Hygiene* hygiene,
                          std::string& error);
// The same for printing: an Expr of a shape that no text has is spliced in as a value.
syntax::NodeId from_printed(Runtime& runtime, Context& ctx, syntax::Ast& ast, Value v, std::string& error);
// Finds the names that a macro's expansion introduces; `at_home` where it is expanded at the top of the macro's module.
void collect_introduced(Runtime& runtime, Context& ctx, Value v, Hygiene& hygiene, bool at_home);

bool eval(Runtime& runtime, Context& ctx, Module* module, Value expression, Value& result);

}  // namespace slope::lower
