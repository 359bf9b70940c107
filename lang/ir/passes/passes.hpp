// Structural passes that several layers need.
#pragma once

#include <functional>
#include <string>

#include "lang/ir/cfg.hpp"
#include "lang/support/source.hpp"

namespace slope {
class Runtime;
}

namespace slope::ir {

// Turns slot_get/slot_set/slot_defined/slot_clear into SSA values with block arguments (pruned by liveness), but for
// slots that are live into handler blocks. A read that may be unassigned gets a check_defined under a flag of type
// Bool; reads that are surely assigned get none. Flags need `builtin`: without it slots that want a flag stay slots. In
// typed mode (`undefined_of` given) new parameters get the slot's type, no checks are made, and what flows in from a
// path without assignment is `undefined_of(slot)`; the maker guarantees that it is never looked at.
void promote_slots(Function& function, const BuiltinTypes* builtin = nullptr,
                   const std::function<Operand(std::uint32_t slot)>& undefined_of = {});

void remove_unreachable_blocks(Function& function);  // renumbers blocks; entry stays 0
void simplify_cfg(Function& function);       // merges straight lines, threads empty blocks, drops unused parameters
void remove_dead_insts(Function& function);  // effect-free (or inst_nothrow) and unused; dead parameters too
void compact(Function& function);            // drops unused insts and constants from the pools
void replace_all_uses(Function& function,
                      const std::vector<Operand>& replacement);  // index: inst; invalid: keep. Follows chains

std::size_t byte_count(const Function& function);  // that it takes, about

// What is asked of typed IR. A derivative is `partial` between its transform and its inference: results of calls that it
// adds have no types yet.
enum class Typing : std::uint8_t { complete, partial };
// Empty when well-formed, else what is wrong and where: operand counts, dominance, edge arguments, terminators,
// handlers, types. Linear in the size of the function.
std::string verify(const Function& function, Typing typing = Typing::complete);

// The text form, docs/ir.md. With `sources`, instructions whose line differs from the one before end in "; file:line".
std::string print(const Function& function, const SourceMap* sources = nullptr);
// Blocks and instructions renumbered in order, no head line: what golden tests compare.
std::string print_compact(const Function& function);
std::string constant_text(Value v);  // a constant as `print` writes it
// Reads what `print` writes (types, symbols and functions resolved in `runtime`). Null with `error` set otherwise.
std::unique_ptr<Function> read(slope::Runtime& runtime, std::string_view text, std::string& error);

}  // namespace slope::ir
