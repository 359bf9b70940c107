#include "codegen/emit.hpp"
#include "codegen/known_memory.hpp"

namespace slope::codegen {

using Kind = Representation::Kind;

Val Emitter::operand(ir::Operand o) {
  if (o.is_constant()) return constant(function_.constant_value(o), type_of(o));
  return values_[o.index()];
}

Val Emitter::poison_of(const Type* type) {
  Val v = none(type);
  for (llvm::Type* leaf : layout_.of(type).leaves) v.leaves.push_back(poison(leaf));
  return v;
}

Val Emitter::constant(Value v, const Type* type) {
  const Representation& r = layout_.of(type);
  Val result = none(type);
  auto bits = static_cast<std::uint64_t>(v.bits);
  switch (r.kind) {
    case Kind::none:
      return result;
    case Kind::bits: {
      llvm::Type* leaf = r.leaves[0];
      if (leaf->isDoubleTy() || leaf->isFloatTy()) {
        llvm::APInt word(leaf->getPrimitiveSizeInBits(), bits & (leaf->isFloatTy() ? 0xffffffffu : ~std::uint64_t{0}));
        result.leaves.push_back(llvm::ConstantFP::get(
            layout_.context,
            llvm::APFloat(leaf->isDoubleTy() ? llvm::APFloat::IEEEdouble() : llvm::APFloat::IEEEsingle(), word)));
      } else {
        unsigned width = leaf->getIntegerBitWidth();
        std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
        result.leaves.push_back(llvm::ConstantInt::get(leaf, bits & mask));
      }
      return result;
    }
    case Kind::reference:
    case Kind::boxed:
      if (llvm::Constant* copy = layout_.ahead && v.defined() ? ahead_constant(v) : nullptr) {
        result.leaves.push_back(copy);
        return result;
      }
      result.leaves.push_back(pointer(v.pointer));
      return result;
    case Kind::fields: {
      // The contents of an immutable box never change: its leaves are constants as well.
      const DataType* data = as_data(type);
      for (const Field& field : data->fields) {
        Value inner = load_field(layout_.runtime().heap, v.object, field);
        Val leaves = layout_.of(field.type).kind == Kind::dynamic ? constant(inner, layout_.builtin().any)
                                                                  : constant(inner, field.type);
        result.leaves.append(leaves.leaves.begin(), leaves.leaves.end());
      }
      if (!layout_.ahead) result.box = pointer(v.object);
      return result;
    }
    case Kind::dynamic:
      result.leaves = {pointer(v.type), payload_of(v)};
      return result;
  }
  return result;
}

Emitter::V Emitter::payload_of(Value v) {
  if (!v.defined() || layout_.of(v.type).kind == Kind::bits) return integer(v.bits);
  return b_.CreatePtrToInt(pointer(v.pointer), layout_.i64);
}

std::pair<Emitter::V, Emitter::V> Emitter::to_dynamic(const Val& v) {
  const Representation& r = layout_.of(v.type);
  switch (r.kind) {
    case Kind::none:
      return {pointer(r.constant.type), payload_of(r.constant)};
    case Kind::bits: {
      V word = v.leaves[0];
      llvm::Type* leaf = word->getType();
      if (leaf->isFloatingPointTy()) {
        word = b_.CreateBitCast(word, llvm::IntegerType::get(layout_.context, leaf->getPrimitiveSizeInBits()));
      }
      return {pointer(v.type), b_.CreateZExt(word, layout_.i64)};
    }
    case Kind::reference:
    case Kind::boxed:
      return {pointer(v.type), b_.CreatePtrToInt(v.leaves[0], layout_.i64)};
    case Kind::fields:
      return {pointer(v.type), b_.CreatePtrToInt(box(v), layout_.i64)};
    case Kind::dynamic:
      return {v.leaves[0], v.leaves[1]};
  }
  return {};
}

Val Emitter::from_dynamic(V type, V payload, const Type* to) {
  const Representation& r = layout_.of(to);
  Val result = none(to);
  switch (r.kind) {
    case Kind::none:
      return result;
    case Kind::bits: {
      llvm::Type* leaf = r.leaves[0];
      if (leaf->isFloatingPointTy()) {
        V word = b_.CreateTrunc(payload, llvm::IntegerType::get(layout_.context, leaf->getPrimitiveSizeInBits()));
        result.leaves.push_back(b_.CreateBitCast(word, leaf));
      } else {
        result.leaves.push_back(b_.CreateTrunc(payload, leaf));
      }
      return result;
    }
    case Kind::reference:
    case Kind::boxed:
      result.leaves.push_back(b_.CreateIntToPtr(payload, layout_.ptr));
      return result;
    case Kind::fields:
      return unbox_fields(b_.CreateIntToPtr(payload, layout_.ptr), as_data(to));
    case Kind::dynamic:
      result.leaves = {type, payload};
      return result;
  }
  return result;
}

Val Emitter::coerce(const Val& v, const Type* to) {
  if (v.type == to) return v;
  const Representation& from = layout_.of(v.type);
  const Representation& target = layout_.of(to);
  if (target.kind == Kind::none) return none(to);
  if (target.kind == Kind::dynamic) {
    auto [type, payload] = to_dynamic(v);
    Val result = none(to);
    result.leaves = {type, payload};
    return result;
  }
  if (from.kind == Kind::dynamic) return from_dynamic(v.leaves[0], v.leaves[1], to);
  if (from.kind == Kind::none && from.constant.defined() &&
      (from.constant.type == to || target.kind == Kind::reference)) {
    // Type{T} used as a DataType, or a singleton under another name of its type.
    return constant(from.constant, to);
  }
  // No value is of two concrete types: control can't come here.
  return poison_of(to);
}

Emitter::V Emitter::box(const Val& v) {
  if (v.box) return v.box;
  const DataType* type = as_data(v.type);
  // Inner boxes first (danger rule 2).
  std::vector<Val> fields;
  for (std::size_t i = 0; i < type->fields.size(); ++i) {
    Val field = field_of(v, i);
    if (storage_of(type->fields[i].type) == Storage::reference && layout_.needs_box(field.type)) {
      field.box = box(field);
    } else if (layout_.of(type->fields[i].type).kind == Kind::dynamic) {
      auto [t, payload] = to_dynamic(field);
      field = none(type->fields[i].type);
      field.leaves = {t, payload};
    }
    fields.push_back(std::move(field));
  }
  V object = allocate_object(type, fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    store_stored(at(object, offset::object_payload + type->fields[i].offset), type->fields[i].type, fields[i],
                 Memory::box, true);
  }
  return object;
}

Val Emitter::field_of(const Val& aggregate, std::size_t index) {
  const DataType* type = as_data(aggregate.type);
  const Representation& r = layout_.of(type);
  const Field& field = type->fields[index];
  if (r.kind == Kind::none) return none(field.type);
  if (r.kind == Kind::fields) {
    Val result = none(field.type);
    unsigned begin = r.field_start[index], end = r.field_start[index + 1];
    result.leaves.append(aggregate.leaves.begin() + begin, aggregate.leaves.begin() + end);
    return result;
  }
  Memory memory = type->is_mutable ? Memory::object : Memory::box;
  return load_stored(at(aggregate.leaves[0], offset::object_payload + field.offset), field.type, memory, false);
}

Val Emitter::unbox_fields(V object, const DataType* type) {
  Val result = none(type);
  for (const Field& field : type->fields) {
    Val inner = load_stored(at(object, offset::object_payload + field.offset), field.type, Memory::box, false);
    result.leaves.append(inner.leaves.begin(), inner.leaves.end());
  }
  result.box = object;
  return result;
}

void Emitter::store_fields(V payload, const DataType* type, const Val& v, Memory memory) {
  for (std::size_t i = 0; i < type->fields.size(); ++i) {
    store_stored(at(payload, type->fields[i].offset), type->fields[i].type, field_of(v, i), memory);
  }
}

Emitter::V Emitter::load(llvm::Type* type, V where, Memory memory) {
  llvm::LoadInst* result = b_.CreateLoad(type, where);
  result->setMetadata(llvm::LLVMContext::MD_tbaa, layout_.alias_tag(memory, type));
  if (memory == Memory::elements) fresh_arrays_.mark(result);
  return result;
}

void Emitter::store(V what, V where, Memory memory) {
  llvm::StoreInst* result = b_.CreateStore(what, where);
  result->setMetadata(llvm::LLVMContext::MD_tbaa, layout_.alias_tag(memory, what->getType()));
  if (memory == Memory::elements) fresh_arrays_.mark(result);
}

Val Emitter::load_stored(V where, const Type* declared, Memory memory, bool may_be_undefined) {
  const Representation& r = layout_.of(declared);
  if (r.kind == Kind::none && storage_of(declared) != Storage::dynamic) return none(declared);
  Val result = none(declared);
  switch (storage_of(declared)) {
    case Storage::singleton:
      return result;
    case Storage::bits: {
      if (declared == layout_.builtin().boolean) {
        result.leaves.push_back(b_.CreateTrunc(load(layout_.i8, where, memory), layout_.i1));
      } else {
        result.leaves.push_back(load(r.leaves[0], where, memory));
      }
      return result;
    }
    case Storage::aggregate: {
      const DataType* type = as_data(declared);
      if (r.kind == Kind::boxed) {
        V object = allocate_object(type, type->fields.size());
        b_.CreateMemCpy(at(object, offset::object_payload), llvm::MaybeAlign(1), where, llvm::MaybeAlign(1),
                        integer(type->size));
        result.leaves.push_back(object);
        return result;
      }
      for (const Field& field : type->fields) {
        Val inner = load_stored(at(where, field.offset), field.type, memory, false);
        result.leaves.append(inner.leaves.begin(), inner.leaves.end());
      }
      return result;
    }
    case Storage::reference: {
      V object = load(layout_.ptr, where, memory);
      if (std::uint64_t bytes = r.kind == Kind::reference ? layout_.known_bytes(declared)[0] : 0) {
        auto* made = llvm::cast<llvm::LoadInst>(object);
        auto number = [&](std::uint64_t n) {
          return llvm::MDNode::get(layout_.context,
                                   {llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(layout_.i64, n))});
        };
        made->setMetadata(llvm::LLVMContext::MD_align, number(8));
        made->setMetadata(llvm::LLVMContext::MD_dereferenceable_or_null, number(bytes));
      }
      if (may_be_undefined) undefined_when(b_.CreateIsNull(object));
      if (r.kind == Kind::fields) return unbox_fields(object, as_data(declared));
      result.leaves.push_back(object);
      return result;
    }
    case Storage::dynamic: {
      V type = load(layout_.ptr, where, memory);
      if (may_be_undefined) undefined_when(b_.CreateIsNull(type));
      V payload = load(layout_.i64, at(where, 8), memory);
      if (r.kind == Kind::none) return result;
      result.leaves = {type, payload};
      return result;
    }
  }
  return result;
}

namespace {

bool may_be_on_heap(const Type* type) {
  const DataType* data = as_data(type);
  if (!data || !data->is_concrete) return true;
  return data->storage != Storage::bits && data->storage != Storage::singleton &&
         data->object_kind != DataType::ObjectKind::immortal;
}

}  // namespace

// The collector's barrier (lang/memory/heap.hpp), after a reference was written into an object. `type` is null when the
// payload is a pointer for certain. The flag is read without an alias class: any store may be one that comes after it.
void Emitter::report_reference(V type, V payload) {
  if (layout_.ahead) return;
  llvm::BasicBlock* marks = new_block("shade");
  llvm::BasicBlock* done = new_block("written");
  V heap = load(layout_.ptr, at(context_, offset::context_heap), Memory::context);
  V marking = b_.CreateLoad(layout_.i64, at(heap, offset::heap_marking));
  branch_unlikely(b_.CreateICmpNE(marking, integer(0)), marks, done);
  b_.SetInsertPoint(marks);
  if (type) {
    helper(Helper::shade_value, {context_, type, payload});
  } else {
    helper(Helper::shade, {context_, payload});
  }
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

void Emitter::store_stored(V where, const Type* declared, const Val& given, Memory memory, bool fresh) {
  switch (storage_of(declared)) {
    case Storage::singleton:
      return;
    case Storage::bits: {
      Val v = coerce(given, declared);
      store(as_byte(v.leaves[0]), where, memory);
      return;
    }
    case Storage::aggregate: {
      Val v = coerce(given, declared);
      const DataType* type = as_data(declared);
      if (layout_.of(declared).kind == Kind::boxed) {
        b_.CreateMemCpy(where, llvm::MaybeAlign(1), at(v.leaves[0], offset::object_payload), llvm::MaybeAlign(1),
                        integer(type->size));
      } else {
        store_fields(where, type, v, memory);
      }
      return;
    }
    case Storage::reference: {
      Val v = coerce(given, declared);
      V object = layout_.needs_box(declared) ? box(v) : v.leaves[0];
      store(object, where, memory);
      if (!fresh && as_data(declared)->object_kind != DataType::ObjectKind::immortal) report_reference(nullptr, object);
      return;
    }
    case Storage::dynamic: {
      auto [type, payload] = to_dynamic(given);
      store(type, where, memory);
      store(payload, at(where, 8), memory);
      if (!fresh && may_be_on_heap(given.type)) report_reference(type, payload);
      return;
    }
  }
}

Emitter::V Emitter::store_values(llvm::ArrayRef<Val> values) {
  llvm::SmallVector<std::pair<V, V>, 8> words;
  for (const Val& v : values) words.push_back(to_dynamic(v));
  V buffer = buffers_.arguments(values.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto where = static_cast<std::int64_t>(16 * i);
    b_.CreateStore(words[i].first, at(buffer, where));
    b_.CreateStore(words[i].second, at(buffer, where + 8));
  }
  return buffer;
}

Val Emitter::load_result(const Type* type) {
  if (layout_.of(type).kind == Kind::none) return none(type);
  V word = b_.CreateLoad(layout_.ptr, result_buffer());
  V payload = b_.CreateLoad(layout_.i64, at(result_buffer(), 8));
  Val result = from_dynamic(word, payload, type);
  mark_result(result);
  return result;
}

// Of what a call returned: the headers of arrays may be read.
void Emitter::mark_result(const Val& result) {
  const std::vector<std::uint64_t> known = layout_.known_bytes(result.type);
  for (std::size_t i = 0; i < result.leaves.size() && i < known.size(); ++i) {
    auto* made = llvm::dyn_cast<llvm::Instruction>(result.leaves[i]);
    if (made && known[i]) mark_known(*made, known[i]);
  }
}

}  // namespace slope::codegen
