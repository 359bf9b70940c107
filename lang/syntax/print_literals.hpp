// How leaves are written, shared by the two printers: as Julia's `show` writes them.
#pragma once

#include <string>
#include <string_view>

#include "lang/syntax/ast.hpp"

namespace slope::syntax {

void write_literal(std::string& out, const Ast& ast, NodeId leaf);  // numbers, characters, strings, booleans, nothing
void write_symbol(std::string& out, std::string_view name);         // :x  :+  :(=)  Symbol("@m")
void write_escaped(std::string& out, std::string_view text, char quote);  // without the quotes

}  // namespace slope::syntax
