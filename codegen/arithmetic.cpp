// Arithmetic. An operation has an inline form when its operands are of primitive types, which typed code guarantees.
// Any other operation calls its function in lang/ir/execute. Integer operations wrap, so nothing here is nsw. In
// integer arithmetic a Bool is its byte.
#include <llvm/IR/Intrinsics.h>

#include "codegen/emit.hpp"
#include "lang/ir/op_groups.hpp"

namespace slope::codegen {

using ir::ConversionOp;
using ir::FloatOp;
using ir::IntegerOp;
using ir::Op;

namespace {

bool is_division(Op op) { return op == Op::sdiv_int || op == Op::udiv_int || op == Op::srem_int || op == Op::urem_int; }

llvm::FastMathFlags math_flags(const ir::Inst& inst) {
  llvm::FastMathFlags flags;
  if (inst.flags & ir::inst_fast) {
    flags.setFast();
  } else if (inst.flags & ir::inst_reassociate) {
    flags.setAllowReassoc();
    flags.setNoSignedZeros();
  }
  return flags;
}

}  // namespace

Emitter::V Emitter::as_byte(V v) { return v->getType()->isIntegerTy(1) ? b_.CreateZExt(v, layout_.i8) : v; }

Emitter::V Emitter::from_byte(V v, const Type* type) {
  return type == layout_.builtin().boolean && !v->getType()->isIntegerTy(1) ? b_.CreateTrunc(v, layout_.i1) : v;
}

bool Emitter::emit_arithmetic(const ir::Inst& inst, Val& result) {
  if (ir::group_of(inst.op) == ir::OpGroup::conversions) return emit_conversion(inst, result);
  bool integers = ir::group_of(inst.op) == ir::OpGroup::integers;
  bool floats = ir::group_of(inst.op) == ir::OpGroup::floats;
  if (!integers && !floats) return false;
  llvm::SmallVector<V, 3> operands;
  const Type* type = nullptr;
  for (ir::Operand o : inst.operands) {
    Val v = operand(o);
    if (!layout_.is_bits(v.type)) return false;
    if (!type) type = v.type;
    operands.push_back(v.leaves[0]);
  }
  if (operands.empty()) return false;
  llvm::Type* operand_type = operands[0]->getType();
  bool is_shift = inst.op == Op::shl_int || inst.op == Op::lshr_int || inst.op == Op::ashr_int;
  for (V v : operands) {
    if (v->getType()->isFloatingPointTy() != floats) return false;
    if (v->getType() != operand_type && !is_shift) return false;
  }
  V out = nullptr;
  if (floats) {
    llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
    b_.setFastMathFlags(math_flags(inst));
    if (!emit_float(inst, operands, out)) return false;
  } else {
    V a = operands[0], b = operands.size() > 1 ? operands[1] : nullptr;
    if (is_division(inst.op)) {
      if (!emit_division(inst, as_byte(a), as_byte(b), out)) return false;
    } else if (!emit_integer(inst, a, b, out)) {
      return false;
    }
  }
  bool is_test = out->getType()->isIntegerTy(1);
  result = {is_test ? layout_.builtin().boolean : type, {is_test ? out : from_byte(out, type)}, nullptr};
  return true;
}

// Long because it is a table: one case for each operation on integers.
bool Emitter::emit_integer(const ir::Inst& inst, V a, V b, V& result) {
  // Logic on Bools stays on bits; everything else sees bytes.
  switch (inst.op) {
    case Op::and_int:
      result = b_.CreateAnd(a, b);
      return true;
    case Op::or_int:
      result = b_.CreateOr(a, b);
      return true;
    case Op::xor_int:
      result = b_.CreateXor(a, b);
      return true;
    case Op::not_int:
      result = b_.CreateNot(a);
      return true;
    case Op::eq_int:
      result = b_.CreateICmpEQ(a, b);
      return true;
    case Op::ne_int:
      result = b_.CreateICmpNE(a, b);
      return true;
    default:
      break;
  }
  a = as_byte(a);
  if (b) b = as_byte(b);
  llvm::Type* type = a->getType();
  unsigned width = type->getIntegerBitWidth();
  auto overflow = [&](llvm::Intrinsic::ID id) {
    result = b_.CreateExtractValue(b_.CreateBinaryIntrinsic(id, a, b), 1);
    return true;
  };
  switch (ir::in_group<IntegerOp>(inst.op)) {
    case IntegerOp::add_int:
      result = b_.CreateAdd(a, b);
      return true;
    case IntegerOp::sub_int:
      result = b_.CreateSub(a, b);
      return true;
    case IntegerOp::mul_int:
      result = b_.CreateMul(a, b);
      return true;
    case IntegerOp::neg_int:
      result = b_.CreateNeg(a);
      return true;
    case IntegerOp::shl_int:
    case IntegerOp::lshr_int:
    case IntegerOp::ashr_int: {
      V limit = llvm::ConstantInt::get(b->getType(), width);
      V in_range = b_.CreateICmpULT(b, limit);
      V count = b_.CreateZExtOrTrunc(b, type);
      if (inst.op == Op::ashr_int) {
        count = b_.CreateSelect(in_range, count, llvm::ConstantInt::get(type, width - 1));
        result = b_.CreateAShr(a, count);
        return true;
      }
      V shifted = inst.op == Op::shl_int ? b_.CreateShl(a, count) : b_.CreateLShr(a, count);
      result = b_.CreateSelect(in_range, shifted, llvm::ConstantInt::get(type, 0));
      return true;
    }
    case IntegerOp::slt_int:
      result = b_.CreateICmpSLT(a, b);
      return true;
    case IntegerOp::sle_int:
      result = b_.CreateICmpSLE(a, b);
      return true;
    case IntegerOp::ult_int:
      result = b_.CreateICmpULT(a, b);
      return true;
    case IntegerOp::ule_int:
      result = b_.CreateICmpULE(a, b);
      return true;
    case IntegerOp::ctpop_int:
      result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a);
      return true;
    case IntegerOp::ctlz_int:
      result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, b_.getFalse());
      return true;
    case IntegerOp::cttz_int:
      result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, a, b_.getFalse());
      return true;
    case IntegerOp::bswap_int:
      result = width == 8 ? a : b_.CreateUnaryIntrinsic(llvm::Intrinsic::bswap, a);
      return true;
    case IntegerOp::sadd_overflows:
      return overflow(llvm::Intrinsic::sadd_with_overflow);
    case IntegerOp::ssub_overflows:
      return overflow(llvm::Intrinsic::ssub_with_overflow);
    case IntegerOp::smul_overflows:
      return overflow(llvm::Intrinsic::smul_with_overflow);
    case IntegerOp::uadd_overflows:
      return overflow(llvm::Intrinsic::uadd_with_overflow);
    case IntegerOp::umul_overflows:
      return overflow(llvm::Intrinsic::umul_with_overflow);
    case IntegerOp::umulhi_int: {
      llvm::Type* wide = llvm::IntegerType::get(layout_.context, 2 * width);
      V product = b_.CreateMul(b_.CreateZExt(a, wide), b_.CreateZExt(b, wide));
      result = b_.CreateTrunc(b_.CreateLShr(product, width), type);
      return true;
    }
    case IntegerOp::and_int:
    case IntegerOp::or_int:
    case IntegerOp::xor_int:
    case IntegerOp::not_int:
    case IntegerOp::eq_int:
    case IntegerOp::ne_int:  // above
    case IntegerOp::sdiv_int:
    case IntegerOp::udiv_int:
    case IntegerOp::srem_int:
    case IntegerOp::urem_int:  // emit_division
      break;
  }
  return false;
}

bool Emitter::emit_division(const ir::Inst& inst, V a, V b, V& result) {
  llvm::Type* type = a->getType();
  V zero = llvm::ConstantInt::get(type, 0);
  V minus_one = llvm::Constant::getAllOnesValue(type);
  bool is_signed = inst.op == Op::sdiv_int || inst.op == Op::srem_int;
  if (!(inst.flags & ir::inst_nothrow)) {
    V bad = b_.CreateICmpEQ(b, zero);
    if (inst.op == Op::sdiv_int) {
      V lowest = llvm::ConstantInt::get(layout_.context, llvm::APInt::getSignedMinValue(type->getIntegerBitWidth()));
      bad = b_.CreateOr(bad, b_.CreateAnd(b_.CreateICmpEQ(a, lowest), b_.CreateICmpEQ(b, minus_one)));
    }
    if (!llvm::isa<llvm::ConstantInt>(bad) || !llvm::cast<llvm::ConstantInt>(bad)->isZero()) {
      llvm::BasicBlock* slow = new_block("divide_error");
      llvm::BasicBlock* good = new_block("divide");
      branch_unlikely(bad, slow, good);
      b_.SetInsertPoint(slow);
      raise_by_executing(inst);
      fail();
      b_.SetInsertPoint(good);
    }
  }
  switch (inst.op) {
    case Op::sdiv_int:
      result = b_.CreateSDiv(a, b);
      return true;
    case Op::udiv_int:
      result = b_.CreateUDiv(a, b);
      return true;
    case Op::srem_int:
      // typemin rem -1 traps on some machines; x rem 1 is the same 0.
      if (!llvm::isa<llvm::Constant>(b)) {
        b = b_.CreateSelect(b_.CreateICmpEQ(b, minus_one), llvm::ConstantInt::get(type, 1), b);
      } else if (b == minus_one) {
        result = zero;
        return true;
      }
      result = b_.CreateSRem(a, b);
      return true;
    default:
      result = b_.CreateURem(a, b);
      return !is_signed;
  }
}

bool Emitter::emit_conversion(const ir::Inst& inst, Val& result) {
  ir::Operand target = inst.operands[0];
  const Type* to = inst.type;
  if (target.is_constant() && function_.constant_value(target).type->is_kind) {
    to = function_.constant_value(target).as_type;
  }
  Val from = operand(inst.operands[1]);
  if (!layout_.is_bits(to) || !layout_.is_bits(from.type)) return false;
  V v = as_byte(from.leaves[0]);
  bool to_bool = to == layout_.builtin().boolean;
  llvm::Type* type = to_bool ? layout_.i8 : layout_.of(to).leaves[0];
  bool from_float = v->getType()->isFloatingPointTy(), to_float = type->isFloatingPointTy();
  unsigned from_size = v->getType()->getPrimitiveSizeInBits(), to_size = type->getPrimitiveSizeInBits();
  V out = nullptr;
  switch (ir::in_group<ConversionOp>(inst.op)) {
    case ConversionOp::sext_int:
      if (from_float || to_float || from_size > to_size) return false;
      out = b_.CreateSExt(v, type);
      break;
    case ConversionOp::zext_int:
      if (from_float || to_float || from_size > to_size) return false;
      out = b_.CreateZExt(v, type);
      break;
    case ConversionOp::trunc_int:
      if (from_float || to_float || from_size < to_size) return false;
      out = b_.CreateTrunc(v, type);
      break;
    case ConversionOp::sitofp:
      if (from_float || !to_float) return false;
      out = b_.CreateSIToFP(v, type);
      break;
    case ConversionOp::uitofp:
      if (from_float || !to_float) return false;
      out = b_.CreateUIToFP(v, type);
      break;
    case ConversionOp::fptosi:
      if (!from_float || to_float) return false;
      out = b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {type, v->getType()}, {v});
      break;
    case ConversionOp::fptoui:
      if (!from_float || to_float) return false;
      out = b_.CreateIntrinsic(llvm::Intrinsic::fptoui_sat, {type, v->getType()}, {v});
      break;
    case ConversionOp::fptrunc:
      if (!from_float || !to_float || from_size < to_size) return false;
      out = b_.CreateFPTrunc(v, type);
      break;
    case ConversionOp::fpext:
      if (!from_float || !to_float || from_size > to_size) return false;
      out = b_.CreateFPExt(v, type);
      break;
    case ConversionOp::bitcast:
      if (from_size != to_size) return false;
      out = b_.CreateBitCast(v, type);
      break;
  }
  result = {to, {from_byte(out, to)}, nullptr};
  return true;
}

Emitter::V Emitter::library_call(const ir::Inst& inst, const char* name, llvm::Intrinsic::ID fast,
                                 llvm::ArrayRef<V> operands) {
  llvm::Type* type = operands[0]->getType();
  bool is_fast = (inst.flags & ir::inst_fast) != 0;
  if (is_fast && fast) return b_.CreateIntrinsic(fast, {type}, operands);
  // Under its own name LLVM may replace a call by the vector library's, of less accuracy: only where that is allowed.
  std::string symbol = std::string(is_fast ? "" : "slope.") + name + (type->isFloatTy() ? "f" : "");
  llvm::SmallVector<llvm::Type*, 3> types(operands.size(), type);
  llvm::FunctionCallee callee = unit_.module().getOrInsertFunction(symbol, llvm::FunctionType::get(type, types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  note_site(!is_fast);
  return b_.CreateCall(callee, operands);
}

// Long because it is a table: one case for each operation on floating-point numbers.
bool Emitter::emit_float(const ir::Inst& inst, llvm::ArrayRef<V> o, V& result) {
  // Without an intrinsic LLVM knows the library function by name only.
  auto library = [&](const char* name, llvm::Intrinsic::ID intrinsic = 0) {
    result = library_call(inst, name, intrinsic, o);
    return true;
  };
  bool is_fast = (inst.flags & ir::inst_fast) != 0;
  switch (ir::in_group<FloatOp>(inst.op)) {
    case FloatOp::add_float:
      result = b_.CreateFAdd(o[0], o[1]);
      return true;
    case FloatOp::sub_float:
      result = b_.CreateFSub(o[0], o[1]);
      return true;
    case FloatOp::mul_float:
      result = b_.CreateFMul(o[0], o[1]);
      return true;
    case FloatOp::div_float:
      result = b_.CreateFDiv(o[0], o[1]);
      return true;
    case FloatOp::neg_float:
      result = b_.CreateFNeg(o[0]);
      return true;
    case FloatOp::fma_float:
      result = b_.CreateIntrinsic(llvm::Intrinsic::fma, {o[0]->getType()}, {o[0], o[1], o[2]});
      return true;
    case FloatOp::muladd_float:
      result = b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {o[0]->getType()}, {o[0], o[1], o[2]});
      return true;
    case FloatOp::abs_float:
      result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, o[0]);
      return true;
    case FloatOp::copysign_float:
      result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, o[0], o[1]);
      return true;
    case FloatOp::min_float:
      result = is_fast ? b_.CreateSelect(b_.CreateFCmpOLT(o[0], o[1]), o[0], o[1])
                       : b_.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, o[0], o[1]);
      return true;
    case FloatOp::max_float:
      result = is_fast ? b_.CreateSelect(b_.CreateFCmpOGT(o[0], o[1]), o[0], o[1])
                       : b_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, o[0], o[1]);
      return true;
    case FloatOp::eq_float:
      result = b_.CreateFCmpOEQ(o[0], o[1]);
      return true;
    case FloatOp::ne_float:
      result = b_.CreateFCmpUNE(o[0], o[1]);
      return true;
    case FloatOp::lt_float:
      result = b_.CreateFCmpOLT(o[0], o[1]);
      return true;
    case FloatOp::le_float:
      result = b_.CreateFCmpOLE(o[0], o[1]);
      return true;
    case FloatOp::ceil_float:
      result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, o[0]);
      return true;
    case FloatOp::floor_float:
      result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, o[0]);
      return true;
    case FloatOp::trunc_float:
      result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, o[0]);
      return true;
    case FloatOp::rint_float:
      result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, o[0]);
      return true;
    case FloatOp::sqrt_float:
      result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, o[0]);
      return true;
    case FloatOp::exp_float:
      return library("exp", llvm::Intrinsic::exp);
    case FloatOp::exp2_float:
      return library("exp2", llvm::Intrinsic::exp2);
    case FloatOp::expm1_float:
      return library("expm1");
    case FloatOp::log_float:
      return library("log", llvm::Intrinsic::log);
    case FloatOp::log2_float:
      return library("log2", llvm::Intrinsic::log2);
    case FloatOp::log10_float:
      return library("log10", llvm::Intrinsic::log10);
    case FloatOp::log1p_float:
      return library("log1p");
    case FloatOp::sin_float:
      return library("sin", llvm::Intrinsic::sin);
    case FloatOp::cos_float:
      return library("cos", llvm::Intrinsic::cos);
    case FloatOp::tan_float:
      return library("tan");
    case FloatOp::asin_float:
      return library("asin");
    case FloatOp::acos_float:
      return library("acos");
    case FloatOp::atan_float:
      return library("atan");
    case FloatOp::atan2_float:
      return library("atan2");
    case FloatOp::sinh_float:
      return library("sinh");
    case FloatOp::cosh_float:
      return library("cosh");
    case FloatOp::tanh_float:
      return library("tanh");
    case FloatOp::cbrt_float:
      return library("cbrt");
    case FloatOp::hypot_float:
      return library("hypot");
    case FloatOp::pow_float:
      return library("pow", llvm::Intrinsic::pow);
    case FloatOp::rem_float:
      return library("fmod");
  }
  return false;
}

}  // namespace slope::codegen
