// Which names of a text are the same variable: the scopes of the language, read from the tree alone.
//
// A function, a `let`, a loop, a `try` and a comprehension open a scope. What a scope assigns is its own variable unless
// an enclosing local scope has it; loops and `try` at top level assign the global when the text has it. Names that
// nothing binds are globals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lang/syntax/ast.hpp"

namespace slope::api::tools::lsp {

enum class SymbolKind : unsigned char {
  global,
  local,
  parameter,
  type_parameter,
  function,
  type,
  module,
  macro,
  field
};

struct NameSymbol {
  std::string name;
  SymbolKind kind = SymbolKind::global;
  std::uint32_t module = 0;  // of globals: index into Scopes::modules
  bool is_defined = false;   // somewhere in the text
};

struct Occurrence {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t symbol = 0;
  bool is_definition = false;
  bool is_write = false;
  bool is_call = false;
  bool is_quoted = false;  // in a quote or among the arguments of a macro, which may make anything of it
};

class Scopes {
 public:
  explicit Scopes(const syntax::Ast& ast);

  const std::vector<NameSymbol>& symbols() const { return symbols_; }
  const std::vector<Occurrence>& occurrences() const { return occurrences_; }  // in the order of the text
  const std::vector<std::string>& modules() const { return modules_; }         // paths; the first is the text's own: ""
  const Occurrence* at(std::size_t offset) const;                              // that contains it, or ends there
  bool runs_code() const { return runs_code_; }                                // `include`, `eval`, `@eval`: names come

 private:
  friend class ScopeReader;
  std::vector<NameSymbol> symbols_;
  std::vector<Occurrence> occurrences_;
  std::vector<std::string> modules_;
  bool runs_code_ = false;
};

// The name that a definition's signature gives methods to: the identifier, or the last one of `Base.show`; no_node.
syntax::NodeId defined_identifier(const syntax::Ast& ast, syntax::NodeId signature);
// `f(x) = …`, also with types and `where`.
bool is_short_function(const syntax::Ast& ast, syntax::NodeId node);
// The call in a signature: f(x) of `f(x)::T where T`; no_node when there is none.
syntax::NodeId signature_call(const syntax::Ast& ast, syntax::NodeId signature);

}  // namespace slope::api::tools::lsp
