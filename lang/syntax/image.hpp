// A syntax tree as bytes that can be read in place. The build parses the standard library; a starting engine reads the
// trees instead of the text. An image belongs to the build that wrote it; an engine does not read one of another
// layout.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lang/syntax/ast.hpp"

namespace slope::syntax {

// `file` is what the spans of the tree name.
std::string write_image(const Ast& ast, FileId file);

// The tree, its spans in `file`. The image must be aligned to 8 bytes and outlive the tree. Nothing: not an image, or
// one of another layout.
std::optional<Ast> read_image(std::string_view image, FileId file);

bool is_image(std::string_view image);  // would read_image read it?

}  // namespace slope::syntax
