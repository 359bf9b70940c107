// How messages name a call: "f(::Int64)".
#pragma once

#include <span>
#include <string>

#include "lang/runtime/frames.hpp"

namespace slope {

struct Method;
class Runtime;
struct Specialization;

std::string call_text(const Specialization& target);
// How profiles and debuggers name a frame: "f", "Float64", "(::Adder)"; "top-level scope" for null.
std::string frame_name(const Method* method);
// With its parameters, and the types of the arguments where the trace knows them.
std::string frame_text(const TraceEntry& entry);
// Of an error's trace, innermost first: the innermost line that is not the library's, with a caret, after a line break
// (empty when there is none); and the frames, those that repeat folded.
std::string error_place_text(const Runtime& runtime, std::span<const TraceEntry> trace);
std::string trace_text(const Runtime& runtime, std::span<const TraceEntry> trace);

}  // namespace slope
