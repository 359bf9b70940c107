// What the primal overwrites, and who still needs the old contents: loads that the reverse sweep repeats, calls whose
// reverse step reads memory, and the caller.
//
// The reverse sweep restores the old contents
//   - of memory that carries a derivative and that others can see, so that the inputs are unchanged after the gradient;
//   - of all memory, with or without a derivative, that the reverse step of an earlier call reads: rules keep
//     references to their arguments and results, and the reverse half of a callee may repeat its loads.
// So the old contents of an array that never leaves the function are not kept, unless such a call has seen the array
// before the store. Environment::Halves::recalled says what a callee reads. While the callee is still being derived,
// that is everything.
#include "lang/diff/reverse/overwritten.hpp"

#include <algorithm>

#include "lang/diff/operations.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

Overwritten::Overwritten(Environment& env, const ir::Function& primal, const ir::Cfg& cfg, const Activity& activity)
    : env_(env),
      runtime_(env.runtime()),
      tangents_(tangent_types(runtime_)),
      builtin_(runtime_.types.builtin()),
      primal_(primal),
      activity_(activity),
      sharing_(primal, cfg, tangents_, env.memory(), activity.rules, activity.returns) {
  find_stores();
  find_recalls();
}

void Overwritten::find_stores() {
  for (ir::BlockId b = 0; b < primal_.blocks.size(); ++b) {
    if (!activity_.returns[b]) continue;
    for (std::uint32_t id : primal_.blocks[b].insts) {
      const ir::Inst& inst = primal_.insts[id];
      switch (inst.op) {
        // array_init writes only what was never read: no load before it sees the difference.
        case Op::array_set:
        case Op::array_resize:
        case Op::array_resize_front: {
          const DataType* array = as_data(type_of(inst.operands[0]));
          const Type* element = array && array->params.size() == 2 ? array->params[0] : nullptr;
          stored_.push_back({element, sharing_.group(inst.operands[0]), origin_of(inst.operands[0])});
          break;
        }
        default:
          for (std::uint32_t group : sharing_.written_by(id)) stored_.push_back({nullptr, group, {}});
          break;
      }
    }
  }
}

// What an argument held when the function was called is older than every array that the function makes.
Overwritten::Origin Overwritten::origin_of(Operand array) const {
  if (array.is_constant()) return {Origin::Kind::outer};
  for (int depth = 0; depth < 16; ++depth) {
    const ir::Inst& inst = primal_.inst(array);
    switch (inst.op) {
      case Op::parameter:
        return {inst.block == 0 ? Origin::Kind::outer : Origin::Kind::unknown};
      case Op::array_new:
        return {Origin::Kind::made, array.index()};
      case Op::field_at: {
        const DataType* object = as_data(primal_.type_of(inst.operands[0], runtime_.types));
        if (!object || object->is_mutable) return {};
        break;
      }
      case Op::refine:
      case Op::type_assert:
        break;
      default:
        return {};
    }
    array = inst.operands[0];
    if (!array.is_inst()) return {Origin::Kind::outer};
  }
  return {};
}

// Nothing in this function may overwrite what the load reads. Arrays of different element types never share memory
// here; nor do one that the function made and one that it was given, or another that it made.
bool Overwritten::load_is_stable(const ir::Inst& load) const {
  const DataType* array = as_data(primal_.type_of(load.operands[0], runtime_.types));
  if (!array || array->params.size() != 2) return false;
  std::uint32_t group = sharing_.group(load.operands[0]);
  Origin from = origin_of(load.operands[0]);
  for (const Stored& stored : stored_) {
    if (stored.element && stored.element != array->params[0]) continue;
    if (!sharing_.may_meet(group, stored.group)) continue;
    bool known = from.kind != Origin::Kind::unknown && stored.origin.kind != Origin::Kind::unknown;
    bool apart = known && (from.kind != stored.origin.kind ||
                           (from.kind == Origin::Kind::made && from.made_by != stored.origin.made_by));
    if (!apart) return false;
  }
  return true;
}

// Calls whose reverse step may look at memory: what they are given, what they gave back.
void Overwritten::find_recalls() {
  for (ir::BlockId b = 0; b < primal_.blocks.size(); ++b) {
    if (!activity_.returns[b]) continue;
    for (std::uint32_t id : primal_.blocks[b].insts) {
      const ir::Inst& inst = primal_.insts[id];
      bool dynamic = is_dynamic_call(primal_, inst, runtime_);
      if (inst.op != Op::invoke && !dynamic) continue;
      if (inst.op == Op::invoke && activity_.rules[id] == RuleKind::non_differentiable) continue;
      bool any = activity_.varied[id];
      for (Operand o : inst.operands) any |= varied(o);
      if (!any) continue;
      auto note = [&](std::uint32_t group, std::size_t operand) {
        if (group != Sharing::no_group) recalls_.push_back({id, group, operand});
      };
      for (std::size_t i = 0; i < inst.operands.size(); ++i) note(sharing_.group(inst.operands[i]), i);
      note(sharing_.group(Operand::inst(id)), Recall::result);
      if (dynamic || activity_.rules[id] == RuleKind::none) note(sharing_.outer_group(), Recall::outer);
    }
  }
}

// Whether it does look there: a callee tells, of a rule its code.
bool Overwritten::looks_at(const Recall& recall) {
  const ir::Inst& inst = primal_.insts[recall.inst];
  if (inst.op != Op::invoke) return true;
  switch (activity_.rules[recall.inst]) {
    case RuleKind::none:
      break;
    case RuleKind::stateful:
      return rule_looks_at(recall);
    default:
      return true;
  }
  auto [known, fresh] = asked_halves_.try_emplace(recall.inst);
  if (fresh) {
    Refusal refused;  // it comes again when the call is reached
    known->second = env_.halves(*inst.aux_as<Specialization>(),
                                active_operands(activity_, packed_arguments(primal_, inst, runtime_)), refused);
  }
  const Environment::Halves& halves = known->second;
  if (recall.operand == Recall::result) return halves.recalls_result;
  if (recall.operand == Recall::outer) return (halves.recalled & global_memory) != 0;
  const Method& method = *inst.aux_as<Specialization>()->method;
  std::size_t last = method.is_vararg ? method.arg_count : recall.operand;
  return (halves.recalled & parameter_mask(std::min(recall.operand, last))) != 0;
}

// A rule with state that has none (`rule_state` gives nothing): what `rule_reverse!` does with the arguments.
bool Overwritten::rule_looks_at(const Recall& recall) {
  const ir::Inst& inst = primal_.insts[recall.inst];
  if (recall.operand < inst.operands.size() && !sharing_.is_followed(type_of(inst.operands[recall.operand])))
    return true;
  auto [known, fresh] = rule_looks_.try_emplace(recall.inst, true);
  if (fresh) known->second = find_whether_rule_looks(recall.inst);
  return known->second;
}

bool Overwritten::find_whether_rule_looks(std::uint32_t id) {
  const ir::Inst& inst = primal_.insts[id];
  const DataType* call_types = inst.aux_as<Specialization>()->types;
  if (env_.check_rules() ||
      env_.return_type(rule_call(runtime_, KnownName::rule_state, call_types)) != builtin_.nothing)
    return true;
  const Type* result = inst.type;
  const Type* cotangent = builtin_.nothing;
  if (activity_.varied[id] && tangents_.differentiable(result)) {
    if (tangents_.has_shadow(result) && tangents_.has_cotangent(result)) return true;
    cotangent = tangents_.has_shadow(result) ? tangents_.shadow(result) : tangents_.cotangent(result);
    if (cotangent == tangents_.dynamic()) return true;
  }
  std::vector<const Type*> arguments;
  std::vector<const Type*> shadows;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    Operand o = inst.operands[i];
    arguments.push_back(o.is_constant() ? primal_.constant_value(o).type : type_of(o));
    bool has = varied(o) && tangents_.has_shadow(type_of(o));
    shadows.push_back(has ? tangents_.shadow(type_of(o)) : varied(o) ? builtin_.boolean : builtin_.nothing);
  }
  Binding* reverse = library_binding(runtime_, KnownName::rule_reverse);
  const Type* types[] = {
      reverse->value.type,          builtin_.nothing, cotangent, call_types->params[0], runtime_.types.tuple(arguments),
      runtime_.types.tuple(shadows)};
  Specialization* target = runtime_.lookup_specialization(runtime_.types.tuple(types), env_.world());
  if (!target || target->method->is_vararg) return true;
  constexpr std::size_t place_of_arguments = 4;
  MemorySummary summary = env_.memory().of(*target);
  return ((summary.reads | summary.unknown) & parameter_mask(place_of_arguments)) != 0;
}

// Whether the reverse step of a call before `id` looks at memory of this group: at its elements, or fields.
bool Overwritten::is_recalled(std::uint32_t group, std::uint32_t id) {
  for (const Recall& recall : recalls_)
    if (sharing_.may_meet(recall.group, group) && looks_at(recall) && sharing_.may_follow(group, recall.inst, id))
      return true;  // the last takes longest
  return false;
}

// The same, of an array whose length changes: that is looked at by whoever holds it.
bool Overwritten::is_held(Operand array, std::uint32_t id) const {
  const std::uint32_t group = sharing_.group(array);
  for (const Recall& recall : recalls_)
    if (sharing_.may_meet(recall.group, group) && sharing_.may_follow(group, recall.inst, id)) return true;
  return false;
}

bool Overwritten::must_restore(std::uint32_t id) {
  const ir::Inst& store = primal_.insts[id];
  if (store.op == Op::array_init) return false;
  std::uint32_t group = sharing_.group(store.operands[0]);
  if (varied(store.operands[0]) && sharing_.is_outer(group)) return true;
  return is_recalled(group, id);
}

// Whether something may be stored into this memory after instruction `id`.
bool Overwritten::is_stored_after(std::uint32_t id, Operand memory) const {
  const std::uint32_t group = sharing_.group(memory);
  auto hits = [&](std::uint32_t written, std::uint32_t by) {
    return sharing_.may_meet(written, group) && sharing_.may_follow(group, id, by);
  };
  for (const ir::Block& block : primal_.blocks)
    for (std::uint32_t later : block.insts) {
      const ir::Inst& inst = primal_.insts[later];
      // array_init writes only what was never read; globals and tapes are no memory of the function.
      const bool stores = ir::is_resize(inst.op) || (ir::is_store(inst.op) && inst.op != Op::array_init &&
                                                     inst.op != Op::store_global && inst.op != Op::tape_store);
      if (stores && hits(sharing_.group(inst.operands[0]), later)) return true;
      for (std::uint32_t written : sharing_.written_by(later))
        if (hits(written, later)) return true;
    }
  return false;
}

bool Overwritten::is_plain_array(Operand o) const {
  const DataType* array = as_data(type_of(o));
  return array && array->is_concrete && array->object_kind == DataType::ObjectKind::array &&
         array->params.size() == 2 && as_data(array->params[0]) && as_data(array->params[0])->is_isbits && !varied(o) &&
         o.is_inst();
}

namespace {

// All memory that a value of the type leads to carries a derivative where the value does.
bool leads_to_numbers_alone(TangentTypes& tangents, const Type* type, int depth = 0) {
  const DataType* data = as_data(type);
  if (!data || !data->is_concrete || depth > 8) return false;
  if (data->is_isbits) return true;
  if (!tangents.differentiable(type)) return false;
  if (data->object_kind == DataType::ObjectKind::array)
    return data->params.size() == 2 && tangents.differentiable(data->params[0]) &&
           leads_to_numbers_alone(tangents, data->params[0], depth + 1);
  return data->object_kind == DataType::ObjectKind::fields &&
         std::all_of(data->fields.begin(), data->fields.end(),
                     [&](const Field& field) { return leads_to_numbers_alone(tangents, field.type, depth + 1); });
}

}  // namespace

// What a call stores into this operand is put back after its reverse step.
bool Overwritten::is_put_back(Operand o) const {
  return is_plain_array(o) || (varied(o) && leads_to_numbers_alone(tangents_, type_of(o)));
}

bool Overwritten::finds_changes(std::uint32_t id) {
  const ir::Inst& inst = primal_.insts[id];
  if (is_dynamic_call(primal_, inst, runtime_)) return true;
  if (inst.operands[0].is_constant() && is_written_out(primal_.constant_value(inst.operands[0]), runtime_))
    return false;
  return env_.memory().of(*inst.aux_as<Specialization>()).calls_unknown;
}

bool Overwritten::changes_recalled(std::uint32_t id) {
  const ir::Inst& inst = primal_.insts[id];
  const bool dynamic = is_dynamic_call(primal_, inst, runtime_);
  if (!dynamic && (inst.op != Op::invoke || activity_.rules[id] == RuleKind::stateful)) return false;
  // Derivative code that is differentiated again calls what it is given: what that stores is found there.
  if (takes_record(primal_, inst, runtime_) || makes_record(primal_, inst, runtime_)) return false;
  const bool finds_calls = finds_changes(id);
  std::vector<std::uint32_t> open;
  const std::vector<std::uint32_t>& written = sharing_.written_by(id);
  for (std::uint32_t group : written) {
    bool is_given = false;
    bool is_open = false;
    for (Operand o : inst.operands) {
      if (!sharing_.may_meet(group, sharing_.group(o))) continue;
      is_given = true;
      is_open = is_open || !is_put_back(o);
    }
    if (is_open || !is_given || (finds_calls && sharing_.is_outer(group))) open.push_back(group);
  }
  if (std::any_of(open.begin(), open.end(), [&](std::uint32_t group) { return is_recalled(group, id); })) return true;
  if (inst.op != Op::invoke) return false;
  Specialization& target = *inst.aux_as<Specialization>();
  const bool writes = !target.current || (target.current->effects & effect_writes);
  return writes && is_recalled(sharing_.outer_group(), id) && (finds_calls || env_.stores_into_globals(target));
}

// An array that carries no derivative, written by a call or a builtin: as a whole.
std::vector<Operand> Overwritten::arrays_to_restore(std::uint32_t id) {
  std::vector<Operand> result;
  const ir::Inst& inst = primal_.insts[id];
  const std::vector<std::uint32_t>& written = sharing_.written_by(id);
  if (written.empty()) return result;
  for (Operand o : inst.operands) {
    if (!is_plain_array(o)) continue;
    std::uint32_t group = sharing_.group(o);
    bool hit = false;
    for (std::uint32_t w : written) hit |= sharing_.may_meet(w, group);
    if (hit && is_recalled(group, id)) result.push_back(o);
  }
  return result;
}

void Overwritten::report(Operand returned, Derivative& result) {
  std::vector<std::uint32_t> groups = looked_at_;
  for (const Recall& recall : recalls_)
    if (looks_at(recall)) groups.push_back(recall.group);
  std::vector<std::uint32_t> of_parameters;
  const std::vector<std::uint32_t>& parameters = primal_.blocks[0].parameters;
  for (std::uint32_t id : parameters) of_parameters.push_back(sharing_.group(Operand::inst(id)));
  const std::uint32_t of_result = returned.valid() ? sharing_.group(returned) : Sharing::no_group;
  result.recalled = 0;
  result.recalls_result = false;
  for (std::uint32_t group : groups) {
    bool given = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (of_parameters[i] != group) continue;
      result.recalled |= parameter_mask(i);
      given = true;
    }
    if (!given && sharing_.is_outer(group)) result.recalled |= global_memory;
    if (group == of_result) result.recalls_result = true;
  }
}

}  // namespace slope::diff
