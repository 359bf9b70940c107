// Rewrites `t[i]`, where t is a tuple and i is known only at run time, into a form that both modes can differentiate
// without looking at types at run time:
//
//   elements of several types,            a switch over the indices; each arm reads one element
//   or that hold numbers beside memory
//   many elements of one type             an array of the elements, made where the tuple is made: a read, and an
//                                         addition to a cotangent, cost the same however many elements there are
//
// A tuple with a few elements of one type, all numbers or all memory, stays as it is (indexed_element).
#pragma once

#include "lang/diff/tangent.hpp"

namespace slope::diff {

void expand_tuple_reads(ir::Function& function, Runtime& runtime);

}  // namespace slope::diff
