// Structural passes that several layers need.
#pragma once

#include <functional>
#include <string>

#include "lang/ir/cfg.hpp"

namespace slope {
class Runtime;
}

namespace slope::ir {

// Turns slot_get/slot_set/slot_defined/slot_clear into SSA values with block arguments (pruned by liveness), but for
// slots that are used in or live into handler blocks. Reads that may be unassigned get a check that raises
// UndefVarError (a `call` of Core.throw_undef_var with the name under a defined-flag), reads that are surely assigned none.
// In typed mode (`types_of_slots` given) new parameters get the slot's type and a read of an unassigned slot is undefined
// behaviour that the maker excluded: it becomes an arbitrary constant of the type (`undefined_of`).
void promote_slots(Function& function, const std::function<Operand(std::uint32_t slot)>& undefined_of = {});

void remove_unreachable_blocks(Function& function);  // renumbers blocks; entry stays 0
void simplify_cfg(Function& function);               // merges straight lines, threads empty blocks, drops unused parameters
void remove_dead_insts(Function& function);          // effect-free (or inst_nothrow) and unused; dead parameters too
void compact(Function& function);                    // drops unused insts and constants from the pools
void replace_all_uses(Function& function, const std::vector<Operand>& replacement);  // index: inst; invalid: keep. Follows chains

// Empty when well-formed, else what is wrong and where: operand counts, dominance, edge arguments, terminators, handlers, types.
std::string verify(const Function& function);

std::string print(const Function& function);                       // see docs/ir.md for the form
// Reads what `print` writes (types, symbols and functions resolved in `runtime`). Null with `error` set otherwise.
std::unique_ptr<Function> read(slope::Runtime& runtime, std::string_view text, std::string& error);

}  // namespace slope::ir
