#include "codegen/layout.hpp"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <unordered_set>

#include "lang/memory/heap_blocks.hpp"
#include "lang/memory/tape.hpp"
#include "lang/support/tuning.hpp"

// The structures here are not all standard-layout; GCC and Clang lay them out as expected and offsetof holds.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace slope::codegen {

namespace offset {
static_assert(offsetof(Context, stack_limit) == context_stack_limit);
static_assert(offsetof(Context, heap) == context_heap);
static_assert(offsetof(Heap, front) == 0);
static_assert(offsetof(AllocationFront, room) == heap_room);
static_assert(offsetof(AllocationFront, allocations) == heap_allocations);
static_assert(offsetof(AllocationFront, marking) == heap_marking);
static_assert(offsetof(AllocationFront, free) == heap_free);
static_assert(offsetof(AllocationFront, fresh) == heap_fresh);
static_assert(sizeof(FreshCells) == fresh_cells_bytes && offsetof(FreshCells, end) == fresh_cells_end);
static_assert(offsetof(FreeCell, next) == free_cell_next);
static_assert(offsetof(Context, interrupt) == context_interrupt);
static_assert(offsetof(Context, tapes) == context_tapes);
static_assert(offsetof(TapePool, scratch) + offsetof(ScratchMemory, front) + offsetof(ScratchFront, at) == scratch_at);
static_assert(offsetof(TapePool, scratch) + offsetof(ScratchMemory, front) + offsetof(ScratchFront, end) ==
              scratch_end);
static_assert(offsetof(Context, fuel) == context_fuel);
static_assert(offsetof(Context, frames) == context_frames);
static_assert(offsetof(Context, loans) == context_loans);
static_assert(offsetof(Context, world) == context_world);
static_assert(sizeof(Object) == object_payload);
static_assert(offsetof(ArrayObject, data) == array_data);
static_assert(offsetof(ArrayObject, length) == array_length);
static_assert(offsetof(ArrayObject, flags) == array_flags);
static_assert(offsetof(ArrayObject, element_size) == array_element_size);
static_assert(sizeof(ArrayObject) == array_words);
static_assert(offsetof(StringObject, length) == string_length);
static_assert(sizeof(StringObject) == string_bytes);
static_assert(offsetof(CellObject, value) == cell_type);
static_assert(offsetof(CellObject, value) + 8 == cell_payload);
static_assert(offsetof(Binding, value) == binding_value);
static_assert(offsetof(Tape, capacity) == tape_capacity);
static_assert(sizeof(Value) == 16 && offsetof(Value, type) == 0 && offsetof(Value, bits) == 8);

unsigned tape_columns() { return offsetof(Tape, columns); }
}  // namespace offset

Layout::Layout(Runtime& runtime, llvm::LLVMContext& llvm_context) : context(llvm_context), runtime_(runtime) {
  ptr = llvm::PointerType::get(context, 0);
  i1 = llvm::Type::getInt1Ty(context);
  i8 = llvm::Type::getInt8Ty(context);
  i32 = llvm::Type::getInt32Ty(context);
  i64 = llvm::Type::getInt64Ty(context);
  value = llvm::StructType::get(context, {ptr, i64});
  boxed_type_ = llvm::FunctionType::get(i1, {ptr, ptr, i64, ptr, i64, ptr}, false);
  alias_root_ = llvm::MDBuilder(context).createTBAARoot("slope");
}

const Representation& Layout::of(const Type* type) {
  auto found = representations_.find(type);
  if (found != representations_.end()) return *found->second;
  auto computed = std::make_unique<Representation>(compute(type));
  return *representations_.emplace(type, std::move(computed)).first->second;
}

namespace {

bool is_immutable_struct(const DataType* data) {
  return data && data->is_concrete && !data->is_mutable && data->object_kind == DataType::ObjectKind::fields &&
         (data->storage == Storage::aggregate || data->storage == Storage::reference);
}

// Can a value of this immutable struct contain another of the same type without a mutable object or union between?
bool holds_itself(const DataType* data) {
  std::unordered_set<const Type*> seen;
  std::vector<const DataType*> work{data};
  while (!work.empty()) {
    const DataType* at = work.back();
    work.pop_back();
    for (const Field& field : at->fields) {
      if (field.type == data) return true;
      const DataType* inner = as_data(field.type);
      if (is_immutable_struct(inner) && seen.insert(inner).second) work.push_back(inner);
    }
  }
  return false;
}

// Of immutable structs within each other that machine code keeps as their parts: what walks them recurses.
constexpr std::uint32_t most_flat_levels = tuning::flat_levels;
using StructLevels = std::unordered_map<const DataType*, std::uint32_t>;

// How many levels `data` has; more than most_flat_levels when there are more. What holds itself is boxed, and is none.
std::uint32_t struct_levels(const DataType* data, StructLevels& known, std::uint32_t depth = 1) {
  if (depth > most_flat_levels) return most_flat_levels + 1;
  if (const auto found = known.find(data); found != known.end()) return found->second;
  if (holds_itself(data)) return known.emplace(data, 0).first->second;
  std::uint32_t inside = 0;
  for (const Field& field : data->fields) {
    const DataType* inner = as_data(field.type);
    if (is_immutable_struct(inner)) inside = std::max(inside, struct_levels(inner, known, depth + 1));
    if (inside >= most_flat_levels) return most_flat_levels + 1;
  }
  known.emplace(data, inside + 1);
  return inside + 1;
}

}  // namespace

Representation Layout::compute(const Type* type) {
  using Kind = Representation::Kind;
  const BuiltinTypes& names = builtin();
  Representation result;
  auto none = [&](Value constant) {
    result.kind = Kind::none;
    result.constant = constant;
    return result;
  };
  if (!type || type->kind == TypeKind::bottom) return none(Value());
  const DataType* data = as_data(type);
  if (data && data->name == names.type_name && data->params.size() == 1 && !data->has_free_vars &&
      data->params[0]->kind != TypeKind::var && data->params[0]->kind != TypeKind::value) {
    return none(runtime_.from_type(data->params[0]));
  }
  if (!data || !data->is_concrete) {
    result.kind = Kind::dynamic;
    result.leaves = {ptr, i64};
    return result;
  }
  switch (data->storage) {
    case Storage::singleton:
      return none(data->instance);
    case Storage::bits:
      result.kind = Kind::bits;
      if (data == names.float64) {
        result.leaves = {llvm::Type::getDoubleTy(context)};
      } else if (data == names.float32) {
        result.leaves = {llvm::Type::getFloatTy(context)};
      } else if (data == names.boolean) {
        result.leaves = {i1};
      } else {
        result.leaves = {llvm::IntegerType::get(context, data->size * 8)};
      }
      return result;
    case Storage::dynamic:
      result.kind = Kind::dynamic;
      result.leaves = {ptr, i64};
      return result;
    case Storage::aggregate:
    case Storage::reference:
      break;
  }
  if (!is_immutable_struct(data)) {
    result.kind = Kind::reference;
    result.leaves = {ptr};
    return result;
  }
  result.kind = Kind::boxed;
  result.leaves = {ptr};
  bool may_be_partly_undefined = data->storage == Storage::reference && data->initialized_fields < data->fields.size();
  if (may_be_partly_undefined || data->fields.size() > max_leaves || holds_itself(data)) return result;
  StructLevels known;
  if (struct_levels(data, known) > most_flat_levels) return result;
  Representation flat;
  flat.kind = Kind::fields;
  for (const Field& field : data->fields) {
    flat.field_start.push_back(flat.leaves.size());
    const Representation& inner = of(field.type);
    flat.leaves.append(inner.leaves.begin(), inner.leaves.end());
  }
  flat.field_start.push_back(flat.leaves.size());
  return flat.leaves.size() > max_leaves ? result : flat;
}

std::vector<std::uint64_t> Layout::known_bytes(const Type* type) {
  const Representation& r = of(type);
  const DataType* data = as_data(type);
  if (r.kind == Representation::Kind::reference && data->object_kind == DataType::ObjectKind::array) {
    const ValueType* dims = data->params.size() > 1 ? as_value(data->params[1]) : nullptr;
    return {sizeof(ArrayObject) + (dims ? 8 + 8 * static_cast<std::uint64_t>(dims->value.bits) : 0)};
  }
  if (r.kind != Representation::Kind::fields) return std::vector<std::uint64_t>(r.leaves.size());
  std::vector<std::uint64_t> result;
  for (const Field& field : data->fields) {
    std::vector<std::uint64_t> inner = known_bytes(field.type);
    result.insert(result.end(), inner.begin(), inner.end());
  }
  return result;
}

bool Layout::needs_box(const Type* type) {
  const Representation& r = of(type);
  return r.kind == Representation::Kind::fields;
}

llvm::Type* Layout::return_type(const Signature& signature) {
  const Representation& result = of(signature.result);
  llvm::SmallVector<llvm::Type*, 4> members(result.leaves.begin(), result.leaves.end());
  if (signature.has_status) members.push_back(i8);
  if (members.empty()) return llvm::Type::getVoidTy(context);
  if (members.size() == 1) return members[0];
  return llvm::StructType::get(context, members);
}

llvm::FunctionType* Layout::function_type(const Signature& signature) {
  llvm::SmallVector<llvm::Type*, 8> parameters{ptr};
  for (const Type* type : signature.parameters) {
    const Representation& r = of(type);
    parameters.append(r.leaves.begin(), r.leaves.end());
  }
  return llvm::FunctionType::get(return_type(signature), parameters, false);
}

llvm::MDNode* Layout::alias_tag(Memory memory, llvm::Type* leaf) {
  auto kind = static_cast<std::uint32_t>(memory);
  std::uint32_t leaf_kind = 0;
  std::string leaf_name;
  if (memory == Memory::elements || memory == Memory::object || memory == Memory::box || memory == Memory::tape_rows) {
    if (leaf->isPointerTy()) {
      leaf_kind = 1, leaf_name = "reference";
    } else if (leaf->isDoubleTy()) {
      leaf_kind = 2, leaf_name = "double";
    } else if (leaf->isFloatTy()) {
      leaf_kind = 3, leaf_name = "float";
    } else {
      unsigned bits = leaf->getIntegerBitWidth();
      leaf_kind = 16 + bits, leaf_name = "i" + std::to_string(bits);
    }
  }
  std::uint64_t key = std::uint64_t{kind} << 32 | leaf_kind;
  if (auto found = alias_tags_.find(key); found != alias_tags_.end()) return found->second;
  static constexpr const char* names[] = {"context", "type", "array",   "elements", "object",
                                          "box",     "cell", "binding", "tape",     "rows"};
  llvm::MDBuilder metadata(context);
  llvm::MDNode*& parent = alias_parents_[kind];
  if (!parent) parent = metadata.createTBAAScalarTypeNode(names[kind], alias_root_);
  llvm::MDNode* node = parent;
  if (leaf_kind) node = metadata.createTBAAScalarTypeNode(std::string(names[kind]) + " " + leaf_name, parent);
  llvm::MDNode* tag = metadata.createTBAAStructTagNode(node, node, 0);
  alias_tags_[key] = tag;
  return tag;
}

llvm::MDNode* Layout::alias_tag_of_all(Memory memory) {
  alias_tag(memory, i64);  // makes the parent
  llvm::MDNode* parent = alias_parents_[static_cast<std::uint32_t>(memory)];
  return llvm::MDBuilder(context).createTBAAStructTagNode(parent, parent, 0);
}

}  // namespace slope::codegen
