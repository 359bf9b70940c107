// Which calls of operators (`gradient`, `jvp` and their kin) become calls of the derivative itself in code that is not
// differentiated: those whose function, arguments and directions have plain types. Then nothing has to be looked at when
// the call runs, so that operators.cpp writes out what the native does.
//
// A plain type is a number or another type without a derivative, an array of numbers, or an immutable struct (a tuple,
// a closure) of plain fields. Not plain: what may hold itself or anything, and what users see in another form than the
// derivative does (dictionaries). A gradient may also be with respect to arrays of structs of numbers, and mutable structs
// of numbers; an argument with a direction may be such a mutable struct.
#include "lang/derive/derivatives.hpp"
#include "lang/diff/operations.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/diff/user_types.hpp"

namespace slope::derive {

namespace {

constexpr int most_levels = 8;  // of structs in structs

// Which types are plain: of `point`, also those that only gradients are written out of.
enum class Plain : std::uint8_t { always, point };

bool is_plain(diff::TangentTypes& tangents, const Type* type, int levels, Plain which) {
  const DataType* d = as_data(type);
  if (!d || !d->is_concrete || !tangents.known(d)) return false;
  if (!tangents.differentiable(d) || tangents.is_float(d)) return true;
  if (d->object_kind == DataType::ObjectKind::array)
    return tangents.is_float(d->params[0]) || !tangents.differentiable(d->params[0]) ||
           (which == Plain::point && diff::has_struct_elements(tangents, d));
  if (d->object_kind != DataType::ObjectKind::fields || levels == 0) return false;
  if (d->is_mutable) return which == Plain::point && diff::is_object_of_numbers(tangents, d);
  for (const Field& field : d->fields)
    if (!is_plain(tangents, field.type, levels - 1, which)) return false;
  return true;
}

// What stands for no change, a number for a number, an array for an array, a tuple for what has fields.
bool is_plain_direction(diff::TangentTypes& tangents, const Type* of, const Type* direction) {
  Runtime& runtime = tangents.runtime();
  const BuiltinTypes& builtin = runtime.types.builtin();
  const DataType* given = as_data(direction);
  if (!given || !given->is_concrete) return false;
  if (given == builtin.nothing) return true;
  if (tangents.is_float(of)) return tangents.is_float(given) || given == builtin.int64;
  const DataType* d = as_data(of);
  if (d->object_kind == DataType::ObjectKind::array) return given == d && tangents.differentiable(d);
  if (!tangents.differentiable(d) || !given->is_tuple || given->fields.size() != d->fields.size()) return false;
  for (std::size_t i = 0; i < d->fields.size(); ++i)
    if (!is_plain_direction(tangents, d->fields[i].type, given->fields[i].type)) return false;
  return true;
}

}  // namespace

bool Derivatives::is_plain_type(const Type* type) const {
  return is_plain(diff::tangent_types(runtime), type, most_levels, Plain::always);
}

namespace {

enum class Operator : std::uint8_t { none, gradient, of_call, with_directions, reverse, derivative };

Operator operator_of(const ir::Inst& inst) {
  if (inst.op != ir::Op::native || inst.operands.size() < 2) return Operator::none;
  const std::string_view name = inst.aux_as<const NativeInfo>()->name;
  if (name == "value_and_gradient_call") return Operator::gradient;
  if (name == "value_and_gradient_apart" || name == "pullback_forward" || name == "pullback_step" ||
      name == "mutates_arguments" || name == "keep_memory_of")
    return Operator::of_call;
  if (name == "jvp_call") return Operator::with_directions;
  if (name == "pullback_reverse" && inst.operands.size() == 8) return Operator::reverse;
  return name == "call_derivative" ? Operator::derivative : Operator::none;
}

}  // namespace

// pullback_reverse(f, xs, shadow of value, record, shadows, code, cotangent, overwritten): of a number or an array of numbers.
bool Derivatives::is_plain_reverse(const ir::Function& function, const ir::Inst& inst) const {
  const auto type_of = [&](std::size_t i) { return function.type_of(inst.operands[i], runtime.types); };
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  const BuiltinTypes& builtin = runtime.types.builtin();
  const Type* shadow = type_of(2);
  const Type* cotangent = type_of(6);
  for (std::size_t i = 2; i < 6; ++i)
    if (!is_concrete(type_of(i))) return false;
  if (shadow == builtin.nothing) return tangents.is_float(cotangent) || cotangent == builtin.int64;
  const DataType* array = as_data(shadow);
  return cotangent == shadow && array->object_kind == DataType::ObjectKind::array &&
         tangents.is_float(array->params[0]);
}

bool Derivatives::is_plain_operator(const ir::Function& function, const ir::Inst& inst) const {
  const Operator kind = operator_of(inst);
  if (kind == Operator::none) return false;
  if (kind == Operator::derivative) return inst.operands[0].is_constant();
  if (kind == Operator::reverse && !is_plain_reverse(function, inst)) return false;
  const auto type_of = [&](std::size_t i) { return function.type_of(inst.operands[i], runtime.types); };
  const ir::Operand f = inst.operands[0];
  const bool is_type = f.is_constant() && runtime.is_type_value(function.constant_value(f));
  if (is_type || !is_plain_type(type_of(0))) return false;
  const DataType* arguments = as_data(type_of(1));
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  if (!arguments || !arguments->is_tuple || !arguments->is_concrete) return false;
  if (kind != Operator::with_directions)
    return is_plain(tangents, arguments, most_levels, kind == Operator::gradient ? Plain::point : Plain::always);
  for (const Field& argument : arguments->fields)
    if (!is_plain_type(argument.type) && !diff::is_object_of_numbers(tangents, as_data(argument.type))) return false;
  for (std::size_t k = 2; k < inst.operands.size(); ++k) {
    const DataType* direction = as_data(type_of(k));
    if (!direction || !direction->is_tuple || !direction->is_concrete ||
        direction->fields.size() != arguments->fields.size())
      return false;
    for (std::size_t i = 0; i < direction->fields.size(); ++i)
      if (!is_plain_direction(tangents, arguments->fields[i].type, direction->fields[i].type)) return false;
  }
  return true;
}

}  // namespace slope::derive
