// From text to syntax tree: lexer, then the X3 grammar over its tokens. All syntax errors of a text are reported
// (recovery at statement boundaries); the tree holds an `error` node where a statement did not parse.
#pragma once

#include <vector>

#include "lang/support/diagnostic.hpp"
#include "lang/syntax/ast.hpp"
#include "lang/syntax/options.hpp"

namespace slope::syntax {

struct ParseResult {
  Ast ast;                              // root: `toplevel`
  std::vector<Diagnostic> diagnostics;  // in source order
  bool incomplete = false;  // the only problem is that the text ends inside a form: the prompt asks for more
  bool ok() const { return diagnostics.empty(); }
};

ParseResult parse(const SourceMap& sources, FileId file, const ParseOptions& options = {});

}  // namespace slope::syntax
