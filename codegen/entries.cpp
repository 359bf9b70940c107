// How compiled code is entered from outside: the wrapper for dynamic callers, and those for hosts.
#include "codegen/emit.hpp"

namespace slope::codegen {

using ir::Op;
using Kind = Representation::Kind;

// Its first block, and the one that is returned, for calls that fail.
llvm::BasicBlock* Emitter::begin_wrapper() {
  b_.SetInsertPoint(new_block("entry"));
  context_ = output_->getArg(0);
  return return_error_ = new_block("failed");
}

void Emitter::emit_boxed(Layout& layout, Unit& unit, BatchData& data, EmitHost& host, const ir::Function& function,
                         bool is_vararg, const Signature& signature, llvm::FunctionCallee native,
                         llvm::Function* output) {
  Emitter e(layout, unit, data, host, function, signature, output);
  // The wrapper returns true for success; the entry's status is the contrary.
  llvm::IRBuilder<>& b = e.b_;
  llvm::BasicBlock* failed = e.begin_wrapper();
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

void Emitter::emit_direct(Layout& layout, Unit& unit, BatchData& data, EmitHost& host, const ir::Function& function,
                          const Signature& signature, llvm::FunctionCallee native, llvm::Function* output) {
  Emitter e(layout, unit, data, host, function, signature, output);
  llvm::IRBuilder<>& b = e.b_;
  llvm::BasicBlock* failed = e.begin_wrapper();
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

// What is known when the code is made is not asked again: which arguments are vectors, which derivatives are wanted.
// The headers of what is lent are written here, so that inlined code finds them in registers.
void Emitter::emit_flat_gradient(Layout& layout, Unit& unit, BatchData& data, EmitHost& host,
                                 const ir::Function& function, const Signature& signature, llvm::FunctionCallee native,
                                 llvm::ArrayRef<std::uint8_t> steps, llvm::Function* output) {
  Emitter e(layout, unit, data, host, function, signature, output);
  llvm::IRBuilder<>& b = e.b_;
  llvm::BasicBlock* failed = e.begin_wrapper();
  llvm::BasicBlock *begin = e.new_block("begin"), *otherwise = e.new_block("otherwise");
  V arguments = output->getArg(1), targets = output->getArg(2), headers = output->getArg(3);
  auto result = [&](flat::Outcome outcome) { return b.getInt8(static_cast<std::uint8_t>(outcome)); };
  auto has = [&](std::size_t i, flat::Step what) { return (steps[i] & what) != 0; };
  const std::size_t n = steps.size();
  struct Place {
    V word, size, target, target_size;
  };
  std::vector<Place> places;
  for (std::size_t i = 0; i < n; ++i) {
    auto at = static_cast<std::int64_t>(16 * i);
    Place place;
    place.word = b.CreateLoad(layout.i64, e.at(arguments, at + offsetof(flat::Argument, word)));
    place.size = has(i, flat::is_vector)
                     ? b.CreateLoad(layout.i64, e.at(arguments, at + offsetof(flat::Argument, size)))
                     : e.integer(1);
    place.target = b.CreateLoad(layout.i64, e.at(targets, at + offsetof(flat::Target, data)));
    place.target_size = b.CreateLoad(layout.i64, e.at(targets, at + offsetof(flat::Target, size)));
    places.push_back(place);
  }
  V fits = b.getTrue();
  auto require = [&](V condition) { fits = b.CreateAnd(fits, condition); };
  // From one beginning to the other: at least so many bytes in either direction. Empty memory goes the other road.
  auto apart = [&](V x, V y, V size) {
    V bytes = b.CreateShl(size, 3);
    V distance = b.CreateSub(b.CreateSub(x, y), bytes);
    return b.CreateICmpULE(distance, b.CreateSub(e.integer(0), b.CreateShl(bytes, 1)));
  };
  auto longer = [&](V x, V y) { return x == y ? x : b.CreateSelect(b.CreateICmpULT(x, y), y, x); };
  for (std::size_t i = 0; i < n; ++i) {
    if (!has(i, flat::is_wanted)) {
      require(b.CreateICmpEQ(places[i].target_size, e.integer(static_cast<std::int64_t>(flat::unwanted))));
      continue;
    }
    require(b.CreateICmpEQ(places[i].target_size, places[i].size));
    for (std::size_t k = 0; k < n; ++k) {
      V size = longer(places[i].size, places[k].size);
      if (has(k, flat::is_vector)) require(apart(places[i].target, places[k].word, size));
      if (k < i && has(k, flat::is_wanted)) require(apart(places[i].target, places[k].target, size));
    }
  }
  e.branch_likely(fits, begin, otherwise);

  b.SetInsertPoint(begin);
  auto address = [&](V word) { return b.CreateIntToPtr(word, layout.ptr); };
  for (std::size_t i = 0; i < n; ++i) {
    if (!has(i, flat::is_wanted)) continue;
    if (has(i, flat::is_vector)) {
      b.CreateMemSet(address(places[i].target), b.getInt8(0), b.CreateShl(places[i].size, 3), llvm::MaybeAlign(8));
    } else if (!has(i, flat::is_number)) {
      b.CreateStore(llvm::ConstantFP::get(b.getDoubleTy(), 0.0), address(places[i].target));
    }
  }
  llvm::SmallVector<V, 8> lent;
  auto lend = [&](std::size_t header, V memory, V size) {
    V array = b.CreateLoad(layout.ptr, e.at(headers, static_cast<std::int64_t>(8 * header)));
    // Shared by nobody between calls (LentArrays::take_back).
    V owner = e.load(layout.i64, e.at(array, offset::array_owner), Memory::array_header);
    b.CreateAssumption(b.CreateICmpEQ(owner, e.integer(0)));
    e.store(address(memory), e.at(array, offset::array_data), Memory::array_header);
    for (unsigned field : {offset::array_length}) e.store(size, e.at(array, field), Memory::array_header);
    lent.push_back(array);
    return array;
  };
  llvm::SmallVector<V, 16> leaves;  // of the derivative's parameters
  for (std::size_t i = 0; i < n; ++i)
    leaves.push_back(has(i, flat::is_vector) ? lend(i, places[i].word, places[i].size) : places[i].word);
  for (std::size_t i = 0; i < n; ++i)
    if (has(i, flat::is_vector) && has(i, flat::is_wanted) && has(i, flat::is_active))
      leaves.push_back(lend(n + i, places[i].target, places[i].size));
  leaves.push_back(llvm::ConstantFP::get(b.getDoubleTy(), 1.0));  // the seed
  llvm::SmallVector<Val, 8> values;
  std::size_t next = 0;
  for (const Type* type : signature.parameters) {
    Val v = e.none(type);
    for (llvm::Type* leaf : layout.of(type).leaves) {
      V word = leaves[next++];
      if (word->getType() != leaf && leaf->isFloatingPointTy())
        word = b.CreateBitCast(b.CreateTrunc(word, b.getIntNTy(leaf->getPrimitiveSizeInBits())), leaf);
      v.leaves.push_back(word->getType() == leaf ? word : b.CreateTrunc(word, leaf));
    }
    values.push_back(std::move(v));
  }
  Val returned = e.call_native_code(signature, native, values);
  b.CreateStore(returned.leaves[0], output->getArg(4));
  next = 1;
  for (std::size_t i = 0; i < n; ++i) {
    if (!has(i, flat::is_number)) continue;
    if (has(i, flat::is_wanted)) b.CreateStore(returned.leaves[next], address(places[i].target));
    ++next;
  }
  V owners = e.integer(0);
  for (V array : lent)
    owners = b.CreateOr(owners, e.load(layout.i64, e.at(array, offset::array_owner), Memory::array_header));
  b.CreateRet(
      b.CreateSelect(b.CreateICmpEQ(owners, e.integer(0)), result(flat::Outcome::done), result(flat::Outcome::shared)));
  b.SetInsertPoint(otherwise);
  b.CreateRet(result(flat::Outcome::otherwise));
  b.SetInsertPoint(failed);
  b.CreateRet(result(flat::Outcome::failed));
}

}  // namespace slope::codegen
