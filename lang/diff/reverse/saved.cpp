// What the reverse sweep needs of the forward sweep, and where it is kept.
//
//   constants, arguments   Nothing is saved: both sweeps can use them.
//   made outside loops     In a slot that the forward sweep sets and the reverse sweep reads. SSA construction turns
//                          slots into plain values and block arguments. A slot is not read on a path that did not set
//                          it.
//   made inside a loop     Recomputed where that is cheap: index arithmetic, the loop's counter, loads from memory that
//                          nothing in this function overwrites. Otherwise kept in a column of the loop's tape, one row
//                          for each execution of the loop's header.
#include <set>

#include "lang/diff/reverse/reverse.hpp"
#include "lang/ir/passes/passes.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

ValueIndex Reverse::remember(Operand forward, const Type* type, std::uint32_t primal) {
  ForwardValue value;
  value.forward = forward;
  value.type = type;
  value.loop = forest_.loop_of[current_forward_];
  value.block = f_->block();
  value.primal = primal;
  values_.push_back(value);
  return static_cast<ValueIndex>(values_.size() - 1);
}

// An inst of the forward function that stands right after the value is made; linked in by insert_pending.
void Reverse::after(const ForwardValue& value, Op op, std::vector<Operand> operands, std::uintptr_t aux) {
  ir::Function& out = *forward_out_;
  ir::Inst inst;
  inst.op = op;
  inst.operands = std::move(operands);
  inst.aux = aux;
  inst.block = value.block;
  bool at_start = true;
  if (value.forward.is_inst()) {
    const ir::Inst& made = out.inst(value.forward);
    inst.span = made.span;
    inst.scope = made.scope;
    at_start = made.op == Op::parameter || made.block != value.block;
  }
  std::uint32_t id = static_cast<std::uint32_t>(out.insts.size());
  std::uint32_t anchor = value.forward.is_inst() ? value.forward.index() : ~0u;
  out.insts.push_back(std::move(inst));
  if (at_start)
    pending_start_[value.block].push_back(id);
  else
    pending_after_[anchor].push_back(id);
}

Operand Reverse::copy_constant(Operand primal, ir::Function& out) {
  return out.constant(primal_->constant_value(primal));
}

Operand Reverse::primal_in_reverse(Operand primal) {
  if (primal.is_constant()) return copy_constant(primal, r_->function());
  return in_reverse(value_of_[primal.index()]);
}

Operand Reverse::shadow_in_reverse(Operand primal) { return in_reverse(shadow_of_[primal.index()]); }

Operand Reverse::row_in_reverse(std::uint32_t loop) {
  auto [at, fresh] = row_cache_.try_emplace(loop);
  if (fresh) {
    Operand rows = r_->emit(Op::slot_get, {}, builtin_.int64, static_cast<std::uintptr_t>(loops_[loop].row_slot));
    at->second = r_->emit(Op::sub_int, {rows, int_constant(*r_, 1)}, builtin_.int64);
  }
  return at->second;
}

Operand Reverse::in_reverse(ValueIndex index) {
  if (auto cached = reverse_cache_.find(index); cached != reverse_cache_.end()) return cached->second;
  ForwardValue value = values_[index];
  Operand result;
  bool is_parameter =
      value.forward.is_inst() && forward_out_->inst(value.forward).op == Op::parameter && value.block == 0;
  if (value.forward.is_constant()) {
    result = r_->constant(forward_out_->constant_value(value.forward));
  } else if (!split_ && is_parameter) {
    result = value.forward;
  } else if (int budget = 24; value.loop != no_loop && value.primal != ~0u && can_recompute(value.primal, budget)) {
    note_saved(index, SavedValue::Where::recomputed, "cheaper than memory, from what is there in the reverse sweep");
    result = recompute(value.primal);
  } else if (value.loop != no_loop && !inside(value.loop, current_reverse_)) {
    // Used after its loop: only the last one is, which is there where it is used.
    auto [copy, fresh] = after_loop_.try_emplace({index, current_reverse_}, no_value);
    if (fresh) {
      ForwardValue last = value;
      last.loop = forest_.loop_of[current_reverse_];
      last.block = forward_blocks_[current_reverse_];
      last.primal = ~0u;
      last.slot = last.column = -1;
      copy->second = static_cast<ValueIndex>(values_.size());
      values_.push_back(last);
    }
    result = in_reverse(copy->second);
  } else if (value.loop == no_loop) {
    note_saved(index, SavedValue::Where::value, split_ ? "made outside loops: in the record" : "made outside loops");
    if (value.slot < 0) {
      value.slot = values_[index].slot = new_slot(value.type, false);
      if (split_)
        recorded_.push_back(index);
      else
        after(value, Op::slot_set, {value.forward}, static_cast<std::uintptr_t>(value.slot));
    }
    result = r_->emit(Op::slot_get, {}, value.type, static_cast<std::uintptr_t>(value.slot));
  } else {
    LoopState& loop = loops_[value.loop];
    if (loop.known_rows.valid())
      note_saved(index, SavedValue::Where::tape, "the loop's number of rows is known when it is entered");
    else
      note_saved(index, SavedValue::Where::stack, "nothing tells how often the loop runs");
    if (value.column < 0) {
      value.column = values_[index].column = static_cast<int>(loop.layout->columns.size());
      loop.layout->columns.push_back(value.type);
      if (loop.layout->columns.size() > tape_column_limit && refusal_.reason.empty())
        refusal_ = {primal_->span, primal_->method, "a loop keeps more than 65536 values for its derivative"};
      after(value, Op::tape_store, {values_[loop.tape].forward, loop.row, value.forward},
            tape_aux(loop.layout, static_cast<std::uintptr_t>(value.column)));
    }
    Operand tape = in_reverse(loop.tape);
    Operand row = row_in_reverse(value.loop);
    result = r_->emit(Op::tape_load, {tape, row}, value.type,
                      tape_aux(loop.layout, static_cast<std::uintptr_t>(value.column)));
  }
  reverse_cache_[index] = result;
  return result;
}

namespace {

// Cheap and without effects: worth doing again instead of a store and a load.
bool cheap(Op op) {
  if (ir::is_integer_arithmetic(op)) return true;
  switch (op) {
    case Op::slt_int:
    case Op::sle_int:
    case Op::ult_int:
    case Op::ule_int:
    case Op::eq_int:
    case Op::ne_int:
    case Op::sitofp:
    case Op::uitofp:
    case Op::fptrunc:
    case Op::fpext:
    case Op::bitcast:
    case Op::add_float:
    case Op::sub_float:
    case Op::mul_float:
    case Op::neg_float:
    case Op::abs_float:
    case Op::eq_float:
    case Op::ne_float:
    case Op::lt_float:
    case Op::le_float:
    case Op::select:
    case Op::refine:
    case Op::tuple:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool Reverse::inside(std::uint32_t loop, ir::BlockId block) const {
  for (std::uint32_t l = forest_.loop_of[block]; l != no_loop; l = forest_.loops[l].parent)
    if (l == loop) return true;
  return false;
}

// --- what @code_grad tells
// --------------------------------------------------------------------------------------------

const char* saved_where(SavedValue::Where where) {
  switch (where) {
    case SavedValue::Where::value:
      return "value";
    case SavedValue::Where::recomputed:
      return "recomputed";
    case SavedValue::Where::tape:
      return "indexed tape";
    default:
      return "stack";
  }
}

void Reverse::note_saved(ValueIndex index, SavedValue::Where where, std::string why) {
  const ForwardValue& value = values_[index];
  if (!value.forward.is_inst()) return;
  const ir::Inst& made = forward_out_->inst(value.forward);
  SavedValue saved{made.span, std::string(ir::op_name(made.op)) + " :: " + to_string(value.type), where,
                   std::move(why)};
  saved_.try_emplace(index, std::move(saved));
}

std::vector<SavedValue> Reverse::saved() const {
  std::vector<SavedValue> result;
  for (const auto& [index, saved] : saved_) result.push_back(saved);
  return result;
}

// A column that turned out not to be read (an operation's result that its partial derivatives do not need) is not
// written either.
void Reverse::drop_unread_columns() {
  std::set<std::uintptr_t> read;
  ir::Function* both[] = {forward_out_.get(), reverse_out_.get()};
  for (ir::Function* function : both)
    if (function)
      for (const ir::Block& block : function->blocks)
        for (std::uint32_t id : block.insts)
          if (function->insts[id].op == Op::tape_load) read.insert(function->insts[id].aux);
  for (ir::Block& block : forward_out_->blocks)
    std::erase_if(block.insts, [&](std::uint32_t id) {
      const ir::Inst& inst = forward_out_->insts[id];
      bool own = false;
      for (const auto& layout : layouts) own |= layout.get() == tape_layout_of(inst.aux);
      return inst.op == Op::tape_store && own && !read.count(inst.aux);
    });
  std::erase_if(saved_, [&](const auto& entry) {
    const ForwardValue& value = values_[entry.first];
    if (entry.second.where != SavedValue::Where::tape && entry.second.where != SavedValue::Where::stack) return false;
    return value.column >= 0 &&
           !read.count(tape_aux(loops_[value.loop].layout, static_cast<std::uintptr_t>(value.column)));
  });
  if (!reverse_out_) drop_unread_tapes();
  ir::remove_dead_insts(*forward_out_);
}

bool Reverse::can_recompute(std::uint32_t id, int& budget) {
  const ir::Inst& inst = primal_->insts[id];
  if (--budget < 0) return false;
  std::uint32_t loop = forest_.loop_of[inst.block];
  if (inst.op == Op::parameter) return loop != no_loop && loops_[loop].counter == id;
  bool load = inst.op == Op::array_get || inst.op == Op::array_length || inst.op == Op::array_size;
  bool immutable_field =
      inst.op == Op::field_at && !as_data(primal_->type_of(inst.operands[0], runtime_.types))->is_mutable;
  if (!(load && load_is_stable(inst)) && !immutable_field && !cheap(inst.op)) return false;
  for (Operand o : inst.operands) {
    if (o.is_constant()) continue;
    const ForwardValue& value = values_[value_of_[o.index()]];
    if (value.loop == no_loop || value.column >= 0) continue;
    if (!can_recompute(o.index(), budget)) {
      // One saved operand in the place of one saved result is no gain, but no loss either when it is saved anyway.
      return false;
    }
  }
  return true;
}

Operand Reverse::recompute(std::uint32_t id) {
  if (auto done = recomputed_.find(id); done != recomputed_.end()) return done->second;
  const ir::Inst inst = primal_->insts[id];
  Operand result;
  if (inst.op == Op::parameter) {
    std::uint32_t loop = forest_.loop_of[inst.block];
    result = row_in_reverse(loop);
    if (loops_[loop].start_row != no_value)
      result = r_->emit(Op::sub_int, {result, in_reverse(loops_[loop].start_row)}, builtin_.int64);
    if (loops_[loop].counter_start != 0)
      result = r_->emit(Op::add_int, {result, int_constant(*r_, loops_[loop].counter_start)}, builtin_.int64);
  } else {
    if (inst.op == Op::array_get || inst.op == Op::array_length || inst.op == Op::array_size)
      looked_at_.push_back({id, sharing_->group(inst.operands[0])});
    std::vector<Operand> operands;
    for (Operand o : inst.operands) operands.push_back(primal_in_reverse(o));
    result = r_->emit(inst.op, operands, inst.type, inst.aux);
    r_->function().inst(result).flags = inst.flags;
  }
  recomputed_[id] = result;
  return result;
}

}  // namespace slope::diff
