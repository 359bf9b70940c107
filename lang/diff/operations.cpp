#include "lang/diff/operations.hpp"

#include <algorithm>

#include "lang/diff/tangent.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::diff {

using ir::Op;

namespace {

// What there is to know of a derivative before it is called: functions, types, numbers.
bool describes_derivative(const ir::Inst& inst) {
  std::string_view name = inst.aux_as<const NativeInfo>()->name;
  return name == "derivative_step" || name == "pullback_step";
}

}  // namespace

Treatment classify(const ir::Inst& inst, RuleKind rule) {
  switch (inst.op) {
    case Op::invoke:
      return rule == RuleKind::non_differentiable ? Treatment::inert : Treatment::call;
    case Op::array_set:
    case Op::array_init:
    case Op::set_field_at:
    case Op::cell_set:
      return Treatment::store;
    case Op::call:
    case Op::get_field:
    case Op::set_field:
      return Treatment::call;
    case Op::tuple:
    case Op::make_struct:
    case Op::make_closure:
    case Op::field_at:
    case Op::select:
    case Op::refine:
    case Op::type_assert:
    case Op::array_new:
    case Op::array_get:
    case Op::array_share:
    case Op::array_resize:
    case Op::array_resize_front:
    case Op::cell_new:
    case Op::cell_get:
      return Treatment::value;
    case Op::native:
      // A native that only looks (lengths, printing of numbers …) is inert; what computes or writes needs a rule above
      // it.
      return Treatment::refused;
    case Op::call_splat:
    case Op::store_global:
    case Op::tape_open:
    case Op::tape_reserve:
    case Op::tape_store:
    case Op::tape_load:
    case Op::tape_close:
      return Treatment::refused;
    case Op::load_global:
    case Op::slot_get:
    case Op::slot_set:
    case Op::slot_clear:
      return Treatment::inert;
    default:
      break;
  }
  if (ir::is_terminator(inst.op)) return Treatment::inert;
  switch (ir::op_info(inst.op).derivative) {
    case ir::Derivative::linear:
    case ir::Derivative::operands:
    case ir::Derivative::result:
      return Treatment::value;
    case ir::Derivative::none:
      return Treatment::inert;
    case ir::Derivative::memory:
    case ir::Derivative::special:
      break;  // one that ops.def says is treated by name, and that has no case above
  }
  return Treatment::refused;
}

Treatment treatment_of(const ir::Function& function, const ir::Inst& inst, RuleKind rule, Runtime& runtime) {
  if (inst.op == Op::native) {
    if (forgets_element(inst)) return Treatment::value;
    if (makes_shadows(inst)) return Treatment::value;
    if (calls_what_it_is_given(inst)) return Treatment::call;
    if (describes_derivative(inst)) return Treatment::inert;
    // What only looks and gives back something without a derivative: hashes, texts, whether an element is assigned.
    TangentTypes& tangents = tangent_types(runtime);
    bool looks = !(inst.aux_as<const NativeInfo>()->effects & effect_writes);
    if (looks && tangents.known(inst.type) && !tangents.differentiable(inst.type)) return Treatment::inert;
  }
  return indexed_element(function, inst, runtime) ? Treatment::value : classify(inst, rule);
}

bool is_undefined(const ir::Function& function, ir::Operand o, Runtime& runtime) {
  if (o.is_inst()) return function.inst(o).op == Op::undef;
  Value v = function.constant_value(o);
  return !v.defined() || tangent_types(runtime).stand_ins.contains(v);
}

bool forgets_element(const ir::Inst& inst) {
  return inst.op == Op::native && std::string_view(inst.aux_as<const NativeInfo>()->name) == "array_forget";
}

bool makes_shadows(const ir::Inst& inst) {
  if (inst.op != Op::native) return false;
  std::string_view name = inst.aux_as<const NativeInfo>()->name;
  return name == "zero_shadows" || name == "constant_shadow";
}

bool is_operator(const ir::Inst& inst) {
  if (inst.op != Op::native) return false;
  std::string_view name = inst.aux_as<const NativeInfo>()->name;
  return name == "value_and_gradient_call" || name == "value_and_gradient_apart" ||
         name == "value_and_gradient_shared" || name == "jvp_call";
}

bool calls_what_it_is_given(const ir::Inst& inst) {
  return is_operator(inst) ||
         (inst.op == Op::native && std::string_view(inst.aux_as<const NativeInfo>()->name) == "call_derivative");
}

namespace {

// Asked at each call whose target is found when it runs: a generic function has its name in its type, and the library's
// tables need not be searched for another name.
bool is_one_of(Value callee, std::initializer_list<KnownName> names, Runtime& runtime) {
  const DataType* type = callee.defined() ? as_data(callee.type) : nullptr;
  const bool is_named = type && type->name->is_function && !type->name->is_closure;
  TangentTypes& tangents = tangent_types(runtime);
  for (KnownName name : names) {
    const bool is_function = library_entries()[static_cast<std::size_t>(name)].meaning == LibraryMeaning::function;
    if (is_named ? type->name->name != tangents.symbol_of(name) : is_function) continue;
    const Value value = tangents.value_of(name);
    if (value.defined() && callee.identical(value)) return true;
  }
  return false;
}

// `seen`: types that are looked into, which may contain themselves.
bool holds_tape(const Type* type, Runtime& runtime, std::vector<const Type*>& seen) {
  const auto within = [&](const Type* part) { return holds_tape(part, runtime, seen); };
  if (const UnionType* u = as_union(type)) return std::any_of(u->members.begin(), u->members.end(), within);
  const DataType* d = as_data(type);
  if (!d || !d->is_concrete) return false;
  if (d == runtime.types.builtin().tape) return true;
  if (d->is_mutable || d->is_isbits || d->object_kind != DataType::ObjectKind::fields) return false;
  if (std::find(seen.begin(), seen.end(), d) != seen.end()) return false;
  seen.push_back(d);
  return std::any_of(d->fields.begin(), d->fields.end(), [&](const Field& field) { return within(field.type); });
}

}  // namespace

bool holds_tape(const Type* type, Runtime& runtime) {
  std::vector<const Type*> seen;
  return holds_tape(type, runtime, seen);
}

bool makes_record(Value callee, Runtime& runtime) {
  return is_one_of(
      callee, {KnownName::dynamic_forward_again, KnownName::forward_step, KnownName::pullback_forward_again}, runtime);
}

bool reads_record(Value callee, Runtime& runtime) {
  return is_one_of(
      callee, {KnownName::dynamic_reverse_again, KnownName::reverse_step, KnownName::pullback_reverse_again}, runtime);
}

bool takes_record(const ir::Function& function, const ir::Inst& inst, Runtime& runtime) {
  if ((inst.op == Op::invoke || inst.op == Op::call) && inst.operands[0].is_constant() &&
      reads_record(function.constant_value(inst.operands[0]), runtime))
    return true;
  if (inst.op != Op::invoke) return false;
  const bool is_half = tangent_types(runtime).is_reverse_half(inst.aux_as<Specialization>());
  return std::any_of(inst.operands.begin(), inst.operands.end(), [&](Operand o) {
    const Type* type = o.is_inst() ? function.inst(o).type : nullptr;
    // A variable that lives across a `try` has a record of any type.
    return type && (holds_tape(type, runtime) || (is_half && type == runtime.types.builtin().any));
  });
}

bool puts_back_memory(const ir::Function& function, const ir::Inst& inst, Runtime& runtime) {
  if (inst.op == Op::native) return std::string_view(inst.aux_as<const NativeInfo>()->name) == "put_back_memory";
  return (inst.op == Op::invoke || inst.op == Op::call) && inst.operands[0].is_constant() &&
         is_one_of(function.constant_value(inst.operands[0]), {KnownName::put_back_memory}, runtime);
}

bool keeps_for_reverse(const ir::Function& function, const ir::Inst& inst, Runtime& runtime) {
  return (inst.op == Op::invoke || inst.op == Op::call) && inst.operands[0].is_constant() &&
         is_one_of(function.constant_value(inst.operands[0]),
                   {KnownName::memory_before, KnownName::memory_before_call, KnownName::memory_before_splat,
                    KnownName::copied_before, KnownName::exchange_before, KnownName::watch_changes,
                    KnownName::watch_changes_call, KnownName::watch_changes_splat, KnownName::watched_call,
                    KnownName::changes_since},
                   runtime);
}

bool exchanges_memory(const ir::Function& function, const ir::Inst& inst, Runtime& runtime) {
  return (inst.op == Op::invoke || inst.op == Op::call) && inst.operands[0].is_constant() &&
         is_one_of(function.constant_value(inst.operands[0]), {KnownName::exchange_before}, runtime);
}

bool restores_memory(Value callee, Runtime& runtime) {
  return is_one_of(callee,
                   {KnownName::restore_array, KnownName::restore_content, KnownName::restore_element,
                    KnownName::restore_field, KnownName::put_back_head, KnownName::put_back_tail,
                    KnownName::clear_shadow, KnownName::zero_fill, KnownName::zero_head, KnownName::zero_tail},
                   runtime);
}

bool is_written_out(Value callee, Runtime& runtime) {
  return is_one_of(callee,
                   {KnownName::dynamic_forward_again, KnownName::forward_step, KnownName::dynamic_reverse_again,
                    KnownName::reverse_step, KnownName::dynamic_tangent_again, KnownName::tangent_step,
                    KnownName::pullback_forward_again, KnownName::pullback_reverse_again},
                   runtime);
}

bool makes_record(const ir::Function& function, const ir::Inst& inst, Runtime& runtime) {
  switch (inst.op) {
    case Op::invoke:
      return tangent_types(runtime).is_forward_half(inst.aux_as<Specialization>()) ||
             (inst.operands[0].is_constant() && makes_record(function.constant_value(inst.operands[0]), runtime));
    case Op::native:
      return calls_what_it_is_given(inst) && !is_operator(inst);
    case Op::call:
      return inst.operands[0].is_constant() && makes_record(function.constant_value(inst.operands[0]), runtime);
    default:
      return false;
  }
}

Value implied_callee(const ir::Inst& inst, Runtime& runtime) {
  if (inst.op == Op::native && !is_operator(inst))
    return runtime.core->find(runtime.symbol(inst.aux_as<const NativeInfo>()->name))->value;
  if (!is_operator(inst))
    return Value(runtime.types.builtin().builtin_function, static_cast<std::int64_t>(inst.op) << 1 | 1);
  bool gradient = std::string_view(inst.aux_as<const NativeInfo>()->name) != "jvp_call";
  return library_value(runtime, gradient ? KnownName::value_and_gradient_of : KnownName::jvp_of);
}

bool is_dynamic_call(const ir::Function& function, const ir::Inst& inst, Runtime& runtime) {
  return inst.op == Op::call || inst.op == Op::set_field || calls_what_it_is_given(inst) ||
         (inst.op == Op::get_field && !indexed_element(function, inst, runtime));
}

std::string why_refused(const ir::Inst& inst, Runtime&) {
  switch (inst.op) {
    case Op::native: {
      std::string name = inst.aux_as<const NativeInfo>()->name;
      return "the builtin `" + name + "` has no derivative rule";
    }
    case Op::store_global:
      return "a value that carries a derivative is stored into a global variable";
    default:
      return std::string("`") + std::string(ir::op_info(inst.op).name) + "` cannot be differentiated in reverse mode";
  }
}

const Type* indexed_element(const ir::Function& function, const ir::Inst& inst, Runtime& runtime) {
  if (inst.op != Op::get_field) return nullptr;
  const DataType* tuple = as_data(function.type_of(inst.operands[0], runtime.types));
  if (!tuple || !tuple->is_concrete || !(tuple->is_tuple || tuple->is_named_tuple) || tuple->fields.empty() ||
      tuple->fields.size() > 64 || function.type_of(inst.operands[1], runtime.types) != runtime.types.builtin().int64)
    return nullptr;
  for (const Field& field : tuple->fields)
    if (field.type != tuple->fields[0].type) return nullptr;
  TangentTypes& tangents = tangent_types(runtime);
  const Type* element = tuple->fields[0].type;
  return tangents.has_shadow(element) && tangents.has_cotangent(element) ? nullptr : element;
}

Refusal refusal_at(const ir::Function& function, const ir::Inst& inst, Runtime& runtime, std::string reason) {
  Span span = inst.span;
  std::uint32_t scope = inst.scope;
  const Method* method = function.method;
  while (scope < function.scopes.size()) {
    method = function.scopes[scope].method;
    bool library = method && (method->module == runtime.base || method->module == runtime.core);
    if (!library || function.scopes[scope].parent == ~0u) break;
    span = function.scopes[scope].call_site;
    scope = function.scopes[scope].parent;
  }
  return {span, method, std::move(reason)};
}

}  // namespace slope::diff
