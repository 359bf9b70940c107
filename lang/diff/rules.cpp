#include "lang/diff/rules.hpp"

namespace slope::diff {

const DataType* rule_call(Runtime& runtime, KnownName rule, const DataType* call_types, bool with_result) {
  Binding* binding = library_binding(runtime, rule);
  if (!binding || !binding->value.defined()) return nullptr;
  std::vector<const Type*> types{binding->value.type};
  types.push_back(call_types->params[0]);
  if (with_result) types.push_back(call_types->params[1]);
  types.insert(types.end(), call_types->params.begin() + 1, call_types->params.end());
  return runtime.types.tuple(types);
}

const DataType* builder_call(Runtime& runtime, KnownName builder, const DataType* call_types) {
  Binding* binding = library_binding(runtime, builder);
  if (!binding || !binding->value.defined()) return nullptr;
  const Type* types[] = {binding->value.type, runtime.types.type_of_constant(runtime.from_type(call_types))};
  return runtime.types.tuple(types);
}

bool has_forward_rule(Runtime& runtime, const DataType* call_types, World world, std::vector<Edge>* edges) {
  bool found = false;
  auto look = [&](const DataType* types) {
    if (!types) return;
    if (edges) edges->push_back({Edge::Kind::lookup, types, nullptr});
    found |= runtime.lookup(types, world).method != nullptr;
  };
  if (Binding* rule = library_binding(runtime, KnownName::frule); rule && rule->value.defined()) {
    std::vector<const Type*> types{rule->value.type, runtime.types.builtin().tuple_any};
    types.insert(types.end(), call_types->params.begin(), call_types->params.end());
    look(runtime.types.tuple(types));
  }
  look(builder_call(runtime, KnownName::build_frule, call_types));
  return found;
}

namespace {

bool scalar_call(Runtime& runtime, const DataType* call_types) {
  const BuiltinTypes& builtin = runtime.types.builtin();
  if (call_types->params.size() < 2) return false;
  for (const Type* t : call_types->params.subspan(1))
    if (t != call_types->params[1] || (t != builtin.float64 && t != builtin.float32)) return false;
  return true;
}

}  // namespace

RuleKind find_rule(Runtime& runtime, const DataType* call_types, World world, std::vector<Edge>* edges) {
  RuleKind found = RuleKind::none;
  World defined = 0;
  auto consider = [&](RuleKind kind, KnownName name, bool with_result = false) {
    const DataType* types = kind == RuleKind::built ? builder_call(runtime, name, call_types)
                                                    : rule_call(runtime, name, call_types, with_result);
    if (!types) return;
    if (edges) edges->push_back({Edge::Kind::lookup, types, nullptr});
    const Method* method = runtime.lookup(types, world).method;
    if (!method || (found != RuleKind::none && method->min_world <= defined)) return;
    found = kind;
    defined = method->min_world;
  };
  if (scalar_call(runtime, call_types)) consider(RuleKind::scalar, KnownName::scalar_partials, true);
  consider(RuleKind::reverse, KnownName::rrule);
  consider(RuleKind::built, KnownName::build_rrule);
  consider(RuleKind::stateful, KnownName::rule_state);
  consider(RuleKind::non_differentiable, KnownName::nondifferentiable);
  return found;
}

RuleKind rule_of(Runtime& runtime, const ir::Inst& inst, World world) {
  if (inst.op != ir::Op::invoke) return RuleKind::none;
  return find_rule(runtime, inst.aux_as<Specialization>()->types, world, nullptr);
}

}  // namespace slope::diff
