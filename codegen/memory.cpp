// Memory: arrays, strings, fields of objects, captured variables, globals, slots and tapes.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "codegen/emit.hpp"
#include "lang/ir/passes/checked.hpp"
#include "lang/memory/tape.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/module.hpp"
#include "lang/types/subtype.hpp"

namespace slope::codegen {

using ir::Op;
using Kind = Representation::Kind;

void Emitter::undefined_when(V condition) {
  llvm::BasicBlock* bad = new_block("undefined");
  llvm::BasicBlock* good = new_block("defined");
  branch_unlikely(condition, bad, good);
  b_.SetInsertPoint(bad);
  raise_by_executing(*current_);  // with the message that the operation has everywhere
  fail();
  b_.SetInsertPoint(good);
}

// Long because it is a table: one case for each operation on strings, variables, globals and captured variables.
bool Emitter::emit_memory(const ir::Inst& inst, Val& result) {
  const BuiltinTypes& names = layout_.builtin();
  switch (inst.op) {
    case Op::string_length: {
      Val s = operand(inst.operands[0]);
      if (s.type != names.string) return false;
      result = {names.int64, {load(layout_.i64, at(s.leaves[0], offset::string_length), Memory::box)}, nullptr};
      return true;
    }
    case Op::string_byte: {
      Val s = operand(inst.operands[0]);
      Val i = operand(inst.operands[1]);
      if (s.type != names.string || i.type != names.int64) return false;
      if (layout_.tests_indices) check_index(inst.operands[0], i.leaves[0], offset::string_length, Memory::box, false);
      V where = b_.CreateInBoundsGEP(layout_.i8, at(s.leaves[0], offset::string_bytes - 1), i.leaves[0]);
      result = {names.uint8, {load(layout_.i8, where, Memory::box)}, nullptr};
      return true;
    }
    case Op::caught:
      helper(Helper::caught, {context_, result_buffer()});
      result = load_result(inst.type);
      return true;
    case Op::caught_end:
      helper(Helper::caught_end, {context_, caught_base_ ? caught_base_ : integer(0)});
      result = constant(layout_.runtime().nothing(), names.nothing);
      return true;
    default:
      return emit_name(inst, result) || emit_cell(inst, result) || emit_array(inst, result) ||
             emit_fields(inst, result) || emit_tape(inst, result);
  }
}

// Variables and globals.
bool Emitter::emit_name(const ir::Inst& inst, Val& result) {
  const BuiltinTypes& names = layout_.builtin();
  switch (inst.op) {
    case Op::slot_get: {
      const Slot& slot = slots_[inst.aux];
      if (!(inst.flags & ir::inst_nothrow)) undefined_when(b_.CreateNot(b_.CreateLoad(layout_.i1, slot.defined)));
      result = coerce(slot_value(inst.aux, slot.type), inst.type);
      return true;
    }
    case Op::slot_set: {
      const Slot& slot = slots_[inst.aux];
      Val v = operand_as(inst.operands[0], slot.type);
      for (std::size_t i = 0; i < v.leaves.size(); ++i) b_.CreateStore(v.leaves[i], slot.leaves[i]);
      b_.CreateStore(b_.getTrue(), slot.defined);
      result = v;
      return true;
    }
    case Op::slot_defined:
      result = boolean(b_.CreateLoad(layout_.i1, slots_[inst.aux].defined));
      return true;
    case Op::slot_clear:
      b_.CreateStore(b_.getFalse(), slots_[inst.aux].defined);
      result = constant(layout_.runtime().nothing(), names.nothing);
      return true;
    case Op::static_param: {
      if (inst.aux >= function_.static_params.size()) return false;
      const Type* p = function_.static_params[inst.aux];
      if (const TypeVar* unbound = as_var(p)) {
        fail_when(b_.CreateNot(helper(Helper::undef_var, {context_, pointer(unbound->name)})));
        result = from_dynamic(llvm::ConstantPointerNull::get(layout_.ptr), b_.getInt64(0), inst.type);
        return true;
      }
      const ValueType* v = as_value(p);
      Value c = v ? v->value : layout_.runtime().from_type(p);
      result = constant(c, layout_.types().type_of_constant(c));
      return true;
    }
    case Op::load_global: {
      V value = at(pointer(inst.aux_as<Binding>()), offset::binding_value);
      V type = load(layout_.ptr, value, Memory::binding);
      if (!(inst.flags & ir::inst_nothrow)) {
        // An unassigned name may have come to mean another module's since: the general road resolves it.
        llvm::BasicBlock* usual = new_block("global");
        llvm::BasicBlock* rare = new_block("resolve");
        llvm::BasicBlock* done = new_block("loaded");
        branch_unlikely(b_.CreateIsNull(type), rare, usual);
        b_.SetInsertPoint(usual);
        V payload = load(layout_.i64, at(value, 8), Memory::binding);
        b_.CreateBr(done);
        b_.SetInsertPoint(rare);
        Val resolved = coerce(execute(inst), names.any);
        llvm::BasicBlock* rare_end = b_.GetInsertBlock();
        b_.CreateBr(done);
        b_.SetInsertPoint(done);
        llvm::PHINode* t = b_.CreatePHI(layout_.ptr, 2);
        t->addIncoming(type, usual);
        t->addIncoming(resolved.leaves[0], rare_end);
        llvm::PHINode* p = b_.CreatePHI(layout_.i64, 2);
        p->addIncoming(payload, usual);
        p->addIncoming(resolved.leaves[1], rare_end);
        result = from_dynamic(t, p, inst.type);
        return true;
      }
      result = from_dynamic(type, load(layout_.i64, at(value, 8), Memory::binding), inst.type);
      return true;
    }
    case Op::store_global: {
      Val v = operand(inst.operands[0]);
      auto [type, payload] = to_dynamic(v);
      V ok = helper(Helper::store_global, {context_, pointer(inst.aux_as<Binding>()), type, payload});
      fail_when(b_.CreateNot(ok));
      result = v;
      return true;
    }
    default:
      return false;
  }
}

// Captured variables.
bool Emitter::emit_cell(const ir::Inst& inst, Val& result) {
  const BuiltinTypes& names = layout_.builtin();
  switch (inst.op) {
    case Op::cell_new: {
      std::pair<V, V> words;
      if (!inst.operands.empty()) words = to_dynamic(operand(inst.operands[0]));
      V cell = allocate_cell(!inst.operands.empty());
      if (!inst.operands.empty()) {
        store(words.first, at(cell, offset::cell_type), Memory::cell);
        store(words.second, at(cell, offset::cell_payload), Memory::cell);
      }
      result = {names.cell, {cell}, nullptr};
      return true;
    }
    case Op::cell_get: {
      Val cell = operand(inst.operands[0]);
      if (cell.type != names.cell) return false;
      V type = load(layout_.ptr, at(cell.leaves[0], offset::cell_type), Memory::cell);
      if (!(inst.flags & ir::inst_nothrow)) undefined_when(b_.CreateIsNull(type));
      V payload = load(layout_.i64, at(cell.leaves[0], offset::cell_payload), Memory::cell);
      result = from_dynamic(type, payload, inst.type);
      return true;
    }
    case Op::cell_set: {
      Val cell = operand(inst.operands[0]);
      if (cell.type != names.cell) return false;
      Val v = operand(inst.operands[1]);
      auto [type, payload] = to_dynamic(v);
      store(type, at(cell.leaves[0], offset::cell_type), Memory::cell);
      store(payload, at(cell.leaves[0], offset::cell_payload), Memory::cell);
      report_reference(type, payload);
      result = v;
      return true;
    }
    case Op::cell_defined: {
      Val cell = operand(inst.operands[0]);
      if (cell.type != names.cell) return false;
      result = boolean(b_.CreateIsNotNull(load(layout_.ptr, at(cell.leaves[0], offset::cell_type), Memory::cell)));
      return true;
    }
    default:
      return false;
  }
}

Val Emitter::slot_value(std::size_t index, const Type* type) {
  Val v = none(type);
  for (llvm::AllocaInst* leaf : slots_[index].leaves) v.leaves.push_back(b_.CreateLoad(leaf->getAllocatedType(), leaf));
  return v;
}

namespace {

bool is_array(const Type* type) {
  const DataType* data = as_data(type);
  return data && data->is_concrete && data->object_kind == DataType::ObjectKind::array;
}

// Number of dimensions of a concrete array type, -1 when its parameters say nothing.
std::int64_t dimensions(const Type* type) {
  const DataType* data = as_data(type);
  if (data->params.size() < 2) return -1;
  const ValueType* n = as_value(data->params[1]);
  return n ? n->value.bits : -1;
}

}  // namespace

void Emitter::check_element(const ir::Inst& inst, V index) {
  if (!layout_.tests_indices) return;
  const bool is_known = bounds_.is_inside(static_cast<std::uint32_t>(&inst - function_.insts.data()));
  if (is_known && !ir::verifies_passes()) return;
  V length = inst.operands[0].is_inst() ? lengths_[inst.operands[0].index()] : nullptr;
  check_index(inst.operands[0], index, offset::array_length, Memory::array_header, is_known, length);
}

// A BoundsError unless the array or string has the index now: whoever called this code may have tested it, but may have
// tested something else, or the array may be shorter since. `is_known`: it has, or the compiler is wrong.
void Emitter::check_index(ir::Operand object, V index, std::int64_t length_offset, Memory memory, bool is_known,
                          V known_length) {
  const Val v = operand(object);
  V length = known_length ? known_length : load(layout_.i64, at(v.leaves[0], length_offset), memory);
  llvm::BasicBlock* outside = new_block("outside");
  llvm::BasicBlock* inside = new_block("inside");
  branch_likely(b_.CreateICmpULT(b_.CreateSub(index, integer(1)), length), inside, outside);
  b_.SetInsertPoint(outside);
  if (is_known) {
    b_.CreateIntrinsic(llvm::Intrinsic::trap, {}, {});
    b_.CreateUnreachable();
  } else {
    helper(Helper::bounds_error, {context_, pointer(v.type), v.leaves[0], index});
    fail();
  }
  b_.SetInsertPoint(inside);
}

Emitter::V Emitter::element_address(V array, V index, const Type* element) {
  V data = load(layout_.ptr, at(array, offset::array_data), Memory::array_header);
  V zero_based = b_.CreateNSWSub(index, integer(1));
  std::uint32_t size = stored_size(element);
  llvm::Type* unit = layout_.i8;
  switch (size) {
    case 1:
      break;
    case 2:
      unit = b_.getInt16Ty();
      break;
    case 4:
      unit = layout_.i32;
      break;
    case 8:
      unit = layout_.i64;
      break;
    default:
      unit = llvm::ArrayType::get(layout_.i8, size);
  }
  return b_.CreateInBoundsGEP(unit, data, zero_based);
}

// Long because it is a table: one case for each operation on arrays.
bool Emitter::emit_array(const ir::Inst& inst, Val& result) {
  const BuiltinTypes& names = layout_.builtin();
  auto index = [&](ir::Operand o) -> V {
    Val v = operand(o);
    return v.type == names.int64 ? v.leaves[0] : nullptr;
  };
  auto array = [&]() -> V {
    Val a = operand(inst.operands[0]);
    return is_array(a.type) ? a.leaves[0] : nullptr;
  };
  switch (inst.op) {
    case Op::array_length: {
      V a = array();
      if (!a) return false;
      result = {names.int64, {load(layout_.i64, at(a, offset::array_length), Memory::array_header)}, nullptr};
      return true;
    }
    case Op::array_size: {
      V a = array();
      V d = a ? index(inst.operands[1]) : nullptr;
      auto* known = d ? llvm::dyn_cast<llvm::ConstantInt>(d) : nullptr;
      std::int64_t rank = dimensions(type_of(inst.operands[0]));
      if (layout_.ahead && d && !known && rank >= 0) {
        result = {names.int64, {ahead_size(a, d, rank)}, nullptr};
        return true;
      }
      if (!known || known->getSExtValue() < 1) return false;
      if (rank < 0) return false;
      std::int64_t dimension = known->getSExtValue();
      V size = dimension > rank
                   ? integer(1)
                   : load(layout_.i64, at(a, offset::array_dim(rank, dimension - 1)), Memory::array_header);
      result = {names.int64, {size}, nullptr};
      return true;
    }
    case Op::array_get: {
      V a = array();
      V i = a ? index(inst.operands[1]) : nullptr;
      if (!i) return false;
      const Type* element = as_data(type_of(inst.operands[0]))->params[0];
      check_element(inst, i);
      const FreshArrays::Access access(fresh_arrays_, inst.operands[0]);
      result = load_stored(element_address(a, i, element), element, Memory::elements, !(inst.flags & ir::inst_nothrow));
      return true;
    }
    case Op::array_set:
    case Op::array_init: {
      V a = array();
      V i = a ? index(inst.operands[2]) : nullptr;
      if (!i) return false;
      const Type* element = as_data(type_of(inst.operands[0]))->params[0];
      Val v = operand(inst.operands[1]);
      if (!is_subtype(layout_.types(), v.type, element)) return false;
      // A box is made before the element's address is computed (danger rule 1).
      if (layout_.needs_box(v.type)) {
        Storage storage = storage_of(element);
        if (storage == Storage::reference || storage == Storage::dynamic) v.box = box(v);
      }
      check_element(inst, i);
      {
        const FreshArrays::Access access(fresh_arrays_, inst.operands[0]);
        store_stored(element_address(a, i, element), element, v, Memory::elements);
      }
      result = coerce(operand(inst.operands[0]), inst.type);
      if (inst.type && layout_.of(inst.type).kind == Kind::none) result = none(inst.type);
      return true;
    }
    case Op::array_new: {
      if (!is_array(inst.type) || static_cast<std::size_t>(dimensions(inst.type)) + 1 != inst.operands.size())
        return false;
      llvm::SmallVector<V, 4> dims;
      for (std::size_t i = 1; i < inst.operands.size(); ++i) {
        dims.push_back(index(inst.operands[i]));
        if (!dims.back()) return false;
      }
      if (dims.empty()) return false;
      V out = make_array(inst, dims);
      result = {inst.type, {out}, nullptr};
      return true;
    }
    case Op::array_check:
      if (!array() ||
          !is_subtype(layout_.types(), type_of(inst.operands[1]), as_data(type_of(inst.operands[0]))->params[0]))
        return false;
      result = constant(layout_.runtime().nothing(), names.nothing);
      return true;
    case Op::array_resize:
    case Op::array_resize_front: {
      V a = array();
      V length = a ? index(inst.operands[1]) : nullptr;
      if (!length || dimensions(type_of(inst.operands[0])) != 1) return false;
      const Helper resize = inst.op == Op::array_resize ? Helper::array_resize : Helper::resize_front;
      auto call = [&] { fail_when(b_.CreateNot(helper(resize, {context_, a, length, b_.getInt64(inst.aux)}))); };
      if (inst.op == Op::array_resize)
        resize_by_one(a, length, as_data(type_of(inst.operands[0]))->params[0], call);
      else
        call();
      result = operand(inst.operands[0]);
      return true;
    }
    default:
      return false;
  }
}

ir::Place Emitter::place_of(const ir::Inst& inst) const {
  return places_.empty() ? ir::Place::heap : places_[static_cast<std::size_t>(&inst - function_.insts.data())];
}

llvm::Value* Emitter::make_array(const ir::Inst& inst, llvm::ArrayRef<V> dims) {
  const DataType* type = as_data(inst.type);
  if (layout_.ahead) return ahead_array(type, dims);
  const ir::Place place = place_of(inst);
  if (place == ir::Place::frame)
    if (V vector = vector_in_frame(type, dims[0])) return vector;
  // Its length may be read before a loop, whether the loop reads it or not: what a loop's checks compare with must be
  // there before it (counted_loops.hpp).
  auto made = [&](V array) {
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(array)) {
      const std::uint64_t bytes = layout_.known_bytes(inst.type)[0];
      if (bytes) call->addRetAttr(llvm::Attribute::getWithDereferenceableOrNullBytes(layout_.context, bytes));
      call->addRetAttr(llvm::Attribute::getWithAlignment(layout_.context, llvm::Align(8)));
    }
    fail_when(b_.CreateIsNull(array));
    return array;
  };
  if (place != ir::Place::scratch && dims.size() == 1) {
    if (V vector = allocate_vector(type, dims[0])) return vector;
    return made(helper(Helper::array_new, {context_, pointer(type), dims[0]}));
  }
  llvm::AllocaInst* shape;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    llvm::BasicBlock& entry = output_->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    shape = b_.CreateAlloca(llvm::ArrayType::get(layout_.i64, dims.size()), nullptr, "shape");
  }
  V count = integer(static_cast<std::int64_t>(dims.size()));
  auto note_shape = [&] {
    for (std::size_t i = 0; i < dims.size(); ++i) b_.CreateStore(dims[i], at(shape, static_cast<std::int64_t>(8 * i)));
  };
  if (place != ir::Place::scratch) {
    note_shape();
    return made(helper(Helper::array_new_shaped, {context_, pointer(type), shape, count}));
  }
  auto call = [&] {
    note_shape();
    return made(helper(Helper::scratch_array,
                       {context_, pointer(type), shape, count, integer(static_cast<std::int64_t>(scratch_most_))}));
  };
  if (dims.size() == 1)
    if (V vector = vector_in_scratch(type, dims[0], call)) return vector;
  return call();
}

// The 0-based field that get_field, set_field and the like mean, when that is known now and the object's type has it.
bool Emitter::known_field(const ir::Inst& inst, std::size_t& index) {
  const DataType* type = as_data(type_of(inst.operands[0]));
  if (!type || !type->is_concrete || type->object_kind != DataType::ObjectKind::fields) return false;
  if (inst.op == Op::field_at || inst.op == Op::set_field_at) {
    index = inst.aux;
    return index < type->fields.size();
  }
  if (!inst.operands[1].is_constant()) return false;
  Value which = function_.constant_value(inst.operands[1]);
  int found = -1;
  if (which.type == layout_.builtin().symbol) found = type->field_index(which.symbol);
  if (which.type == layout_.builtin().int64 && which.bits >= 1 &&
      static_cast<std::size_t>(which.bits) <= type->fields.size()) {
    found = static_cast<int>(which.bits - 1);
  }
  index = static_cast<std::size_t>(found);
  return found >= 0;
}

bool Emitter::emit_fields(const ir::Inst& inst, Val& result) {
  std::size_t index = 0;
  switch (inst.op) {
    case Op::field_at:
    case Op::get_field: {
      if (!known_field(inst, index)) return emit_indexed_element(inst, result);
      Val object = operand(inst.operands[0]);
      const DataType* type = as_data(object.type);
      const Field& field = type->fields[index];
      Kind kind = layout_.of(type).kind;
      if (kind == Kind::none || kind == Kind::fields) {
        result = field_of(object, index);
        return true;
      }
      bool checked = !(inst.flags & ir::inst_nothrow) && index >= type->initialized_fields;
      result = load_stored(at(object.leaves[0], offset::object_payload + field.offset), field.type,
                           type->is_mutable ? Memory::object : Memory::box, checked);
      return true;
    }
    case Op::set_field_at:
    case Op::set_field: {
      if (!known_field(inst, index)) return false;
      Val object = operand(inst.operands[0]);
      const DataType* type = as_data(object.type);
      const Field& field = type->fields[index];
      Val v = operand(inst.operands.back());
      if (!type->is_mutable || !is_subtype(layout_.types(), v.type, field.type)) return false;
      if (inst.op == Op::set_field && field.is_const) return false;
      store_stored(at(object.leaves[0], offset::object_payload + field.offset), field.type, v, Memory::object);
      result = v;
      return true;
    }
    case Op::tuple: {
      const DataType* type = as_data(inst.type);
      if (!type || !type->is_concrete || !type->is_tuple) return false;
      return make_object(type, inst.operands, result);
    }
    case Op::make_struct: {
      const DataType* type = as_data(inst.type);
      if (!type || !type->is_concrete || type->object_kind != DataType::ObjectKind::fields) return false;
      return make_object(type, std::span(inst.operands).subspan(1), result);
    }
    case Op::make_closure: {
      const DataType* type = as_data(inst.type);
      if (!type || !type->is_concrete) return false;
      return make_object(type, inst.operands, result);
    }
    default:
      return false;
  }
}

// t[i] of a tuple, i known only at run time.
bool Emitter::emit_indexed_element(const ir::Inst& inst, Val& result) {
  const DataType* type = as_data(type_of(inst.operands[0]));
  if (inst.op != Op::get_field || !type || !type->is_concrete || !(type->is_tuple || type->is_named_tuple) ||
      type->fields.empty() || type_of(inst.operands[1]) != layout_.builtin().int64) {
    return false;
  }
  const Type* element = type->fields[0].type;
  bool is_mixed = false;
  for (const Field& field : type->fields) is_mixed = is_mixed || field.type != element;
  const Representation& r = layout_.of(type);
  if (r.kind != Kind::fields && (r.kind != Kind::boxed || is_mixed)) return false;
  if (is_mixed && (layout_.ahead || type->fields.size() > tuning::widest_switch)) return false;
  const auto count = static_cast<std::int64_t>(type->fields.size());
  const Val tuple = operand(inst.operands[0]);
  const V zero_based = b_.CreateSub(operand(inst.operands[1]).leaves[0], integer(1));

  llvm::BasicBlock* inside = new_block("inside");
  llvm::BasicBlock* outside = new_block("outside");
  branch_likely(b_.CreateICmpULT(zero_based, integer(count)), inside, outside);
  b_.SetInsertPoint(outside);
  raise_by_executing(inst);
  layout_.ahead ? fail() : static_cast<void>(b_.CreateUnreachable());
  b_.SetInsertPoint(inside);

  if (is_mixed) {
    result = choose_mixed(tuple, zero_based, inst.type);
    return true;
  }
  if (r.kind == Kind::boxed) {
    const std::int64_t stride = count > 1 ? type->fields[1].offset - type->fields[0].offset : 0;
    const V bytes = b_.CreateMul(zero_based, integer(stride));
    const V first = at(tuple.leaves[0], offset::object_payload + type->fields[0].offset);
    result = load_stored(b_.CreateInBoundsGEP(layout_.i8, first, bytes), element, Memory::box, false);
    return true;
  }
  result = none(element);
  const std::size_t width = r.field_start[1];  // leaves of an element
  for (std::size_t leaf = 0; leaf < width; ++leaf) {
    llvm::SmallVector<V, 16> column;
    for (std::int64_t i = 0; i < count; ++i) column.push_back(tuple.leaves[static_cast<std::size_t>(i) * width + leaf]);
    result.leaves.push_back(choose(column, zero_based));
  }
  return true;
}

// The element of a tuple of several types at an index that is inside, as a value of `type`, which takes each of them.
Val Emitter::choose_mixed(const Val& tuple, V zero_based, const Type* type) {
  const std::size_t count = as_data(tuple.type)->fields.size();
  llvm::BasicBlock* last = new_block("element");
  llvm::BasicBlock* chosen = new_block("chosen");
  llvm::SwitchInst* by_index = b_.CreateSwitch(zero_based, last, static_cast<unsigned>(count - 1));
  std::vector<std::pair<Val, llvm::BasicBlock*>> ways;
  for (std::size_t i = 0; i < count; ++i) {
    llvm::BasicBlock* block = i + 1 == count ? last : new_block("element");
    if (block != last) by_index->addCase(b_.getInt64(i), block);
    b_.SetInsertPoint(block);
    Val way = coerce(field_of(tuple, i), type);  // may end in another block
    ways.emplace_back(std::move(way), b_.GetInsertBlock());
    b_.CreateBr(chosen);
  }
  b_.SetInsertPoint(chosen);
  Val result = none(type);
  for (std::size_t leaf = 0; leaf < ways[0].first.leaves.size(); ++leaf) {
    llvm::PHINode* phi = b_.CreatePHI(ways[0].first.leaves[leaf]->getType(), static_cast<unsigned>(count));
    for (const auto& [way, from] : ways) phi->addIncoming(way.leaves[leaf], from);
    result.leaves.push_back(phi);
  }
  return result;
}

// column[zero_based], which is inside. Few values are selected from; many get a copy in the frame, written where each
// of them is defined, so that a loop that reads them does not write them.
llvm::Value* Emitter::choose(llvm::ArrayRef<V> column, V zero_based) {
  constexpr std::size_t few = 4;
  if (column.size() <= few) {
    V chosen = column.back();
    for (std::size_t i = column.size() - 1; i-- > 0;) {
      chosen = b_.CreateSelect(b_.CreateICmpEQ(zero_based, integer(static_cast<std::int64_t>(i))), column[i], chosen);
    }
    return chosen;
  }
  auto* row = llvm::ArrayType::get(column[0]->getType(), column.size());
  const V zero = integer(0);
  llvm::AllocaInst*& copy = indexed_copies_[std::vector<V>(column.begin(), column.end())];
  if (copy == nullptr) {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    llvm::BasicBlock& entry = output_->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    copy = b_.CreateAlloca(row, nullptr, "indexed");
    for (std::size_t i = 0; i < column.size(); ++i) {
      if (auto* made = llvm::dyn_cast<llvm::Instruction>(column[i])) {
        b_.SetInsertPoint(made->getParent(), *made->getInsertionPointAfterDef());
      } else {
        b_.SetInsertPoint(&entry, std::next(copy->getIterator()));
      }
      b_.CreateStore(column[i], b_.CreateInBoundsGEP(row, copy, {zero, integer(static_cast<std::int64_t>(i))}));
    }
  }
  return b_.CreateLoad(column[0]->getType(), b_.CreateInBoundsGEP(row, copy, {zero, zero_based}));
}

bool Emitter::make_object(const DataType* type, std::span<const ir::Operand> operands, Val& result) {
  // Fields that are left out are undefined; what is fewer than any `new` may give is an error of the operation itself.
  if (operands.size() > type->fields.size() || operands.size() < type->initialized_fields) return false;
  if (!type->is_mutable && operands.size() != type->fields.size() && layout_.of(type).kind == Kind::fields)
    return false;
  std::vector<Val> fields;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Val v = operand(operands[i]);
    const Type* declared = type->fields[i].type;
    // Leaves nothing to chance: whatever is not known to fit is checked by the operation itself.
    bool fits = v.type == declared || (v.type && v.type->kind == TypeKind::bottom) ||
                is_subtype(layout_.types(), v.type, declared);
    if (!fits) return false;
    fields.push_back(coerce(v, declared));
  }
  const Representation& r = layout_.of(type);
  result = none(type);
  if (r.kind == Kind::none) return true;
  if (r.kind == Kind::fields) {
    for (const Val& field : fields) result.leaves.append(field.leaves.begin(), field.leaves.end());
    return true;
  }
  // Inner boxes first (danger rule 2).
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (storage_of(type->fields[i].type) == Storage::reference && layout_.needs_box(fields[i].type)) {
      fields[i].box = box(fields[i]);
    }
  }
  const bool is_made = current_ && current_->op == ir::Op::make_struct && current_->type == type;
  const ir::Place place = is_made ? place_of(*current_) : ir::Place::heap;
  V object = nullptr;
  if (place == ir::Place::frame) {
    object = object_in_frame(type, fields.size());
  } else if (place == ir::Place::scratch) {
    object = helper(Helper::scratch_object, {context_, pointer(type)});
    fail_when(b_.CreateIsNull(object));
  } else {
    object = allocate_object(type, fields.size());
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    store_stored(at(object, offset::object_payload + type->fields[i].offset), type->fields[i].type, fields[i],
                 type->is_mutable ? Memory::object : Memory::box, true);
  }
  result.leaves.push_back(object);
  return true;
}

// The type of the column that a tape operation means, when it says so or the op that opened the tape is in this
// function.
const Type* Emitter::tape_column(const ir::Inst& inst) {
  std::uintptr_t column = tape_column_of(inst.aux);
  if (const TapeLayout* known = tape_layout_of(inst.aux)) return known->columns[column];
  std::vector<ir::Operand> work{inst.operands[0]};
  std::vector<std::uint32_t> seen;
  const TapeLayout* layout = nullptr;
  while (!work.empty()) {
    ir::Operand o = work.back();
    work.pop_back();
    if (!o.is_inst()) return nullptr;
    if (std::find(seen.begin(), seen.end(), o.index()) != seen.end()) continue;
    seen.push_back(o.index());
    const ir::Inst& from = function_.inst(o);
    if (from.op == Op::undef) continue;  // a path on which no tape was opened: none is used there
    if (from.op == Op::tape_open) {
      if (layout && layout != from.aux_as<TapeLayout>()) return nullptr;
      layout = from.aux_as<TapeLayout>();
    } else if (from.op == Op::parameter && from.block != 0) {
      const ir::Block& block = function_.blocks[from.block];
      std::size_t position =
          std::find(block.parameters.begin(), block.parameters.end(), o.index()) - block.parameters.begin();
      for (ir::BlockId predecessor : cfg_.predecessors[from.block]) {
        for (const ir::Edge& edge : function_.blocks[predecessor].edges) {
          if (edge.target == from.block) work.push_back(edge.arguments[position]);
        }
      }
    } else {
      return nullptr;
    }
  }
  return layout && column < layout->columns.size() ? layout->columns[column] : nullptr;
}

// Long because it is a table: one case for each operation on tapes.
bool Emitter::emit_tape(const ir::Inst& inst, Val& result) {
  const BuiltinTypes& names = layout_.builtin();
  auto tape = [&]() -> V {
    Val t = operand(inst.operands[0]);
    return t.type == names.tape && t.leaves.size() == 1 ? b_.CreateIntToPtr(to_dynamic(t).second, layout_.ptr)
                                                        : nullptr;
  };
  auto row_address = [&](V t, const Type*& column) -> V {
    V columns = load(layout_.ptr, at(t, offset::tape_columns()), Memory::tape_header);
    V base =
        load(layout_.ptr, at(columns, static_cast<std::int64_t>(8 * tape_column_of(inst.aux))), Memory::tape_header);
    V row = operand(inst.operands[1]).leaves[0];
    return b_.CreateInBoundsGEP(layout_.i8, base, b_.CreateNSWMul(row, integer(stored_size(column))));
  };
  switch (inst.op) {
    case Op::tape_open: {
      Val rows = operand(inst.operands[0]);
      if (rows.type != names.int64) return false;
      V t = layout_.ahead ? ahead_tape(inst.aux_as<TapeLayout>(), rows.leaves[0])
                          : helper(Helper::tape_open, {context_, pointer(inst.aux_as<TapeLayout>()), rows.leaves[0]});
      fail_when(b_.CreateIsNull(t));
      result = from_dynamic(pointer(names.tape), b_.CreatePtrToInt(t, layout_.i64), names.tape);
      return true;
    }
    case Op::tape_reserve: {
      V t = tape();
      Val rows = operand(inst.operands[1]);
      if (!t || rows.type != names.int64) return false;
      V capacity = load(layout_.i64, at(t, offset::tape_capacity), Memory::tape_header);
      llvm::BasicBlock* grow = new_block("grow_tape");
      llvm::BasicBlock* done = new_block("tape_ready");
      branch_unlikely(b_.CreateICmpSGT(rows.leaves[0], capacity), grow, done);
      b_.SetInsertPoint(grow);
      fail_when(b_.CreateNot(layout_.ahead ? grow_ahead(t, rows.leaves[0])
                                           : helper(Helper::tape_reserve, {context_, t, rows.leaves[0]})));
      b_.CreateBr(done);
      b_.SetInsertPoint(done);
      result = constant(layout_.runtime().nothing(), names.nothing);
      return true;
    }
    case Op::tape_store: {
      V t = tape();
      if (!t || type_of(inst.operands[1]) != names.int64) return false;
      Val v = operand(inst.operands[2]);
      const Type* column = tape_column(inst);
      if (!column) return false;
      if (layout_.needs_box(v.type) && storage_of(column) != Storage::aggregate) v.box = box(v);
      store_stored(row_address(t, column), column, v, Memory::tape_rows, true);  // tapes are roots
      result = constant(layout_.runtime().nothing(), names.nothing);
      return true;
    }
    case Op::tape_load: {
      V t = tape();
      const Type* column = tape_column(inst);
      if (!t || type_of(inst.operands[1]) != names.int64) return false;
      if (!column) {
        if (layout_.ahead) return false;
        // Opened by the forward half of a derivative, in another function: the tape is asked what the column holds.
        column = inst.type;
        if (!column) return false;
        V layout = load(layout_.ptr, at(t, offsetof(Tape, layout)), Memory::tape_header);
        V types =
            load(layout_.ptr, at(layout, offsetof(TapeLayout, columns)), Memory::tape_header);  // the vector's data
        V type = load(layout_.ptr, at(types, static_cast<std::int64_t>(8 * inst.aux)), Memory::tape_header);
        llvm::BasicBlock* expected = new_block("column");
        llvm::BasicBlock* other = new_block("other_column");
        llvm::BasicBlock* done = new_block("loaded");
        branch_likely(b_.CreateICmpEQ(type, pointer(column)), expected, other);
        b_.SetInsertPoint(other);
        Val slow = coerce(execute(inst), column);
        llvm::BasicBlock* slow_end = b_.GetInsertBlock();
        b_.CreateBr(done);
        b_.SetInsertPoint(expected);
        Val fast = coerce(load_stored(row_address(t, column), column, Memory::tape_rows, false), column);
        llvm::BasicBlock* fast_end = b_.GetInsertBlock();
        b_.CreateBr(done);
        b_.SetInsertPoint(done);
        result = none(column);
        for (std::size_t i = 0; i < fast.leaves.size(); ++i) {
          llvm::PHINode* leaf = b_.CreatePHI(fast.leaves[i]->getType(), 2);
          leaf->addIncoming(slow.leaves[i], slow_end);
          leaf->addIncoming(fast.leaves[i], fast_end);
          result.leaves.push_back(leaf);
        }
        return true;
      }
      result = load_stored(row_address(t, column), column, Memory::tape_rows, false);
      // Proved to have its value (lang/opt/redundant.cpp): what a loop reads of an array may be read before it.
      if ((inst.flags & ir::inst_nothrow) && result.leaves.size() == 1 && column->kind == TypeKind::data)
        if (auto* loaded = llvm::dyn_cast<llvm::LoadInst>(result.leaves[0]);
            loaded && loaded->getType()->isPointerTy()) {
          // noundef keeps nonnull where LLVM makes one load of this and of another one that has no proof.
          loaded->setMetadata(llvm::LLVMContext::MD_nonnull, llvm::MDNode::get(loaded->getContext(), {}));
          loaded->setMetadata(llvm::LLVMContext::MD_noundef, llvm::MDNode::get(loaded->getContext(), {}));
        }
      return true;
    }
    case Op::tape_close: {
      V t = tape();
      if (!t) return false;
      helper(Helper::tape_close, {context_, t});
      result = constant(layout_.runtime().nothing(), names.nothing);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace slope::codegen
