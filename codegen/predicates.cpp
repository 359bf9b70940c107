// Tests and assertions on types and identity.
#include "codegen/emit.hpp"
#include "lang/types/subtype.hpp"

namespace slope::codegen {

using ir::Op;
using Kind = Representation::Kind;

// The concrete type of a value, as a pointer.
Emitter::V Emitter::type_word(const Val& v) {
  const Representation& r = layout_.of(v.type);
  if (r.kind == Kind::dynamic) return v.leaves[0];
  if (r.kind == Kind::none) return pointer(r.constant.type);
  return pointer(v.type);
}

// A bit, or null when there is no inline form.
Emitter::V Emitter::isa(const Val& v, const Type* type) {
  TypeTable& types = layout_.types();
  const Representation& r = layout_.of(v.type);
  if (type == layout_.builtin().any) return b_.getTrue();
  if (r.kind == Kind::none) {
    if (!r.constant.defined()) return b_.getFalse();
    return b_.getInt1(is_instance(types, r.constant, type));
  }
  if (r.kind != Kind::dynamic && !as_data(v.type)->is_kind) return b_.getInt1(is_subtype(types, v.type, type));
  if (r.kind == Kind::dynamic && is_subtype(types, v.type, type)) return b_.getTrue();
  if (const UnionType* u = as_union(type)) {
    V any = nullptr;
    for (const Type* member : u->members) {
      V one = isa(v, member);
      if (!one) return nullptr;
      any = any ? b_.CreateOr(any, one) : one;
    }
    return any;
  }
  const DataType* data = as_data(type);
  if (r.kind == Kind::dynamic && data && data->is_concrete) return b_.CreateICmpEQ(v.leaves[0], pointer(type));
  if (type->has_free_vars) return nullptr;
  auto [word, payload] = to_dynamic(v);
  return helper(Helper::is_instance, {context_, word, payload, pointer(type)});
}

namespace {

// Do equal payload words decide `===` for this type, in both directions?
bool word_decides(const DataType* data) {
  switch (data->storage) {
    case Storage::singleton:
    case Storage::bits:
      return true;
    case Storage::reference:
      return data->is_mutable || data->object_kind == DataType::ObjectKind::array ||
             data->object_kind == DataType::ObjectKind::immortal || data->object_kind == DataType::ObjectKind::cell;
    default:
      return false;
  }
}

}  // namespace

Emitter::V Emitter::egal(const Val& a, const Val& b) {
  const Representation& ra = layout_.of(a.type);
  const Representation& rb = layout_.of(b.type);
  if (ra.kind == Kind::none && rb.kind == Kind::none) return b_.getInt1(slope::egal(ra.constant, rb.constant));
  bool concrete = ra.kind != Kind::dynamic && rb.kind != Kind::dynamic;
  const DataType* data = as_data(a.type);
  if (concrete && a.type == b.type) {
    if (ra.kind == Kind::bits) {
      V x = a.leaves[0], y = b.leaves[0];
      if (x->getType()->isFloatingPointTy()) {
        llvm::Type* word = llvm::IntegerType::get(layout_.context, x->getType()->getPrimitiveSizeInBits());
        x = b_.CreateBitCast(x, word);
        y = b_.CreateBitCast(y, word);
      }
      return b_.CreateICmpEQ(x, y);
    }
    if (ra.kind == Kind::fields) {
      V all = b_.getTrue();
      for (std::size_t i = 0; i < data->fields.size(); ++i) {
        all = b_.CreateAnd(all, egal(field_of(a, i), field_of(b, i)));
      }
      return all;
    }
    if (word_decides(data)) return b_.CreateICmpEQ(a.leaves[0], b.leaves[0]);
  } else if (concrete && ra.kind != Kind::none && rb.kind != Kind::none) {
    return b_.getFalse();
  } else if (concrete) {
    // A known value against one of another concrete type: DataType holds the types, all others differ.
    const Representation& known = ra.kind == Kind::none ? ra : rb;
    const Val& other = ra.kind == Kind::none ? b : a;
    if (known.constant.type != other.type) return b_.getFalse();
    return b_.CreateICmpEQ(to_dynamic(other).second, integer(known.constant.bits));
  } else {
    const Val& other = ra.kind == Kind::dynamic ? b : a;
    const Val& dynamic = ra.kind == Kind::dynamic ? a : b;
    const Representation& r = layout_.of(other.type);
    const DataType* type = r.kind == Kind::none ? as_data(r.constant.type) : as_data(other.type);
    if (r.kind != Kind::dynamic && type && (r.kind == Kind::none || word_decides(type))) {
      auto [word, payload] = to_dynamic(other);
      V same = b_.CreateICmpEQ(dynamic.leaves[0], word);
      if (type->storage == Storage::singleton) return same;
      return b_.CreateAnd(same, b_.CreateICmpEQ(dynamic.leaves[1], payload));
    }
  }
  auto [a_type, a_payload] = to_dynamic(a);
  auto [b_type, b_payload] = to_dynamic(b);
  return helper(Helper::egal, {a_type, a_payload, b_type, b_payload});
}

bool Emitter::emit_predicate(const ir::Inst& inst, Val& result) {
  const BuiltinTypes& names = layout_.builtin();
  auto constant_type = [&](ir::Operand o) -> const Type* {
    if (!o.is_constant()) {
      const Representation& r = layout_.of(type_of(o));
      return r.kind == Kind::none && r.constant.defined() && r.constant.type->is_kind ? r.constant.as_type : nullptr;
    }
    Value v = function_.constant_value(o);
    return v.defined() && as_data(v.type)->is_kind ? v.as_type : nullptr;
  };
  switch (inst.op) {
    case Op::type_of: {
      Val v = operand(inst.operands[0]);
      result = {names.data_type, {type_word(v)}, nullptr};
      return true;
    }
    case Op::isa: {
      const Type* type = constant_type(inst.operands[1]);
      if (!type) return false;
      V bit = isa(operand(inst.operands[0]), type);
      if (!bit) return false;
      result = boolean(bit);
      return true;
    }
    case Op::egal:
      result = boolean(egal(operand(inst.operands[0]), operand(inst.operands[1])));
      return true;
    case Op::refine:
      result = operand_as(inst.operands[0], inst.type);
      return true;
    case Op::type_assert: {
      const Type* type = constant_type(inst.operands[1]);
      if (!type) return false;
      Val v = operand(inst.operands[0]);
      if (!(inst.flags & ir::inst_nothrow)) {
        V bit = isa(v, type);
        if (!bit) return false;
        if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(bit); !known || known->isZero()) {
          llvm::BasicBlock* bad = new_block("type_error");
          llvm::BasicBlock* good = new_block("asserted");
          branch_likely(bit, good, bad);
          b_.SetInsertPoint(bad);
          raise_by_executing(inst);
          fail();
          b_.SetInsertPoint(good);
        }
      }
      result = inst.type && inst.type->kind == TypeKind::bottom ? none(inst.type) : coerce(v, inst.type);
      return true;
    }
    case Op::select: {
      Val condition = operand(inst.operands[0]);
      if (condition.type != names.boolean) return false;
      Val a = operand_as(inst.operands[1], inst.type);
      Val b = operand_as(inst.operands[2], inst.type);
      result = none(inst.type);
      for (std::size_t i = 0; i < a.leaves.size(); ++i) {
        result.leaves.push_back(b_.CreateSelect(condition.leaves[0], a.leaves[i], b.leaves[i]));
      }
      return true;
    }
    case Op::undef:
      // Zeros and not poison: the value may be boxed, passed on or kept in a record before its path turns out not
      // taken.
      if (layout_.of(inst.type).kind == Kind::dynamic) {
        result = constant(layout_.runtime().nothing(), inst.type);
      } else {
        result = poison_of(inst.type);
        for (V& leaf : result.leaves) leaf = llvm::Constant::getNullValue(leaf->getType());
      }
      return true;
    case Op::check_defined: {
      Val condition = operand(inst.operands[0]);
      if (condition.type != names.boolean) return false;
      llvm::BasicBlock* bad = new_block("undefined");
      llvm::BasicBlock* good = new_block("defined");
      branch_likely(condition.leaves[0], good, bad);
      b_.SetInsertPoint(bad);
      raise_by_executing(inst);
      fail();
      b_.SetInsertPoint(good);
      result = coerce(constant(layout_.runtime().nothing(), names.nothing), inst.type);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace slope::codegen
