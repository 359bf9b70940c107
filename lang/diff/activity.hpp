// Which values of a typed function carry derivatives.
//
//   varied[v]   v depends differentiably on an active argument: it has cotangent leaves, a shadow, or both
//   written[v]  v is memory into which a varied value is or may be stored somewhere: its shadow must be the one of the
//               object's origin, not a fresh zero one. An argument that is written becomes active; a global that is
//               written is refused. What a call whose target is not known may write is only that: a global given to it
//               stays constant, and the call finds out when it runs.
//
// Both only grow; the fixed point is reached in a few sweeps.
#pragma once

#include <vector>

#include "lang/diff/memory.hpp"
#include "lang/diff/rules.hpp"
#include "lang/diff/tangent.hpp"

namespace slope::diff {

struct Activity {
  std::vector<bool> varied;
  std::vector<bool> written;
  std::vector<bool> returns;       // by block: a return, or in forward mode a store, can be reached from it
  std::vector<bool> varied_slots;  // forward mode: variables that live across a `try`
  bool any_varied = false;
  std::vector<RuleKind> rules;          // by inst: of invokes
  std::vector<char> active_parameters;  // of the entry: asked for, or written
  std::vector<std::uint8_t> texts;      // made of the text or the bits of what is varied
  bool tells(ir::Operand o) const { return o.is_inst() && texts[o.index()] != 0; }
  bool carries(ir::Operand o) const { return o.is_inst() && varied[o.index()]; }
};

// False: something cannot be differentiated (refusal).
bool analyse_activity(const ir::Function& function, TangentTypes& tangents, MemoryEffects& memory, World world,
                      const std::vector<char>& active, std::vector<Edge>* edges, Activity& result, Refusal& refusal,
                      bool forward_mode = false);

}  // namespace slope::diff
