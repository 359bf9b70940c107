// Objects that machine code makes without a call.
//
// Those in the frame (lang/ir/passes/escape.hpp) have memory of their own in the entry block. Header and elements of a
// vector lie apart: the header, whose parts are known, becomes registers although a loop indexes the elements.
//
// Those of the heap, small and of a size known now, are taken from its front, through a call only when the front has none
// (AllocationFront in lang/memory/heap.hpp). No access to these has an alias class. The cell's second word is read as a
// link of the free list, and the object's first field is written to the same place, under the class of the object's
// fields: if both had classes, LLVM would conclude that they are apart and could write the field first.
#include "codegen/emit.hpp"
#include "codegen/known_memory.hpp"
#include "lang/ir/passes/escape.hpp"
#include "lang/memory/heap_blocks.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

constexpr std::size_t word_bytes = 8;
constexpr std::int64_t fresh_ahead = 2048;  // bytes from a fresh cell to what is fetched meanwhile

// Marks the bytes that storing a value of the type at `at` writes.
void cover(std::vector<bool>& bytes, std::size_t at, const Type* type) {
  const DataType* data = as_data(type);
  if (storage_of(type) == Storage::aggregate) {
    for (const Field& field : data->fields) cover(bytes, at + field.offset, field.type);
    return;
  }
  for (std::size_t i = 0; i < stored_size(type); ++i) bytes[at + i] = true;
}

// Offsets of words in the object that its first fields, when they are stored, do not fill.
std::vector<std::size_t> words_left(const DataType* type, std::size_t fields) {
  std::vector<bool> bytes((type->size + word_bytes - 1) / word_bytes * word_bytes);
  for (std::size_t i = 0; i < fields; ++i) cover(bytes, type->fields[i].offset, type->fields[i].type);
  std::vector<std::size_t> result;
  for (std::size_t at = 0; at < bytes.size(); at += word_bytes) {
    bool filled = true;
    for (std::size_t i = 0; i < word_bytes; ++i) filled = filled && bytes[at + i];
    if (!filled) result.push_back(sizeof(Object) + at);
  }
  return result;
}

}  // namespace

// What is rarely run stays short, and so does a function that allocates in very many places.
bool Emitter::allocates_inline(std::size_t bytes, std::size_t words) {
  if (!current_ || bytes > tuning::inline_allocation_bytes || words > tuning::inline_allocation_stores) return false;
  if (only_raises(current_block_id_)) return false;
  return inline_allocations_++ < tuning::inline_allocations;
}

Emitter::V Emitter::take_cell(Heap::CellKind kind, const DataType* type, llvm::function_ref<void(V)> initialize,
                              llvm::function_ref<V()> call) {
  llvm::BasicBlock* looks = new_block("find_cell");
  llvm::BasicBlock* listed = new_block("free_cell");
  llvm::BasicBlock* follows = new_block("fresh_cell");
  llvm::BasicBlock* taken = new_block("take_fresh_cell");
  llvm::BasicBlock* ready = new_block("allocate");
  llvm::BasicBlock* asks = new_block("ask_heap");
  llvm::BasicBlock* done = new_block("allocated");
  V heap = load(layout_.ptr, at(context_, offset::context_heap), Memory::context);
  V room = at(heap, offset::heap_room);
  V free = at(heap, offset::heap_free + static_cast<std::int64_t>(word_bytes) * kind.size_class);
  V left = b_.CreateSub(b_.CreateLoad(layout_.i64, room), integer(kind.bytes));
  branch_likely(b_.CreateICmpSGE(left, integer(0)), looks, asks);

  b_.SetInsertPoint(looks);
  V first = b_.CreateLoad(layout_.ptr, free);
  b_.CreateCondBr(b_.CreateIsNull(first), follows, listed);

  b_.SetInsertPoint(listed);
  b_.CreateStore(b_.CreateLoad(layout_.ptr, at(first, offset::free_cell_next)), free);
  b_.CreateBr(ready);

  b_.SetInsertPoint(follows);
  V fresh = at(heap, offset::heap_fresh + static_cast<std::int64_t>(offset::fresh_cells_bytes) * kind.size_class);
  V next = b_.CreateLoad(layout_.ptr, fresh);
  V end = b_.CreateLoad(layout_.ptr, at(fresh, offset::fresh_cells_end));
  branch_likely(b_.CreateICmpNE(next, end), taken, asks);

  b_.SetInsertPoint(taken);
  b_.CreateStore(at(next, kind.bytes), fresh);
  // Nobody has touched this memory for long.
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {layout_.ptr},
                     {at(next, fresh_ahead), b_.getInt32(1), b_.getInt32(3), b_.getInt32(1)});
  b_.CreateBr(ready);

  b_.SetInsertPoint(ready);
  llvm::PHINode* cell = b_.CreatePHI(layout_.ptr, 2, "cell");
  cell->addIncoming(first, listed);
  cell->addIncoming(next, taken);
  b_.CreateStore(left, room);
  V count = at(heap, offset::heap_allocations);
  b_.CreateStore(b_.CreateAdd(b_.CreateLoad(layout_.i64, count), integer(1)), count);
  b_.CreateStore(pointer(type), cell);
  initialize(cell);
  b_.CreateBr(done);

  b_.SetInsertPoint(asks);
  V made = call();
  fail_when(b_.CreateIsNull(made));
  llvm::BasicBlock* made_end = b_.GetInsertBlock();
  b_.CreateBr(done);

  b_.SetInsertPoint(done);
  llvm::PHINode* object = b_.CreatePHI(layout_.ptr, 2, "object");
  object->addIncoming(cell, ready);
  object->addIncoming(made, made_end);
  mark_known(*object, kind.bytes);
  return object;
}

// The caller stores the first `fields` fields next; the rest is zero.
Emitter::V Emitter::allocate_object(const DataType* type, std::size_t fields) {
  if (layout_.ahead) return ahead_object(type, sizeof(Object) + type->size);
  auto call = [&] { return helper(Helper::box, {context_, pointer(type)}); };
  const std::size_t bytes = sizeof(Object) + type->size;
  const std::vector<std::size_t> left = words_left(type, fields);
  if (!allocates_inline(bytes, left.size())) {
    V object = call();
    fail_when(b_.CreateIsNull(object));
    return object;
  }
  auto clear = [&](V cell) {
    for (std::size_t offset : left) b_.CreateStore(integer(0), at(cell, static_cast<std::int64_t>(offset)));
  };
  return take_cell(layout_.runtime().heap.cell_kind(bytes), type, clear, call);
}

// A captured variable; `is_set`: the caller stores its value next.
Emitter::V Emitter::allocate_cell(bool is_set) {
  if (layout_.ahead) return ahead_object(layout_.builtin().cell, sizeof(CellObject));
  auto call = [&] { return helper(Helper::cell_new, {context_}); };
  const std::size_t bytes = sizeof(CellObject);
  if (!allocates_inline(bytes, 2)) {
    V cell = call();
    fail_when(b_.CreateIsNull(cell));
    return cell;
  }
  auto clear = [&](V cell) {
    if (is_set) return;
    b_.CreateStore(integer(0), at(cell, offset::cell_type));
    b_.CreateStore(integer(0), at(cell, offset::cell_payload));
  };
  return take_cell(layout_.runtime().heap.cell_kind(bytes), layout_.builtin().cell, clear, call);
}

// An item more or less at the end of a vector that has room for it: what push! and pop! mostly need. `call` does the
// rest, as it does everywhere else.
void Emitter::resize_by_one(V vector, V length, const Type* element, llvm::function_ref<void()> call) {
  const std::uint32_t size = stored_size(element);
  if (size == 0 || !allocates_inline(size, 1)) return call();
  auto header = [&](llvm::Type* type, unsigned where) { return load(type, at(vector, where), Memory::array_header); };
  llvm::BasicBlock* one = new_block("resize_by_one");
  llvm::BasicBlock* grows = new_block("one_more");
  llvm::BasicBlock* sets = new_block("set_length");
  llvm::BasicBlock* asks = new_block("ask_to_resize");
  llvm::BasicBlock* done = new_block("resized");
  V old = header(layout_.i64, offset::array_length);
  V more = b_.CreateICmpEQ(length, b_.CreateAdd(old, integer(1)));
  V less = b_.CreateICmpEQ(length, b_.CreateSub(old, integer(1)));
  V flags = header(b_.getInt32Ty(), offset::array_flags);
  V compact_capacity =
      b_.CreateZExt(b_.CreateAnd(b_.CreateLShr(flags, compact_capacity_shift), compact_mask), layout_.i64);
  // Loaded in any case: there is memory there, and no branch.
  V capacity = b_.CreateSelect(b_.CreateICmpNE(b_.CreateAnd(flags, array_compact), b_.getInt32(0)), compact_capacity,
                               header(layout_.i64, offset::array_capacity));
  V fits = b_.CreateICmpULE(length, capacity);  // and is not negative
  V plain = b_.CreateICmpEQ(b_.CreateAnd(flags, b_.getInt32(array_owns_memory | array_shared | array_borrowed)),
                            b_.getInt32(array_owns_memory));
  branch_likely(b_.CreateAnd(b_.CreateAnd(plain, fits), b_.CreateOr(more, less)), one, asks);

  b_.SetInsertPoint(one);
  b_.CreateCondBr(more, grows, sets);
  b_.SetInsertPoint(grows);
  llvm::CallInst* clear =
      b_.CreateMemSet(element_address(vector, length, element), b_.getInt8(0), size, llvm::MaybeAlign(1));
  clear->setMetadata(llvm::LLVMContext::MD_tbaa, layout_.alias_tag_of_all(Memory::elements));
  b_.CreateBr(sets);
  b_.SetInsertPoint(sets);
  store(length, at(vector, offset::array_length), Memory::array_header);
  b_.CreateBr(done);

  b_.SetInsertPoint(asks);
  call();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// A short vector of a length that is known now, as Heap::allocate_array makes it; null for all others.
Emitter::V Emitter::allocate_vector(const DataType* type, V length) {
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(length);
  if (!known || known->isNegative() || known->getValue().getActiveBits() > 31) return nullptr;
  const Type* element = type->params[0];
  const std::uint32_t size = stored_size(element);
  const std::int64_t count = known->getSExtValue();
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * size;
  if (size == 0 || bytes > tuning::inline_allocation_bytes) return nullptr;
  const std::uint64_t zeroed = Heap::starts_zeroed(layout_.builtin(), element) ? (bytes + 7) / 8 : 0;
  if (!allocates_inline(bytes, zeroed)) return nullptr;
  const Heap& heap = layout_.runtime().heap;
  const Heap::VectorCell small = heap.small_vector(known->getZExtValue(), size);
  const std::size_t header = small.flags ? sizeof(ArrayObject) : Heap::array_header_bytes(1);
  const Heap::CellKind kind = small.flags ? small.kind : heap.cell_kind(header + bytes, true);
  auto initialize = [&](V array) {
    V data = at(array, static_cast<std::int64_t>(header));
    b_.CreateStore(data, at(array, offset::array_data));
    b_.CreateStore(integer(count), at(array, offset::array_length));
    b_.CreateStore(b_.getInt32(small.flags ? small.flags : array_owns_memory), at(array, offset::array_flags));
    b_.CreateStore(b_.getInt32(size), at(array, offset::array_element_size));
    if (!small.flags) {
      b_.CreateStore(integer(static_cast<std::int64_t>((kind.bytes - header) / size)),
                     at(array, offset::array_capacity));
      b_.CreateStore(integer(0), at(array, offset::array_front));
    }
    for (std::uint64_t i = 0; i < zeroed; ++i)
      b_.CreateStore(integer(0), at(data, static_cast<std::int64_t>(word_bytes * i)));
  };
  return take_cell(kind, type, initialize, [&] {
    return helper(Helper::array_new, {context_, pointer(type), length});
  });
}

llvm::AllocaInst* Emitter::in_frame(std::size_t bytes, std::size_t alignment, const char* name) {
  llvm::AllocaInst* memory;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    llvm::BasicBlock& entry = output_->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    memory = b_.CreateAlloca(llvm::ArrayType::get(layout_.i8, bytes), nullptr, name);
    memory->setAlignment(llvm::Align(alignment));
  }
  b_.CreateLifetimeStart(memory, b_.getInt64(bytes));  // what an earlier turn of a loop left there is dead
  return memory;
}

Emitter::V Emitter::object_in_frame(const DataType* type, std::size_t fields) {
  V object = in_frame(sizeof(Object) + (type->size + word_bytes - 1) / word_bytes * word_bytes, 16, "object");
  b_.CreateStore(pointer(type), object);
  for (std::size_t offset : words_left(type, fields))
    b_.CreateStore(integer(0), at(object, static_cast<std::int64_t>(offset)));
  return object;
}

// Of a vector outside the heap, with memory of its own that never grows.
void Emitter::fill_header(V array, const DataType* type, V data, V length) {
  store(pointer(type), array, Memory::type_word);
  auto put = [&](V what, unsigned where) { store(what, at(array, where), Memory::array_header); };
  put(data, offset::array_data);
  put(length, offset::array_length);
  put(b_.getInt32(array_owns_memory | array_in_scratch), offset::array_flags);
  put(b_.getInt32(stored_size(type->params[0])), offset::array_element_size);
  put(length, offset::array_capacity);
  put(integer(0), offset::array_front);
}

constexpr std::size_t outside_header = sizeof(ArrayObject) + 2 * word_bytes;

Emitter::V Emitter::vector_in_frame(const DataType* type, V length) {
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(length);
  const std::uint64_t size = stored_size(type->params[0]);
  if (!known || known->isNegative() || known->getZExtValue() * size > ir::frame_object_most) return nullptr;
  const std::uint64_t bytes = known->getZExtValue() * size;
  V data = in_frame(std::max<std::uint64_t>(bytes, word_bytes), 16, "elements");
  V array = in_frame(outside_header, 16, "array");
  fill_header(array, type, data, length);
  if (bytes && Heap::starts_zeroed(layout_.builtin(), type->params[0])) {
    llvm::CallInst* clear = b_.CreateMemSet(data, b_.getInt8(0), bytes, llvm::MaybeAlign(16));
    clear->setMetadata(llvm::LLVMContext::MD_tbaa, layout_.alias_tag_of_all(Memory::elements));
  }
  return array;
}

// A vector of numbers, of a length that is known when it is made: what is free of the chunk moves. `call` makes all
// others.
Emitter::V Emitter::vector_in_scratch(const DataType* type, V length, llvm::function_ref<V()> call) {
  const Type* element = type->params[0];
  const std::uint32_t size = stored_size(element);
  if (size == 0 || Heap::starts_zeroed(layout_.builtin(), element) || !allocates_inline(0, 0)) return nullptr;
  llvm::BasicBlock* ready = new_block("scratch");
  llvm::BasicBlock* asks = new_block("ask_scratch");
  llvm::BasicBlock* done = new_block("in_scratch");
  V free = at(scratch_front_, offset::scratch_at);
  V begin = b_.CreateLoad(layout_.ptr, free);
  V end = b_.CreateLoad(layout_.ptr, at(scratch_front_, offset::scratch_end));
  V room = b_.CreateSub(b_.CreatePtrToInt(end, layout_.i64), b_.CreatePtrToInt(begin, layout_.i64));
  V bytes = b_.CreateAnd(b_.CreateAdd(b_.CreateMul(length, integer(size)), integer(outside_header + 15)), integer(-16));
  V is_short = b_.CreateICmpULE(length, integer(static_cast<std::int64_t>(tuning::inline_allocation_bytes / size)));
  branch_likely(b_.CreateAnd(is_short, b_.CreateICmpSLE(bytes, room)), ready, asks);

  b_.SetInsertPoint(ready);
  b_.CreateStore(b_.CreateGEP(layout_.i8, begin, bytes), free);
  fill_header(begin, type, at(begin, outside_header), length);
  b_.CreateBr(done);

  b_.SetInsertPoint(asks);
  V made = call();
  llvm::BasicBlock* made_end = b_.GetInsertBlock();
  b_.CreateBr(done);

  b_.SetInsertPoint(done);
  llvm::PHINode* array = b_.CreatePHI(layout_.ptr, 2, "array");
  array->addIncoming(begin, ready);
  array->addIncoming(made, made_end);
  mark_known(*array, outside_header);
  return array;
}

}  // namespace slope::codegen
