// How an exception leaves an instruction. The error is pending in the context. Its trace entries are those of the scopes
// that were inlined around the instruction. Control goes to the handler of the instruction's block, or out of the
// function with status 1.
#include "codegen/emit.hpp"
#include "lang/ir/passes/checked.hpp"

namespace slope::codegen {

llvm::BasicBlock* Emitter::return_error_block() {
  if (return_error_) return return_error_;
  return_error_ = new_block("return_error");
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(return_error_);
  if (!signature_.has_status) {
    // Batch::may_fail said that this can't be reached. A table of operations (ops.def, `fails`) that says less than what
    // is emitted would be undefined behaviour here.
    if (ir::verifies_passes()) b_.CreateIntrinsic(llvm::Intrinsic::trap, {}, {});
    b_.CreateUnreachable();
    return return_error_;
  }
  error_site_ = b_.CreatePHI(layout_.ptr, 8);
  helper(Helper::trace, {context_, error_site_});
  if (caught_base_) helper(Helper::leave_catch, {context_, caught_base_});
  if (tape_mark_) helper(Helper::tape_release, {context_, tape_mark_});
  unlink_record();
  if (auto* type = llvm::dyn_cast<llvm::StructType>(output_->getReturnType())) {
    // Zeros rather than poison: a register that holds anything would keep garbage alive.
    V result = llvm::Constant::getNullValue(type);
    b_.CreateRet(b_.CreateInsertValue(result, b_.getInt8(1), type->getNumElements() - 1));
  } else {
    b_.CreateRet(b_.getInt8(1));
  }
  return return_error_;
}

TraceSite* Emitter::trace_site(const ir::Inst& inst) {
  TraceSite& site = data_.trace_sites.emplace_back();
  Span span = inst.span;
  std::uint32_t scope = inst.scope;
  while (scope < function_.scopes.size()) {
    const ir::InlineScope& s = function_.scopes[scope];
    site.entries.push_back({s.method, span, s.types});
    span = s.call_site;
    scope = s.parent;
  }
  if (function_.scopes.empty()) site.entries.push_back({function_.method, span});
  return &site;
}

// The handler's way in, of the current instruction.
llvm::BasicBlock* Emitter::error_block() {
  if (current_error_) return current_error_;
  current_error_ = new_block("error");
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(current_error_);
  helper(Helper::trace, {context_, site_value(trace_site(*current_))});
  V depth = b_.CreateAdd(caught_base_, integer(catch_depth_[current_block_->handler]));
  V caught = helper(Helper::catch_error, {context_, depth});
  note_error_edge(nullptr);  // its trace entries are there already
  branch_likely(caught, blocks_[current_block_->handler], return_error_block());
  return current_error_;
}

// The site's trace entries are noted on the way, once for all sites.
void Emitter::return_error(const TraceSite* site) {
  note_error_edge(site);
  b_.CreateBr(return_error_block());
}

void Emitter::note_error_edge(const TraceSite* site) {
  return_error_block();
  if (error_site_) error_site_->addIncoming(site_value(site), b_.GetInsertBlock());
}

TraceSite* Emitter::current_site() {
  if (!current_) return nullptr;
  if (!current_site_) current_site_ = trace_site(*current_);
  return current_site_;
}

void Emitter::fail() {
  if (current_ && current_block_->handler != ir::no_block) {
    b_.CreateBr(error_block());
  } else {
    return_error(current_site());
  }
}

void Emitter::fail_when(V condition) {
  llvm::BasicBlock* next = new_block("ok");
  if (current_ && current_block_->handler != ir::no_block) {
    branch_unlikely(condition, error_block(), next);
  } else {
    note_error_edge(current_site());
    branch_unlikely(condition, return_error_block(), next);
  }
  b_.SetInsertPoint(next);
}

}  // namespace slope::codegen
