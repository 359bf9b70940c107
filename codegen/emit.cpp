#include "codegen/emit.hpp"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "codegen/ahead_code.hpp"
#include "codegen/counted_loops.hpp"
#include "codegen/debug_info.hpp"
#include "lang/ir/passes/checked.hpp"
#include "lang/ir/passes/escape.hpp"
#include "lang/support/dump.hpp"

namespace slope::codegen {

using ir::Op;

Emitter::Emitter(Layout& layout, Unit& unit, BatchData& data, EmitHost& host, const ir::Function& function,
                 const Signature& signature, llvm::Function* output)
    : layout_(layout),
      unit_(unit),
      data_(data),
      host_(host),
      function_(function),
      signature_(signature),
      output_(output),
      b_(layout.context),
      cfg_(ir::build_cfg(function)),
      buffers_(layout, output),
      fresh_arrays_(layout, function) {}

namespace {

bool has_op(const ir::Function& function, const ir::Cfg& cfg, std::initializer_list<Op> ops) {
  for (ir::BlockId block : cfg.order) {
    for (std::uint32_t id : function.blocks[block].insts) {
      for (Op op : ops) {
        if (function.insts[id].op == op) return true;
      }
    }
  }
  return false;
}

}  // namespace

// Where no test is needed. In builds that verify, what the proofs refer to must come before the accesses, and code that
// should not need a test traps when it does.
void Emitter::find_tests() {
  if (!layout_.tests_indices) return;
  bounds_ = ir::prove_bounds(layout_.runtime(), function_, cfg_);
  if (dump_wants("bounds"))
    std::cerr << "; bounds " << function_.name << '\n' << print_bounds_proofs(function_, bounds_);
  // Where nothing resizes, a length stays in a register.
  wants_length_.resize(function_.insts.size());
  lengths_.resize(function_.insts.size());
  for (ir::BlockId block : cfg_.order) {
    for (std::uint32_t id : function_.blocks[block].insts) {
      const ir::Inst& inst = function_.insts[id];
      if (!ir::is_element_access(inst.op) || bounds_.is_inside(id) || !inst.operands[0].is_inst()) continue;
      if (bounds_.has_fixed_length(layout_.runtime(), function_, inst.operands[0]) &&
          is_surely_array(inst.operands[0], 0))
        wants_length_[inst.operands[0].index()] = 1;
    }
  }
  if (!ir::verifies_passes()) return;
  const std::string wrong = ir::check_bounds_proofs(function_, cfg_, bounds_);
  if (wrong.empty()) return;
  std::cerr << "internal error: bounds of " << function_.name << ": " << wrong << '\n' << ir::print(function_);
  std::abort();
}

// Its header may be read wherever the value is defined. What comes from an `undef` on a path that does not use it may
// not.
bool Emitter::is_surely_array(ir::Operand o, int depth) {
  if (!o.is_inst()) {
    const DataType* type = as_data(type_of(o));
    return type && type->object_kind == DataType::ObjectKind::array;
  }
  if (depth > 4) return false;
  const ir::Inst& inst = function_.inst(o);
  switch (inst.op) {
    case Op::array_new:
    case Op::array_share:
    case Op::array_get:
    case Op::invoke:
    case Op::call:
    case Op::native:
      return true;
    case Op::refine:
      return is_surely_array(inst.operands[0], depth + 1);
    case Op::field_at: {
      const DataType* object = as_data(type_of(inst.operands[0]));
      return object && inst.aux < object->initialized_fields && is_surely_array(inst.operands[0], depth + 1);
    }
    case Op::parameter: {
      if (inst.block == 0) return true;
      const auto& parameters = function_.blocks[inst.block].parameters;
      const auto position = std::find(parameters.begin(), parameters.end(), o.index()) - parameters.begin();
      for (ir::BlockId from : cfg_.predecessors[inst.block]) {
        if (!cfg_.reachable(from)) continue;
        for (const ir::Edge& edge : function_.blocks[from].edges) {
          if (edge.target != inst.block) continue;
          const ir::Operand given = edge.arguments[static_cast<std::size_t>(position)];
          if (given != o && !is_surely_array(given, depth + 1)) return false;
        }
      }
      return true;
    }
    default:
      return false;
  }
}

void Emitter::note_length(std::uint32_t id) {
  if (wants_length_.empty() || !wants_length_[id] || values_[id].leaves.size() != 1) return;
  if (!places_.empty() && places_[id] == ir::Place::frame) {
    lengths_[id] = operand(function_.insts[id].operands[1]).leaves[0];
    return;
  }
  lengths_[id] = load(layout_.i64, at(values_[id].leaves[0], offset::array_length), Memory::array_header);
}

void Emitter::run() {
  find_tests();
  values_.resize(function_.insts.size());
  stack_check_ = block_of_stack_check();
  fresh_arrays_.find(cfg_);
  prologue();
  make_blocks();
  if (layout_.ahead) {
    raises_ = blocks_that_raise();
    running_ = blocks_that_run();
  }
  for (ir::BlockId block : cfg_.order) emit_block(block);
}

void Emitter::prologue() {
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(layout_.context, "entry", output_);
  b_.SetInsertPoint(entry);
  context_ = output_->getArg(0);
  context_->setName("context");
  if (layout_.debug) b_.SetCurrentDebugLocation(layout_.debug->begin(function_, output_));
  if (layout_.runtime().records_frames && signature_.has_status && !layout_.ahead) link_record();

  for (std::size_t i = 0; i < function_.slots.size(); ++i) {
    Slot slot;
    slot.type = i < function_.slot_types.size() ? function_.slot_types[i] : layout_.builtin().any;
    for (llvm::Type* leaf : layout_.of(slot.type).leaves) {
      slot.leaves.push_back(b_.CreateAlloca(leaf, nullptr, function_.slots[i]->name));
    }
    slot.defined = b_.CreateAlloca(layout_.i1, nullptr, "defined");
    b_.CreateStore(b_.getFalse(), slot.defined);
    slots_.push_back(std::move(slot));
  }

  find_catch_depths();
  if (!catch_depth_.empty()) caught_base_ = helper(Helper::catch_depth, {context_});
  // An activation that fails gives back the tapes that it opened, and its scratch memory. A derivative's is kept for
  // the next call like its tapes; of other functions only small objects lie there.
  if (layout_.ahead) return;  // what the caller lends is taken and never given back before the end
  const bool keeps_tapes = has_op(function_, cfg_, {Op::tape_open});
  places_ = ir::places_of_objects(function_, cfg_, layout_.types());
  scratch_most_ = keeps_tapes ? std::uint64_t{64} << 20 : ir::scratch_object_most;
  if (std::find(places_.begin(), places_.end(), ir::Place::scratch) != places_.end())
    enter_scratch(keeps_tapes);
  else if (keeps_tapes)
    tape_mark_ = helper(Helper::tape_mark, {context_});
}

// What a turn of a loop made in scratch memory is freed where the next begins: by the mark that was made when the loop
// was entered.
void Emitter::enter_scratch(bool keeps_tapes) {
  tape_mark_ = scratch_ = helper(Helper::scratch_enter, {context_});
  // Without tapes nothing is ever free.
  V tapes = load(layout_.ptr, at(context_, offset::context_tapes), Memory::context);
  llvm::AllocaInst* nothing = b_.CreateAlloca(llvm::ArrayType::get(layout_.i64, 2), nullptr, "no_scratch");
  b_.CreateStore(integer(0), at(nothing, offset::scratch_at));
  b_.CreateStore(integer(0), at(nothing, offset::scratch_end));
  scratch_front_ = b_.CreateSelect(b_.CreateIsNull(tapes), nothing, tapes);
  if (keeps_tapes) return;
  const ir::LoopForest forest = ir::find_loops(function_, cfg_);
  const auto makes_some = [&](ir::BlockId block) {
    const std::vector<std::uint32_t>& insts = function_.blocks[block].insts;
    return std::any_of(insts.begin(), insts.end(), [&](std::uint32_t id) { return places_[id] == ir::Place::scratch; });
  };
  for (const ir::Loop& loop : forest.loops) {
    if (std::none_of(loop.blocks.begin(), loop.blocks.end(), makes_some)) continue;
    ScratchMark mark{b_.CreateAlloca(layout_.i64, nullptr, "scratch_mark"),
                     b_.CreateAlloca(layout_.ptr, nullptr, "scratch_at"),
                     b_.CreateAlloca(layout_.ptr, nullptr, "scratch_end")};
    b_.CreateStore(scratch_, mark.serial);  // when the loop is the function
    note_scratch(mark);
    mark.has_inner = std::any_of(forest.loops.begin(), forest.loops.end(), [&](const ir::Loop& inner) {
      return inner.header != loop.header &&
             std::find(loop.blocks.begin(), loop.blocks.end(), inner.header) != loop.blocks.end() &&
             std::any_of(inner.blocks.begin(), inner.blocks.end(), makes_some);
    });
    scratch_marks_[loop.header] = mark;
  }
}

void Emitter::note_scratch(const ScratchMark& mark) {
  b_.CreateStore(b_.CreateLoad(layout_.ptr, at(scratch_front_, offset::scratch_at)), mark.at);
  b_.CreateStore(b_.CreateLoad(layout_.ptr, at(scratch_front_, offset::scratch_end)), mark.end);
}

void Emitter::mark_scratch(ir::BlockId target, bool is_next_turn) {
  const auto known = scratch_marks_.find(target);
  if (known == scratch_marks_.end()) return;
  const ScratchMark& mark = known->second;
  if (!is_next_turn) {
    b_.CreateStore(helper(Helper::scratch_enter, {context_}), mark.serial);
    return note_scratch(mark);
  }
  if (mark.has_inner) {
    helper(Helper::scratch_turn, {context_, b_.CreateLoad(layout_.i64, mark.serial)});
    return note_scratch(mark);
  }
  // In the chunk in which the loop began its turns only move what is free.
  llvm::BasicBlock* here = new_block("scratch_turn");
  llvm::BasicBlock* elsewhere = new_block("scratch_far");
  llvm::BasicBlock* next = new_block("scratch_next");
  V end = b_.CreateLoad(layout_.ptr, mark.end);
  V same = b_.CreateICmpEQ(b_.CreateLoad(layout_.ptr, at(scratch_front_, offset::scratch_end)), end);
  branch_likely(same, here, elsewhere);
  b_.SetInsertPoint(here);
  b_.CreateStore(b_.CreateLoad(layout_.ptr, mark.at), at(scratch_front_, offset::scratch_at));
  // What is made next may lie where something else lay: by their alias classes the accesses to both would be apart.
  b_.CreateFence(llvm::AtomicOrdering::AcquireRelease, llvm::SyncScope::SingleThread);
  b_.CreateBr(next);
  b_.SetInsertPoint(elsewhere);
  helper(Helper::scratch_turn, {context_, b_.CreateLoad(layout_.i64, mark.serial)});
  note_scratch(mark);
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

void Emitter::link_record() {
  record_ = b_.CreateAlloca(llvm::ArrayType::get(layout_.i64, sizeof(FrameRecord) / 8), nullptr, "record");
  V frames = at(context_, offset::context_frames);
  store(load(layout_.ptr, frames, Memory::context), record_, Memory::context);
  store(pointer(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(&function_) | 1)),
        at(record_, offsetof(FrameRecord, function)), Memory::context);
  store(llvm::ConstantPointerNull::get(layout_.ptr), at(record_, offsetof(FrameRecord, site)), Memory::context);
  b_.CreateFence(llvm::AtomicOrdering::Release, llvm::SyncScope::SingleThread);
  store(record_, frames, Memory::context);
}

void Emitter::unlink_record() {
  if (!record_) return;
  store(load(layout_.ptr, record_, Memory::context), at(context_, offset::context_frames), Memory::context);
}

void Emitter::note_site(bool calls_library) {
  if (!record_ || !current_) return;
  V where = at(record_, offsetof(FrameRecord, site));
  if (calls_library) {
    b_.CreateStore(pointer(current_site()), where, /*isVolatile=*/true);
  } else {
    store(pointer(current_site()), where, Memory::context);
  }
}

// How many catch blocks surround each block's start: +1 at `caught`, -1 at `caught_end`. Empty when there are none.
void Emitter::find_catch_depths() {
  bool any = false;
  for (ir::BlockId id : cfg_.order) any |= function_.blocks[id].handler != ir::no_block;
  if (!any) return;
  catch_depth_.assign(function_.blocks.size(), 0);
  for (ir::BlockId id : cfg_.order) {
    const ir::Block& block = function_.blocks[id];
    std::uint32_t depth = catch_depth_[id];
    for (std::uint32_t inst : block.insts) {
      if (function_.insts[inst].op == Op::caught) ++depth;
      if (function_.insts[inst].op == Op::caught_end && depth > 0) --depth;
    }
    // In reverse postorder one predecessor of every block has been seen; they agree.
    for (const ir::Edge& edge : block.edges) {
      if (cfg_.position[edge.target] > cfg_.position[id]) catch_depth_[edge.target] = depth;
    }
    if (block.handler != ir::no_block) catch_depth_[block.handler] = catch_depth_[id];
  }
}

// Where the stack is checked: in the nearest block that dominates all calls and lies in no loop. What returns before
// (the base case of a recursion) pays nothing. no_block when the function calls nothing that could recurse.
ir::BlockId Emitter::block_of_stack_check() {
  ir::BlockId found = ir::no_block;
  auto common = [&](ir::BlockId a, ir::BlockId b) {
    while (a != b)
      (cfg_.position[a] > cfg_.position[b] ? a : b) = cfg_.idom[cfg_.position[a] > cfg_.position[b] ? a : b];
    return a;
  };
  for (ir::BlockId id : cfg_.order) {
    for (std::uint32_t i : function_.blocks[id].insts) {
      Op op = function_.insts[i].op;
      const bool host = op == Op::native && function_.insts[i].aux_as<NativeInfo>()->host;
      if (op == Op::invoke || op == Op::call || op == Op::call_splat || host)
        found = found == ir::no_block ? id : common(found, id);
    }
  }
  if (found == ir::no_block) return found;
  ir::LoopForest loops = ir::find_loops(function_, cfg_);
  while (found != 0 && (loops.loop_of[found] != ~0u || function_.blocks[found].handler != ir::no_block)) {
    found = cfg_.idom[found];
  }
  // An irreducible graph may hide a loop.
  return loops.reducible ? found : 0;
}

void Emitter::check_stack() {
  const char* name = unit_.module().getTargetTriple().rfind("x86_64", 0) == 0 ? "rsp" : "sp";
  llvm::MDNode* node = llvm::MDNode::get(layout_.context, {llvm::MDString::get(layout_.context, name)});
  V stack = b_.CreateIntrinsic(llvm::Intrinsic::read_register, {layout_.i64},
                               {llvm::MetadataAsValue::get(layout_.context, node)});
  V limit = load(layout_.i64, at(context_, offset::context_stack_limit), Memory::context);
  llvm::BasicBlock* overflow = new_block("overflow");
  llvm::BasicBlock* body = new_block("body");
  // Recursion looks, as loops do, whether it is asked to stop. Another thread or a signal handler writes that.
  V word = load(layout_.i32, at(context_, offset::context_interrupt), Memory::context);
  llvm::cast<llvm::LoadInst>(word)->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::cast<llvm::LoadInst>(word)->setAlignment(llvm::Align(4));
  branch_unlikely(b_.CreateOr(b_.CreateICmpULT(stack, limit), b_.CreateICmpNE(word, b_.getInt32(0))), overflow, body);
  b_.SetInsertPoint(overflow);
  helper(Helper::stack_overflow, {context_});
  return_error(nullptr);
  b_.SetInsertPoint(body);
  if (!layout_.runtime().counts_fuel) return;
  llvm::BasicBlock* empty = new_block("no_fuel");
  llvm::BasicBlock* go = new_block("fuelled");
  branch_unlikely(burn_fuel(b_, context_, integer(1)), empty, go);
  b_.SetInsertPoint(empty);
  helper(Helper::interrupt, {context_});
  return_error(nullptr);
  b_.SetInsertPoint(go);
}

// Before a back edge is taken.
void Emitter::check_interrupt() {
  if (layout_.ahead) return;
  if (current_block_->handler == ir::no_block) {
    // codegen/counted_loops.hpp says what becomes of it.
    V none = integer(-1);
    b_.CreateCall(poll_function(unit_.module()),
                  {context_, pointer(trace_site(*current_)), tape_mark_ ? tape_mark_ : none,
                   caught_base_ ? caught_base_ : none, integer(layout_.runtime().counts_fuel ? 1 : 0)});
    return;
  }
  V word = load(layout_.i32, at(context_, offset::context_interrupt), Memory::context);
  // Another thread or a signal handler writes it.
  llvm::cast<llvm::LoadInst>(word)->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::cast<llvm::LoadInst>(word)->setAlignment(llvm::Align(4));
  llvm::BasicBlock* stop = new_block("interrupt");
  llvm::BasicBlock* go = new_block("go");
  V wanted = b_.CreateICmpNE(word, b_.getInt32(0));
  if (layout_.runtime().counts_fuel) wanted = b_.CreateOr(wanted, burn_fuel(b_, context_, integer(1)));
  branch_unlikely(wanted, stop, go);
  b_.SetInsertPoint(stop);
  helper(Helper::interrupt, {context_});
  fail();
  b_.SetInsertPoint(go);
}

// What ends in an error is rarely run.
bool Emitter::only_raises(ir::BlockId block) const {
  for (int steps = 0; steps < 4; ++steps) {
    const ir::Block& b = function_.blocks[block];
    Op op = function_.insts[b.terminator].op;
    if (op == Op::throw_ || op == Op::unreachable) return true;
    if (op != Op::jump) return false;
    block = b.edges[0].target;
  }
  return false;
}

void Emitter::make_blocks() {
  blocks_.resize(function_.blocks.size());
  phis_.resize(function_.blocks.size());
  back_edges_.resize(function_.blocks.size());
  for (ir::BlockId block : cfg_.order) {
    if (function_.blocks[block].handler != ir::no_block) continue;
    current_block_id_ = block;
    for (const ir::Edge& edge : function_.blocks[block].edges)
      if (is_back_edge(edge)) ++back_edges_[edge.target];
  }
  llvm::BasicBlock* entry = b_.GetInsertBlock();
  for (ir::BlockId block : cfg_.order) blocks_[block] = new_block(("b" + std::to_string(block)).c_str());
  for (ir::BlockId block : cfg_.order) {
    const ir::Block& b = function_.blocks[block];
    bool is_entry = block == 0;
    if (is_entry && cfg_.predecessors[block].empty()) {
      b_.SetInsertPoint(entry);
    } else {
      b_.SetInsertPoint(blocks_[block]);
    }
    unsigned argument = 1;
    for (std::uint32_t id : b.parameters) {
      Val v;
      v.type = function_.insts[id].type;
      const Representation& r = layout_.of(v.type);
      for (llvm::Type* leaf : r.leaves) {
        llvm::Value* incoming = is_entry ? output_->getArg(argument++) : nullptr;
        if (is_entry && cfg_.predecessors[block].empty()) {
          v.leaves.push_back(incoming);
        } else {
          llvm::PHINode* phi = b_.CreatePHI(leaf, 2);
          if (is_entry) phi->addIncoming(incoming, entry);
          phis_[block].push_back(phi);
          v.leaves.push_back(phi);
        }
      }
      values_[id] = std::move(v);
    }
  }
  b_.SetInsertPoint(entry);
  b_.CreateBr(blocks_[0]);
}

void Emitter::emit_block(ir::BlockId id) {
  const ir::Block& block = function_.blocks[id];
  current_block_ = &block;
  current_block_id_ = id;
  b_.SetInsertPoint(blocks_[id]);
  current_ = &function_.insts[block.terminator];
  current_error_ = nullptr;
  current_site_ = nullptr;
  if (layout_.debug) layout_.debug->at(b_, function_, *current_);
  if (!running_.empty() && !running_[id]) {
    b_.CreateUnreachable();
    return;
  }
  if (!raises_.empty() && raises_[id]) {
    raise_ahead(id);
    return;
  }
  if (id == stack_check_ && signature_.has_status && !layout_.ahead) check_stack();
  for (std::uint32_t parameter : block.parameters) note_length(parameter);
  for (std::uint32_t inst_id : block.insts) {
    const ir::Inst& inst = function_.insts[inst_id];
    current_ = &inst;
    if (layout_.debug) layout_.debug->at(b_, function_, inst);
    current_error_ = nullptr;
    current_site_ = nullptr;
    watch_store(inst);
    Val v = emit(inst);
    bool never_returns = inst.type && inst.type->kind == TypeKind::bottom;
    values_[inst_id] = never_returns ? none(inst.type) : coerce(v, inst.type);
    if (b_.GetInsertBlock()->getTerminator()) {
      if (block.edges.empty()) return;
      b_.SetInsertPoint(new_block("dead"));
    }
    if (!never_returns) note_length(inst_id);
  }
  current_ = &function_.insts[block.terminator];
  current_error_ = nullptr;
  current_site_ = nullptr;
  if (layout_.debug) layout_.debug->at(b_, function_, *current_);
  terminator(*current_, block);
}

Val Emitter::emit(const ir::Inst& inst) {
  Val result;
  if (emit_arithmetic(inst, result) || emit_predicate(inst, result) || emit_memory(inst, result) ||
      emit_call(inst, result)) {
    return result;
  }
  return execute(inst);
}

void Emitter::jump_to(const ir::Edge& edge) {
  const ir::Block& target = function_.blocks[edge.target];
  llvm::SmallVector<V, 8> leaves;
  for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
    Val v = operand_as(edge.arguments[i], function_.insts[target.parameters[i]].type);
    leaves.append(v.leaves.begin(), v.leaves.end());
  }
  if (is_back_edge(edge)) {
    if (current_block_->handler == ir::no_block && back_edges_[edge.target] > 1) {
      jump_to_latch(edge.target, leaves);
      return;
    }
    check_interrupt();
    mark_scratch(edge.target, true);
  } else {
    mark_scratch(edge.target, false);
  }
  llvm::BasicBlock* from = b_.GetInsertBlock();
  b_.CreateBr(blocks_[edge.target]);
  for (std::size_t i = 0; i < leaves.size(); ++i) phis_[edge.target][i]->addIncoming(leaves[i], from);
}

void Emitter::jump_to_latch(ir::BlockId header, llvm::ArrayRef<llvm::Value*> leaves) {
  Latch& latch = latches_[header];
  if (!latch.block) {
    latch.block = new_block("latch");
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(latch.block);
    for (llvm::PHINode* phi : phis_[header]) latch.phis.push_back(b_.CreatePHI(phi->getType(), 2));
    check_interrupt();
    mark_scratch(header, true);
    for (std::size_t i = 0; i < latch.phis.size(); ++i)
      phis_[header][i]->addIncoming(latch.phis[i], b_.GetInsertBlock());
    b_.CreateBr(blocks_[header]);
  }
  for (std::size_t i = 0; i < latch.phis.size(); ++i) latch.phis[i]->addIncoming(leaves[i], b_.GetInsertBlock());
  b_.CreateBr(latch.block);
}

// The block that a conditional terminator jumps to for an edge: the target itself when nothing is to be done on the
// way.
llvm::BasicBlock* Emitter::edge_block(const ir::Edge& edge, std::vector<ir::BlockId>& taken) {
  bool seen = std::find(taken.begin(), taken.end(), edge.target) != taken.end();
  taken.push_back(edge.target);
  if (!seen && phis_[edge.target].empty() && !is_back_edge(edge) && !scratch_marks_.count(edge.target))
    return blocks_[edge.target];
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  llvm::BasicBlock* block = new_block("edge");
  b_.SetInsertPoint(block);
  jump_to(edge);
  return block;
}

void Emitter::terminator(const ir::Inst& inst, const ir::Block& block) {
  std::vector<ir::BlockId> taken;
  switch (inst.op) {
    case Op::jump:
      jump_to(block.edges[0]);
      return;
    case Op::branch: {
      Val condition = operand(inst.operands[0]);
      if (condition.type != layout_.builtin().boolean) {
        auto [type, payload] = to_dynamic(condition);
        V wrong = b_.CreateICmpNE(type, pointer(layout_.builtin().boolean));
        llvm::BasicBlock* bad = new_block("no_bool");
        llvm::BasicBlock* good = new_block("bool");
        branch_unlikely(wrong, bad, good);
        b_.SetInsertPoint(bad);
        helper(Helper::branch_type_error, {context_, type, payload});
        fail();
        b_.SetInsertPoint(good);
        condition = boolean(b_.CreateICmpNE(payload, integer(0)));
      }
      llvm::BasicBlock* if_true = edge_block(block.edges[0], taken);
      llvm::BasicBlock* if_false = edge_block(block.edges[1], taken);
      bool raises = only_raises(block.edges[0].target);
      if (raises == only_raises(block.edges[1].target)) {
        b_.CreateCondBr(condition.leaves[0], if_true, if_false);
      } else if (raises) {
        branch_unlikely(condition.leaves[0], if_true, if_false);
      } else {
        branch_likely(condition.leaves[0], if_true, if_false);
      }
      return;
    }
    case Op::switch_int: {
      V value = operand_as(inst.operands[0], layout_.builtin().int64).leaves[0];
      std::size_t count = block.edges.size();
      llvm::BasicBlock* last = edge_block(block.edges[count - 1], taken);
      std::vector<llvm::BasicBlock*> targets;
      for (std::size_t i = 0; i + 1 < count; ++i) targets.push_back(edge_block(block.edges[i], taken));
      llvm::SwitchInst* out = b_.CreateSwitch(value, last, static_cast<unsigned>(targets.size()));
      for (std::size_t i = 0; i < targets.size(); ++i) {
        out->addCase(llvm::ConstantInt::get(layout_.i64, i), targets[i]);
      }
      return;
    }
    case Op::ret:
      return_value(operand_as(inst.operands[0], signature_.result));
      return;
    case Op::throw_: {
      auto [type, payload] = to_dynamic(operand(inst.operands[0]));
      helper(Helper::throw_value, {context_, type, payload});
      fail();
      return;
    }
    default:
      if (!signature_.has_status) {
        b_.CreateUnreachable();
        return;
      }
      helper(Helper::unreachable, {context_, pointer(&function_)});
      fail();
      return;
  }
}

void Emitter::return_value(const Val& v) {
  llvm::SmallVector<V, 4> members(v.leaves.begin(), v.leaves.end());
  if (caught_base_) helper(Helper::leave_catch, {context_, caught_base_});
  if (scratch_) helper(Helper::scratch_leave, {context_, scratch_});
  unlink_record();
  if (signature_.has_status) members.push_back(b_.getInt8(0));
  if (members.empty()) {
    b_.CreateRetVoid();
  } else if (members.size() == 1) {
    b_.CreateRet(members[0]);
  } else {
    V result = poison(output_->getReturnType());
    for (unsigned i = 0; i < members.size(); ++i) result = b_.CreateInsertValue(result, members[i], i);
    b_.CreateRet(result);
  }
}

llvm::BasicBlock* Emitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(layout_.context, name, output_);
}

Emitter::V Emitter::helper(Helper which, llvm::ArrayRef<V> arguments) {
  if (layout_.ahead) return ahead_helper(which, arguments);
  note_site();
  const HelperInfo& info = helper_info(which);
  llvm::Function* callee = unit_.module().getFunction(info.name);
  if (!callee) {
    auto type_of_code = [&](char code) -> llvm::Type* {
      switch (code) {
        case 'p':
          return layout_.ptr;
        case 'l':
          return layout_.i64;
        case 'w':
          return layout_.i32;
        case 'b':
          return layout_.i1;
        case 'd':
          return llvm::Type::getDoubleTy(layout_.context);
        case 'f':
          return llvm::Type::getFloatTy(layout_.context);
        default:
          return llvm::Type::getVoidTy(layout_.context);
      }
    };
    std::vector<llvm::Type*> parameters;
    for (const char* code = info.arguments; *code; ++code) parameters.push_back(type_of_code(*code));
    callee = llvm::Function::Create(llvm::FunctionType::get(type_of_code(info.result), parameters, false),
                                    llvm::Function::ExternalLinkage, info.name, unit_.module());
    callee->addFnAttr(llvm::Attribute::NoUnwind);
    if (info.result == 'b') callee->addRetAttr(llvm::Attribute::ZExt);
    if (which == Helper::shade || which == Helper::shade_value) {
      callee->addFnAttr(llvm::Attribute::Cold);
      callee->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());  // the marks of the collector
    }
    if (which == Helper::trace || which == Helper::throw_value || which == Helper::stack_overflow ||
        which == Helper::branch_type_error || which == Helper::interrupt || which == Helper::unreachable ||
        which == Helper::bounds_error || which == Helper::catch_error || which == Helper::tape_release) {
      callee->addFnAttr(llvm::Attribute::Cold);
    }
  }
  return b_.CreateCall(callee, arguments);
}

Emitter::V Emitter::pointer(const void* address) {
  if (layout_.ahead && current_) layout_.ahead->note_address(address, function_, *current_);
  return unit_.address(address);
}

Emitter::V Emitter::at(V base, std::int64_t bytes) {
  return bytes ? b_.CreateInBoundsGEP(layout_.i8, base, integer(bytes)) : base;
}

void Emitter::branch_likely(V condition, llvm::BasicBlock* usual, llvm::BasicBlock* rare) {
  b_.CreateCondBr(condition, usual, rare, llvm::MDBuilder(layout_.context).createBranchWeights(100000, 1));
}

void Emitter::branch_unlikely(V condition, llvm::BasicBlock* rare, llvm::BasicBlock* usual) {
  b_.CreateCondBr(condition, rare, usual, llvm::MDBuilder(layout_.context).createBranchWeights(1, 100000));
}

}  // namespace slope::codegen
