// Which objects that a function makes are dead when it returns. Nothing that outlives the activation refers to them, so
// their memory may be the activation's own (lang/memory/scratch.hpp).
//
// The analysis is flow-insensitive, and goes backwards from where values leave: results, stores into objects and
// containers, calls whose target is not known, natives. A value on a tape that this function opens and keeps to itself
// does not leave. The same rules apply to callees, a few calls deep.
//
// What a turn of a loop makes is dead when the next turn begins, unless it goes along the back edge: machine code frees
// it there. A function that keeps tapes holds what its loops made until the reverse sweep.
#pragma once

#include <vector>

#include "lang/ir/cfg.hpp"

namespace slope {
struct BuiltinTypes;
class TypeTable;
}  // namespace slope

namespace slope::ir {

// An object of a function without tapes that takes more is made in the heap after all.
inline constexpr std::size_t scratch_object_most = std::size_t{64} << 10;

// By instruction: an array_new, or a make_struct of a mutable type, whose object stays inside. Only objects that hold
// no references and never grow. Of what a loop makes, arrays stay inside the turn, unless the function keeps tapes; but
// not short vectors of a known length, nor mutable structs, which the heap makes in less time.
std::vector<bool> objects_that_stay(const Function& function, const Cfg& cfg, TypeTable& types);

}  // namespace slope::ir
