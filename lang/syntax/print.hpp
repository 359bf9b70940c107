// Trees as text: S-expressions for tests (the form of Julia's `Meta.show_sexpr`) and source form for messages and
// `show`.
#pragma once

#include <functional>
#include <string>

#include "lang/syntax/ast.hpp"

namespace slope::syntax {

std::string to_sexpr(const Ast& ast, NodeId node);   // (call :+ 1 2)
std::string to_source(const Ast& ast, NodeId node);  // 1 + 2
// With the text of leaves that hold runtime values, which this layer does not know.
using ValueText = std::function<std::string(NodeId)>;
std::string to_source(const Ast& ast, NodeId node, const ValueText& value_text);

}  // namespace slope::syntax
