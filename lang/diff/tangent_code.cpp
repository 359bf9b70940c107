#include "lang/diff/tangent_code.hpp"

#include <algorithm>
#include <iterator>

namespace slope::diff {

using ir::Op;
using ir::Operand;

TangentCode::TangentCode(Runtime& runtime)
    : runtime_(runtime), tangents_(tangent_types(runtime)), builtin_(runtime.types.builtin()) {}

Operand TangentCode::library_function(KnownName name, ir::Builder& at) {
  Binding* binding = library_binding(runtime_, name);
  return at.constant(binding ? binding->value : runtime_.nothing());
}

Operand TangentCode::call_library(ir::Builder& at, KnownName name, std::vector<Operand> args, const Type* type) {
  args.insert(args.begin(), library_function(name, at));
  Operand result = at.emit(Op::call, args, nullptr);
  if (!type) return result;
  return at.emit(Op::type_assert, {result, type_constant(at, type)}, type);
}

Operand TangentCode::scalar_partials(ir::Builder& at, Operand function, Operand result,
                                     const std::vector<Operand>& arguments) {
  std::vector<Operand> operands{library_function(KnownName::scalar_partials, at), function, result};
  operands.insert(operands.end(), arguments.begin(), arguments.end());
  return at.emit(Op::call, operands, nullptr);
}

Operand TangentCode::scalar_partial(ir::Builder& at, Operand partials, std::size_t i, const Type* t) {
  const Operand place = int_constant(at, static_cast<std::int64_t>(i) + 1);
  const Operand partial = at.emit(Op::get_field, {partials, place}, nullptr);
  return call_library(at, KnownName::as_cotangent, {type_constant(at, t), partial}, t);
}

namespace {

// Library functions of one number whose derivative is finite everywhere: loops over them need no test for zeros.
bool has_finite_partials(Runtime& runtime, const ir::Inst& inst) {
  constexpr KnownName functions[] = {KnownName::sin, KnownName::cos, KnownName::tanh, KnownName::atan};
  if (inst.op != Op::invoke)
    return inst.op == Op::sin_float || inst.op == Op::cos_float || inst.op == Op::tanh_float ||
           inst.op == Op::atan_float;
  if (inst.operands.size() != 2) return false;
  const Type* callee = inst.aux_as<Specialization>()->types->params[0];
  return std::any_of(std::begin(functions), std::end(functions),
                     [&](KnownName name) { return library_value(runtime, name).type == callee; });
}

}  // namespace

Operand TangentCode::times_partial(ir::Builder& at, const ir::Inst& inst, Operand tangent, Operand partial) {
  if (has_finite_partials(runtime_, inst)) return at.emit(Op::mul_float, {tangent, partial}, inst.type);
  return call_library(at, KnownName::times_partial, {tangent, partial}, inst.type);
}

// --- shadows and leaves ---

Operand TangentCode::boxed(ir::Builder& at, Operand tangent) {
  const DataType* dynamic = tangents_.dynamic();
  return at.emit(Op::make_struct, {type_constant(at, dynamic), tangent}, dynamic);
}

Operand TangentCode::as_shadow(ir::Builder& at, Operand shadow, const Type* from, const Type* to) {
  if (from == to) return shadow;
  if (to == builtin_.nothing) return nothing(at);
  if (to == tangents_.dynamic()) return boxed(at, shadow);
  const DataType* narrow = as_data(from);
  const DataType* wide = as_data(to);
  if (narrow && wide && narrow->is_tuple && wide->is_tuple && narrow->fields.size() == wide->fields.size()) {
    std::vector<Operand> parts;  // the same value as two types see it, one of which knows less of what is in it
    for (std::size_t i = 0; i < narrow->fields.size(); ++i)
      parts.push_back(as_shadow(at, at.emit(Op::field_at, {shadow}, narrow->fields[i].type, i), narrow->fields[i].type,
                                wide->fields[i].type));
    return at.emit(Op::tuple, parts, to);
  }
  Operand content = at.emit(Op::field_at, {shadow}, builtin_.any, 0);
  return at.emit(Op::type_assert, {content, type_constant(at, to)}, to);
}

Value TangentCode::zero_leaf(const Type* leaf_type) {
  if (leaf_type == builtin_.float64) return Value(leaf_type, 0.0);
  if (leaf_type == builtin_.float32) return Value(leaf_type, std::int64_t{0});
  return library_value(runtime_, KnownName::no_tangent);
}

Operand TangentCode::add_leaves(ir::Builder& at, Operand a, Operand b, const Type* leaf_type) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  if (!tangents_.is_float(leaf_type)) return call_library(at, KnownName::add_tangents, {a, b}, leaf_type);
  return at.emit(Op::add_float, {a, b}, leaf_type);
}

bool TangentCode::none(const std::vector<Operand>& leaves) {
  for (Operand o : leaves)
    if (o.valid()) return false;
  return true;
}

Operand TangentCode::pack(ir::Builder& at, const Type* t, const std::vector<Operand>& leaves) {
  std::size_t next = 0;
  auto part = [&](auto&& self, const Type* type) -> Operand {
    if (tangents_.is_float(type) || tangents_.is_dynamic(type))
      return or_zero(at, leaves[next++], tangents_.cotangent(type));
    if (!tangents_.has_cotangent(type)) return nothing(at);
    std::vector<Operand> fields;
    const DataType* d = as_data(type);
    for (std::size_t i = 0; i < d->fields.size(); ++i) fields.push_back(self(self, tangents_.numbers_of_field(d, i)));
    return at.emit(Op::tuple, fields, tangents_.cotangent(type));
  };
  return part(part, t);
}

void TangentCode::unpack(ir::Builder& at, const Type* t, Operand cotangent, std::vector<Operand>& leaves) {
  if (tangents_.is_float(t) || tangents_.is_dynamic(t)) {
    leaves.push_back(cotangent);
    return;
  }
  if (!tangents_.has_cotangent(t)) return;
  const DataType* d = as_data(t);
  for (std::size_t i = 0; i < d->fields.size(); ++i) {
    const Type* seen_as = tangents_.numbers_of_field(d, i);
    if (!tangents_.has_cotangent(seen_as)) continue;
    Operand field = at.emit(Op::field_at, {cotangent}, tangents_.cotangent(seen_as), i);
    unpack(at, seen_as, field, leaves);
  }
}

std::vector<Operand> TangentCode::convert_leaves(ir::Builder& at, const Type* from, const std::vector<Operand>& leaves,
                                                 const Type* to) {
  std::size_t count = leaf_count(to);
  if (from == to || count == 0) return count ? leaves : std::vector<Operand>();
  if (none(leaves)) return std::vector<Operand>(count);
  if (tangents_.is_dynamic(from) == tangents_.is_dynamic(to)) {
    const DataType* a = as_data(from);
    const DataType* b = as_data(to);
    if (tangents_.is_dynamic(from) || !a || !b || a->fields.size() != b->fields.size()) {
      // No value is of both types when the numbers of leaves differ: a branch that is never taken.
      return leaves.size() == count ? leaves : std::vector<Operand>(count);
    }
    std::vector<Operand> result;  // part by part: one may know less of what is in it
    std::size_t next = 0;
    for (std::size_t i = 0; i < a->fields.size(); ++i) {
      const Type* narrow = tangents_.numbers_of_field(a, i);
      std::vector<Operand> part(leaves.begin() + static_cast<std::ptrdiff_t>(next),
                                leaves.begin() + static_cast<std::ptrdiff_t>(next + leaf_count(narrow)));
      next += part.size();
      for (Operand o : convert_leaves(at, narrow, part, tangents_.numbers_of_field(b, i))) result.push_back(o);
    }
    return result;
  }
  if (tangents_.is_dynamic(to)) return {boxed(at, pack(at, from, leaves))};
  const Type* type = tangents_.cotangent(to);
  std::vector<Operand> result;
  unpack(at, to, call_library(at, KnownName::as_cotangent, {type_constant(at, type), leaves[0]}, type), result);
  return result;
}

Operand TangentCode::zero_cotangent(ir::Builder& at, const Type* cotangent) {
  if (tangents_.is_float(cotangent) || cotangent == tangents_.dynamic()) return zero(at, cotangent);
  if (cotangent == builtin_.nothing) return nothing(at);
  std::vector<Operand> parts;
  for (const Type* part : as_data(cotangent)->params) parts.push_back(zero_cotangent(at, part));
  return at.emit(Op::tuple, parts, cotangent);
}

Operand TangentCode::undefined(ir::Builder& at, const Type* t) {
  if (t == tangents_.dynamic()) return zero(at, t);
  Value value = tangents_.stand_ins.of(t);
  return value.defined() ? at.constant(value) : at.emit(Op::undef, {}, t);
}

void TangentCode::add_unassigned(ir::Builder& at, const DataType* made, std::vector<Operand>& shadows) {
  const DataType* all = as_data(tangents_.shadow(made));
  while (shadows.size() < made->fields.size()) shadows.push_back(undefined(at, all->fields[shadows.size()].type));
}

// --- places ---

Operand TangentCode::load_tangent(ir::Builder& at, const Place& place, Operand shadow, Operand index) {
  if (index.valid()) return at.emit(Op::array_get, {shadow, index}, place.tangent);
  return at.emit(Op::field_at, {shadow}, place.tangent, place.field);
}

void TangentCode::store_tangent(ir::Builder& at, const Place& place, Operand shadow, Operand index, Operand tangent) {
  if (index.valid())
    at.emit(Op::array_set, {shadow, tangent, index});
  else
    at.emit(Op::set_field_at, {shadow, tangent}, nullptr, place.field);
}

Operand TangentCode::shadow_part(ir::Builder& at, const Place& place, Operand tangent) {
  const Type* wanted = tangents_.shadow(place.declared);
  if (wanted == builtin_.nothing) return nothing(at);
  if (!tangents_.has_cotangent(place.declared)) return as_shadow(at, tangent, place.tangent, wanted);
  const Type* held = as_data(place.tangent)->params[0];
  return as_shadow(at, at.emit(Op::field_at, {tangent}, held, 0), held, wanted);
}

Operand TangentCode::cotangent_part(ir::Builder& at, const Place& place, Operand tangent) {
  if (!tangents_.has_shadow(place.declared)) return tangent;
  return at.emit(Op::field_at, {tangent}, tangents_.cotangent(place.declared), 1);
}

Operand TangentCode::whole_tangent(ir::Builder& at, const Place& place, Operand shadow, Operand cotangent) {
  const Type* own = tangents_.shadow(place.declared);
  if (!tangents_.has_cotangent(place.declared)) return as_shadow(at, shadow, own, place.tangent);
  if (!cotangent.valid()) cotangent = zero_cotangent(at, tangents_.cotangent(place.declared));
  if (own == builtin_.nothing) return cotangent;
  Operand held = as_shadow(at, shadow, own, as_data(place.tangent)->params[0]);
  return at.emit(Op::tuple, {held, cotangent}, place.tangent);
}

Operand TangentCode::mutable_shadow(ir::Builder& at, const DataType* made, std::vector<Operand> tangents) {
  const Type* type = tangents_.shadow(made);
  if (tangents.size() == made->fields.size()) tangents.push_back(at.constant(runtime_.from_bool(false)));
  tangents.insert(tangents.begin(), type_constant(at, type));
  return at.emit(Op::make_struct, tangents, type);
}

// --- tapes ---

std::uintptr_t TangentCode::tangent_columns(const TapeLayout& layout, std::uintptr_t column, std::size_t direction) {
  std::uintptr_t first = layout.columns.size();
  auto width = [&](const Type* type) { return leaf_count(type) + (tangents_.has_shadow(type) ? 1 : 0); };
  for (std::size_t i = 0; i < layout.columns.size(); ++i) first += direction * width(layout.columns[i]);
  for (std::size_t i = 0; i < column; ++i) first += width(layout.columns[i]);
  return first;
}

}  // namespace slope::diff
