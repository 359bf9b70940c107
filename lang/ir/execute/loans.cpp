// Which operations keep values, and whether they may do so with arrays that the host lent (lang/runtime/loans.hpp).
#include "lang/runtime/loans.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/types/module.hpp"

namespace slope::ir {

bool stores_value(Op op) {
  // Tapes hold what their own activation gave them and are closed with it.
  if (group_of(op) == OpGroup::tapes) return false;
  switch (op_info(op).access) {
    case Access::stores:
    case Access::checks:
    case Access::keeps:
      return true;
    case Access::none:
    case Access::loads:
    case Access::resizes:
      return false;
  }
  return false;
}

bool may_store(Context& ctx, Op op, const Value* operands, std::size_t count, std::uintptr_t aux,
               const std::vector<TraceEntry>& where) {
  LoanWatch& watch = *ctx.loans;
  switch (op) {
    case Op::store_global:
      return watch.may_store_in_global(operands[0], reinterpret_cast<const Binding*>(aux)->name->name);
    case Op::cell_new:
      if (count > 0) watch.note(operands[0], where);
      return true;
    case Op::make_struct: {
      // What is immutable is looked through wherever it is stored itself.
      const DataType* type = as_data(operands[0].type)->is_kind ? as_data(operands[0].as_type) : nullptr;
      for (std::size_t i = 1; type && type->is_mutable && i < count; ++i) watch.note(operands[i], where);
      return true;
    }
    case Op::set_field:  // of something that has no fields it is an error of its own
      return !as_data(operands[0].type)->is_mutable || watch.may_store(operands[2], operands[0].object, where);
    default:
      break;
  }
  if (!stores_value(op)) return true;
  return watch.may_store(operands[op_info(op).stored], operands[0].object, where);
}

}  // namespace slope::ir
