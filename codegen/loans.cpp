// Stores of values that may be an array that the host lent for one call. When Context::loans points at a watch, the
// watch decides first whether the store is allowed. Other calls pay a load and a branch for each store of a reference;
// stores of numbers pay nothing.
#include "codegen/emit.hpp"
#include "lang/ir/execute/execute.hpp"

namespace slope::codegen {

using ir::Op;

namespace {

// Lent arrays have elements of type Float64; other arrays over their memory have the same.
bool may_hold_lent_array(const BuiltinTypes& names, const Type* type, int depth = 0) {
  if (!type || type->kind == TypeKind::bottom) return false;
  if (const UnionType* several = as_union(type)) {
    for (const Type* member : several->members)
      if (may_hold_lent_array(names, member, depth)) return true;
    return false;
  }
  const DataType* data = as_data(type);
  if (!data || !data->is_concrete || depth > 8) return true;
  if (data->object_kind == DataType::ObjectKind::array) return data->params[0] == names.float64;
  if (data->object_kind != DataType::ObjectKind::fields || data->is_mutable) return false;
  for (const Field& field : data->fields)
    if (may_hold_lent_array(names, field.type, depth + 1)) return true;
  return false;
}

// The operands that an op stores: [first, end).
std::pair<std::size_t, std::size_t> stored_operands(const ir::Inst& inst) {
  const std::size_t count = inst.operands.size();
  switch (inst.op) {
    case Op::store_global:
    case Op::cell_new:
      return {0, count};
    case Op::array_set:
    case Op::array_init:
    case Op::array_check:
      return {1, 2};
    case Op::make_struct: {
      const DataType* type = as_data(inst.type);
      const bool is_immutable = type && type->is_concrete && !type->is_mutable;
      return {is_immutable ? count : 1, count};
    }
    default:
      return {1, count};
  }
}

}  // namespace

void Emitter::watch_store(const ir::Inst& inst) {
  if (!ir::stores_value(inst.op) || layout_.ahead) return;
  const auto [first, end] = stored_operands(inst);
  bool may_hold = false;
  for (std::size_t i = first; i < end && !may_hold; ++i) {
    const ir::Operand o = inst.operands[i];
    const bool is_new = o.is_constant() || (o.is_inst() && function_.inst(o).op == Op::array_new);
    may_hold = !is_new && may_hold_lent_array(layout_.builtin(), type_of(o));
  }
  if (!may_hold) return;

  llvm::BasicBlock* watched = new_block("watched");
  llvm::BasicBlock* done = new_block("may_store");
  V watch = load(layout_.ptr, at(context_, offset::context_loans), Memory::context);
  // Whoever sets it while this function is active (a call of the host into the engine) puts it back.
  llvm::cast<llvm::LoadInst>(watch)->setMetadata(llvm::LLVMContext::MD_invariant_load,
                                                 llvm::MDNode::get(layout_.context, {}));
  branch_unlikely(b_.CreateIsNotNull(watch), watched, done);
  b_.SetInsertPoint(watched);
  llvm::SmallVector<Val, 8> all;
  for (ir::Operand o : inst.operands) all.push_back(operand(o));
  V ok = helper(Helper::may_store,
                {context_, b_.getInt32(static_cast<std::uint32_t>(inst.op)), store_values(all),
                 integer(static_cast<std::int64_t>(all.size())), aux_word(inst), pointer(current_site())});
  fail_when(b_.CreateNot(ok));
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

}  // namespace slope::codegen
