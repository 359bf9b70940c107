#include "codegen/fresh_arrays.hpp"

#include <llvm/IR/MDBuilder.h>

#include "lang/support/tuning.hpp"

namespace slope::codegen {

using ir::Op;

namespace {

ir::Operand unrefined(const ir::Function& function, ir::Operand o) {
  while (o.is_inst() && (function.inst(o).op == Op::refine || function.inst(o).op == Op::type_assert))
    o = function.inst(o).operands[0];
  return o;
}

}  // namespace

void FreshArrays::find(const ir::Cfg& cfg) {
  constexpr std::size_t most = tuning::alias_lists;
  llvm::MDBuilder metadata(layout_.context);
  llvm::MDNode* domain = nullptr;
  for (ir::BlockId block : cfg.order) {
    for (std::uint32_t id : function_.blocks[block].insts) {
      if (function_.insts[id].op != Op::array_new || scopes_.size() == most) continue;
      if (!domain) domain = metadata.createAnonymousAliasScopeDomain();
      scopes_[id] = metadata.createAnonymousAliasScope(domain);
    }
  }
}

// An array that was given is older than all that are made here; one that comes from memory, a call, a loop's variable or
// array_share may be any of them.
void FreshArrays::begin(ir::Operand array) {
  scope_ = apart_ = nullptr;
  if (scopes_.empty()) return;
  array = unrefined(function_, array);
  if (!array.is_inst()) return;
  auto made = scopes_.find(array.index());
  const bool given = function_.inst(array).op == Op::parameter && function_.inst(array).block == 0;
  if (made == scopes_.end() && !given) return;
  llvm::SmallVector<llvm::Metadata*, 8> others;
  for (auto& [id, scope] : scopes_)
    if (id != array.index()) others.push_back(scope);
  if (made != scopes_.end()) scope_ = llvm::MDNode::get(layout_.context, {made->second});
  if (!others.empty()) apart_ = llvm::MDNode::get(layout_.context, others);
}

void FreshArrays::mark(llvm::Instruction* access) const {
  if (scope_) access->setMetadata(llvm::LLVMContext::MD_alias_scope, scope_);
  if (apart_) access->setMetadata(llvm::LLVMContext::MD_noalias, apart_);
}

}  // namespace slope::codegen
