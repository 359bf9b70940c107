// How messages name a call: "f(::Int64)".
#pragma once

#include <string>

namespace slope {

struct Method;
struct Specialization;

std::string call_text(const Specialization& target);
// How profiles and debuggers name a frame: "f", "Float64", "(::Adder)"; "top-level scope" for null.
std::string frame_name(const Method* method);

}  // namespace slope
