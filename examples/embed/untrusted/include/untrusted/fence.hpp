// What the system lets a process do that runs a stranger's script: compute, allocate, write to descriptors that are
// open, end. After fence_process() it opens no file, makes no process or socket, and gets no memory that can be run;
// another system call ends it with SIGSYS. Threads may still be started: the engine has one that looks at the clock.
//
// Whatever the program loads when it needs it, as libraries of linear algebra, must be loaded before.
#pragma once

#include <cstddef>

namespace untrusted {

struct ProcessLimits {
  std::size_t address_space = 0;  // bytes
  unsigned seconds = 0;           // of processor time
};

// False, with errno, when the system cannot do it: then run nothing.
bool fence_process(const ProcessLimits& limits);

}  // namespace untrusted
