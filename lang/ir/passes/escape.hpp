// Which objects that a function makes are dead when it returns. Nothing that outlives the activation refers to them, so
// their memory may be the activation's own (lang/memory/scratch.hpp).
//
// The analysis is flow-insensitive, and goes backwards from where values leave: results, stores into objects and
// containers, calls whose target is not known, natives. A value on a tape that this function opens and keeps to itself
// does not leave. The same rules apply to callees, a few calls deep.
//
// What a turn of a loop makes is dead when the next turn begins, unless it goes along the back edge or onto a tape:
// machine code frees it there. A function that keeps tapes holds the rest of what its loops made until it returns.
//
// A small object of a size known now lies in the frame of the machine code. Its fields and elements are registers where
// nothing needs their addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lang/ir/cfg.hpp"

namespace slope {
struct BuiltinTypes;
class TypeTable;
}  // namespace slope

namespace slope::ir {

// An object of a function without tapes that takes more is made in the heap after all.
inline constexpr std::size_t scratch_object_most = std::size_t{64} << 10;

// The most bytes of one object in the frame, and of all of a function, with their headers.
inline constexpr std::size_t frame_object_most = 128;
inline constexpr std::size_t frame_most = std::size_t{2} << 10;

enum class Place : std::uint8_t { heap, scratch, frame };

// By instruction, where the object of an array_new, or of a make_struct of a mutable type, may lie. Outside the heap
// only objects that hold no references and never grow. Of what a loop makes without tapes, scratch memory takes arrays,
// unless they are small: the heap makes these in less time.
std::vector<Place> places_of_objects(const Function& function, const Cfg& cfg, TypeTable& types);

}  // namespace slope::ir
