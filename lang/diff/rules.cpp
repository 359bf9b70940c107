#include "lang/diff/rules.hpp"

#include <algorithm>

#include "lang/diff/tangent.hpp"
#include "lang/types/symbol.hpp"

namespace slope::diff {

namespace {

bool is_float(Runtime& runtime, const Type* t) {
  return t == runtime.types.builtin().float64 || t == runtime.types.builtin().float32;
}

const Value* function_of_base(Runtime& runtime, KnownName name) {
  Binding* binding = library_binding(runtime, name);
  return binding && binding->value.defined() ? &binding->value : nullptr;
}

}  // namespace

const DataType* rule_call(Runtime& runtime, KnownName rule, const DataType* call_types, bool with_result) {
  Binding* binding = library_binding(runtime, rule);
  if (!binding || !binding->value.defined()) return nullptr;
  std::vector<const Type*> types{binding->value.type};
  types.push_back(call_types->params[0]);
  const auto arguments = call_types->params.subspan(1);
  if (with_result) {  // of the type of the floats among the arguments
    const auto number = std::find_if(arguments.begin(), arguments.end(), [&](auto t) { return is_float(runtime, t); });
    types.push_back(number != arguments.end() ? *number : call_types->params[1]);
  }
  types.insert(types.end(), arguments.begin(), arguments.end());
  return runtime.types.tuple(types);
}

const DataType* positional_call(Runtime& runtime, const DataType* call_types) {
  const Value* kwcall = function_of_base(runtime, KnownName::kwcall);
  if (!kwcall || call_types->params.size() < 3 || call_types->params[0] != kwcall->type) return nullptr;
  return runtime.types.tuple(call_types->params.subspan(2));
}

const DataType* keyword_rule_call(Runtime& runtime, KnownName rule, const DataType* call_types, const Type* tangents) {
  const DataType* positional = positional_call(runtime, call_types);
  const Value* function = function_of_base(runtime, rule);
  if (!positional || !function) return nullptr;
  std::vector<const Type*> types{call_types->params[0], call_types->params[1], function->type};
  if (tangents) types.push_back(tangents);
  types.insert(types.end(), positional->params.begin(), positional->params.end());
  return runtime.types.tuple(types);
}

const Method* keyword_rule(Runtime& runtime, const DataType* rule_types, World world) {
  const Method* method = rule_types ? runtime.lookup(rule_types, world).method : nullptr;
  if (!method) return nullptr;
  // Not the one for all functions, which refuses keywords.
  const Type* signature = method->signature;
  while (const UnionAllType* open = as_union_all(signature)) signature = open->body;
  const DataType* parameters = as_data(signature);
  const bool own = parameters && parameters->params.size() > 2 && parameters->params[2] == rule_types->params[2];
  return own ? method : nullptr;
}

const Method* written_rule(Runtime& runtime, const DataType* rule_types, std::size_t place, World world) {
  const Method* method = rule_types ? runtime.lookup(rule_types, world).method : nullptr;
  if (!method) return nullptr;
  const Type* signature = method->signature;
  while (const UnionAllType* open = as_union_all(signature)) signature = open->body;
  const DataType* parameters = as_data(signature);
  const bool for_all =
      parameters && parameters->params.size() > place && parameters->params[place] == runtime.types.builtin().any;
  return for_all ? nullptr : method;
}

bool is_keyword_rule(Runtime& runtime, const DataType* call_types, World world) {
  return positional_call(runtime, call_types) &&
         !written_rule(runtime, rule_call(runtime, KnownName::rrule, call_types), 1, world) &&
         keyword_rule(runtime, keyword_rule_call(runtime, KnownName::rrule, call_types), world);
}

const DataType* builder_call(Runtime& runtime, KnownName builder, const DataType* call_types) {
  Binding* binding = library_binding(runtime, builder);
  if (!binding || !binding->value.defined()) return nullptr;
  const Type* types[] = {binding->value.type, runtime.types.type_of_constant(runtime.from_type(call_types))};
  return runtime.types.tuple(types);
}

namespace {

// At least so many arrays and objects that carry derivatives; 2 for two and more.
int memory_places(TangentTypes& tangents, const Type* type, int depth) {
  constexpr int deepest = 8;
  if (!tangents.has_shadow(type)) return 0;
  const DataType* data = as_data(type);
  if (!data || !data->is_concrete || depth > deepest) return 2;
  if (data->object_kind == DataType::ObjectKind::array) {
    const DataType* element = as_data(data->params[0]);
    return element && element->is_concrete && !tangents.has_shadow(element) ? 1 : 2;
  }
  if (data->object_kind != DataType::ObjectKind::fields) return 2;
  int places = 0;
  for (const Field& field : data->fields) places += memory_places(tangents, field.type, depth + 1);
  return std::min(data->is_mutable ? std::max(places, 1) : places, 2);
}

}  // namespace

bool may_hold_memory_twice(Runtime& runtime, const Type* type) {
  return memory_places(tangent_types(runtime), type, 0) > 1;
}

ir::Operand built_rule_operand(Runtime& runtime, ir::Builder& at, const BuiltRule& built, const DataType* call_types,
                               bool forward) {
  if (!built.may_change) return at.constant(built.rule);
  const ir::Operand type = at.constant(runtime.from_type(built.rule.type));
  const ir::Operand found =
      at.emit(ir::Op::call,
              {at.constant(library_value(runtime, KnownName::present_rule)), at.constant(runtime.from_type(call_types)),
               at.constant(runtime.from_bool(forward)), type},
              nullptr);
  return at.emit(ir::Op::type_assert, {found, type}, built.rule.type);
}

bool has_forward_rule(Runtime& runtime, const DataType* call_types, World world, std::vector<Edge>* edges) {
  bool found = false;
  auto look = [&](const DataType* types, std::size_t function_at) {
    if (!types) return;
    if (edges) edges->push_back({Edge::Kind::lookup, types, nullptr});
    found |= written_rule(runtime, types, function_at, world) != nullptr;
  };
  if (Binding* rule = library_binding(runtime, KnownName::frule); rule && rule->value.defined()) {
    std::vector<const Type*> types{rule->value.type, runtime.types.builtin().tuple_any};
    types.insert(types.end(), call_types->params.begin(), call_types->params.end());
    look(runtime.types.tuple(types), 2);
  }
  if (const DataType* named =
          keyword_rule_call(runtime, KnownName::frule, call_types, runtime.types.builtin().tuple_any)) {
    if (edges) edges->push_back({Edge::Kind::lookup, named, nullptr});
    found |= keyword_rule(runtime, named, world) != nullptr;
  }
  look(builder_call(runtime, KnownName::build_frule, call_types), 1);
  return found;
}

namespace {

bool is_complex(Runtime& runtime, const Type* t) {
  const DataType* d = as_data(t);
  return d && d->name->module == runtime.base && d->name->name->name == "Complex";
}

// Whether scalar rules may apply to the call. The library's are written for floats of one type. Those of a program hold
// for whatever they are defined for: floats, and beside them what carries no derivative (`mixed`).
bool scalar_call(Runtime& runtime, const DataType* call_types, bool& mixed) {
  bool any = false;
  mixed = false;
  TangentTypes& tangents = tangent_types(runtime);
  for (const Type* t : call_types->params.subspan(1)) {
    mixed |= t != call_types->params[1] || !is_float(runtime, t);
    any |= is_float(runtime, t);
    if (is_complex(runtime, t)) return false;  // the rrule that the macro defines beside it
    if (!is_float(runtime, t) && (!tangents.known(t) || tangents.differentiable(t))) return false;
  }
  return any;
}

// Then the `rrule` and `frule` that the macro defines beside the partials hold, as of complex arguments. The function was
// inferred before anyone asks how it is differentiated.
bool gives_complex(Runtime& runtime, const DataType* call_types, World world) {
  const Specialization* target = runtime.lookup_specialization(call_types, world);
  const CodeInstance* code = target ? target->current : nullptr;
  return code && is_complex(runtime, code->return_type);
}

}  // namespace

bool is_of_library(Runtime& runtime, const Method* method) {
  for (const Module* module = method->module; module; module = module->parent)
    if (module == runtime.base || module == runtime.core) return true;
  return false;
}

RuleKind find_rule(Runtime& runtime, const DataType* call_types, World world, std::vector<Edge>* edges) {
  RuleKind found = RuleKind::none;
  World defined = 0;
  auto look = [&](RuleKind kind, const DataType* types, bool of_programs = false, std::size_t function_at = 0) {
    if (!types) return;
    if (edges) edges->push_back({Edge::Kind::lookup, types, nullptr});
    const Method* method =
        function_at ? written_rule(runtime, types, function_at, world) : runtime.lookup(types, world).method;
    if (!method || (found != RuleKind::none && method->min_world <= defined)) return;
    const bool of_library = kind == RuleKind::scalar && is_of_library(runtime, method);
    if (of_programs && of_library) return;
    if (kind == RuleKind::scalar && !of_library && gives_complex(runtime, call_types, world)) return;
    found = kind;
    defined = method->min_world;
  };
  bool mixed = false;
  if (scalar_call(runtime, call_types, mixed))
    look(RuleKind::scalar, rule_call(runtime, KnownName::scalar_partials, call_types, true), mixed);
  look(RuleKind::reverse, rule_call(runtime, KnownName::rrule, call_types), false, 1);
  look(RuleKind::built, builder_call(runtime, KnownName::build_rrule, call_types));
  look(RuleKind::stateful, rule_call(runtime, KnownName::rule_state, call_types));
  look(RuleKind::non_differentiable, rule_call(runtime, KnownName::nondifferentiable, call_types));
  // A call with keywords: what is declared of the function holds for it too.
  if (const DataType* positional = positional_call(runtime, call_types)) {
    const DataType* named = keyword_rule_call(runtime, KnownName::rrule, call_types);
    if (edges) edges->push_back({Edge::Kind::lookup, named, nullptr});
    if (keyword_rule(runtime, named, world)) look(RuleKind::reverse, named);
    look(RuleKind::non_differentiable, rule_call(runtime, KnownName::nondifferentiable, positional));
  }
  return found;
}

RuleKind rule_of(Runtime& runtime, const ir::Inst& inst, World world) {
  if (inst.op != ir::Op::invoke) return RuleKind::none;
  return find_rule(runtime, inst.aux_as<Specialization>()->types, world, nullptr);
}

}  // namespace slope::diff
