#include "lang/syntax/print.hpp"
namespace slope::syntax {
std::string to_source(const Ast& ast, NodeId node) { return to_sexpr(ast, node); }
}  // namespace slope::syntax
