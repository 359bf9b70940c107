// Who is told of calls whose target was found when they ran: while Context::calls points at one, it sees each before it
// begins. Derivatives keep what such a call may overwrite (lang/derive/kept_memory.hpp).
#pragma once

#include <cstddef>

#include "lang/types/value.hpp"

namespace slope {

struct Context;
struct Specialization;

class CallWatch {
 public:
  virtual ~CallWatch() = default;
  // False: an error is raised, and the call does not happen.
  virtual bool before_call(Specialization& target, Value callee, const Value* args, std::size_t count) = 0;
  // The host has an error that no code of the language could catch: whatever the code was to do at its end is done now.
  virtual void abandon() = 0;
};

}  // namespace slope
