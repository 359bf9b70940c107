// The shapes of trees. The parser makes only those that ast.hpp lists; programs and macros make trees of any shape.
// Those are looked at once, before they are lowered or printed, so that everything after that may rely on the list.
#pragma once

#include <string>

#include "lang/syntax/ast.hpp"

namespace slope::syntax {

// What is wrong with the node, whose children are well formed: "if takes 2 to 3 parts, found 1"; empty: nothing.
std::string misshapen(const Ast& ast, NodeId node);

}  // namespace slope::syntax
