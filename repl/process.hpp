// What the programs of this folder want of the process.
#pragma once

#include <pthread.h>

#include <string>

namespace slope::repl {

// Scripts run on a thread with a large stack, of which the system provides only the parts that are touched. So recursion
// may go deep before it raises a StackOverflowError. False: there is too little address space.
bool start_on_large_stack(pthread_t& thread, void* (*body)(void*), void* argument);

// Of machine code: $SLOPE_CACHE (`off`: none), by default $XDG_CACHE_HOME/slope or ~/.cache/slope; empty when there is no
// home.
std::string cache_folder();

// The folder that this program lies in.
std::string program_folder();

}  // namespace slope::repl
