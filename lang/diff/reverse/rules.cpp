// Calls of functions that have rules (rules.hpp): the rule's forward step replaces the primal call, and its pullback
// runs in the reverse sweep.
//
// Rules with state. `rule_state(f, args…)` makes one state. `rule_forward!(state, f, args…)` is called in place of f,
// and may overwrite the arguments that `overwrites(f, args…)` names. `rule_reverse!(state, ȳ, f, args, shadows)`
// restores them, adds to the shadows, and returns the cotangents of values that are not memory.
//
// This file assigns states to calls. A call takes a free state of its rule, or makes one, and returns it when its
// reverse step is done. In between the state is a value of the forward sweep like any other: kept in an SSA value, a
// tape's column, or a record. So a call in a loop, in a recursion or in a second forward sweep has a state of its own.
// The state of an abandoned call (an exception, a pullback that is never called) is garbage. Free states belong to the
// context (TapePool::rule_states), by the call's types and the rule's definition.
//
// When rules are checked (Environment::check_rules), their results are checked where they return them
// (stdlib/derivatives/rule_checks.slope), with the names of the rules.
#include "lang/diff/operations.hpp"
#include "lang/diff/reverse/reverse.hpp"
#include "lang/diff/user_types.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

Operand Reverse::packed_call(ir::Builder& at, const ir::Inst& inst, bool with_callee) {
  std::vector<Operand> parts;
  std::vector<const Type*> types;
  for (std::size_t i = with_callee ? 0 : 1; i < inst.operands.size(); ++i) {
    parts.push_back(&at == &f_ ? values_.forward(inst.operands[i]) : values_.primal_in_reverse(inst.operands[i]));
    // A type as argument is inferred as Type{T}; in a tuple it is a DataType.
    Operand o = inst.operands[i];
    types.push_back(o.is_constant() ? primal_->constant_value(o).type : type_of(o));
  }
  return at.emit(Op::tuple, parts, runtime_.types.tuple(types));
}

Operand Reverse::packed_shadows(ir::Builder& at, const ir::Inst& inst) {
  std::vector<Operand> parts;
  std::vector<const Type*> types;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    Operand o = inst.operands[i];
    bool has = varied(o) && tangents_.has_shadow(type_of(o));
    if (has) {
      parts.push_back(&at == &f_ ? shadow(o) : values_.shadow_in_reverse(o));
      types.push_back(tangents_.shadow(type_of(o)));
    } else {  // what holds no memory: whether its cotangent is wanted
      parts.push_back(at.constant(varied(o) ? runtime_.from_bool(true) : runtime_.nothing()));
      types.push_back(varied(o) ? builtin_.boolean : builtin_.nothing);
    }
  }
  return at.emit(Op::tuple, parts, runtime_.types.tuple(types));
}

// What the rule is told of the result's cotangent: the shadow, the numbers, or the two merged. `any` is false when no
// derivative arrives.
Operand Reverse::result_cotangent(std::uint32_t id, bool& any) {
  const Type* type = primal_->insts[id].type;
  any = true;
  if (!activity_.varied[id]) return r_.constant(runtime_.nothing());
  // Rules see tangents themselves, whatever is known of the result's type.
  auto open = [&](Operand tangent, const Type* of) {
    return of == tangents_.dynamic() ? call_library(r_, KnownName::opened, {tangent}, nullptr) : tangent;
  };
  if (tangents_.has_shadow(type)) {
    Operand cotangent = values_.shadow_in_reverse(Operand::inst(id));
    if (!tangents_.has_cotangent(type)) return open(cotangent, tangents_.shadow(type));
    std::vector<Operand> leaves = adjoints_.take(id);
    return call_library(r_, KnownName::merged_tangent, {cotangent, pack(r_, type, leaves)}, nullptr);
  }
  if (!tangents_.has_cotangent(type)) return r_.constant(runtime_.nothing());
  std::vector<Operand> leaves = adjoints_.take(id);
  any = !none(leaves);
  return open(pack(r_, type, leaves), tangents_.cotangent(type));
}

// --- @scalar_rule ------------------------------------------------------------------------------------------------

void Reverse::backward_scalar_rule(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  std::vector<Operand> leaves = adjoints_.take(id);
  if (none(leaves)) return;
  backward_partials(id, values_.primal_in_reverse(inst.operands[0]), 1, leaves[0]);
}

void Reverse::backward_partials(std::uint32_t id, Operand function, std::size_t first, Operand y) {
  const ir::Inst inst = primal_->insts[id];
  const Operand result = values_.primal_in_reverse(Operand::inst(id));
  std::vector<Operand> arguments;
  for (std::size_t i = first; i < inst.operands.size(); ++i)
    arguments.push_back(values_.primal_in_reverse(inst.operands[i]));
  const Operand partials = scalar_partials(r_, function, result, arguments);
  if (env_.check_rules() && inst.op == Op::invoke)
    call_library(r_, KnownName::check_partials, {rule_name(r_, inst), partials}, nullptr);
  for (std::size_t i = first; i < inst.operands.size(); ++i) {
    if (!varied(inst.operands[i])) continue;
    const Operand partial = scalar_partial(r_, partials, i - first, inst.type);
    Operand product = times_partial(r_, inst, y, partial);
    if (const Type* type = type_of(inst.operands[i]); type != inst.type)  // Float32 beside Float64
      product = call_library(r_, KnownName::as_cotangent, {type_constant(r_, type), product}, type);
    adjoints_.add(inst.operands[i], 0, product);
  }
}

// --- rrule -------------------------------------------------------------------------------------------------------

bool Reverse::forward_rrule(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  Specialization& callee = *inst.aux_as<Specialization>();
  Operand rule = library_function(KnownName::rrule, f_);
  if (activity_.rules[id] == RuleKind::built) {
    BuiltRule made;
    if (!env_.built_rule(callee.types, made)) return refuse(inst, "the builder of its rule failed");
    rule = built_rule_operand(runtime_, f_, made, callee.types, false);
  }
  std::vector<Operand> operands{rule};
  std::vector<const Type*> types{f_.function().type_of(operands[0], runtime_.types)};
  const std::size_t callee_at = callee_operand(inst);
  if (callee_at > 0) {
    if (varied(inst.operands[1]))
      return refuse(inst, "a keyword argument carries a derivative, and the rrule for " +
                              std::string(callee.method->name->name) +
                              " returns no cotangents of keywords; give the rule a positional argument for it");
    operands.insert(operands.begin(), {values_.forward(inst.operands[0]), values_.forward(inst.operands[1])});
    types.insert(types.begin(), {callee.types->params[0], callee.types->params[1]});
  }
  const Method* written = rule_method(inst);
  const bool of_program = written && !is_of_library(runtime_, written);
  std::vector<std::size_t> holders;  // of memory, among the operands
  std::vector<Operand> held;
  std::vector<const Type*> held_types;
  std::vector<Operand> copies;
  for (std::size_t i = callee_at; i < inst.operands.size(); ++i) {
    operands.push_back(values_.forward(inst.operands[i]));
    types.push_back(callee.types->params[i]);
    if (!of_program || !varied(inst.operands[i]) || !tangents_.has_shadow(type_of(inst.operands[i]))) continue;
    holders.push_back(operands.size() - 1);
    held.push_back(operands.back());
    held_types.push_back(type_of(inst.operands[i]));
  }
  if (const DataType* all = runtime_.types.tuple(held_types); may_hold_memory_twice(runtime_, all)) {
    const Operand apart = call_library(f_, KnownName::places_apart, {f_.emit(Op::tuple, held, all)}, all);
    for (std::size_t k = 0; k < holders.size(); ++k) {
      operands[holders[k]] = f_.emit(Op::field_at, {apart}, held_types[k], k);
      copies.push_back(operands[holders[k]]);
    }
  }
  const Type* pair = env_.return_type(runtime_.types.tuple(types));
  const DataType* pair_data = as_data(pair);
  if (!pair_data || !pair_data->is_tuple || pair_data->params.size() != 2)
    return refuse(inst, "the rrule for " + std::string(callee.method->name->name) +
                            " does not return (value, pullback): its result is " + to_string(pair));
  // What stores into one of two that share memory has a derivative with respect to the memory, none for each of the two.
  if (of_program && callee_at == 0) refuse_aliases(inst, env_.memory().of(callee).writes);
  Operand before = arguments_before(inst, id);
  Operand result = f_.emit(Op::call, operands, pair);
  Operand value = f_.emit(Op::field_at, {result}, pair_data->params[0], 0);
  check_forward_step(inst, before, value, true);
  if (pair_data->params[0] != inst.type)
    value = f_.emit(Op::type_assert, {value, f_.constant(runtime_.from_type(inst.type))}, inst.type);
  refuse_shared_result(id, value, copies);
  Operand pullback = f_.emit(Op::field_at, {result}, pair_data->params[1], 1);
  values_.set_value(id, value, inst.type);
  extra_of_[id] = values_.remember(pullback, pair_data->params[1]);
  keep_for_pullback(id, operands, runtime_.types.tuple(types), pullback, pair_data->params[1]);
  if (tangents_.has_shadow(inst.type)) {
    set_shadow(id, zero_shadow_of(value, tangents_.shadow(inst.type)));
  }
  return true;
}

// What the rule's forward step stored into memory from before it: another call may store there before the pullback of
// this one reads it (lang/derive/rule_memory.cpp).
void Reverse::keep_for_pullback(std::uint32_t id, const std::vector<Operand>& call, const DataType* call_types,
                                Operand pullback, const Type* pullback_type) {
  const Type* result = primal_->insts[id].type;
  const Type* cotangent = tangents_.has_shadow(result)      ? tangents_.shadow(result)
                          : tangents_.has_cotangent(result) ? tangents_.cotangent(result)
                                                            : builtin_.nothing;
  if (cotangent == tangents_.dynamic() || holds_complex(runtime_.types, result)) cotangent = builtin_.any;
  const Type* types[] = {pullback_type, cotangent};
  const std::int64_t stores = env_.memory_of_rule(call_types, runtime_.types.tuple(types));
  if (stores == 0) return;
  const Operand given = f_.emit(Op::tuple, call, call_types);
  const Operand kept =
      call_library(f_, KnownName::keep_for_pullback, {int_constant(f_, stores), pullback, given}, builtin_.any);
  kept_for_pullback_of_[id] = values_.remember(kept, builtin_.any);
}

// A rule's value has a shadow of its own. When it is memory of an argument and one of them is stored into, the other
// would not be told.
void Reverse::refuse_shared_result(std::uint32_t id, Operand value, const std::vector<Operand>& copies) {
  const ir::Inst inst = primal_->insts[id];
  const Method* rule = rule_method(inst);
  if (!tangents_.has_shadow(inst.type) || (rule && rule->module == runtime_.base)) return;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    Operand o = inst.operands[i];
    if (!varied(o) || !tangents_.has_shadow(type_of(o))) continue;
    if (!overwritten_.is_stored_after(id, Operand::inst(id)) && !overwritten_.is_stored_after(id, o)) continue;
    std::vector<Operand> given = copies;  // where memory occurs twice
    given.push_back(values_.forward(o));
    for (Operand one : given)
      call_library(f_, KnownName::refuse_shared_result,
                   {rule_name(f_, inst), int_constant(f_, static_cast<std::int64_t>(i)), value, one,
                    f_.constant(runtime_.from_string(described(inst)))},
                   nullptr);
  }
}

bool Reverse::backward_rrule(std::uint32_t id) {
  if (extra_of_[id] == no_value) return true;
  const ir::Inst inst = primal_->insts[id];
  bool any = false;
  Operand cotangent = result_cotangent(id, any);
  if (!any) return true;
  if (const Method* rule = rule_method(inst);
      rule && !is_of_library(runtime_, rule) && holds_complex(runtime_.types, inst.type))
    cotangent = r_.emit(
        Op::call,
        {r_.constant(library_value(runtime_, KnownName::complex_tangent)), type_constant(r_, inst.type), cotangent},
        nullptr);
  Operand pullback = values_.in_reverse(extra_of_[id]);
  const auto kept = kept_for_pullback_of_.find(id);
  if (kept == kept_for_pullback_of_.end()) {
    give_rule_result(inst, r_.emit(Op::call, {pullback, cotangent}, nullptr));
    return true;
  }
  const Operand left = values_.in_reverse(kept->second);
  const Operand name = rule_name(r_, inst);
  const Operand found = call_library(r_, KnownName::give_to_pullback, {name, left}, builtin_.any);
  give_rule_result(inst, r_.emit(Op::call, {pullback, cotangent}, nullptr));
  call_library(r_, KnownName::take_from_pullback, {name, left, found}, nullptr);
  return true;
}

// Where the callee stands among the operands: behind `kwcall` and the keywords when the rule takes keywords.
std::size_t Reverse::callee_operand(const ir::Inst& inst) {
  const DataType* call = inst.aux_as<Specialization>()->types;
  const bool keywords = find_rule(runtime_, call, env_.world(), nullptr) == RuleKind::reverse &&
                        is_keyword_rule(runtime_, call, env_.world());
  return keywords ? 2 : 0;
}

void Reverse::give_rule_result(const ir::Inst& inst, Operand result) {
  const std::size_t callee_at = callee_operand(inst);
  if (env_.check_rules() && callee_at == 0)
    call_library(r_, KnownName::check_cotangents, {rule_name(r_, inst), packed_call(r_, inst, true), result}, nullptr);
  Operand count = int_constant(r_, static_cast<std::int64_t>(inst.operands.size() - callee_at) - 1);
  for (std::size_t i = callee_at; i < inst.operands.size(); ++i) {
    if (!varied(inst.operands[i])) continue;
    std::vector<Operand> operands{result, int_constant(r_, static_cast<std::int64_t>(i - callee_at)), count};
    // Fields are named, in whatever order.
    const DataType* argument = as_data(type_of(inst.operands[i]));
    if (argument && argument->is_concrete && argument->object_kind == DataType::ObjectKind::fields &&
        !argument->is_tuple)
      operands.push_back(type_constant(r_, argument));
    Operand part = call_library(r_, KnownName::rule_part, operands, nullptr);
    accumulate_rule_result(inst.operands[i], checked_rule_part(inst, i, part));
  }
}

// What a rule of the program returned for operand `i`, as what the operand's tangent is made of. An array that stands for
// another kind of array (a view, an adjoint, a range) goes to what that is made of. An error names the rule.
Operand Reverse::checked_rule_part(const ir::Inst& inst, std::size_t i, Operand part) {
  const Method* rule = rule_method(inst);
  const Operand argument = inst.operands[i];
  const DataType* type = as_data(type_of(argument));
  if (!rule || rule->module == runtime_.base || !type || !type->is_concrete) return part;
  const bool spread =
      type->object_kind == DataType::ObjectKind::fields && is_subtype(runtime_.types, type, builtin_.abstract_array);
  const bool memory = spread && tangents_.has_shadow(type);
  const std::string place =
      std::string(inst.aux_as<Specialization>()->method->name->name) + "` at " + runtime_.sources.describe(rule->span);
  return call_library(
      r_, KnownName::rule_cotangent,
      {part, type_constant(r_, type), spread ? values_.primal_in_reverse(argument) : nothing(r_),
       memory ? values_.shadow_in_reverse(argument) : nothing(r_), r_.constant(runtime_.from_string(place)),
       int_constant(r_, static_cast<std::int64_t>(i - callee_operand(inst)))},
      nullptr);
}

// Adds what a rule returned for one argument: numbers to the value's cotangent, arrays into the shadow.
void Reverse::accumulate_rule_result(Operand argument, Operand cotangent) {
  const Type* type = type_of(argument);
  if (tangents_.has_shadow(type) && tangents_.has_cotangent(type)) {
    Operand own = call_library(
        r_, KnownName::accumulate_mixed,
        {values_.shadow_in_reverse(argument), cotangent, r_.constant(runtime_.from_type(tangents_.cotangent(type)))},
        tangents_.cotangent(type));
    std::vector<Operand> leaves;
    unpack(r_, type, own, leaves);
    adjoints_.add(argument, leaves);
  } else if (tangents_.has_shadow(type)) {
    call_library(r_, KnownName::accumulate_cotangent, {values_.shadow_in_reverse(argument), cotangent}, nullptr);
  } else {
    const Type* expected = tangents_.cotangent(type);
    Operand own =
        call_library(r_, KnownName::as_cotangent, {r_.constant(runtime_.from_type(expected)), cotangent}, expected);
    std::vector<Operand> leaves;
    unpack(r_, type, own, leaves);
    adjoints_.add(argument, leaves);
  }
}

// --- rules with state --------------------------------------------------------------------------------------------

// Call types and the world of the rule's definition, which another definition for them would not share: what its free
// states are found by.
std::vector<Operand> Reverse::rule_key(ir::Builder& at, const DataType* call_types) {
  const Method* rule = runtime_.lookup(rule_call(runtime_, KnownName::rule_state, call_types), env_.world()).method;
  return {at.constant(runtime_.from_type(call_types)),
          int_constant(at, static_cast<std::int64_t>(rule ? rule->min_world : 0))};
}

bool Reverse::forward_stateful(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  Specialization& callee = *inst.aux_as<Specialization>();
  const Type* state_type = env_.return_type(rule_call(runtime_, KnownName::rule_state, callee.types));
  if (state_type == builtin_.bottom)
    return refuse(inst, "`rule_state` for " + std::string(callee.method->name->name) + " never returns");
  Operand state = f_.constant(runtime_.nothing());
  if (state_type != builtin_.nothing) {
    std::vector<Operand> key = rule_key(f_, callee.types);
    state = call_library(f_, KnownName::take_state,
                         {f_.constant(runtime_.from_type(state_type)), key[0], key[1], packed_call(f_, inst, true)},
                         state_type);
  }
  extra_of_[id] = values_.remember(state, state_type);
  refuse_aliases(inst, env_.memory().of_call(inst).writes);
  refuse_memory_twice(inst);
  Operand before = arguments_before(inst, id);
  std::vector<Operand> operands{state};
  for (Operand o : inst.operands) operands.push_back(values_.forward(o));
  Operand value = call_library(f_, KnownName::rule_forward, operands, nullptr);
  check_forward_step(inst, before, value, false);
  value = f_.emit(Op::type_assert, {value, f_.constant(runtime_.from_type(inst.type))}, inst.type);
  values_.set_value(id, value, inst.type);
  if (!activity_.varied[id] || !tangents_.has_shadow(inst.type)) return true;
  // The result is new, or one of the arguments that were overwritten.
  const MemorySummary effects = env_.memory().of_call(inst);
  const MemoryMask given_back = effects.writes | effects.result;
  const Type* wanted = tangents_.shadow(inst.type);
  const bool boxed = wanted == tangents_.dynamic();
  std::vector<Operand> candidates{value};
  bool opened = false;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    Operand o = inst.operands[i];
    if (!(given_back & parameter_mask(i)) || !varied(o) || !tangents_.has_shadow(type_of(o))) continue;
    const bool is_boxed = tangents_.shadow(type_of(o)) == tangents_.dynamic();
    if (type_of(o) != inst.type && !boxed && !is_boxed) continue;
    candidates.push_back(values_.forward(o));
    candidates.push_back(is_boxed ? call_library(f_, KnownName::opened, {shadow(o)}, nullptr) : shadow(o));
    opened |= is_boxed;
  }
  Operand made = call_library(f_, KnownName::result_shadow, candidates, boxed || opened ? nullptr : wanted);
  if (opened && !boxed) made = f_.emit(Op::type_assert, {made, type_constant(f_, wanted)}, wanted);
  set_shadow(id, boxed ? call_library(f_, KnownName::boxed_tangent, {made}, wanted) : made);
  return true;
}

// A rule reads its arguments in the reverse step as the forward step left them: one that is overwritten may not be
// another one too, unless the rule says that it knows about that.
void Reverse::refuse_aliases(const ir::Inst& inst, MemoryMask overwritten) {
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    if (!(overwritten & parameter_mask(i))) continue;
    for (std::size_t k = 1; k < inst.operands.size(); ++k) {
      if (k == i || !tangents_.has_shadow(type_of(inst.operands[k]))) continue;
      if (k < i && (overwritten & parameter_mask(k))) continue;  // looked at already
      call_library(
          f_, KnownName::refuse_alias,
          {values_.forward(inst.operands[0]), values_.forward(inst.operands[i]), values_.forward(inst.operands[k]),
           int_constant(f_, static_cast<std::int64_t>(i)), int_constant(f_, static_cast<std::int64_t>(k))},
          nullptr);
    }
  }
}

// A rule of a program adds to the shadows of places, which are one where the places are.
void Reverse::refuse_memory_twice(const ir::Inst& inst) {
  const Method* rule = rule_method(inst);
  if (!rule || is_of_library(runtime_, rule)) return;
  for (std::size_t i = 1; i < inst.operands.size(); ++i)
    if (const Operand o = inst.operands[i]; varied(o) && may_hold_memory_twice(runtime_, type_of(o)))
      call_library(f_, KnownName::refuse_alias,
                   {values_.forward(inst.operands[0]), values_.forward(o), values_.forward(o),
                    int_constant(f_, static_cast<std::int64_t>(i)), int_constant(f_, 0)},
                   nullptr);
}

bool Reverse::backward_stateful(std::uint32_t id) {
  if (extra_of_[id] == no_value) return true;
  const ir::Inst inst = primal_->insts[id];
  const DataType* call_types = inst.aux_as<Specialization>()->types;
  bool any = false;
  Operand cotangent = result_cotangent(id, any);
  Operand state = values_.in_reverse(extra_of_[id]);
  Operand result = call_library(r_, KnownName::rule_reverse,
                                {state, cotangent, values_.primal_in_reverse(inst.operands[0]),
                                 packed_call(r_, inst, false), packed_shadows(r_, inst)},
                                nullptr);
  if (env_.check_rules())
    call_library(r_, KnownName::check_restored,
                 {rule_name(r_, inst), packed_call(r_, inst, false), values_.in_reverse(arguments_before_of_.at(id))},
                 nullptr);
  give_rule_result(inst, result);
  const Type* state_type = values_[extra_of_[id]].type;
  if (state_type != builtin_.nothing) {
    std::vector<Operand> key = rule_key(r_, call_types);
    call_library(r_, KnownName::give_state, {key[0], key[1], state}, nullptr);
  }
  return true;
}

// --- checks ------------------------------------------------------------------------------------------------------

// The definition of the rule of this call.
const Method* Reverse::rule_method(const ir::Inst& inst) {
  const DataType* types = inst.aux_as<Specialization>()->types;
  const RuleKind kind = find_rule(runtime_, types, env_.world(), nullptr);
  const KnownName function = kind == RuleKind::scalar     ? KnownName::scalar_partials
                             : kind == RuleKind::stateful ? KnownName::rule_state
                                                          : KnownName::rrule;
  const DataType* call = kind == RuleKind::built ? builder_call(runtime_, KnownName::build_rrule, types)
                                                 : rule_call(runtime_, function, types, kind == RuleKind::scalar);
  if (callee_operand(inst) > 0) call = keyword_rule_call(runtime_, function, types);
  return runtime_.lookup(call, env_.world()).method;
}

// What messages call the rule of this call: its kind, the function and where it is defined.
Operand Reverse::rule_name(ir::Builder& at, const ir::Inst& inst) {
  const RuleKind kind = find_rule(runtime_, inst.aux_as<Specialization>()->types, env_.world(), nullptr);
  const Method* rule = rule_method(inst);
  std::string text = std::string(kind == RuleKind::scalar     ? "the scalar rule"
                                 : kind == RuleKind::stateful ? "the rule with state"
                                 : kind == RuleKind::built    ? "the built rrule"
                                                              : "the rrule") +
                     " for `" + std::string(inst.aux_as<Specialization>()->method->name->name) + "`";
  if (rule) text += " (" + runtime_.sources.describe(rule->span) + ")";
  return at.constant(runtime_.from_string(text));
}

Operand Reverse::arguments_before(const ir::Inst& inst, std::uint32_t id) {
  if (!env_.check_rules()) return Operand();
  Operand arguments = packed_call(f_, inst, false);
  const Type* type = f_.function().type_of(arguments, runtime_.types);
  Operand before = call_library(f_, KnownName::arguments_before, {arguments}, type);
  arguments_before_of_[id] = values_.remember(before, type);
  return before;
}

void Reverse::check_forward_step(const ir::Inst& inst, Operand before, Operand value, bool compare) {
  if (!env_.check_rules()) return;
  Operand name = rule_name(f_, inst);
  Operand overwritten = f_.constant(runtime_.nothing());
  if (!compare) {
    std::vector<Operand> call;
    for (Operand o : inst.operands) call.push_back(values_.forward(o));
    overwritten = call_library(f_, KnownName::overwrites, call, nullptr);
  }
  call_library(f_, KnownName::check_arguments, {name, packed_call(f_, inst, false), before, overwritten}, nullptr);
  if (compare) call_library(f_, KnownName::check_value, {name, value, packed_call(f_, inst, true)}, nullptr);
}

}  // namespace slope::diff
