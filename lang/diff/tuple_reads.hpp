// `t[i]` of a tuple, where i is known only when it runs, in a form that both modes differentiate without asking for
// types at run time:
//   elements of several types, or that hold numbers beside memory
//                               a switch over the places, each with a read of its own
//   many elements of one type   an array of them, made where the tuple is: reading one costs no more when there are
//                               many, nor does adding to its cotangent
// A few elements of one type, all number or all memory, stay as they are (indexed_element).
#pragma once

#include "lang/diff/tangent.hpp"

namespace slope::diff {

void expand_tuple_reads(ir::Function& function, Runtime& runtime);

}  // namespace slope::diff
