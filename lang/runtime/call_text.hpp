// How messages name a call: "f(::Int64)".
#pragma once

#include <string>

namespace slope {

struct Specialization;

std::string call_text(const Specialization& target);

}  // namespace slope
