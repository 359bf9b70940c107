// Zeros in memory that the heap owns. Of a large part whole pages go back to the system, which gives zeros where they
// are used next: nobody waits for the clearing of memory that is never looked at, and the time limit, which nothing
// looks at meanwhile, is met in the loop that uses it.
//
// Not for memory of a host: a file that is mapped would show what it holds.
#pragma once

#include <cstddef>

namespace slope {

void clear_memory(void* memory, std::size_t bytes);

}  // namespace slope
