// Arrays that lie in scratch memory or in a frame of machine code (lang/ir/passes/escape.hpp), where something else may
// keep them: an exception.
#pragma once

#include "lang/memory/heap.hpp"

namespace slope {

// The array itself, or a copy in the heap when it dies with an activation; an empty one when memory is at an end, null
// when not even that can be had.
ArrayObject* outliving_array(Heap& heap, ArrayObject* array);

}  // namespace slope
