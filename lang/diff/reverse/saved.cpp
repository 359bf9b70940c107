// What the reverse sweep needs of the forward sweep, and where it is kept.
//
//   constants, arguments   Nothing is saved: both sweeps can use them.
//   made outside loops     In a slot that the forward sweep sets and the reverse sweep reads. SSA construction turns
//                          slots into plain values and block arguments. A slot is not read on a path that did not set
//                          it.
//   made inside a loop     Recomputed where that is cheap: index arithmetic, the loop's counter, loads from memory that
//                          nothing in this function overwrites. Otherwise kept in a column of the loop's tape, one row
//                          for each execution of the loop's header.
#include "lang/diff/reverse/saved.hpp"

#include <algorithm>
#include <set>

#include "lang/ir/passes/passes.hpp"
#include "lang/support/tuning.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

SavedValues::SavedValues(TangentCode& code, const ir::Function& primal, const Flow& flow, Sweeps& sweeps,
                         LoopTapes& loops, Overwritten& overwritten, Refusal& refusal)
    : code_(code),
      primal_(primal),
      flow_(flow),
      sweeps_(sweeps),
      loops_(loops),
      overwritten_(overwritten),
      refusal_(refusal),
      builtin_(code.runtime().types.builtin()),
      value_of_(primal.insts.size(), no_value),
      shadow_of_(primal.insts.size(), no_value),
      uses_of_(primal.insts.size(), 0) {
  const auto count = [&](std::span<const Operand> operands) {
    for (const Operand o : operands)
      if (o.is_inst()) ++uses_of_[o.index()];
  };
  for (const ir::Block& block : primal.blocks) {
    for (const std::uint32_t id : block.insts) count(primal.insts[id].operands);
    if (block.terminator != ~0u) count(primal.insts[block.terminator].operands);
    for (const ir::Edge& edge : block.edges) count(edge.arguments);
  }
}

namespace {

bool is_number(const Type* type) { return storage_of(type) == Storage::bits; }

}  // namespace

// --- the forward sweep ---

ValueIndex SavedValues::remember(Operand forward, const Type* type) { return remember(forward, type, ~0u); }

ValueIndex SavedValues::remember(Operand forward, const Type* type, std::uint32_t primal) {
  ForwardValue value;
  value.forward = forward;
  value.type = type;
  value.loop = flow_.loop_of(sweeps_.current_forward);
  value.block = sweeps_.f.block();
  value.primal = primal;
  values_.push_back(value);
  return static_cast<ValueIndex>(values_.size() - 1);
}

void SavedValues::set_value(std::uint32_t id, Operand forward, const Type* type) {
  value_of_[id] = remember(forward, type);
}

void SavedValues::set_copy(std::uint32_t id, Operand forward, const Type* type) {
  value_of_[id] = remember(forward, type, id);
}

void SavedValues::set_shadow(std::uint32_t id, Operand shadow, const Type* type) {
  shadow_of_[id] = remember(shadow, type);
}

Operand SavedValues::forward(Operand primal) {
  if (primal.is_constant()) return sweeps_.f.constant(primal_.constant_value(primal));
  return values_[value_of_[primal.index()]].forward;
}

// --- the reverse sweep ---

Operand SavedValues::primal_in_reverse(Operand primal) {
  if (primal.is_constant()) return sweeps_.r.constant(primal_.constant_value(primal));
  return in_reverse(value_of_[primal.index()]);
}

Operand SavedValues::recomputed_in_reverse(Operand primal) {
  if (primal.is_constant()) return primal_in_reverse(primal);
  int budget = tuning::recomputed_operations;
  return can_recompute(primal.index(), budget) ? recompute(primal.index()) : Operand();
}

Operand SavedValues::shadow_in_reverse(Operand primal) { return in_reverse(shadow_of_[primal.index()]); }

Operand SavedValues::row_in_reverse(std::uint32_t loop) {
  ir::Builder& r = sweeps_.r;
  auto [at, fresh] = current_.rows.try_emplace(loop);
  if (fresh) {
    Operand rows = r.emit(Op::slot_get, {}, builtin_.int64, static_cast<std::uintptr_t>(loops_[loop].row_slot));
    at->second = loops_.on_stack() ? rows : r.emit(Op::sub_int, {rows, code_.int_constant(r, 1)}, builtin_.int64);
  }
  return at->second;
}

void SavedValues::leave_block() {
  current_.values.clear();
  current_.recomputed.clear();
  current_.rows.clear();
}

Operand SavedValues::in_reverse(ValueIndex index) {
  if (auto cached = current_.values.find(index); cached != current_.values.end()) return cached->second;
  const ForwardValue value = values_[index];
  const ir::Function& out = *sweeps_.forward_half;
  const bool is_parameter = value.forward.is_inst() && out.inst(value.forward).op == Op::parameter && value.block == 0;
  Operand result;
  if (value.forward.is_constant()) {
    result = sweeps_.r.constant(out.constant_value(value.forward));
  } else if (!sweeps_.split() && is_parameter) {
    result = value.forward;
  } else if (worth_recomputing(value)) {
    note(index, SavedValue::Where::recomputed, "cheaper than memory, from what is there in the reverse sweep");
    result = recompute(value.primal);
  } else if (value.loop != no_loop && !flow_.inside(value.loop, sweeps_.current_reverse)) {
    result = in_reverse(after_its_loop(index));
  } else if (value.loop == no_loop) {
    result = from_slot(index);
  } else {
    result = from_tape(index);
  }
  current_.values[index] = result;
  return result;
}

// From what is there; or from one number that is kept in the place of this one, which others need as well.
bool SavedValues::worth_recomputing(const ForwardValue& value) {
  if (value.loop == no_loop || value.primal == ~0u) return false;
  int budget = tuning::recomputed_operations;
  if (can_recompute(value.primal, budget)) return true;
  if (value.column >= 0) return false;
  budget = tuning::recomputed_from_one;
  std::uint32_t instead = ~0u;
  return is_number(value.type) && can_recompute(value.primal, budget, &instead) && uses_of_[instead] > 1;
}

// Used after its loop: only the last one is, which is there where it is used.
ValueIndex SavedValues::after_its_loop(ValueIndex index) {
  const BlockId here = sweeps_.current_reverse;
  auto [copy, fresh] = after_loop_.try_emplace({index, here}, no_value);
  if (fresh) {
    ForwardValue last = values_[index];
    last.loop = flow_.loop_of(here);
    last.block = sweeps_.forward_blocks[here];
    last.primal = ~0u;
    last.slot = last.column = -1;
    copy->second = static_cast<ValueIndex>(values_.size());
    values_.push_back(last);
  }
  return copy->second;
}

Operand SavedValues::from_slot(ValueIndex index) {
  const bool split = sweeps_.split();
  note(index, SavedValue::Where::value, split ? "made outside loops: in the record" : "made outside loops");
  ForwardValue& value = values_[index];
  if (value.slot < 0) {
    value.slot = new_slot(sweeps_.r, code_.runtime().symbol("#saved"), value.type);
    if (split)
      recorded_.push_back(index);
    else
      after(value, Op::slot_set, {value.forward}, static_cast<std::uintptr_t>(value.slot));
  }
  return sweeps_.r.emit(Op::slot_get, {}, value.type, static_cast<std::uintptr_t>(value.slot));
}

Operand SavedValues::from_tape(ValueIndex index) {
  const LoopState& loop = loops_[values_[index].loop];
  if (loop.known_rows.valid())
    note(index, SavedValue::Where::tape, "the loop's number of rows is known when it is entered");
  else
    note(index, SavedValue::Where::stack, "nothing tells how often the loop runs");
  if (ForwardValue& value = values_[index]; value.column < 0) {
    value.column = loops_.add_column(value.loop, value.type);
    if (loop.layout->columns.size() > tape_column_limit && refusal_.reason.empty())
      refusal_ = {primal_.span, primal_.method, "a loop keeps more than 65536 values for its derivative"};
    const Operand tape = loops_.on_stack() ? loops_.stack_in_forward : values_[loop.tape].forward;
    after(value, Op::tape_store, {tape, loop.row, value.forward},
          tape_aux(loop.layout, static_cast<std::uintptr_t>(value.column)));
  }
  Operand tape = loops_.on_stack() ? loops_.stack_in_reverse : in_reverse(loop.tape);
  const ForwardValue value = values_[index];  // the vector may have grown
  Operand row = row_in_reverse(value.loop);
  return sweeps_.r.emit(Op::tape_load, {tape, row}, value.type,
                        tape_aux(loop.layout, static_cast<std::uintptr_t>(value.column)));
}

// --- recomputation ---

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

bool reads_array(Op op) { return op == Op::array_get || op == Op::array_length || op == Op::array_size; }

}  // namespace

bool SavedValues::can_recompute(std::uint32_t id, int& budget, std::uint32_t* instead) {
  const ir::Inst& inst = primal_.insts[id];
  if (--budget < 0) return false;
  std::uint32_t loop = flow_.loop_of(inst.block);
  if (inst.op == Op::parameter) return loop != no_loop && loops_[loop].counter == id;
  bool immutable_field =
      inst.op == Op::field_at && !as_data(primal_.type_of(inst.operands[0], code_.runtime().types))->is_mutable;
  if (!(reads_array(inst.op) && overwritten_.load_is_stable(inst)) && !immutable_field && !cheap(inst.op)) return false;
  for (Operand o : inst.operands) {
    if (o.is_constant()) continue;
    const ForwardValue& value = values_[value_of_[o.index()]];
    if (value.loop == no_loop || value.column >= 0) continue;
    const std::uint32_t before = instead ? *instead : ~0u;
    const int left = budget;
    if (can_recompute(o.index(), budget, instead)) continue;
    if (instead) *instead = before;
    // A number of a loop around this one is kept there, once for all turns of this one.
    if (value.loop != loop && is_number(value.type) && flow_.inside(value.loop, inst.block) && left > 0) {
      budget = left - 1;
      continue;
    }
    if (!instead || (*instead != ~0u && *instead != o.index()) || value.loop != loop || budget < 0 ||
        !is_number(value.type) || stored_size(value.type) > stored_size(inst.type))
      return false;
    *instead = o.index();
  }
  return true;
}

Operand SavedValues::recompute(std::uint32_t id) {
  if (auto done = current_.recomputed.find(id); done != current_.recomputed.end()) return done->second;
  ir::Builder& r = sweeps_.r;
  const ir::Inst& inst = primal_.insts[id];
  Operand result;
  if (inst.op == Op::parameter) {
    result = recompute_counter(flow_.loop_of(inst.block));
  } else {
    if (reads_array(inst.op)) overwritten_.note_load(inst);
    std::vector<Operand> operands;
    for (Operand o : inst.operands) operands.push_back(primal_in_reverse(o));
    result = r.emit(inst.op, operands, inst.type, inst.aux);
    r.function().inst(result).flags = inst.flags;
  }
  current_.recomputed[id] = result;
  return result;
}

Operand SavedValues::recompute_counter(std::uint32_t loop) {
  ir::Builder& r = sweeps_.r;
  Operand result = row_in_reverse(loop);
  if (loops_[loop].start_row != no_value)
    result = r.emit(Op::sub_int, {result, in_reverse(loops_[loop].start_row)}, builtin_.int64);
  if (loops_[loop].counter_start != 0)
    result = r.emit(Op::add_int, {result, code_.int_constant(r, loops_[loop].counter_start)}, builtin_.int64);
  return result;
}

// --- the code that keeps values ---

// An inst of the forward function that stands right after the value is made; linked in by insert_pending.
void SavedValues::after(const ForwardValue& value, Op op, std::vector<Operand> operands, std::uintptr_t aux) {
  ir::Function& out = *sweeps_.forward_half;
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

void SavedValues::insert_pending() {
  ir::Function& out = *sweeps_.forward_half;
  for (BlockId b = 0; b < out.blocks.size(); ++b) {
    std::vector<std::uint32_t> insts;
    if (auto first = pending_start_.find(b); first != pending_start_.end()) {
      // After what the block's rows and tapes are made of: a store at the start of a header needs them.
      bool header = false;
      for (const LoopState& state : loops_.all())
        if (state.row.valid() && out.inst(state.row).block == b) header = true;
      std::size_t prefix = 0;
      if (header) {
        while (prefix < out.blocks[b].insts.size() && out.insts[out.blocks[b].insts[prefix]].op != Op::slot_set)
          ++prefix;
        ++prefix;
      }
      insts.insert(insts.end(), out.blocks[b].insts.begin(),
                   out.blocks[b].insts.begin() + static_cast<std::ptrdiff_t>(prefix));
      insts.insert(insts.end(), first->second.begin(), first->second.end());
      insts.insert(insts.end(), out.blocks[b].insts.begin() + static_cast<std::ptrdiff_t>(prefix),
                   out.blocks[b].insts.end());
    } else {
      insts = out.blocks[b].insts;
    }
    std::vector<std::uint32_t> complete;
    for (std::uint32_t id : insts) {
      complete.push_back(id);
      if (auto more = pending_after_.find(id); more != pending_after_.end())
        complete.insert(complete.end(), more->second.begin(), more->second.end());
    }
    out.blocks[b].insts = std::move(complete);
  }
}

bool SavedValues::may_be_unmade(ValueIndex index) const {
  const ForwardValue& value = values_[index];
  const DataType* d = as_data(value.type);
  // A stand-in takes the place of what can have one: the record's type is concrete then, and is made without a look-up.
  // Where exceptions are caught, control may come to the exit around what makes the first value of the slot.
  const std::vector<ir::Block>& blocks = sweeps_.forward_half->blocks;
  const bool catches =
      std::any_of(blocks.begin(), blocks.end(), [](const ir::Block& block) { return block.handler != ir::no_block; });
  if (catches) return true;
  if ((d && d->is_isbits) || code_.types().stand_ins.of(value.type).defined()) return false;
  for (BlockId b = 0; b < sweeps_.forward_blocks.size(); ++b)
    if (sweeps_.forward_blocks[b] == value.block) return !flow_.cfg.dominates(b, flow_.exit);
  return true;
}

std::uintptr_t SavedValues::keep(ValueIndex index, const Type* type) {
  auto slot = static_cast<std::uintptr_t>(new_slot(sweeps_.f, code_.runtime().symbol("#kept"), type));
  after(values_[index], Op::slot_set, {values_[index].forward}, slot);
  return slot;
}

// A column that turned out not to be read (an operation's result that its partial derivatives do not need) is not
// written either.
void SavedValues::drop_unread() {
  std::set<std::uintptr_t> read;
  ir::Function* both[] = {sweeps_.forward_half.get(), sweeps_.reverse_half.get()};
  for (ir::Function* function : both)
    if (function)
      for (const ir::Block& block : function->blocks)
        for (std::uint32_t id : block.insts)
          if (function->insts[id].op == Op::tape_load) read.insert(function->insts[id].aux);
  for (ir::Block& block : sweeps_.forward_half->blocks)
    std::erase_if(block.insts, [&](std::uint32_t id) {
      const ir::Inst& inst = sweeps_.forward_half->insts[id];
      bool own = false;
      for (const auto& layout : loops_.layouts()) own |= layout.get() == tape_layout_of(inst.aux);
      return inst.op == Op::tape_store && own && !read.count(inst.aux);
    });
  std::erase_if(notes_, [&](const auto& entry) {
    const ForwardValue& value = values_[entry.first];
    if (entry.second.where != SavedValue::Where::tape && entry.second.where != SavedValue::Where::stack) return false;
    return value.column >= 0 &&
           !read.count(tape_aux(loops_[value.loop].layout, static_cast<std::uintptr_t>(value.column)));
  });
  if (!sweeps_.split())
    for (ValueIndex tape : loops_.drop_unread()) notes_.erase(tape);
  ir::remove_dead_insts(*sweeps_.forward_half);
}

// --- what @code_grad reports ---

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

void SavedValues::note(ValueIndex index, SavedValue::Where where, std::string why) {
  const ForwardValue& value = values_[index];
  if (!value.forward.is_inst()) return;
  const ir::Inst& made = sweeps_.forward_half->inst(value.forward);
  SavedValue saved{made.span, std::string(ir::op_name(made.op)) + " :: " + to_string(value.type), where,
                   std::move(why)};
  notes_.try_emplace(index, std::move(saved));
}

std::vector<SavedValue> SavedValues::report() const {
  std::vector<SavedValue> result;
  for (const auto& [index, saved] : notes_) result.push_back(saved);
  return result;
}

}  // namespace slope::diff
