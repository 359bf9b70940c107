// The result of one instruction, from what is known of its operands. Ops for which constants, fields or branches say
// more than types are here; op_types.cpp has the types of all others.
#include <algorithm>

#include "lang/infer/engine.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/support/tuning.hpp"

namespace slope::infer {

namespace {

using ir::Op;
constexpr std::size_t no_field = ~std::size_t{0};
constexpr std::uint32_t slot_grow_before_widening = tuning::slot_growth;

// Computes nothing but its result, from its operands alone.
bool is_foldable(Op op) {
  switch (op) {
    case Op::static_param:
    case Op::branch:
    case Op::switch_int:
    case Op::throw_:
    case Op::check_defined:
    case Op::refine:
    case Op::undef:
    case Op::jump:
    case Op::ret:
    case Op::unreachable:
    case Op::type_assert:
      return false;
    case Op::egal:
      return true;
    default:
      return (ir::op_info(op).effects & ~static_cast<std::uint32_t>(effect_throws)) == 0;
  }
}

class Transfer {
 public:
  Transfer(Inference::Impl& impl, Frame& frame, const ir::Inst& inst, std::span<const Known> arguments,
           std::span<const ir::Operand> operands)
      : impl_(impl),
        lattice_(impl.lattice),
        types_(impl.runtime.types),
        builtin_(impl.builtin),
        frame_(frame),
        inst_(inst),
        arguments_(arguments),
        operands_(operands) {}

  Evaluation evaluate() {
    switch (inst_.op) {
      case Op::isa:
        return isa();
      case Op::egal:
        return egal_();
      case Op::type_of:
        return type_of();
      case Op::not_int:
        if (arguments_[0]->is_conditional())
          return {lattice_.conditional(arguments_[0]->subject, arguments_[0]->fields[1], arguments_[0]->fields[0])};
        return plain();
      case Op::type_assert:
        return type_assert();
      case Op::refine:
        return {inst_.type ? lattice_.narrow(arguments_[0], inst_.type) : arguments_[0]};
      case Op::select:
        return select();
      case Op::load_global:
        return load_global();
      case Op::static_param:
        return static_param();
      case Op::slot_get:
        return slot_get();
      case Op::slot_set:
        return slot_set();
      case Op::check_defined:
        if (!arguments_[0]->is_constant()) return {nothing(), effect_throws};
        return arguments_[0]->value.bits & 1 ? Evaluation{nothing()} : Evaluation{lattice_.bottom(), effect_throws};
      case Op::tuple:
        return {aggregate(impl_op_type()), effect_allocates};
      case Op::make_closure:
        return {aggregate(impl_op_type()), effect_allocates};
      case Op::make_struct:
        return make_struct();
      case Op::get_field:
        return get_field();
      case Op::field_at:
        return {lattice_.field(arguments_[0], inst_.aux), read_effects(arguments_[0]->type, inst_.aux)};
      case Op::set_field:
        return set_field();
      case Op::field_defined:
        return field_defined();
      case Op::field_count:
        return field_count();
      case Op::apply_type:
        return apply_type();
      case Op::make_union:
        return make_union();
      case Op::union_all:
        return union_all();
      case Op::array_get:
      case Op::array_set:
      case Op::array_init:
      case Op::cell_get:
      case Op::cell_set:
        return memory();
      default:
        return plain();
    }
  }

  // Nothing special: fold constants, else go by the types.
  Evaluation plain() {
    if (is_foldable(inst_.op) && all_constant()) return fold();
    std::vector<const Type*> types = operand_types();
    std::uint32_t effects = ir::op_info(inst_.op).effects;
    if (inst_.op == Op::native) {
      const NativeInfo& native = *inst_.aux_as<const NativeInfo>();
      effects = native.effects;
      if ((effects & ~static_cast<std::uint32_t>(effect_throws)) == 0 && all_constant()) return fold(native);
    }
    Fit fit = op_fit(impl_.runtime, inst_, types);
    if (fit == Fit::never) return {lattice_.bottom(), effect_throws};
    if (fit == Fit::unknown) effects |= effect_throws;
    if (fit == Fit::holds && never_divides_badly()) effects &= ~static_cast<std::uint32_t>(effect_throws);
    return {lattice_.of_type(op_result_type(impl_.runtime, inst_, types)), effects};
  }

 private:
  Known nothing() { return lattice_.constant(impl_.runtime.nothing()); }

  std::vector<const Type*> operand_types() const {
    std::vector<const Type*> types(arguments_.size());
    for (std::size_t i = 0; i < types.size(); ++i) types[i] = arguments_[i]->type;
    return types;
  }
  const Type* impl_op_type() { return op_result_type(impl_.runtime, inst_, operand_types()); }

  bool all_constant() const {
    for (Known k : arguments_)
      if (!k->is_constant()) return false;
    return !arguments_.empty();
  }

  Evaluation fold() {
    // Before executing, which would make an exception with a text for nothing.
    if (op_fit(impl_.runtime, inst_, operand_types()) == Fit::never) return {lattice_.bottom(), effect_throws};
    std::vector<Value> values(arguments_.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = arguments_[i]->value;
    Value result;
    if (ir::execute(impl_.scratch, inst_.op, values.data(), values.size(), inst_.aux, result))
      return {lattice_.constant(result)};
    impl_.scratch.take_error();
    // An index outside a string, which no pass may take for the end of the code: to them the operation does not raise.
    if (!(ir::op_info(inst_.op).effects & effect_throws))
      return {lattice_.of_type(op_result_type(impl_.runtime, inst_, operand_types()))};
    return {lattice_.bottom(), effect_throws};
  }

  // A native that only computes.
  Evaluation fold(const NativeInfo& native) {
    std::vector<Value> values(arguments_.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = arguments_[i]->value;
    Value result;
    if (native.function(impl_.scratch, values.data(), values.size(), result)) return {lattice_.constant(result)};
    impl_.scratch.take_error();
    return {lattice_.bottom(), effect_throws};
  }

  bool never_divides_badly() const {
    switch (inst_.op) {
      case Op::sdiv_int:
      case Op::udiv_int:
      case Op::srem_int:
      case Op::urem_int:
        break;
      default:
        return false;
    }
    if (!arguments_[1]->is_constant() || arguments_[1]->value.bits == 0) return false;
    if (inst_.op != Op::sdiv_int) return true;
    // typemin / -1: any representation of -1 has all bits of its width set.
    std::uint32_t bits = 8 * as_data(arguments_[1]->type)->size;
    std::uint64_t all = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    return (static_cast<std::uint64_t>(arguments_[1]->value.bits) & all) != all;
  }

  // --- tests ---

  // The inst that a test of operand `i` tells something about; ~0 for none.
  std::uint32_t subject(std::size_t i) const {
    return i < operands_.size() && operands_[i].is_inst() ? operands_[i].index() : ~0u;
  }

  Evaluation test_type(Known tested, std::uint32_t subject, const Type* type) {
    if (is_subtype(types_, tested->type, type)) return {lattice_.boolean_constant(true)};
    if (certainly_disjoint(types_, tested->type, type)) return {lattice_.boolean_constant(false)};
    if (subject == ~0u) return {lattice_.boolean()};
    return {lattice_.conditional(subject, lattice_.narrow(tested, type), lattice_.remove(tested, type))};
  }

  Evaluation isa() {
    const Type* type = type_parameter(builtin_, arguments_[1]->type);
    if (!type || type->has_free_vars) return plain();
    if (all_constant()) return fold();
    return test_type(lattice_.without_condition(arguments_[0]), subject(0), type);
  }

  Evaluation egal_() {
    if (all_constant()) return {lattice_.boolean_constant(slope::egal(arguments_[0]->value, arguments_[1]->value))};
    for (std::size_t i = 0; i < 2; ++i) {
      Known constant = arguments_[1 - i];
      Known other = lattice_.without_condition(arguments_[i]);
      if (!constant->is_constant()) continue;
      if (const Type* type = type_parameter(builtin_, constant->type)) {
        // typeof(x) === T
        if (Evaluation said; type_test(i, type, said)) return said;
        break;
      }
      const Type* type = constant->value.type;
      if (certainly_disjoint(types_, other->type, type)) return {lattice_.boolean_constant(false)};
      if (subject(i) == ~0u) break;
      Known otherwise = other;
      if (as_data(type)->instance.defined()) otherwise = lattice_.remove(other, type);
      if (type == builtin_.boolean && other == lattice_.boolean())
        otherwise = lattice_.boolean_constant(!(constant->value.bits & 1));
      return {lattice_.conditional(subject(i), constant, otherwise)};
    }
    if (certainly_disjoint(types_, arguments_[0]->type, arguments_[1]->type)) return {lattice_.boolean_constant(false)};
    return {lattice_.boolean(), effect_reads};
  }

  bool type_test(std::size_t i, const Type* type, Evaluation& said) {
    // Only for the op itself: the users of x know of it (make_frame).
    if (subject(i) == ~0u || inst_.operands.empty() || !is_concrete(type) || type->is_kind) return false;
    const ir::Inst& made = frame_.fn->insts[operands_[i].index()];
    if (made.op != Op::type_of || !made.operands[0].is_inst()) return false;
    Known tested = lattice_.without_condition(impl_.view(frame_, made.operands[0], inst_.block));
    if (tested->is_bottom()) return false;
    said = test_type(tested, made.operands[0].index(), type);
    return true;
  }

  Evaluation type_of() {
    Known k = arguments_[0];
    if (k->is_constant()) return {lattice_.constant(impl_.runtime.from_type(k->value.type))};
    if (is_concrete(k->type)) return {lattice_.constant(impl_.runtime.from_type(k->type))};
    return plain();
  }

  Evaluation type_assert() {
    const Type* type = type_parameter(builtin_, arguments_[1]->type);
    if (!type || type->has_free_vars) return plain();
    Known value = arguments_[0];
    if (value->is_constant() ? is_instance(types_, value->value, type) : is_subtype(types_, value->type, type))
      return {value};
    return {lattice_.narrow(lattice_.without_condition(value), type), effect_throws};
  }

  Evaluation select() {
    Known condition = arguments_[0];
    if (condition->is_constant() && condition->type == builtin_.boolean)
      return {arguments_[condition->value.bits & 1 ? 1 : 2]};
    Evaluation result = plain();
    if (!result.value->is_bottom()) result.value = lattice_.join(arguments_[1], arguments_[2]);
    return result;
  }

  // --- variables ---

  Evaluation load_global() {
    const Binding* binding = inst_.aux_as<const Binding>();
    if (binding->is_constant && binding->value.defined()) {
      Edge edge;
      edge.kind = Edge::Kind::binding;
      edge.binding = binding;
      impl_.add_edge(frame_, edge);
      return {lattice_.constant(binding->value)};
    }
    return plain();
  }

  Evaluation static_param() {
    const Type* value = inst_.aux < frame_.static_params.size() ? frame_.static_params[inst_.aux] : nullptr;
    if (!value) return {lattice_.any(), effect_throws};
    if (const ValueType* v = as_value(value)) return {lattice_.constant(v->value)};
    if (value->has_free_vars) return {as_var(value) ? lattice_.any() : lattice_.of_type(builtin_.type), effect_throws};
    return {lattice_.constant(impl_.runtime.from_type(value))};
  }

  Evaluation slot_get() {
    std::vector<std::uint32_t>& readers = frame_.slot_readers[inst_.aux];
    std::uint32_t self = static_cast<std::uint32_t>(&inst_ - frame_.fn->insts.data());
    if (std::find(readers.begin(), readers.end(), self) == readers.end()) readers.push_back(self);
    return {frame_.slots[inst_.aux], effect_throws | effect_reads};
  }

  Evaluation slot_set() {
    Known& slot = frame_.slots[inst_.aux];
    Known joined = lattice_.join(slot, lattice_.without_condition(arguments_[0]));
    if (joined != slot) {
      std::uint32_t growth = ++frame_.slot_growth[inst_.aux];
      if (growth > slot_grow_before_widening) {
        impl_.tell_limit(frame_.target, Limit::value_growth, slot_grow_before_widening);
        joined = lattice_.join(joined, lattice_.widen(joined, growth > 10 ? 3 : growth > 8 ? 2 : 1));
      }
      slot = joined;
      for (std::uint32_t reader : frame_.slot_readers[inst_.aux]) impl_.mark(frame_, reader);
    }
    return {nothing(), effect_writes};
  }

  // --- aggregates ---

  Known aggregate(const Type* type) {
    const DataType* data = as_data(type);
    if (!data || known_field_count(data) != static_cast<int>(arguments_.size())) return lattice_.of_type(type);
    if (data->is_tuple && is_too_large(data)) return lattice_.of_type(builtin_.tuple_any);
    return lattice_.partial(data, arguments_);
  }

  Evaluation make_struct() {
    const DataType* data = as_data(type_parameter(builtin_, arguments_[0]->type));
    if (!data) return {lattice_.any(), effect_throws | effect_allocates};
    if (!data->is_concrete || known_field_count(data) < 0) return {lattice_.bottom(), effect_throws};
    std::span<const Known> fields = arguments_.subspan(1);
    if (fields.size() > data->fields.size() || fields.size() < data->initialized_fields)
      return {lattice_.bottom(), effect_throws};
    std::uint32_t effects = effect_allocates;
    std::vector<Known> known;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Type* declared = data->fields[i].type;
      known.push_back(lattice_.narrow(lattice_.without_condition(fields[i]), declared));
      if (known.back()->is_bottom()) return {lattice_.bottom(), effect_throws};
      if (known.back() != lattice_.without_condition(fields[i])) effects |= effect_throws;
    }
    if (data->is_mutable || known.size() != data->fields.size()) return {lattice_.of_type(data), effects};
    return {lattice_.partial(data, known), effects};
  }

  // 0-based index of the field that a name or 1-based index means in `type`; no_field when there is none.
  std::size_t field_position(const Type* type, Known name) const {
    const DataType* data = as_data(type);
    if (name->value.type == builtin_.symbol) {
      int index = data->is_tuple ? -1 : data->field_index(name->value.symbol);
      return index < 0 ? no_field : static_cast<std::size_t>(index);
    }
    int count = known_field_count(type);
    if (name->value.type != builtin_.int64 || name->value.bits < 1 || name->value.bits > count) return no_field;
    return static_cast<std::size_t>(name->value.bits) - 1;
  }

  std::uint32_t read_effects(const Type* type, std::size_t index) const {
    const DataType* data = as_data(type);
    if (!data) return effect_throws | effect_reads;
    std::uint32_t effects = data->is_mutable ? effect_reads : effect_none;
    if (!field_always_defined(data, index)) effects |= effect_throws;
    return effects;
  }

  // M.name of a module that is known.
  Evaluation global_of(Value module, Known name) {
    const Evaluation unknown{lattice_.any(), effect_throws | effect_reads};
    if (!name->is_constant() || name->value.type != builtin_.symbol) return unknown;
    const Binding* binding = impl_.runtime.resolve(module.module, name->value.symbol);
    if (!binding || !binding->value.defined()) return unknown;
    Edge edge;
    edge.kind = Edge::Kind::binding;
    edge.binding = binding;
    impl_.add_edge(frame_, edge);
    if (binding->is_constant) return {lattice_.constant(binding->value)};
    return {binding->declared ? lattice_.of_type(binding->declared) : lattice_.any(), effect_throws | effect_reads};
  }

  Evaluation get_field() {
    Known object = lattice_.without_condition(arguments_[0]);
    Known name = arguments_[1];
    if (object->is_constant() && object->value.type == builtin_.module) return global_of(object->value, name);
    // What a type says of itself, such as its parameters, never changes.
    if (object->is_constant() && object->value.type->is_kind && all_constant()) return fold();
    std::vector<const Type*> members{object->type};
    if (const UnionType* split = as_union(object->type)) members.assign(split->members.begin(), split->members.end());
    bool known_name = name->is_constant();
    Evaluation result{lattice_.bottom(), effect_none};
    for (const Type* member : members) {
      int count = known_field_count(member);
      if (count < 0) {
        Known all = lattice_.any();
        // A tuple of unknown length: what its elements are.
        const DataType* data = as_data(member);
        if (data && data->is_tuple && known_name && name->value.type == builtin_.int64 && name->value.bits >= 1)
          all = lattice_.field(object, static_cast<std::size_t>(name->value.bits) - 1);
        return {all, effect_throws | effect_reads};
      }
      if (known_name) {
        std::size_t index = field_position(member, name);
        if (index == no_field) {
          result.effects |= effect_throws;
          continue;
        }
        result.value =
            lattice_.join(result.value, lattice_.field(members.size() == 1 ? object : lattice_.of_type(member), index));
        result.effects |= read_effects(member, index);
        continue;
      }
      result.effects |= effect_throws | effect_reads;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        result.value =
            lattice_.join(result.value, lattice_.field(members.size() == 1 ? object : lattice_.of_type(member), i));
    }
    return result;
  }

  Evaluation set_field() {
    std::uint32_t effects = effect_writes | effect_throws;
    const DataType* data = as_data(arguments_[0]->type);
    if (known_field_count(data) < 0) return {arguments_[2], effects};
    if (!data->is_mutable) return {lattice_.bottom(), effect_throws};
    if (!arguments_[1]->is_constant()) return {arguments_[2], effects};
    std::size_t index = field_position(data, arguments_[1]);
    if (index == no_field || data->fields[index].is_const) return {lattice_.bottom(), effect_throws};
    Known stored = lattice_.narrow(lattice_.without_condition(arguments_[2]), data->fields[index].type);
    if (stored == lattice_.without_condition(arguments_[2])) effects &= ~static_cast<std::uint32_t>(effect_throws);
    if (made_here(0)) effects &= ~static_cast<std::uint32_t>(effect_writes);
    return {stored, effects};
  }

  Evaluation field_defined() {
    const Type* type = arguments_[0]->type;
    if (known_field_count(type) >= 0 && arguments_[1]->is_constant()) {
      std::size_t index = field_position(type, arguments_[1]);
      if (index == no_field) return {lattice_.boolean_constant(false)};
      if (field_always_defined(as_data(type), index)) return {lattice_.boolean_constant(true)};
    }
    return plain();
  }

  Evaluation field_count() {
    int count = known_field_count(arguments_[0]->type);
    if (count >= 0) return {lattice_.constant(impl_.runtime.from_int(count))};
    return plain();
  }

  // --- types made at run time ---

  Evaluation apply_type() { return all_constant() ? fold() : part_of_type(); }

  Evaluation make_union() { return all_constant() || arguments_.empty() ? fold() : part_of_type(); }

  // Of a type with variables that is written out (`Dict{<:Integer,Vector}`): each evaluation makes variables of its own,
  // which nobody sees outside the type, so that all evaluations give one type.
  Evaluation union_all() {
    Value made;
    Variables variables;
    if (all_constant()) return plain();
    if (!inst_.operands.empty() && written_out(inst_, variables, made) && !made.as_type->has_free_vars)
      return {lattice_.constant(made)};
    return plain();
  }

  Evaluation part_of_type() {
    Value made;
    Variables variables;
    const bool made_without_error = !inst_.operands.empty() && written_out(inst_, variables, made);
    return {lattice_.of_type(builtin_.type),
            made_without_error ? effect_allocates : effect_throws | static_cast<std::uint32_t>(effect_allocates)};
  }

  using Variables = std::vector<std::pair<const ir::Inst*, Value>>;

  // What such an instruction gives, with variables for those of the type_vars in it. Only what is known from the
  // beginning counts: this instruction is not evaluated again when an operand of an operand becomes less known.
  bool written_out(const ir::Inst& inst, Variables& variables, Value& made) {
    if (inst.op == Op::type_var) {
      for (const auto& [maker, variable] : variables)
        if (maker == &inst) {
          made = variable;
          return true;
        }
    }
    std::vector<Value> values;
    for (ir::Operand o : inst.operands)
      if (!written_out(o, variables, values.emplace_back())) return false;
    if (!ir::execute(impl_.scratch, inst.op, values.data(), values.size(), inst.aux, made)) {
      impl_.scratch.take_error();
      return false;
    }
    if (inst.op == Op::type_var) variables.emplace_back(&inst, made);
    return true;
  }

  bool written_out(ir::Operand o, Variables& variables, Value& made) {
    if (o.is_inst()) {
      const ir::Inst& inst = frame_.fn->insts[o.index()];
      switch (inst.op) {
        case Op::type_var:
        case Op::apply_type:
        case Op::make_union:
        case Op::union_all:
          return written_out(inst, variables, made);
        case Op::load_global:
        case Op::static_param:
          break;
        default:
          return false;
      }
    } else if (!o.is_constant()) {
      return false;
    }
    const Known known = impl_.view(frame_, o, inst_.block);
    if (known->is_constant()) made = known->value;
    return known->is_constant();
  }

  // --- memory ---

  // Memory that this very body allocated existed for no one before: writing it is no effect of ours on anyone else.
  bool made_here(std::size_t i) const {
    if (i >= operands_.size() || !operands_[i].is_inst()) return false;
    switch (frame_.fn->insts[operands_[i].index()].op) {
      case Op::array_new:
      case Op::make_struct:
      case Op::cell_new:
        return true;
      default:
        return false;
    }
  }

  Evaluation memory() {
    Evaluation result = plain();
    if (result.value->is_bottom()) return result;
    std::uint32_t foreign = effect_none;
    if (made_here(0)) foreign = effect_writes | effect_reads;
    result.effects &= ~foreign;
    const DataType* array = as_data(arguments_[0]->type);
    if (inst_.op == Op::array_get && array && array->is_concrete && array->name == builtin_.array_name) {
      Storage storage = storage_of(array->params[0]);
      bool defined = storage != Storage::reference && storage != Storage::dynamic;
      if (defined && arguments_[1]->type == builtin_.int64)
        result.effects &= ~static_cast<std::uint32_t>(effect_throws);
    }
    return result;
  }

  Inference::Impl& impl_;
  LatticeTable& lattice_;
  TypeTable& types_;
  const BuiltinTypes& builtin_;
  Frame& frame_;
  const ir::Inst& inst_;
  std::span<const Known> arguments_;
  std::span<const ir::Operand> operands_;
};

}  // namespace

bool field_always_defined(const DataType* type, std::size_t index) {
  if (type->is_tuple || type->is_named_tuple || type->name->is_closure) return true;
  if (index >= type->fields.size()) return false;
  Storage storage = type->fields[index].storage;
  return (storage != Storage::reference && storage != Storage::dynamic) || index < type->initialized_fields;
}

Evaluation Inference::Impl::evaluate_op(Frame& frame, const ir::Inst& inst, std::span<const Known> arguments,
                                        std::span<const ir::Operand> operands) {
  return Transfer(*this, frame, inst, arguments, operands).evaluate();
}

Evaluation Inference::Impl::evaluate(Frame& frame, std::uint32_t id) {
  const ir::Inst& inst = frame.fn->insts[id];
  std::vector<Known> arguments(inst.operands.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    arguments[i] = view(frame, inst.operands[i], inst.block);
    if (arguments[i]->is_bottom()) return {lattice.bottom()};
  }
  Evaluation found;
  switch (inst.op) {
    case Op::call:
      found = evaluate_call(frame, id, std::move(arguments), inst.operands);
      break;
    case Op::call_splat:
      found = evaluate_splat(frame, id, std::move(arguments));
      break;
    case Op::invoke:
      found = evaluate_invoke(frame, inst);
      break;
    case Op::native:
      found = inst.aux_as<const NativeInfo>()->asks_return_type ? evaluate_return_type(frame, id, arguments)
                                                                : evaluate_op(frame, inst, arguments, inst.operands);
      break;
    default:
      found = evaluate_op(frame, inst, arguments, inst.operands);
  }
  // What the compiler wrote about its own code holds, where it says more than we found.
  if (frame.partly_typed && inst.type && !found.value->is_bottom() &&
      !lattice.less_or_equal(found.value, lattice.of_type(inst.type))) {
    Known narrowed = lattice.narrow(lattice.without_condition(found.value), inst.type);
    if (!narrowed->is_bottom()) found.value = narrowed;
  }
  return found;
}

}  // namespace slope::infer
