#include "lang/diff/rules.hpp"

namespace slope::diff {

namespace {

// Types of the call `rule(f, args…)`, with Ω's type after f when the rule is for scalars. Null when Base has no such
// function.
const DataType* rule_call(Runtime& runtime, const char* rule, const DataType* call_types, bool with_result) {
  Binding* binding = runtime.base->find(runtime.symbol(rule));
  if (!binding || !binding->value.defined()) return nullptr;
  std::vector<const Type*> types{binding->value.type};
  types.push_back(call_types->params[0]);
  if (with_result) types.push_back(call_types->params[1]);
  types.insert(types.end(), call_types->params.begin() + 1, call_types->params.end());
  return runtime.types.tuple(types);
}

bool defined_for(Runtime& runtime, const DataType* types, World world, std::vector<Edge>* edges) {
  if (!types) return false;
  if (edges) edges->push_back({Edge::Kind::lookup, types, nullptr});
  return runtime.lookup(types, world).method != nullptr;
}

bool scalar_call(Runtime& runtime, const DataType* call_types) {
  const BuiltinTypes& builtin = runtime.types.builtin();
  if (call_types->params.size() < 2) return false;
  for (const Type* t : call_types->params.subspan(1))
    if (t != call_types->params[1] || (t != builtin.float64 && t != builtin.float32)) return false;
  return true;
}

}  // namespace

RuleKind find_rule(Runtime& runtime, const DataType* call_types, World world, std::vector<Edge>* edges) {
  if (scalar_call(runtime, call_types) &&
      defined_for(runtime, rule_call(runtime, "scalar_partials", call_types, true), world, edges))
    return RuleKind::scalar;
  if (defined_for(runtime, rule_call(runtime, "rrule", call_types, false), world, edges)) return RuleKind::reverse;
  if (defined_for(runtime, rule_call(runtime, "nondifferentiable", call_types, false), world, edges))
    return RuleKind::non_differentiable;
  return RuleKind::none;
}

RuleKind rule_of(Runtime& runtime, const ir::Inst& inst, World world) {
  if (inst.op != ir::Op::invoke) return RuleKind::none;
  return find_rule(runtime, inst.aux_as<Specialization>()->types, world, nullptr);
}

}  // namespace slope::diff
