// What the views of code share: which details they show, and how they shorten them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lang/support/source.hpp"

namespace slope::infer {

struct ViewOptions {
  bool color = false;
  bool source = false;       // the line of the source beside the first instruction of it
  bool full = false;         // types and constants of any length are written out
  bool hide_stable = false;  // only what is not exact, and the way through the blocks (warntype)
};

// A type's text with its innermost parameters left out, `Dict{String, Vector{…}}`, until it has at most `most`
// characters or none are left.
std::string shortened_type(std::string text, std::size_t most = 60);
// Any text: its end is left out.
std::string shortened_text(const std::string& text, std::size_t most = 60);

// What stands at `span`: its first line, at most 60 bytes of it. Empty when the span is of no text.
std::string source_text(const SourceMap& sources, Span span);

// Of IR as text, whose lines may end in "  ; file:line": with the line of the source there, and shorter types.
std::string with_source_lines(std::string_view text, const SourceMap& sources, const ViewOptions& options);

}  // namespace slope::infer
