// Calls on union-typed arguments as branches on their types.
#pragma once

#include <vector>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::infer {

// What a call is linked to for one choice of its argument types. Neither target nor native: the call raises a
// MethodError, or finds its method when it runs.
struct LinkedCall {
  std::vector<const Type*> types;  // callee first
  Specialization* target = nullptr;
  const NativeInfo* native = nullptr;
  const Type* type = nullptr;  // of its result
  std::uint32_t effects = effect_all;
  Value constant;  // defined: that is the result, and nothing else happens
  bool is_dynamic = false;
};

struct UnionSplit {
  std::vector<std::size_t> arguments;  // whose types are tested
  std::vector<LinkedCall> choices;     // every combination of the unions' members; or types, and last what is left
  const Type* type = nullptr;          // of the call's value
};

// An instruction without these has no effect but its value.
inline constexpr std::uint32_t visible_effects = effect_throws | effect_writes | effect_diverges;
// InstFlags that follow from what executing the inst may do.
std::uint16_t proved_flags(ir::Op op, std::uint32_t effects);

// Replaces the `call` inst by tests and one linked call for each choice; `replacement` gets what stands for its result.
void split_union_call(ir::Function& function, Runtime& runtime, std::uint32_t call, const UnionSplit& split,
                      std::vector<ir::Operand>& replacement);

}  // namespace slope::infer
