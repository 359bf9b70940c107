// Types of ops. Most ops have one of a few shapes. The table below is the only list of which op has which; the others
// are written out in `special_type` and `special_fit`.
#include "lang/infer/op_types.hpp"

#include "lang/infer/infer.hpp"
#include "lang/infer/lattice.hpp"
#include "lang/memory/tape.hpp"

namespace slope::infer {

namespace {

using ir::Op;

enum class Shape : std::uint8_t {
  int_binary,  // two integers of one type → that type
  int_unary,
  int_shift,    // integer, any integer → first
  int_compare,  // two integers of one type → Bool
  float_unary,
  float_binary,
  float_ternary,
  float_compare,
  int_to_int,  // Type{integer}, integer → the target type
  int_to_float,
  float_to_int,
  float_to_float,
  bit_cast,     // Type{bits}, bits of the same size
  any_to_bool,  // no demands → Bool
  special,
};

// clang-format off
Shape shape_of(Op op) {
  switch (op) {
    case Op::add_int: case Op::sub_int: case Op::mul_int: case Op::sdiv_int: case Op::udiv_int: case Op::srem_int:
    case Op::urem_int: case Op::and_int: case Op::or_int: case Op::xor_int: case Op::umulhi_int:
      return Shape::int_binary;
    case Op::neg_int: case Op::not_int: case Op::ctpop_int: case Op::ctlz_int: case Op::cttz_int: case Op::bswap_int:
      return Shape::int_unary;
    case Op::shl_int: case Op::lshr_int: case Op::ashr_int:
      return Shape::int_shift;
    case Op::slt_int: case Op::sle_int: case Op::ult_int: case Op::ule_int: case Op::eq_int: case Op::ne_int:
    case Op::sadd_overflows: case Op::ssub_overflows: case Op::smul_overflows: case Op::uadd_overflows:
    case Op::umul_overflows:
      return Shape::int_compare;
    case Op::sext_int: case Op::zext_int: case Op::trunc_int:
      return Shape::int_to_int;
    case Op::sitofp: case Op::uitofp:
      return Shape::int_to_float;
    case Op::fptosi: case Op::fptoui:
      return Shape::float_to_int;
    case Op::fptrunc: case Op::fpext:
      return Shape::float_to_float;
    case Op::bitcast:
      return Shape::bit_cast;
    case Op::neg_float: case Op::abs_float: case Op::ceil_float: case Op::floor_float: case Op::trunc_float:
    case Op::rint_float: case Op::sqrt_float: case Op::exp_float: case Op::exp2_float: case Op::expm1_float:
    case Op::log_float: case Op::log2_float: case Op::log10_float: case Op::log1p_float: case Op::sin_float:
    case Op::cos_float: case Op::tan_float: case Op::asin_float: case Op::acos_float: case Op::atan_float:
    case Op::sinh_float: case Op::cosh_float: case Op::tanh_float: case Op::cbrt_float:
      return Shape::float_unary;
    case Op::add_float: case Op::sub_float: case Op::mul_float: case Op::div_float: case Op::rem_float:
    case Op::copysign_float: case Op::min_float: case Op::max_float: case Op::atan2_float: case Op::hypot_float:
    case Op::pow_float:
      return Shape::float_binary;
    case Op::fma_float: case Op::muladd_float:
      return Shape::float_ternary;
    case Op::eq_float: case Op::ne_float: case Op::lt_float: case Op::le_float:
      return Shape::float_compare;
    case Op::egal: case Op::global_defined: case Op::slot_defined:
      return Shape::any_to_bool;
    default:
      return Shape::special;
  }
}
// clang-format on

class OpTypes {
 public:
  OpTypes(Runtime& runtime, const ir::Inst& inst, std::span<const Type* const> operands)
      : types_(runtime.types), builtin_(runtime.types.builtin()), inst_(inst), operands_(operands) {}

  Fit fit() const {
    switch (shape_of(inst_.op)) {
      case Shape::int_binary:
      case Shape::int_compare:
        return all_same(&OpTypes::is_integer, 2);
      case Shape::int_unary:
        return all_same(&OpTypes::is_integer, 1);
      case Shape::int_shift:
        return both(each(&OpTypes::is_integer, 0), each(&OpTypes::is_integer, 1));
      case Shape::float_unary:
        return all_same(&OpTypes::is_float, 1);
      case Shape::float_binary:
      case Shape::float_compare:
        return all_same(&OpTypes::is_float, 2);
      case Shape::float_ternary:
        return all_same(&OpTypes::is_float, 3);
      case Shape::int_to_int:
        return both(target(&OpTypes::is_integer), each(&OpTypes::is_integer, 1));
      case Shape::int_to_float:
        return both(target(&OpTypes::is_float), each(&OpTypes::is_integer, 1));
      case Shape::float_to_int:
        return both(target(&OpTypes::is_integer), each(&OpTypes::is_float, 1));
      case Shape::float_to_float:
        return both(target(&OpTypes::is_float), each(&OpTypes::is_float, 1));
      case Shape::bit_cast: {
        Fit result = both(target(&OpTypes::is_bits), each(&OpTypes::is_bits, 1));
        if (result == Fit::holds &&
            as_data(type_parameter(builtin_, operands_[0]))->size != as_data(operands_[1])->size)
          return Fit::never;
        return result;
      }
      case Shape::any_to_bool:
        return Fit::holds;
      case Shape::special:
        return special_fit();
    }
    return Fit::unknown;
  }

  const Type* result() const {
    Shape shape = shape_of(inst_.op);
    if (fit() == Fit::never) return builtin_.bottom;
    switch (shape) {
      case Shape::int_compare:
      case Shape::float_compare:
      case Shape::any_to_bool:
        return builtin_.boolean;
      case Shape::int_binary:
      case Shape::float_binary:
      case Shape::float_ternary:
        // Both must be of one type: one that is known says it for all.
        for (const Type* t : operands_)
          if (is_bits(t)) return t;
        return builtin_.any;
      case Shape::int_unary:
      case Shape::float_unary:
      case Shape::int_shift:
        return operands_[0];
      case Shape::int_to_int:
      case Shape::int_to_float:
      case Shape::float_to_int:
      case Shape::float_to_float:
      case Shape::bit_cast: {
        const Type* t = type_parameter(builtin_, operands_[0]);
        return t ? t : builtin_.any;
      }
      case Shape::special:
        return special_result();
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
  Fit all_same(Test test, std::size_t count) const {
    Fit result = Fit::holds;
    for (std::size_t i = 0; i < count; ++i) {
      result = both(result, each(test, i));
      if (i > 0 && result == Fit::holds && operands_[i] != operands_[0]) return Fit::never;
    }
    return result;
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

  Fit special_fit() const {
    switch (inst_.op) {
      case Op::isa:
        return type_operand(1);
      case Op::subtype:
        return both(type_operand(0), type_operand(1));
      case Op::type_assert:
        return type_operand(1);
      case Op::select:
        return operand_is(0, builtin_.boolean);
      case Op::array_new: {
        const DataType* made =
            as_data(type_parameter(builtin_, operands_[0]) ? type_parameter(builtin_, operands_[0]) : nullptr);
        if (!made) return Fit::unknown;
        if (!made->is_concrete || made->name != builtin_.array_name) return Fit::never;
        return integers_from(1);
      }
      case Op::array_length:
        return array_operand(0);
      case Op::array_check:
        return array(0) ? operand_is(1, array(0)->params[0]) : array_operand(0);
      case Op::array_size:
      case Op::array_get:
        return both(array_operand(0), operand_is(1, builtin_.int64));
      case Op::array_set:
      case Op::array_init: {
        Fit result = both(array_operand(0), operand_is(2, builtin_.int64));
        return result == Fit::holds ? operand_is(1, array(0)->params[0]) : result;
      }
      case Op::array_resize:
      case Op::array_resize_front:
        return both(array_operand(0), operand_is(1, builtin_.int64));
      case Op::array_share:
        return both(array_operand(0), integers_from(1));
      case Op::string_length:
        return operand_is(0, builtin_.string);
      case Op::string_byte:
        return both(operand_is(0, builtin_.string), operand_is(1, builtin_.int64));
      case Op::cell_get:
      case Op::cell_set:
      case Op::cell_defined:
        return operand_is(0, builtin_.cell);
      case Op::tape_reserve:
      case Op::tape_store:
      case Op::tape_load:
      case Op::tape_close:
        return operand_is(0, builtin_.tape);
      default:
        return Fit::holds;
    }
  }

  const Type* special_result() const {
    switch (inst_.op) {
      case Op::isa:
      case Op::subtype:
      case Op::field_defined:
      case Op::cell_defined:
        return builtin_.boolean;
      case Op::field_count:
      case Op::array_length:
      case Op::array_size:
      case Op::string_length:
        return builtin_.int64;
      case Op::string_byte:
        return builtin_.uint8;
      case Op::type_of:
        return builtin_.data_type;
      case Op::type_assert: {
        const Type* t = type_parameter(builtin_, operands_[1]);
        if (!t) return operands_[0];
        const Type* common = is_subtype(types_, operands_[0], t) ? operands_[0] : intersect(types_, operands_[0], t);
        return common->has_free_vars ? t : common;
      }
      case Op::type_var:
        return builtin_.type_var;
      case Op::cell_new:
        return builtin_.cell;
      case Op::expr:
        return builtin_.expr;
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
      case Op::set_field:
        return operands_[2];
      case Op::set_field_at:
        return builtin_.nothing;
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
      case Op::tape_open:
        return builtin_.tape;
      case Op::native: {
        const NativeInfo* info = inst_.aux_as<const NativeInfo>();
        return info && info->result_type ? info->result_type(types_, operands_) : builtin_.any;
      }
      case Op::load_global: {
        const Binding* binding = inst_.aux_as<const Binding>();
        return binding && binding->declared ? binding->declared : builtin_.any;
      }
      case Op::store_global:
        return operands_[0];
      case Op::throw_:
      case Op::unreachable:
        return builtin_.bottom;
      case Op::refine:
      case Op::undef:
      case Op::invoke:
      case Op::tape_load:
        return inst_.type ? inst_.type : builtin_.any;
      case Op::slot_set:
      case Op::slot_clear:
      case Op::cell_set:
      case Op::array_set:
      case Op::array_init:
      case Op::array_check:
      case Op::array_resize:
      case Op::array_resize_front:
      case Op::tape_reserve:
      case Op::tape_store:
      case Op::tape_close:
      case Op::caught_end:
      case Op::jump:
      case Op::branch:
      case Op::switch_int:
      case Op::ret:
        return builtin_.nothing;
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
