// Calls: of compiled code directly, dynamic calls through a cached helper, natives, and the general path by which every
// operation without an inline form reaches its one definition in lang/ir/execute.
#include "codegen/ahead_code.hpp"
#include "codegen/emit.hpp"
#include "lang/memory/tape.hpp"

namespace slope::codegen {

using ir::Op;
using Kind = Representation::Kind;

bool Emitter::emit_call(const ir::Inst& inst, Val& result) {
  if (layout_.ahead && inst.op != Op::invoke) {
    if (inst.op != Op::call && inst.op != Op::call_splat && inst.op != Op::native) return false;
    result = inst.op == Op::native ? ahead_native(inst, *inst.aux_as<NativeInfo>())
                                   : need_value(inst, Ahead::reason_of_call(function_, inst, layout_.types()));
    return true;
  }
  auto values = [&] {
    llvm::SmallVector<Val, 8> all;
    for (ir::Operand o : inst.operands) all.push_back(given_operand(inst, o));
    return store_values(all);
  };
  V count = integer(static_cast<std::int64_t>(inst.operands.size()));
  auto finish = [&](V ok) {
    fail_when(b_.CreateNot(ok));
    result = inst.type && inst.type->kind == TypeKind::bottom ? none(inst.type) : load_result(inst.type);
    return true;
  };
  switch (inst.op) {
    case Op::invoke:
      result = invoke(inst);
      return true;
    case Op::call: {
      // Where frames are recorded, code is kept until the runtime is gone.
      if (!layout_.runtime().records_frames) data_.call_sites.counted_by = &layout_.runtime().outside_heap;
      CallCache* site = &data_.call_sites.emplace_back();
      V arguments = values();
      const auto few = inst.operands.size() - 1;
      if (few >= 1 && few <= 3) {
        const Helper which = few == 1 ? Helper::call_1 : few == 2 ? Helper::call_2 : Helper::call_3;
        return finish(helper(which, {context_, pointer(site), arguments, result_buffer()}));
      }
      return finish(helper(Helper::call, {context_, pointer(site), arguments, count, result_buffer()}));
    }
    case Op::call_splat: {
      V arguments = values();
      return finish(helper(Helper::call_splat, {context_, arguments, count, aux_word(inst), result_buffer()}));
    }
    case Op::native: {
      const NativeInfo* info = inst.aux_as<NativeInfo>();
      if (info->host && call_host(inst, *info->host, result)) return true;
      V arguments = values();
      if (!info->is_context_free)
        return finish(helper(Helper::native, {context_, pointer(info), arguments, count, result_buffer()}));
      llvm::FunctionType* type =
          llvm::FunctionType::get(layout_.i1, {layout_.ptr, layout_.ptr, layout_.i64, layout_.ptr}, false);
      note_site();
      llvm::CallInst* call = b_.CreateCall(type, pointer(reinterpret_cast<const void*>(info->function)),
                                           {context_, arguments, count, result_buffer()});
      call->addRetAttr(llvm::Attribute::ZExt);
      return finish(call);
    }
    default:
      return false;
  }
}

// What never returns may put an array into an exception: that must not lie in scratch memory
// (lang/ir/passes/escape.cpp).
Val Emitter::given_operand(const ir::Inst& call, ir::Operand o) {
  Val given = operand(o);
  const DataType* type = as_data(given.type);
  const bool raises = call.type && call.type->kind == TypeKind::bottom;
  if (!raises || !o.is_inst() || !type || !type->is_concrete || type->object_kind != DataType::ObjectKind::array ||
      given.leaves.size() != 1)
    return given;
  return {given.type, {helper(Helper::outliving_array, {context_, given.leaves[0]})}, nullptr};
}

// A function of the host, with words. False: not with arguments of these types.
bool Emitter::call_host(const ir::Inst& inst, const WordCode& host, Val& result) {
  const std::size_t count = host.parameters.size();
  if (inst.operands.size() != count + 1 || inst.type != host.result) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (type_of(inst.operands[i + 1]) != host.parameters[i]) return false;
  result = host.direct ? call_host_in_registers(inst, host) : call_host_with_words(inst, host);
  return true;
}

// Behind a failure of a host function, which becomes the pending error.
void Emitter::raise_host_failure(const WordCode& host, V failure) {
  llvm::FunctionType* raise =
      llvm::FunctionType::get(llvm::Type::getVoidTy(layout_.context), {layout_.ptr, layout_.ptr, layout_.ptr}, false);
  note_site();
  b_.CreateCall(raise, pointer(reinterpret_cast<const void*>(host.raise)), {context_, pointer(host.function), failure});
  fail();
}

Val Emitter::call_host_in_registers(const ir::Inst& inst, const WordCode& host) {
  Val result = none(inst.type);
  llvm::ArrayRef<llvm::Type*> leaves = layout_.of(inst.type).leaves;
  llvm::SmallVector<llvm::Type*, 8> types{layout_.ptr, layout_.ptr};
  llvm::SmallVector<V, 8> given{pointer(host.function), llvm::ConstantPointerNull::get(layout_.ptr)};
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    given.push_back(operand(inst.operands[i]).leaves[0]);
    types.push_back(given.back()->getType());
  }
  llvm::AllocaInst* slot = nullptr;  // null whenever no failure is on its way
  if (!host.never_fails) {
    llvm::IRBuilder<> entry(&output_->getEntryBlock(), output_->getEntryBlock().begin());
    given[1] = slot = entry.CreateAlloca(layout_.ptr, nullptr, "host_failure");
    entry.CreateStore(llvm::ConstantPointerNull::get(layout_.ptr), slot);
  }
  llvm::Type* returned = leaves.empty() ? llvm::Type::getVoidTy(layout_.context) : leaves[0];
  note_site();
  llvm::CallInst* call = b_.CreateCall(llvm::FunctionType::get(returned, types, false),
                                       pointer(reinterpret_cast<const void*>(host.direct)), given);
  for (unsigned i = 2; i < types.size(); ++i)
    if (types[i] == layout_.i1) call->addParamAttr(i, llvm::Attribute::ZExt);
  if (returned == layout_.i1) call->addRetAttr(llvm::Attribute::ZExt);
  if (!leaves.empty()) result.leaves.push_back(call);
  if (!slot) return result;
  V failure = b_.CreateLoad(layout_.ptr, slot);
  llvm::BasicBlock* failed = new_block("host_failed");
  llvm::BasicBlock* fine = new_block("host_fine");
  branch_unlikely(b_.CreateIsNotNull(failure), failed, fine);
  b_.SetInsertPoint(failed);
  b_.CreateStore(llvm::ConstantPointerNull::get(layout_.ptr), slot);  // a handler of this function may call again
  raise_host_failure(host, failure);
  b_.SetInsertPoint(fine);
  return result;
}

Val Emitter::call_host_with_words(const ir::Inst& inst, const WordCode& host) {
  const std::size_t count = host.parameters.size();
  llvm::IRBuilder<> entry(&output_->getEntryBlock(), output_->getEntryBlock().begin());
  V words = entry.CreateAlloca(layout_.i64, integer(static_cast<std::int64_t>(count + 1)), "host_words");
  V returned = at(words, static_cast<std::int64_t>(8 * count));
  for (std::size_t i = 0; i < count; ++i) {
    V leaf = operand(inst.operands[i + 1]).leaves[0];
    if (leaf->getType() == layout_.i1) leaf = b_.CreateZExt(leaf, layout_.i64);
    b_.CreateStore(leaf, at(words, static_cast<std::int64_t>(8 * i)));
  }
  llvm::FunctionType* type = llvm::FunctionType::get(layout_.ptr, {layout_.ptr, layout_.ptr, layout_.ptr}, false);
  note_site();
  V failure =
      b_.CreateCall(type, pointer(reinterpret_cast<const void*>(host.call)), {pointer(host.function), words, returned});
  llvm::BasicBlock* failed = new_block("host_failed");
  llvm::BasicBlock* fine = new_block("host_fine");
  branch_unlikely(b_.CreateIsNotNull(failure), failed, fine);
  b_.SetInsertPoint(failed);
  raise_host_failure(host, failure);
  b_.SetInsertPoint(fine);
  Val result = none(inst.type);
  for (llvm::Type* leaf : layout_.of(inst.type).leaves)
    result.leaves.push_back(leaf == layout_.i1 ? b_.CreateTrunc(b_.CreateLoad(layout_.i64, returned), layout_.i1)
                                               : b_.CreateLoad(leaf, returned));
  return result;
}

Emitter::V Emitter::aux_word(const ir::Inst& inst) {
  auto word_of = [&](std::uintptr_t address) {
    return b_.CreatePtrToInt(pointer(reinterpret_cast<const void*>(address)), layout_.i64);
  };
  switch (ir::aux_kind(inst.op)) {
    case ir::AuxKind::none:
    case ir::AuxKind::index:
    case ir::AuxKind::slot:
      break;
    case ir::AuxKind::binding:
    case ir::AuxKind::symbol:
    case ir::AuxKind::type_name:
    case ir::AuxKind::specialization:
    case ir::AuxKind::native:
    case ir::AuxKind::tape_layout:
      return word_of(inst.aux);
  }
  // A column of a tape with the layout that it is of.
  if (const TapeLayout* tape = ir::group_of(inst.op) == ir::OpGroup::tapes ? tape_layout_of(inst.aux) : nullptr)
    return b_.CreateOr(b_.CreateShl(word_of(reinterpret_cast<std::uintptr_t>(tape)), 16),
                       integer(static_cast<std::int64_t>(tape_column_of(inst.aux))));
  return integer(static_cast<std::int64_t>(inst.aux));
}

void Emitter::raise_by_executing(const ir::Inst& inst) {
  if (layout_.ahead) {
    call_ahead("slope.raise", {context_, b_.getInt32(Ahead::kind_of(inst.op))});
  } else {
    execute(inst);
  }
}

Val Emitter::execute(const ir::Inst& inst) {
  if (layout_.ahead) return need_value(inst, Ahead::reason_of(function_, inst));
  llvm::SmallVector<Val, 8> all;
  for (ir::Operand o : inst.operands) all.push_back(operand(o));
  V arguments = store_values(all);
  // Operations without a result leave the buffer alone.
  V ok = helper(Helper::execute,
                {context_, b_.getInt32(static_cast<std::uint32_t>(inst.op)), arguments,
                 integer(static_cast<std::int64_t>(inst.operands.size())), aux_word(inst), result_buffer()});
  fail_when(b_.CreateNot(ok));
  if (!inst.type || inst.type->kind == TypeKind::bottom) return none(inst.type);
  return load_result(inst.type);
}

Val Emitter::pack_tuple(const DataType* type, llvm::ArrayRef<Val> elements) {
  const Representation& r = layout_.of(type);
  Val result = none(type);
  if (r.kind == Kind::none) return result;
  if (r.kind == Kind::fields) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      Val v = coerce(elements[i], type->fields[i].type);
      result.leaves.append(v.leaves.begin(), v.leaves.end());
    }
    return result;
  }
  // A tuple too long for leaves, or whose type is not known exactly.
  V arguments = store_values(elements);
  if (layout_.ahead) {
    need(layout_.i1, "makes a tuple of more values than machine code keeps apart");
    return poison_of(type);
  }
  V ok = helper(Helper::execute, {context_, b_.getInt32(static_cast<std::uint32_t>(Op::tuple)), arguments,
                                  integer(static_cast<std::int64_t>(elements.size())), integer(0), result_buffer()});
  fail_when(b_.CreateNot(ok));
  return load_result(type);
}

Val Emitter::call_native_code(const Signature& signature, llvm::FunctionCallee callee, llvm::ArrayRef<Val> arguments) {
  llvm::SmallVector<V, 8> leaves{context_};
  for (const Val& v : arguments) leaves.append(v.leaves.begin(), v.leaves.end());
  note_site();
  llvm::CallInst* call = b_.CreateCall(callee, leaves);
  const Representation& r = layout_.of(signature.result);
  Val result = none(signature.result);
  auto* type = llvm::dyn_cast<llvm::StructType>(call->getType());
  unsigned members = type ? type->getNumElements() : call->getType()->isVoidTy() ? 0 : 1;
  auto member = [&](unsigned i) -> V { return type ? b_.CreateExtractValue(call, i) : static_cast<V>(call); };
  if (signature.has_status) fail_when(b_.CreateICmpNE(member(members - 1), b_.getInt8(0)));
  for (unsigned i = 0; i < r.leaves.size(); ++i) result.leaves.push_back(member(i));
  mark_result(result);
  return result;
}

Val Emitter::invoke(const ir::Inst& inst) {
  Specialization& target = *inst.aux_as<Specialization>();
  CallTarget resolved = host_.resolve(target, unit_);
  if (!resolved.signature && layout_.ahead)
    return need_value(inst, Ahead::reason_of_call(function_, inst, layout_.types()));
  if (!resolved.signature) {
    llvm::SmallVector<Val, 8> all;
    for (ir::Operand o : inst.operands) all.push_back(given_operand(inst, o));
    V arguments = store_values(all);
    V count = integer(static_cast<std::int64_t>(inst.operands.size()));
    if (inst.type && inst.type->kind == TypeKind::bottom) {
      helper(Helper::invoke_error, {context_, pointer(&target), arguments, count});
      fail();
      return none(inst.type);
    }
    V ok = helper(Helper::invoke, {context_, pointer(&target), arguments, count, result_buffer()});
    fail_when(b_.CreateNot(ok));
    if (!inst.type) return none(inst.type);
    return load_result(inst.type);
  }
  const Signature& signature = *resolved.signature;
  llvm::SmallVector<Val, 8> arguments;
  std::size_t parameters = signature.parameters.size();
  std::size_t fixed = target.method->is_vararg ? parameters - 1 : parameters;
  const bool raises = inst.type && inst.type->kind == TypeKind::bottom;
  for (std::size_t i = 0; i < fixed; ++i)
    arguments.push_back(raises ? coerce(given_operand(inst, inst.operands[i]), signature.parameters[i])
                               : operand_as(inst.operands[i], signature.parameters[i]));
  if (target.method->is_vararg) {
    llvm::SmallVector<Val, 8> rest;
    for (std::size_t i = fixed; i < inst.operands.size(); ++i) rest.push_back(given_operand(inst, inst.operands[i]));
    arguments.push_back(pack_tuple(as_data(signature.parameters[fixed]), rest));
  }
  Val result = call_native_code(signature, resolved.callee, arguments);
  if (!inst.type || inst.type->kind == TypeKind::bottom) return none(inst.type);
  return coerce(result, inst.type);
}

}  // namespace slope::codegen
