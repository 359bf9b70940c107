// Code for programs without an engine: what the Emitter does differently (codegen/ahead_code.hpp has the rules).
#include <algorithm>

#include "codegen/ahead_code.hpp"
#include "codegen/emit.hpp"
#include "lang/memory/tape.hpp"

namespace slope::codegen {

using ir::Op;
using Kind = Representation::Kind;

namespace {

constexpr std::size_t unit_bytes = 16;  // memory is taken in multiples of it
std::size_t round_up(std::size_t bytes) { return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes; }

bool is_bottom(const Type* type) { return type && type->kind == TypeKind::bottom; }

bool is_lent_array(const Type* type) {
  const DataType* data = as_data(type);
  return data && data->is_concrete && data->object_kind == DataType::ObjectKind::array;
}

std::int64_t rank_of(const Type* array) {
  const DataType* data = as_data(array);
  const ValueType* n = data->params.size() == 2 ? as_value(data->params[1]) : nullptr;
  return n ? n->value.bits : -1;
}

std::string name_of_callee(const ir::Function& function, ir::Operand callee) {
  if (!callee.is_constant()) return "a function that is known only at run time";
  const Value v = function.constant_value(callee);
  const DataType* type = as_data(v.type);
  if (v.type && v.type->is_kind) return "`" + to_string(v.as_type) + "`";
  std::string name = type && type->name ? type->name->name->name : "?";
  if (name.starts_with("typeof(")) name = name.substr(7, name.size() - 8);
  return "`" + name + "`";
}

// The status of the exception that a call which never returns raises, found in its code.
std::uint32_t raised_by(const ir::Function& function, int depth);

std::uint32_t raised_by_call(const ir::Inst& inst, int depth) {
  if (inst.op != Op::invoke || depth == 0) return 0;
  const Specialization& target = *inst.aux_as<Specialization>();
  for (std::size_t i = target.code.size(); i-- > 0;)
    if (target.code[i]->typed) return raised_by(*target.code[i]->typed, depth - 1);
  return 0;
}

std::uint32_t raised_by(const ir::Function& function, int depth) {
  for (const ir::Block& block : function.blocks) {
    for (std::uint32_t id : block.insts)
      if (is_bottom(function.insts[id].type))
        if (const std::uint32_t found = raised_by_call(function.insts[id], depth)) return found;
    if (block.terminator == ~0u) continue;
    const ir::Inst& end = function.insts[block.terminator];
    if (end.op != Op::throw_ || !end.operands[0].is_inst()) continue;
    if (const std::uint32_t found = Ahead::kind_of_exception(function.inst(end.operands[0]).type)) return found;
  }
  return 0;
}

}  // namespace

// --- what is said about a place ---

bool Ahead::is_library(Span span) const {
  return span.file == 0 || runtime_.sources.file(span.file).name().starts_with("Base/");
}

Span Ahead::place(const ir::Function& function, const ir::Inst& inst) const {
  Span span = inst.span;
  std::uint32_t scope = inst.scope;
  while (is_library(span) && scope < function.scopes.size()) {
    span = function.scopes[scope].call_site;
    scope = function.scopes[scope].parent;
  }
  if (is_library(span) && function.method && !is_library(function.method->span)) span = function.method->span;
  return is_library(span) ? Span() : span;
}

std::uint32_t Ahead::line(const TraceSite* site) const {
  if (!site) return 0;
  for (const TraceEntry& entry : site->entries)
    if (!is_library(entry.span))
      return std::min<std::uint32_t>(runtime_.sources.line_of(entry.span), (1u << ahead_line_bits) - 1);
  return 0;
}

void Ahead::note_address(const void* address, const ir::Function& function, const ir::Inst& inst) {
  if (!address || addresses.contains(address)) return;
  std::string what = "uses an object that only the engine has";
  if (inst.op == Op::load_global || inst.op == Op::store_global) {
    what = std::string(inst.op == Op::load_global ? "reads" : "assigns") + " the global variable `" +
           inst.aux_as<Binding>()->name->name + "`: declare it `const`, or pass it as an argument";
  }
  addresses[address] = {std::move(what), place(function, inst)};
}

std::string Ahead::reason_of(const ir::Function&, const ir::Inst& inst) {
  if (inst.op == Op::store_global)
    return "assigns the global variable `" + std::string(inst.aux_as<Binding>()->name->name) + "`";
  if (inst.op == Op::load_global)
    return "reads the global variable `" + std::string(inst.aux_as<Binding>()->name->name) +
           "`: declare it `const`, or pass it as an argument";
  if (ir::is_resize(inst.op)) return "changes the length of a vector";
  return "needs `" + std::string(ir::op_name(inst.op)) + "` with values whose types are known only at run time";
}

std::string Ahead::reason_of_call(const ir::Function& function, const ir::Inst& inst, TypeTable& types) {
  if (inst.op == Op::native) {
    const std::string name = inst.aux_as<NativeInfo>()->name;
    if (name.starts_with("value_and_gradient") || name.starts_with("pullback") || name.starts_with("jvp") ||
        name.starts_with("hvp"))
      return "differentiates a function in a way that is found only at run time (`" + name + "`)";
    if (name == "keep_memory" || name == "put_back_memory")
      return "stores into memory that was there before: its gradient would have to put that back";
    return "calls `" + name + "`, which only the engine can do";
  }
  if (inst.op == Op::invoke)
    return "calls `" + std::string(inst.aux_as<Specialization>()->method->name->name) +
           "`, of which there is no typed code";
  const std::string call = "calls " + name_of_callee(function, inst.operands[0]);
  const bool are_known = std::all_of(inst.operands.begin(), inst.operands.end(), [&](ir::Operand o) {
    const DataType* type = as_data(function.type_of(o, types));
    return type && type->is_concrete;
  });
  if (are_known) return call + ", which only the engine can do";  // such as `println`, which is not specialised
  return call + " with arguments whose types are known only at run time";
}

std::uint32_t Ahead::kind_of(Op op) {
  switch (op) {
    case Op::sdiv_int:
    case Op::udiv_int:
    case Op::srem_int:
    case Op::urem_int:
      return status(AheadError::division);
    case Op::type_assert:
      return status(AheadError::type);
    case Op::get_field:
      return status(AheadError::bounds);
    default:
      return status(AheadError::other);
  }
}

std::uint32_t Ahead::kind_of_exception(const Type* type) {
  const DataType* data = as_data(type);
  if (!data || !data->name) return 0;
  static constexpr std::pair<const char*, AheadError> known[] = {
      {"BoundsError", AheadError::bounds},
      {"DomainError", AheadError::domain},
      {"DimensionMismatch", AheadError::dimensions},
      {"ArgumentError", AheadError::argument},
      {"DivideError", AheadError::division},
      {"InexactError", AheadError::conversion},
      {"OverflowError", AheadError::conversion},
      {"MethodError", AheadError::type},
      {"TypeError", AheadError::type},
  };
  for (const auto& [name, error] : known)
    if (data->name->name->name == name) return status(error);
  return status(AheadError::other);
}

// --- blocks ---

std::vector<char> Emitter::blocks_that_raise() {
  std::vector<char> raises(function_.blocks.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = cfg_.order.rbegin(); it != cfg_.order.rend(); ++it) {
      const ir::Block& block = function_.blocks[*it];
      if (raises[*it] || block.handler != ir::no_block) continue;
      const Op end = function_.insts[block.terminator].op;
      bool does = end == Op::throw_ || end == Op::unreachable;
      for (std::uint32_t id : block.insts) does = does || is_bottom(function_.insts[id].type);
      if (!does && !block.edges.empty())
        does = std::all_of(block.edges.begin(), block.edges.end(),
                           [&](const ir::Edge& edge) { return raises[edge.target] != 0; });
      raises[*it] = does;
      changed = changed || does;
    }
  }
  return raises;
}

std::vector<char> Emitter::blocks_that_run() {
  std::vector<char> runs(function_.blocks.size());
  std::vector<ir::BlockId> work{0};
  runs[0] = 1;
  while (!work.empty()) {
    const ir::BlockId id = work.back();
    work.pop_back();
    auto add = [&](ir::BlockId next) {
      if (next != ir::no_block && !std::exchange(runs[next], 1)) work.push_back(next);
    };
    if (raises_[id]) continue;
    for (const ir::Edge& edge : function_.blocks[id].edges) add(edge.target);
    add(function_.blocks[id].handler);
  }
  return runs;
}

void Emitter::raise_ahead(ir::BlockId block) {
  if (!signature_.has_status) {
    b_.CreateUnreachable();
    return;
  }
  const ir::Inst* place = nullptr;
  std::uint32_t status = 0;
  for (int steps = 0; !place && steps < 64; ++steps) {
    const ir::Block& here = function_.blocks[block];
    for (std::uint32_t id : here.insts) {
      if (!is_bottom(function_.insts[id].type)) continue;
      place = &function_.insts[id];
      status = raised_by_call(*place, 8);
      break;
    }
    const ir::Inst& end = function_.insts[here.terminator];
    if (!place && (end.op == Op::throw_ || end.op == Op::unreachable)) {
      place = &end;
      if (end.op == Op::throw_) status = Ahead::kind_of_exception(type_of(end.operands[0]));
    }
    if (!place) block = here.edges[0].target;
  }
  if (place) current_ = place;
  if (status == 0) status = Ahead::status(AheadError::other);
  current_site_ = nullptr;
  call_ahead("slope.raise", {context_, b_.getInt32(status)});
  return_error(current_site());
}

Emitter::V Emitter::site_value(const TraceSite* site) {
  if (!layout_.ahead) return pointer(site);
  return b_.CreateIntToPtr(integer(layout_.ahead->line(site)), layout_.ptr);
}

// --- what the engine would do ---

Emitter::V Emitter::call_ahead(const char* name, llvm::ArrayRef<V> arguments) {
  return b_.CreateCall(unit_.module().getFunction(name), arguments);
}

Emitter::V Emitter::need(llvm::Type* result, std::string what) {
  Ahead& ahead = *layout_.ahead;
  const std::string name = need_prefix + std::to_string(ahead.needs.size());
  ahead.needs.push_back({std::move(what), current_ ? ahead.place(function_, *current_) : Span()});
  return b_.CreateCall(unit_.module().getOrInsertFunction(name, llvm::FunctionType::get(result, false)));
}

// A different word each time, so that nothing is concluded of it.
Val Emitter::need_value(const ir::Inst& inst, std::string what) {
  if (is_bottom(inst.type)) {
    call_ahead("slope.raise", {context_, b_.getInt32(Ahead::status(AheadError::other))});
    fail();
    return none(inst.type);
  }
  V word = need(layout_.i64, std::move(what));
  if (!inst.type) return none(inst.type);
  Val result = none(inst.type);
  for (llvm::Type* leaf : layout_.of(inst.type).leaves) {
    if (leaf->isPointerTy()) {
      result.leaves.push_back(b_.CreateIntToPtr(word, leaf));
    } else if (leaf->isFloatingPointTy()) {
      result.leaves.push_back(
          b_.CreateBitCast(b_.CreateTrunc(word, b_.getIntNTy(leaf->getPrimitiveSizeInBits())), leaf));
    } else {
      result.leaves.push_back(b_.CreateZExtOrTrunc(word, leaf));
    }
  }
  return result;
}

Emitter::V Emitter::ahead_helper(Helper which, llvm::ArrayRef<V> arguments) {
  auto raise = [&](AheadError error) {
    return call_ahead("slope.raise", {context_, b_.getInt32(Ahead::status(error))});
  };
  switch (which) {
    case Helper::trace:
      return call_ahead("slope.note", {arguments[0], arguments[1]});
    case Helper::bounds_error:
      return raise(AheadError::bounds);
    case Helper::branch_type_error:
      return raise(AheadError::type);
    case Helper::throw_value:
    case Helper::unreachable:
    case Helper::invoke_error:
      return raise(AheadError::other);
    case Helper::undef_var:
      raise(AheadError::other);
      return b_.getFalse();
    case Helper::outliving_array:
      return arguments[1];
    case Helper::tape_close:
    case Helper::leave_catch:
      return nullptr;
    case Helper::array_resize:
    case Helper::resize_front:
      return need(layout_.i1, "changes the length of a vector");
    case Helper::store_global:
      return need(layout_.i1, current_ ? Ahead::reason_of(function_, *current_) : "assigns a global variable");
    case Helper::catch_error:
    case Helper::caught:
    case Helper::caught_end:
    case Helper::catch_depth:
      return need(which == Helper::catch_depth   ? static_cast<llvm::Type*>(layout_.i64)
                  : which == Helper::catch_error ? static_cast<llvm::Type*>(layout_.i1)
                                                 : b_.getVoidTy(),
                  "catches exceptions");
    default: {
      const HelperInfo& info = helper_info(which);
      llvm::Type* result = info.result == 'b'   ? static_cast<llvm::Type*>(layout_.i1)
                           : info.result == 'p' ? static_cast<llvm::Type*>(layout_.ptr)
                           : info.result == 'l' ? static_cast<llvm::Type*>(layout_.i64)
                                                : b_.getVoidTy();
      return need(result, current_ ? Ahead::reason_of(function_, *current_) : "needs the engine");
    }
  }
}

Emitter::V Emitter::take(V bytes) {
  V memory = call_ahead("slope.take", {context_, bytes});
  fail_when(b_.CreateIsNull(memory));
  return memory;
}

Emitter::V Emitter::ahead_object(const DataType* type, std::size_t bytes) {
  V object = take(integer(static_cast<std::int64_t>(round_up(bytes))));
  b_.CreateMemSet(object, b_.getInt8(0), bytes, llvm::MaybeAlign(8));
  b_.CreateStore(pointer(type), object);
  return object;
}

Emitter::V Emitter::ahead_array(const DataType* type, llvm::ArrayRef<V> dims) {
  const Type* element = type->params[0];
  const std::int64_t size = stored_size(element);
  V length = integer(1), bad = b_.getFalse();
  for (V n : dims) {
    V product = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umul_with_overflow, length, n);
    length = b_.CreateExtractValue(product, 0);
    bad = b_.CreateOr(bad, b_.CreateOr(b_.CreateExtractValue(product, 1), b_.CreateICmpSLT(n, integer(0))));
  }
  constexpr std::int64_t most = std::int64_t{1} << 40;
  bad = b_.CreateOr(bad, b_.CreateICmpUGT(length, integer(most)));
  llvm::BasicBlock* wrong = new_block("no_length");
  llvm::BasicBlock* good = new_block("length");
  branch_unlikely(bad, wrong, good);
  b_.SetInsertPoint(wrong);
  call_ahead("slope.raise", {context_, b_.getInt32(Ahead::status(AheadError::argument))});
  fail();
  b_.SetInsertPoint(good);
  const std::size_t header = round_up(Heap::array_header_bytes(dims.size()));
  V data_bytes = b_.CreateNUWMul(length, integer(size));
  V bytes = b_.CreateAnd(b_.CreateNUWAdd(data_bytes, integer(static_cast<std::int64_t>(unit_bytes - 1))),
                         integer(-static_cast<std::int64_t>(unit_bytes)));
  // Two pieces, so that who writes elements is known not to write the header.
  V array = take(integer(static_cast<std::int64_t>(header)));
  V data = take(bytes);
  auto put = [&](V what, unsigned where) { store(what, at(array, where), Memory::array_header); };
  store(pointer(type), array, Memory::type_word);
  put(data, offset::array_data);
  put(length, offset::array_length);
  put(b_.getInt32(array_owns_memory), offset::array_flags);
  put(b_.getInt32(static_cast<std::uint32_t>(size)), offset::array_element_size);
  const auto rank = static_cast<std::int64_t>(dims.size());
  if (rank == 1) {
    put(length, offset::array_capacity);
    put(integer(0), offset::array_front);
  } else {
    for (std::int64_t i = 0; i < rank; ++i) put(dims[static_cast<std::size_t>(i)], offset::array_dim(rank, i));
  }
  if (Heap::starts_zeroed(layout_.builtin(), element))
    b_.CreateMemSet(data, b_.getInt8(0), data_bytes, llvm::Align(16));
  return array;
}

// Its layout's word holds the sizes of the columns (slope.grow_tape).
Emitter::V Emitter::ahead_tape(const TapeLayout* layout, V rows) {
  const auto count = static_cast<std::int64_t>(layout->columns.size());
  const auto header = static_cast<std::int64_t>(round_up(sizeof(Tape)));
  // More than any memory has is as good as too much.
  constexpr std::int64_t most = std::int64_t{1} << 40;
  V at_least = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, rows, integer(0));
  at_least = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at_least, integer(most));
  V bytes = integer(header + static_cast<std::int64_t>(round_up(static_cast<std::size_t>(8 * count))));
  llvm::SmallVector<V, 8> starts;
  std::vector<llvm::Constant*> sizes{b_.getInt64(static_cast<std::uint64_t>(count))};
  for (const Type* column : layout->columns) {
    starts.push_back(bytes);
    const std::uint64_t size = stored_size(column);
    sizes.push_back(b_.getInt64(size));
    V more = b_.CreateAdd(b_.CreateMul(at_least, b_.getInt64(size)), integer(unit_bytes - 1));
    bytes = b_.CreateAdd(bytes, b_.CreateAnd(more, integer(-static_cast<std::int64_t>(unit_bytes))));
  }
  V tape = take(bytes);
  V columns = at(tape, header);
  auto* table = llvm::ConstantArray::get(llvm::ArrayType::get(layout_.i64, sizes.size()), sizes);
  auto* known = new llvm::GlobalVariable(unit_.module(), table->getType(), true, llvm::GlobalValue::InternalLinkage,
                                         table, "slope.sizes");
  store(at_least, at(tape, offset::tape_capacity), Memory::tape_header);
  store(known, at(tape, offsetof(Tape, layout)), Memory::tape_header);
  store(columns, at(tape, offset::tape_columns()), Memory::tape_header);
  for (std::int64_t i = 0; i < count; ++i)
    store(b_.CreateInBoundsGEP(layout_.i8, tape, starts[static_cast<std::size_t>(i)]), at(columns, 8 * i),
          Memory::tape_header);
  return tape;
}

Emitter::V Emitter::grow_ahead(V tape, V rows) {
  V columns = load(layout_.ptr, at(tape, offset::tape_columns()), Memory::tape_header);
  V sizes = load(layout_.ptr, at(tape, offsetof(Tape, layout)), Memory::tape_header);
  return call_ahead("slope.grow_tape", {context_, tape, rows, columns, sizes});
}

// The size along a dimension that is known only at run time.
Emitter::V Emitter::ahead_size(V array, V dimension, std::int64_t rank) {
  llvm::BasicBlock* bad = new_block("no_dimension");
  llvm::BasicBlock* good = new_block("dimension");
  branch_unlikely(b_.CreateICmpSLT(dimension, integer(1)), bad, good);
  b_.SetInsertPoint(bad);
  call_ahead("slope.raise", {context_, b_.getInt32(Ahead::status(AheadError::argument))});
  fail();
  b_.SetInsertPoint(good);
  V size = integer(1);
  for (std::int64_t d = 0; d < rank; ++d) {
    V here = load(layout_.i64, at(array, offset::array_dim(rank, d)), Memory::array_header);
    size = b_.CreateSelect(b_.CreateICmpEQ(dimension, integer(d + 1)), here, size);
  }
  return size;
}

// An array of numbers that the program holds as a constant is copied into the object, as it is now.
llvm::Constant* Emitter::ahead_constant(Value v) {
  if (!is_lent_array(v.type)) return nullptr;
  const auto* array = static_cast<const ArrayObject*>(v.object);
  const Type* element = as_data(v.type)->params[0];
  const std::int64_t rank = rank_of(v.type);
  if (storage_of(element) != Storage::bits || rank < 1) return nullptr;
  llvm::Constant*& known = layout_.ahead->copies[v.object];
  if (known) return known;
  llvm::LLVMContext& context = layout_.context;
  const auto bytes = static_cast<std::size_t>(array->length) * array->element_size;
  llvm::Constant* content = llvm::ConstantDataArray::get(
      context, llvm::ArrayRef<std::uint8_t>(reinterpret_cast<const std::uint8_t*>(array->data), bytes));
  // Not constant for LLVM's passes: what would store into it is to be found, not undefined.
  auto* data = new llvm::GlobalVariable(unit_.module(), content->getType(), false, llvm::GlobalValue::InternalLinkage,
                                        content, "slope.data");
  data->setAlignment(llvm::Align(64));
  auto word = [&](std::int64_t n) { return llvm::ConstantInt::get(layout_.i64, static_cast<std::uint64_t>(n)); };
  std::vector<llvm::Constant*> fields{llvm::cast<llvm::Constant>(pointer(v.type)),
                                      data,
                                      word(array->length),
                                      b_.getInt32(array_borrowed),
                                      b_.getInt32(array->element_size),
                                      llvm::ConstantPointerNull::get(layout_.ptr)};
  for (std::int64_t i = 0; i < rank; ++i) fields.push_back(word(dims_of(array)[i]));
  llvm::Constant* header = llvm::ConstantStruct::getAnon(fields);
  auto* made = new llvm::GlobalVariable(unit_.module(), header->getType(), true, llvm::GlobalValue::InternalLinkage,
                                        header, "slope.constant");
  made->setAlignment(llvm::Align(16));
  if (current_) layout_.ahead->places[data] = layout_.ahead->places[made] = layout_.ahead->place(function_, *current_);
  return known = made;
}

bool Emitter::are_matrices(const ir::Inst& inst, std::initializer_list<std::pair<std::size_t, int>> which) {
  for (const auto& [i, rank] : which) {
    const Type* type = type_of(inst.operands[i]);
    if (!is_lent_array(type) || as_data(type)->params[0] != layout_.builtin().float64 || rank_of(type) != rank)
      return false;
  }
  return true;
}

void Emitter::raise_when(V condition, AheadError error) {
  llvm::BasicBlock* bad = new_block("misfit");
  llvm::BasicBlock* good = new_block("fit");
  branch_unlikely(condition, bad, good);
  b_.SetInsertPoint(bad);
  call_ahead("slope.raise", {context_, b_.getInt32(Ahead::status(error))});
  fail();
  b_.SetInsertPoint(good);
}

// blas_gemv(transposed, α, A, x, β, y) as dgemv_; false: of other types.
bool Emitter::product_of_vector(const ir::Inst& inst, Val& result) {
  const BuiltinTypes& types = layout_.builtin();
  if (inst.operands.size() != 6 || type_of(inst.operands[0]) != types.boolean ||
      type_of(inst.operands[1]) != types.float64 || type_of(inst.operands[4]) != types.float64 ||
      !are_matrices(inst, {{2, 2}, {3, 1}, {5, 1}}))
    return false;
  auto leaf = [&](std::size_t i) { return operand(inst.operands[i]).leaves[0]; };
  auto header = [&](V array, unsigned where) { return load(layout_.i64, at(array, where), Memory::array_header); };
  auto data = [&](V array) { return load(layout_.ptr, at(array, offset::array_data), Memory::array_header); };
  V transposed = leaf(0), a = leaf(2), x = leaf(3), y = leaf(5);
  V m = header(a, offset::array_dim(2, 0)), n = header(a, offset::array_dim(2, 1));
  V bad = b_.CreateOr(b_.CreateICmpNE(header(x, offset::array_length), b_.CreateSelect(transposed, m, n)),
                      b_.CreateICmpNE(header(y, offset::array_length), b_.CreateSelect(transposed, n, m)));
  raise_when(bad, AheadError::dimensions);
  V most = integer(2147483647);
  V apart = b_.CreateICmpNE(data(x), data(y));
  raise_when(b_.CreateOr(b_.CreateNot(apart), b_.CreateOr(b_.CreateICmpUGT(m, most), b_.CreateICmpUGT(n, most))),
             AheadError::argument);
  call_ahead("slope.gemv", {transposed, m, n, leaf(1), data(a), data(x), leaf(4), data(y)});
  result = none(inst.type);
  return true;
}

// blas_gemm(transpose A, transpose B, α, A, B, β, C) as dgemm_.
bool Emitter::product(const ir::Inst& inst, Val& result) {
  const BuiltinTypes& types = layout_.builtin();
  if (inst.operands.size() != 7 || type_of(inst.operands[0]) != types.boolean ||
      type_of(inst.operands[1]) != types.boolean || type_of(inst.operands[2]) != types.float64 ||
      type_of(inst.operands[5]) != types.float64 || !are_matrices(inst, {{3, 2}, {4, 2}, {6, 2}}))
    return false;
  auto leaf = [&](std::size_t i) { return operand(inst.operands[i]).leaves[0]; };
  auto size = [&](V array, unsigned d) {
    return load(layout_.i64, at(array, offset::array_dim(2, d)), Memory::array_header);
  };
  auto data = [&](V array) { return load(layout_.ptr, at(array, offset::array_data), Memory::array_header); };
  V ta = leaf(0), tb = leaf(1), a = leaf(3), b = leaf(4), c = leaf(6);
  V m = b_.CreateSelect(ta, size(a, 1), size(a, 0)), k = b_.CreateSelect(ta, size(a, 0), size(a, 1));
  V n = b_.CreateSelect(tb, size(b, 0), size(b, 1));
  V bad = b_.CreateICmpNE(b_.CreateSelect(tb, size(b, 1), size(b, 0)), k);
  bad = b_.CreateOr(bad, b_.CreateOr(b_.CreateICmpNE(size(c, 0), m), b_.CreateICmpNE(size(c, 1), n)));
  raise_when(bad, AheadError::dimensions);
  V most = integer(2147483647);
  V same = b_.CreateOr(b_.CreateICmpEQ(data(a), data(c)), b_.CreateICmpEQ(data(b), data(c)));
  for (V length : {m, n, k}) same = b_.CreateOr(same, b_.CreateICmpUGT(length, most));
  raise_when(same, AheadError::argument);
  call_ahead("slope.gemm", {ta, tb, m, n, k, leaf(2), data(a), size(a, 0), data(b), size(b, 0), leaf(5), data(c)});
  result = none(inst.type);
  return true;
}

// Memory that is written lies apart from all other memory that was passed; so says the C interface. What is only read
// may be treated as if it did.
Val Emitter::ahead_native(const ir::Inst& inst, const NativeInfo& info) {
  const std::string_view name = info.name;
  if ((name == "shares_memory" || name == "share_memory") && inst.type == layout_.builtin().boolean)
    return boolean(b_.getFalse());
  if (Val result; name == "blas_gemv" ? product_of_vector(inst, result) : name == "blas_gemm" && product(inst, result))
    return result;
  return need_value(inst, Ahead::reason_of_call(function_, inst, layout_.types()));
}

// --- the entry ---

llvm::FunctionType* Ahead::entry_type(Layout& layout, const Signature& signature) {
  llvm::SmallVector<llvm::Type*, 16> types;
  for (std::size_t i = 1; i < signature.parameters.size(); ++i) {
    const Type* type = signature.parameters[i];
    if (is_lent_array(type)) {
      types.push_back(layout.ptr);
      types.append(static_cast<std::size_t>(rank_of(type)), layout.i64);
    } else {
      types.append(layout.of(type).leaves.begin(), layout.of(type).leaves.end());
    }
  }
  types.append(layout.of(signature.result).leaves.size(), layout.ptr);
  types.push_back(layout.ptr);
  types.push_back(layout.i64);
  return llvm::FunctionType::get(layout.i32, types, false);
}

void Emitter::emit_ahead(Layout& layout, Unit& unit, BatchData& data, EmitHost& host, const ir::Function& function,
                         const Signature& signature, llvm::FunctionCallee native, llvm::Function* output) {
  Emitter e(layout, unit, data, host, function, signature, output);
  llvm::IRBuilder<>& b = e.b_;
  llvm::BasicBlock* failed = e.begin_wrapper();
  V call = b.CreateAlloca(llvm::ArrayType::get(layout.i64, 3), nullptr, "call");
  e.context_ = call;
  unsigned argument = 0;
  V wrong = b.getFalse();
  llvm::SmallVector<Val, 8> values;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const Type* type = signature.parameters[i];
    Val v = e.none(type);
    if (i == 0) {
      values.push_back(std::move(v));
      continue;
    }
    if (!is_lent_array(type)) {
      for (llvm::Type* leaf : layout.of(type).leaves) {
        if (leaf == layout.i1) output->addParamAttr(argument, llvm::Attribute::ZExt);
        v.leaves.push_back(output->getArg(argument++));
      }
      values.push_back(std::move(v));
      continue;
    }
    const auto rank = static_cast<unsigned>(rank_of(type));
    const std::size_t header_bytes = Heap::array_header_bytes(rank);
    V array = b.CreateAlloca(llvm::ArrayType::get(layout.i64, header_bytes / 8), nullptr, "header");
    V memory = output->getArg(argument);
    output->addParamAttr(argument++, llvm::Attribute::NoAlias);
    V length = e.integer(1);
    auto put = [&](V what, unsigned where) { e.store(what, e.at(array, where), Memory::array_header); };
    for (unsigned d = 0; d < rank; ++d) {
      V size = output->getArg(argument++);
      wrong = b.CreateOr(wrong, b.CreateICmpSLT(size, e.integer(0)));
      length = d == 0 ? size : b.CreateMul(length, size);
      put(size, offset::array_dim(rank, d));
    }
    e.store(unit.address(type), array, Memory::type_word);
    layout.ahead->addresses.try_emplace(type, AheadRefusal{"looks at a type", {}});
    put(memory, offset::array_data);
    put(length, offset::array_length);
    put(llvm::ConstantPointerNull::get(layout.ptr), offset::array_owner);
    put(b.getInt32(array_borrowed), offset::array_flags);
    put(b.getInt32(stored_size(as_data(type)->params[0])), offset::array_element_size);
    v.leaves.push_back(array);
    values.push_back(std::move(v));
  }
  const auto results = static_cast<unsigned>(layout.of(signature.result).leaves.size());
  V work = output->getArg(argument + results), size = output->getArg(argument + results + 1);
  // From the next multiple of 16 on.
  V skipped = b.CreateAnd(b.CreateSub(e.integer(0), b.CreatePtrToInt(work, layout.i64)), e.integer(15));
  V left = b.CreateSelect(b.CreateICmpSLT(size, skipped), e.integer(0), b.CreateSub(size, skipped));
  b.CreateStore(b.CreateGEP(layout.i8, work, skipped), call);
  b.CreateStore(left, e.at(call, 8));
  b.CreateStore(b.getInt32(0), e.at(call, 16));
  llvm::BasicBlock *bad = e.new_block("bad"), *good = e.new_block("good");
  e.branch_unlikely(wrong, bad, good);
  b.SetInsertPoint(bad);
  b.CreateRet(b.getInt32(Ahead::status(AheadError::argument)));
  b.SetInsertPoint(good);
  Val returned = e.call_native_code(signature, native, values);
  for (unsigned i = 0; i < results; ++i) {
    output->addParamAttr(argument + i, llvm::Attribute::NoAlias);
    b.CreateStore(e.as_byte(returned.leaves[i]), output->getArg(argument + i));
  }
  b.CreateRet(b.getInt32(0));
  b.SetInsertPoint(failed);
  b.CreateRet(b.CreateLoad(layout.i32, e.at(call, 16)));
  output->addFnAttr(llvm::Attribute::NoUnwind);
}

}  // namespace slope::codegen
