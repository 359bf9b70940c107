// What the reverse sweep needs of the forward sweep, and where it is kept.
//
//   constants, arguments   nowhere: they are there
//   made outside loops     a slot that the forward sweep sets and the reverse sweep reads; SSA construction makes plain
//                          values and block arguments of them (nothing is read on a path where it was not set)
//   made inside a loop     recomputed when that is cheap: index arithmetic, the loop's counter, loads from memory that
//   nothing
//                          in this function overwrites; otherwise a column of the loop's tape, a row for each execution
//                          of the loop's header
#include "lang/diff/reverse.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

Operand Reverse::int_constant(ir::Builder& at, std::int64_t n) { return at.constant(runtime_.from_int(n)); }

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
  } else if (int budget = 8; value.loop != no_loop && value.primal != ~0u && can_recompute(value.primal, budget)) {
    result = recompute(value.primal);
  } else if (value.loop == no_loop) {
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
    if (value.column < 0) {
      value.column = values_[index].column = static_cast<int>(loop.layout->columns.size());
      loop.layout->columns.push_back(value.type);
      after(value, Op::tape_store, {values_[loop.tape].forward, loop.row, value.forward},
            static_cast<std::uintptr_t>(value.column));
    }
    Operand tape = in_reverse(loop.tape);
    Operand row = row_in_reverse(value.loop);
    result = r_->emit(Op::tape_load, {tape, row}, value.type, static_cast<std::uintptr_t>(value.column));
  }
  reverse_cache_[index] = result;
  return result;
}

namespace {

// Cheap and without effects: worth doing again instead of a store and a load.
bool cheap(Op op) {
  switch (op) {
    case Op::add_int:
    case Op::sub_int:
    case Op::mul_int:
    case Op::neg_int:
    case Op::and_int:
    case Op::or_int:
    case Op::xor_int:
    case Op::not_int:
    case Op::shl_int:
    case Op::lshr_int:
    case Op::ashr_int:
    case Op::slt_int:
    case Op::sle_int:
    case Op::ult_int:
    case Op::ule_int:
    case Op::eq_int:
    case Op::ne_int:
    case Op::sext_int:
    case Op::zext_int:
    case Op::trunc_int:
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

void Reverse::find_stores() {
  for (ir::BlockId b = 0; b < primal_->blocks.size(); ++b) {
    if (!activity_.returns[b]) continue;
    for (std::uint32_t id : primal_->blocks[b].insts) {
      const ir::Inst& inst = primal_->insts[id];
      switch (inst.op) {
        // array_init writes only what was never read: no load before it sees the difference.
        case Op::array_set:
        case Op::array_resize: {
          const DataType* array = as_data(type_of(inst.operands[0]));
          if (array && array->params.size() == 2)
            stored_elements_.push_back(array->params[0]);
          else
            writes_unknown_ = true;
          break;
        }
        case Op::invoke: {
          const CodeInstance* code = inst.aux_as<Specialization>()->current;
          if (activity_.rules[id] == RuleKind::reverse || activity_.rules[id] == RuleKind::scalar) break;
          if (!code || (code->effects & effect_writes)) writes_unknown_ = true;
          break;
        }
        case Op::native:
          if (inst.aux_as<const NativeInfo>()->effects & effect_writes) writes_unknown_ = true;
          break;
        case Op::call:
        case Op::call_splat:
        case Op::set_field:
        case Op::set_field_at:
        case Op::cell_set:
          writes_unknown_ = true;
          break;
        default:
          break;
      }
    }
  }
}

// Nothing in this function may overwrite what the load reads. Arrays of different element types never share memory
// here.
bool Reverse::load_is_stable(const ir::Inst& load) const {
  if (writes_unknown_) return false;
  const DataType* array = as_data(primal_->type_of(load.operands[0], runtime_.types));
  if (!array || array->params.size() != 2) return false;
  for (const Type* stored : stored_elements_)
    if (stored == array->params[0]) return false;
  return true;
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
    std::vector<Operand> operands;
    for (Operand o : inst.operands) operands.push_back(primal_in_reverse(o));
    result = r_->emit(inst.op, operands, inst.type, inst.aux);
    r_->function().inst(result).flags = inst.flags;
  }
  recomputed_[id] = result;
  return result;
}

}  // namespace slope::diff
