// Types of ops: what the columns `shape` and `result` of ops.def mean here, and the results that need a computation.
#include "lang/infer/op_types.hpp"

#include "lang/infer/infer.hpp"
#include "lang/infer/lattice.hpp"
#include "lang/memory/tape.hpp"

namespace slope::infer {

namespace {

using ir::Op;
using ir::ResultKind;
using ir::Shape;

class OpTypes {
 public:
  OpTypes(Runtime& runtime, const ir::Inst& inst, std::span<const Type* const> operands)
      : types_(runtime.types), builtin_(runtime.types.builtin()), inst_(inst), operands_(operands) {}

  Fit fit() const {
    switch (ir::op_info(inst_.op).shape) {
      case Shape::any:
        return Fit::holds;
      case Shape::ints:
        return all_same(&OpTypes::is_integer);
      case Shape::shift:
        return both(each(&OpTypes::is_integer, 0), each(&OpTypes::is_integer, 1));
      case Shape::floats:
        return all_same(&OpTypes::is_float);
      case Shape::int_to_int:
        return both(target(&OpTypes::is_integer), each(&OpTypes::is_integer, 1));
      case Shape::int_to_float:
        return both(target(&OpTypes::is_float), each(&OpTypes::is_integer, 1));
      case Shape::float_to_int:
        return both(target(&OpTypes::is_integer), each(&OpTypes::is_float, 1));
      case Shape::float_to_float:
        return both(target(&OpTypes::is_float), each(&OpTypes::is_float, 1));
      case Shape::bits_to_bits:
        return same_size(both(target(&OpTypes::is_bits), each(&OpTypes::is_bits, 1)));
      case Shape::truth:
        return operand_is(0, builtin_.boolean);
      case Shape::typed_second:
        return type_operand(1);
      case Shape::types:
        return both(type_operand(0), type_operand(1));
      case Shape::cell:
        return operand_is(0, builtin_.cell);
      case Shape::tape:
        return operand_is(0, builtin_.tape);
      case Shape::string:
        return operand_is(0, builtin_.string);
      case Shape::string_int:
        return both(operand_is(0, builtin_.string), operand_is(1, builtin_.int64));
      case Shape::array:
        return array_operand(0);
      case Shape::array_int:
        return both(array_operand(0), operand_is(1, builtin_.int64));
      case Shape::array_ints:
        return both(array_operand(0), integers_from(1));
      case Shape::array_element:
        return array(0) ? operand_is(1, array(0)->params[0]) : array_operand(0);
      case Shape::array_element_int: {
        Fit result = both(array_operand(0), operand_is(2, builtin_.int64));
        return result == Fit::holds ? operand_is(1, array(0)->params[0]) : result;
      }
      case Shape::array_type_ints: {
        const DataType* made =
            as_data(type_parameter(builtin_, operands_[0]) ? type_parameter(builtin_, operands_[0]) : nullptr);
        if (!made) return Fit::unknown;
        if (!made->is_concrete || made->name != builtin_.array_name) return Fit::never;
        return integers_from(1);
      }
    }
    return Fit::unknown;
  }

  const Type* result() const {
    if (fit() == Fit::never) return builtin_.bottom;
    switch (ir::op_info(inst_.op).result) {
      case ResultKind::special:
        return special_result();
      case ResultKind::given:
        return inst_.type ? inst_.type : builtin_.any;
      case ResultKind::first:
        return operands_.size() > 1 && ir::op_info(inst_.op).shape != Shape::shift ? common() : operands_[0];
      case ResultKind::third:
        return operands_[2];
      case ResultKind::target: {
        const Type* t = type_parameter(builtin_, operands_[0]);
        return t ? t : builtin_.any;
      }
      case ResultKind::boolean:
        return builtin_.boolean;
      case ResultKind::int64:
        return builtin_.int64;
      case ResultKind::uint8:
        return builtin_.uint8;
      case ResultKind::data_type:
        return builtin_.data_type;
      case ResultKind::type_var:
        return builtin_.type_var;
      case ResultKind::cell:
        return builtin_.cell;
      case ResultKind::expr:
        return builtin_.expr;
      case ResultKind::tape:
        return builtin_.tape;
      case ResultKind::nothing:
        return builtin_.nothing;
      case ResultKind::bottom:
        return builtin_.bottom;
    }
    return builtin_.any;
  }

 private:
  using Test = bool (OpTypes::*)(const Type*) const;

  bool is_bits(const Type* t) const { return is_concrete(t) && storage_of(t) == Storage::bits; }
  bool is_float(const Type* t) const { return t == builtin_.float64 || t == builtin_.float32; }
  bool is_integer(const Type* t) const { return is_bits(t) && !is_float(t); }

  static Fit both(Fit a, Fit b) {
    if (a == Fit::never || b == Fit::never) return Fit::never;
    return a == Fit::holds && b == Fit::holds ? Fit::holds : Fit::unknown;
  }
  Fit each(Test test, std::size_t i) const {
    const Type* t = operands_[i];
    if ((this->*test)(t)) return Fit::holds;
    return is_concrete(t) || type_parameter(builtin_, t) ? Fit::never : Fit::unknown;
  }
  Fit all_same(Test test) const {
    Fit result = Fit::holds;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      result = both(result, each(test, i));
      if (i > 0 && result == Fit::holds && operands_[i] != operands_[0]) return Fit::never;
    }
    return result;
  }
  // All must be of one type: one that is known says it for all.
  const Type* common() const {
    for (const Type* t : operands_)
      if (is_bits(t)) return t;
    return builtin_.any;
  }
  Fit same_size(Fit bits) const {
    if (bits != Fit::holds) return bits;
    return as_data(type_parameter(builtin_, operands_[0]))->size == as_data(operands_[1])->size ? bits : Fit::never;
  }
  Fit target(Test test) const {
    const Type* t = type_parameter(builtin_, operands_[0]);
    if (!t) return is_concrete(operands_[0]) && !operands_[0]->is_kind ? Fit::never : Fit::unknown;
    return (this->*test)(t) ? Fit::holds : Fit::never;
  }
  // `t` is surely / maybe / never a subtype of `wanted`.
  Fit within(const Type* t, const Type* wanted) const {
    if (t == wanted || is_subtype(types_, t, wanted)) return Fit::holds;
    return certainly_disjoint(types_, t, wanted) ? Fit::never : Fit::unknown;
  }
  Fit operand_is(std::size_t i, const Type* wanted) const { return within(operands_[i], wanted); }
  bool is_type(const Type* t) const { return t->is_kind || type_parameter(builtin_, t); }
  Fit type_operand(std::size_t i) const {
    if (is_type(operands_[i]) || is_subtype(types_, operands_[i], builtin_.type)) return Fit::holds;
    return is_concrete(operands_[i]) ? Fit::never : Fit::unknown;
  }

  const DataType* array(std::size_t i) const {
    const DataType* data = as_data(operands_[i]);
    return data && data->is_concrete && data->name == builtin_.array_name ? data : nullptr;
  }
  Fit array_operand(std::size_t i) const {
    if (array(i)) return Fit::holds;
    return is_dispatch_type(builtin_, operands_[i]) ? Fit::never : Fit::unknown;
  }
  // Array{T} with T known and N not is enough to know what reading gives.
  const Type* element_type(const Type* t) const {
    if (const UnionType* split = as_union(t)) {
      const Type* all = nullptr;
      for (const Type* member : split->members) {
        const Type* element = element_type(member);
        all = all ? type_merge(types_, all, element) : element;
      }
      return all;
    }
    while (const UnionAllType* bound = as_union_all(t)) t = bound->body;
    const DataType* data = as_data(t);
    if (data && data->name == builtin_.array_name && !data->params[0]->has_free_vars) return data->params[0];
    return builtin_.any;
  }
  Fit integers_from(std::size_t first) const {
    Fit result = Fit::holds;
    for (std::size_t i = first; i < operands_.size(); ++i) result = both(result, operand_is(i, builtin_.int64));
    return result;
  }

  const Type* special_result() const {
    switch (inst_.op) {
      case Op::type_assert: {
        const Type* t = type_parameter(builtin_, operands_[1]);
        if (!t) return operands_[0];
        const Type* common = is_subtype(types_, operands_[0], t) ? operands_[0] : intersect(types_, operands_[0], t);
        return common->has_free_vars ? t : common;
      }
      case Op::tuple:
        return types_.tuple(value_types(operands_));
      case Op::make_struct: {
        const Type* t = type_parameter(builtin_, operands_[0]);
        return t ? t : builtin_.any;
      }
      case Op::make_closure:
        return closure_type();
      case Op::get_field: {
        const Type* all = builtin_.bottom;
        int count = known_field_count(operands_[0]);
        if (count < 0) return builtin_.any;
        for (int i = 0; i < count; ++i)
          all = type_merge(types_, all, declared_field_type(builtin_, operands_[0], static_cast<std::size_t>(i)));
        return all;
      }
      case Op::field_at:
        return declared_field_type(builtin_, operands_[0], inst_.aux);
      case Op::select:
        return type_merge(types_, operands_[1], operands_[2]);
      case Op::array_new: {
        const Type* t = type_parameter(builtin_, operands_[0]);
        return t ? t : builtin_.array;
      }
      case Op::array_get:
        return element_type(operands_[0]);
      case Op::array_share: {
        if (const DataType* data = array(0))
          return types_.array_of(data->params[0], static_cast<std::int64_t>(operands_.size()) - 1);
        return builtin_.array;
      }
      case Op::native: {
        const NativeInfo* info = inst_.aux_as<const NativeInfo>();
        return info && info->result_type ? info->result_type(types_, operands_) : builtin_.any;
      }
      case Op::load_global: {
        const Binding* binding = inst_.aux_as<const Binding>();
        return binding && binding->declared ? binding->declared : builtin_.any;
      }
      default:
        return builtin_.any;  // calls, slots, caught, types made at run time
    }
  }

  // Elements of a tuple are typed by typeof: a type value is a DataType there, not Type{T}.
  std::vector<const Type*> value_types(std::span<const Type* const> operands) const {
    std::vector<const Type*> result;
    for (const Type* t : operands) result.push_back(value_type(t));
    return result;
  }
  const Type* value_type(const Type* t) const {
    const Type* parameter = type_parameter(builtin_, t);
    if (!parameter) return t;
    switch (parameter->kind) {
      case TypeKind::data:
        return builtin_.data_type;
      case TypeKind::union_:
        return builtin_.union_;
      case TypeKind::union_all:
        return builtin_.union_all;
      case TypeKind::bottom:
        return builtin_.type_of_bottom;
      default:
        return builtin_.any;
    }
  }

  // As execute does it: a captured type stands as Type{T}. Captures whose type is not known exactly leave their
  // parameter open: C{Int64, T} where T.
  const Type* closure_type() const {
    TypeName* name = inst_.aux_as<TypeName>();
    std::vector<const Type*> params(operands_.begin(), operands_.end());
    std::vector<const TypeVar*> open;
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (is_dispatch_type(builtin_, params[i])) continue;
      open.push_back(name->vars[i]);
      params[i] = name->vars[i];
    }
    const Type* result = types_.apply(name, params);
    for (std::size_t i = open.size(); i-- > 0;) result = types_.union_all(open[i], result);
    return result;
  }

  TypeTable& types_;
  const BuiltinTypes& builtin_;
  const ir::Inst& inst_;
  std::span<const Type* const> operands_;
};

}  // namespace

Fit op_fit(Runtime& runtime, const ir::Inst& inst, std::span<const Type* const> operand_types) {
  return OpTypes(runtime, inst, operand_types).fit();
}

const Type* op_result_type(Runtime& runtime, const ir::Inst& inst, std::span<const Type* const> operand_types) {
  return OpTypes(runtime, inst, operand_types).result();
}

}  // namespace slope::infer
