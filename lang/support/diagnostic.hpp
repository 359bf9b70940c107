// What is wrong with the user's text, where, and what to do. Shown as
//
//   error: expected `)` to close the call, found end of line
//     --> model.slope:3:12
//      |
//    3 | y = f(1, 2
//      |            ^
//     = help: …
#pragma once

#include <string>
#include <vector>

#include "lang/support/source.hpp"

namespace slope {

enum class Severity : std::uint8_t { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  Span span;
  std::string message;  // what was expected and what was found
  std::string help;     // what to do; may be empty
};

std::string render(const Diagnostic& diagnostic, const SourceMap& sources);
std::string render_place(Span span, const SourceMap& sources);  // the arrow, and the line with its caret
std::string render(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources);

}  // namespace slope
