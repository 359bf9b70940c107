// The definitions of a text: what an engine may run to learn its names, types and methods, without running anything
// else. Each keeps what was found of it as long as neither it nor what it mentions changes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lang/syntax/ast.hpp"

namespace slope::api::tools::lsp {

struct Finding {
  std::uint32_t begin = 0;  // bytes of the definition's text
  std::uint32_t end = 0;
  bool is_error = false;  // else a warning
  std::string code;       // "no-method", "no-field", …: what kind of finding it is
  std::string message;
};

struct TypedSpan {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::string type;
};

struct Definition {
  enum class Kind : unsigned char { function, module, other };

  std::string text;
  std::uint32_t begin = 0;  // of the document
  Kind kind = Kind::other;
  std::string signature;              // of a function: its text up to the body
  std::vector<std::string> paths;     // what it defines, as written: "f", "Base.show"
  std::vector<std::string> mentions;  // names in it, sorted
  syntax::NodeId node = syntax::no_node;
  std::uint32_t node_begin = 0;  // where it stood in the text of that tree

  // What was found.
  std::uint32_t file = 0;  // of the engine that ran it; 0: none did
  bool is_analysed = false;
  std::vector<Finding> findings;
  std::vector<TypedSpan> types;  // sorted by begin, the longest first

  std::uint32_t end() const { return begin + static_cast<std::uint32_t>(text.size()); }
};

// In the order of the text. `text` is what `ast` was read from.
std::vector<Definition> read_definitions(std::string_view text, const syntax::Ast& ast);

}  // namespace slope::api::tools::lsp
