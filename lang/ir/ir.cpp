#include "lang/ir/ir.hpp"

#include <iterator>

#include "lang/memory/on_heap.hpp"
#include "lang/support/tuning.hpp"

namespace slope::ir {

// A group's rows stand together: whoever dispatches by group relies on each operation being in its own.
constexpr bool groups_in_one_piece() {
  for (std::size_t i = 1; i < std::size(op_table); ++i)
    if (op_table[i].group < op_table[i - 1].group) return false;
  return true;
}
static_assert(std::size(op_table) == static_cast<std::size_t>(Op::count_));
static_assert(groups_in_one_piece());

std::string_view op_name(Op op) {
  std::string_view name = op_info(op).name;
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

bool op_from_name(std::string_view name, Op& op) {
  for (std::size_t i = 0; i < std::size(op_table); ++i) {
    if (op_table[i].name != name && op_name(static_cast<Op>(i)) != name) continue;
    op = static_cast<Op>(i);
    return true;
  }
  return false;
}

std::uint32_t op_effects(const Inst& inst) {
  std::uint32_t effects = op_info(inst.op).effects;
  if (inst.op == Op::native && inst.aux) effects = inst.aux_as<const NativeInfo>()->effects;
  if (inst.flags & inst_nothrow) effects &= ~std::uint32_t{effect_throws};
  if (inst.flags & inst_effect_free) effects &= effect_reads | effect_allocates;
  return effects;
}

bool is_integer_arithmetic(Op op) {
  switch (op) {
    case Op::add_int:
    case Op::sub_int:
    case Op::mul_int:
    case Op::neg_int:
    case Op::and_int:
    case Op::or_int:
    case Op::xor_int:
    case Op::not_int:
    case Op::shl_int:
    case Op::lshr_int:
    case Op::ashr_int:
    case Op::sext_int:
    case Op::zext_int:
    case Op::trunc_int:
      return true;
    default:
      return false;
  }
}

bool is_removable(const Inst& inst) {
  // `caught` begins the catch block, whatever becomes of its value.
  if (is_terminator(inst.op) || inst.op == Op::caught) return false;
  return (op_effects(inst) & (effect_throws | effect_writes | effect_diverges)) == 0;
}

void Constants::add(Value v) {
  all_.emplace_back();
  define(all_.size() - 1, v);
}

void Constants::define(std::size_t i, Value v) {
  all_[i] = v;
  if (may_be_on_heap(v)) held_.push_back(v);
}

// Looks at the first and the last only: a list of 100,000 numbers has as many constants.
Operand Function::constant(Value v) {
  constexpr std::size_t looked_at = tuning::constants_compared;
  const std::size_t count = constants.size();
  for (std::size_t i = count; i-- > 0;) {
    if (i + looked_at < count && i >= looked_at) i = looked_at - 1;
    if (constants[i].identical(v)) return Operand::constant(static_cast<std::uint32_t>(i));
  }
  constants.add(v);
  return Operand::constant(static_cast<std::uint32_t>(constants.size() - 1));
}

const Type* Function::type_of(Operand o, TypeTable& types) const {
  if (!o.is_constant()) return insts[o.index()].type;
  Value v = constants[o.index()];
  return v.defined() ? types.type_of_constant(v) : types.builtin().bottom;
}

}  // namespace slope::ir
