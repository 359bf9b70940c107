// A text and what the parser makes of it.
#pragma once

#include <string>
#include <utility>

#include "lang/syntax/parse.hpp"

namespace slope::test {

struct Parsed {
  SourceMap sources;
  syntax::ParseResult result;

  explicit Parsed(std::string text) {
    const FileId file = sources.add("text", std::move(text));
    result = syntax::parse(sources, file);
  }
  syntax::NodeId only() const { return result.ast.child(result.ast.root, 0); }
};

}  // namespace slope::test
