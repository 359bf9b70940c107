// Calls: compiled code directly, dynamic calls through a cached helper, natives, and the general road by which every
// operation without an inline form reaches its one definition in lang/ir/execute.
#include "codegen/emit.hpp"

namespace slope::codegen {

using ir::Op;
using Kind = Representation::Kind;

bool Emitter::emit_call(const ir::Inst& inst, Val& result) {
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
      CallCache* site = &data_.call_sites.emplace_back();
      V arguments = values();
      return finish(helper(Helper::call, {context_, pointer(site), arguments, count, result_buffer()}));
    }
    case Op::call_splat: {
      V arguments = values();
      return finish(helper(Helper::call_splat, {context_, arguments, count,
                                                integer(static_cast<std::int64_t>(inst.aux)), result_buffer()}));
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

// What never returns may put an array into an exception: that must not lie in scratch memory (lang/ir/escape.cpp).
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

Val Emitter::execute(const ir::Inst& inst) {
  llvm::SmallVector<Val, 8> all;
  for (ir::Operand o : inst.operands) all.push_back(operand(o));
  V arguments = store_values(all);
  // Operations without a result leave the buffer alone.
  V ok = helper(Helper::execute, {context_, b_.getInt32(static_cast<std::uint32_t>(inst.op)), arguments,
                                  integer(static_cast<std::int64_t>(inst.operands.size())),
                                  integer(static_cast<std::int64_t>(inst.aux)), result_buffer()});
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
  return result;
}

Val Emitter::invoke(const ir::Inst& inst) {
  Specialization& target = *inst.aux_as<Specialization>();
  CallTarget resolved = host_.resolve(target);
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

void Emitter::emit_boxed(Layout& layout, llvm::Module& module, BatchData& data, EmitHost& host,
                         const ir::Function& function, bool is_vararg, const Signature& signature,
                         llvm::FunctionCallee native, llvm::Function* output) {
  Emitter e(layout, module, data, host, function, signature, output);
  // The wrapper returns true for success; the entry's status is the contrary.
  llvm::IRBuilder<>& b = e.b_;
  b.SetInsertPoint(llvm::BasicBlock::Create(layout.context, "entry", output));
  e.context_ = output->getArg(0);
  llvm::BasicBlock* failed = llvm::BasicBlock::Create(layout.context, "failed", output);
  e.return_error_ = failed;
  V callee_type = output->getArg(1), callee_payload = output->getArg(2);
  V arguments = output->getArg(3), count = output->getArg(4), result = output->getArg(5);
  auto word = [&](V base, std::int64_t bytes, llvm::Type* type) { return b.CreateLoad(type, e.at(base, bytes)); };
  llvm::SmallVector<Val, 8> values;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const Type* type = signature.parameters[i];
    if (i == 0) {
      values.push_back(e.from_dynamic(callee_type, callee_payload, type));
      continue;
    }
    auto where = static_cast<std::int64_t>(16 * (i - 1));
    const DataType* tuple = as_data(type);
    if (!is_vararg || i + 1 < signature.parameters.size()) {
      if (layout.of(type).kind == Kind::none) {
        values.push_back(e.none(type));
      } else {
        values.push_back(
            e.from_dynamic(word(arguments, where, layout.ptr), word(arguments, where + 8, layout.i64), type));
      }
    } else if (tuple && layout.of(tuple).kind == Kind::fields) {
      Val rest = e.none(tuple);
      for (std::size_t k = 0; k < tuple->fields.size(); ++k) {
        auto at = where + static_cast<std::int64_t>(16 * k);
        if (layout.of(tuple->fields[k].type).leaves.empty()) continue;
        Val v =
            e.from_dynamic(word(arguments, at, layout.ptr), word(arguments, at + 8, layout.i64), tuple->fields[k].type);
        rest.leaves.append(v.leaves.begin(), v.leaves.end());
      }
      values.push_back(std::move(rest));
    } else if (layout.of(type).kind == Kind::none) {
      values.push_back(e.none(type));
    } else {
      V rest = e.at(arguments, where);
      V number = b.CreateSub(count, e.integer(static_cast<std::int64_t>(i - 1)));
      V ok = e.helper(Helper::execute, {e.context_, b.getInt32(static_cast<std::uint32_t>(Op::tuple)), rest, number,
                                        e.integer(0), e.result_buffer()});
      e.fail_when(b.CreateNot(ok));
      values.push_back(e.load_result(type));
    }
  }
  Val v = e.call_native_code(signature, native, values);
  auto [type, payload] = e.to_dynamic(v);
  b.CreateStore(type, result);
  b.CreateStore(payload, e.at(result, 8));
  b.CreateRet(b.getTrue());
  b.SetInsertPoint(failed);
  b.CreateRet(b.getFalse());
}

void Emitter::emit_direct(Layout& layout, llvm::Module& module, BatchData& data, EmitHost& host,
                          const ir::Function& function, const Signature& signature, llvm::FunctionCallee native,
                          llvm::Function* output) {
  Emitter e(layout, module, data, host, function, signature, output);
  llvm::IRBuilder<>& b = e.b_;
  b.SetInsertPoint(llvm::BasicBlock::Create(layout.context, "entry", output));
  e.context_ = output->getArg(0);
  llvm::BasicBlock* failed = llvm::BasicBlock::Create(layout.context, "failed", output);
  e.return_error_ = failed;
  std::int64_t word = 0;
  llvm::SmallVector<Val, 8> values;
  for (const Type* type : signature.parameters) {
    Val v = e.none(type);
    for (llvm::Type* leaf : layout.of(type).leaves) {
      V where = e.at(output->getArg(1), 8 * word++);
      bool is_bit = leaf == layout.i1;
      V loaded = b.CreateLoad(is_bit ? layout.i8 : leaf, where);
      v.leaves.push_back(is_bit ? b.CreateTrunc(loaded, layout.i1) : loaded);
    }
    values.push_back(std::move(v));
  }
  Val result = e.call_native_code(signature, native, values);
  word = 0;
  for (V leaf : result.leaves) {
    V where = e.at(output->getArg(2), 8 * word++);
    b.CreateStore(leaf->getType() == layout.i1 ? b.CreateZExt(leaf, layout.i64) : leaf, where);
  }
  b.CreateRet(b.getTrue());
  b.SetInsertPoint(failed);
  b.CreateRet(b.getFalse());
}

}  // namespace slope::codegen
