// After the sweeps: the record that carries values from the forward half to the reverse half, and slots as SSA values.
#include <algorithm>
#include <unordered_map>

#include "lang/diff/record_seal.hpp"
#include "lang/diff/reverse/reverse.hpp"
#include "lang/ir/passes/checked.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

// A value that is not made on every path goes through a slot of the forward half. A reference that was not made can't
// stand in a tuple: `nothing` stands for it. What is known only at run time goes into a box, so that the record's type
// is concrete: it is made and read without a look-up, and that of a recursive function is finite.
Reverse::Record Reverse::write_record() {
  Record record;
  std::vector<Operand> kept;
  std::vector<const Type*> types;
  for (ValueIndex value : values_.recorded()) {
    const Type* held = values_.may_be_unmade(value) ? builtin_.any : values_[value].type;
    const std::uintptr_t slot = values_.keep(value, held);
    const Operand operand = f_.emit(Op::slot_get, {}, held, slot);
    const bool box = !is_concrete(held);
    kept.push_back(box ? boxed(f_, operand) : operand);
    types.push_back(box ? tangents_.dynamic() : held);
    record.values.push_back({value, held, types.back(), slot});
  }
  if (needs_seal(record)) record.code = tangents_.new_record_code();
  std::vector<Operand> sealed{int_constant(f_, record.code)};
  for (const Record::Kept& value : record.values)
    if (record.code != 0 && is_sealed(value)) sealed.push_back(f_.emit(Op::slot_get, {}, value.held, value.slot));
  for (const LoopState& loop : loops_.all()) {
    kept.push_back(f_.emit(Op::slot_get, {}, builtin_.int64, static_cast<std::uintptr_t>(loop.forward_row_slot)));
    types.push_back(builtin_.int64);
    sealed.push_back(kept.back());
  }
  if (record.code != 0) {
    kept.push_back(f_.emit(Op::native, sealed, builtin_.int64, reinterpret_cast<std::uintptr_t>(&record_seal_native)));
    types.push_back(builtin_.int64);
  }
  record.type = runtime_.types.tuple(types);
  record.made = f_.emit(Op::tuple, kept, record.type);
  return record;
}

// In the reverse half: its fields go to the slots that the reverse sweep reads.
void Reverse::read_record(const Record& record, Operand held) {
  const Operand typed = r_.emit(Op::type_assert, {held, r_.constant(runtime_.from_type(record.type))}, record.type);
  std::size_t field = 0;
  if (record.code != 0) check_record(record, typed);
  for (const Record::Kept& kept : record.values) {
    Operand value = r_.emit(Op::field_at, {typed}, kept.kept, field++);
    if (kept.held != kept.kept) value = r_.emit(Op::field_at, {value}, kept.held, 0);
    give_back(kept, value);
  }
  for (const LoopState& loop : loops_.all()) {
    Operand rows = r_.emit(Op::field_at, {typed}, builtin_.int64, field++);
    r_.emit(Op::slot_set, {rows}, nullptr, static_cast<std::uintptr_t>(loop.row_slot));
  }
}

// A value of the record goes to the slot that the reverse sweep reads, when the forward sweep made it.
void Reverse::give_back(const Record::Kept& kept, Operand value) {
  BlockId rest = ir::no_block;
  if (const Type* type = values_[kept.value].type; kept.held != type) {
    rest = r_.new_block();
    BlockId made = r_.new_block();
    Operand is_made = r_.emit(Op::isa, {value, r_.constant(runtime_.from_type(type))}, builtin_.boolean);
    r_.branch(is_made, made, rest);
    r_.set_block(made);
    value = r_.emit(Op::refine, {value}, type);
  }
  r_.emit(Op::slot_set, {value}, nullptr, static_cast<std::uintptr_t>(values_[kept.value].slot));
  if (rest != ir::no_block) {
    r_.jump(rest);
    r_.set_block(rest);
  }
}

// On a stack the record is a row of it, the last that the activation makes: nothing but the number of free rows is
// returned.
Reverse::Record Reverse::write_frame() {
  Record record;
  const std::uint32_t kind = loops_.frame_kind();
  const Operand row = loops_.push_row();
  const auto store = [&](Operand value, const Type* type) {
    const int column = loops_.add_column(kind, type);
    f_.emit(Op::tape_store, {loops_.stack_in_forward, row, value}, nullptr,
            tape_aux(loops_.stack(), static_cast<std::uintptr_t>(column)));
    return column;
  };
  for (ValueIndex value : values_.recorded()) {
    const Type* held = values_.may_be_unmade(value) ? builtin_.any : values_[value].type;
    const std::uintptr_t slot = values_.keep(value, held);
    const int column = store(f_.emit(Op::slot_get, {}, held, slot), held);
    record.values.push_back({value, held, held, slot, column});
  }
  for (const LoopState& loop : loops_.all())
    record.loop_columns.push_back(store(
        f_.emit(Op::slot_get, {}, builtin_.int64, static_cast<std::uintptr_t>(loop.forward_row_slot)), builtin_.int64));
  record.made = loops_.free_row();
  return record;
}

void Reverse::read_frame(const Record& record, Operand row) {
  const auto load = [&](int column, const Type* type) {
    return r_.emit(Op::tape_load, {loops_.stack_in_reverse, row}, type,
                   tape_aux(loops_.stack(), static_cast<std::uintptr_t>(column)));
  };
  for (const Record::Kept& kept : record.values) give_back(kept, load(kept.column, kept.held));
  for (std::size_t i = 0; i < record.loop_columns.size(); ++i)
    r_.emit(Op::slot_set, {load(record.loop_columns[i], builtin_.int64)}, nullptr,
            static_cast<std::uintptr_t>(loops_.all()[i].row_slot));
}

// What the reverse half believes without looking (record_seal.hpp).
bool Reverse::is_sealed(const Record::Kept& kept) const {
  const Type* type = values_[kept.value].type;
  return kept.held == builtin_.any || type == builtin_.int64 || type == builtin_.boolean || type == builtin_.tape;
}
bool Reverse::needs_seal(const Record& record) const {
  return !loops_.all().empty() ||
         std::any_of(record.values.begin(), record.values.end(), [&](const Record::Kept& kept) {
           return values_.may_be_unmade(kept.value) || values_[kept.value].type == builtin_.tape;
         });
}
void Reverse::check_record(const Record& record, Operand typed) {
  const std::size_t count = record.values.size() + loops_.all().size();
  std::vector<Operand> sealed{r_.emit(Op::field_at, {typed}, builtin_.int64, count), int_constant(r_, record.code)};
  std::size_t field = 0;
  for (const Record::Kept& kept : record.values) {
    if (is_sealed(kept)) {
      const Operand value = r_.emit(Op::field_at, {typed}, kept.kept, field);
      sealed.push_back(kept.held != kept.kept ? r_.emit(Op::field_at, {value}, kept.held, 0) : value);
    }
    ++field;
  }
  for (; field < count; ++field) sealed.push_back(r_.emit(Op::field_at, {typed}, builtin_.int64, field));
  r_.emit(Op::native, sealed, builtin_.int64, reinterpret_cast<std::uintptr_t>(&record_check_native));
}

// At the start of the forward half: `nothing` in the slots of what may not be made.
void Reverse::clear_unmade(const Record& record) {
  for (const Record::Kept& kept : record.values)
    if (values_.may_be_unmade(kept.value)) clear_at_start(f_, kept.slot);
}

// `nothing` in a slot, before anything else.
void Reverse::clear_at_start(ir::Builder& at, std::uintptr_t slot) {
  ir::Function& out = at.function();
  ir::Inst inst;
  inst.op = Op::slot_set;
  inst.aux = slot;
  inst.block = 0;
  inst.operands = {at.constant(runtime_.nothing())};
  out.blocks[0].insts.insert(out.blocks[0].insts.begin(), static_cast<std::uint32_t>(out.insts.size()));
  out.insts.push_back(std::move(inst));
}

// Slots become SSA values. A slot read where it was never set is never looked at. `reverse_start`: where the reverse
// sweep begins, if it is in this function.
void Reverse::finish_slots(ir::Function& out, BlockId reverse_start) {
  if (reverse_start != ir::no_block) adjoints_.start_at_zero(reverse_start);
  std::unordered_map<const Type*, Operand> undefined;
  ir::promote_slots(out, &builtin_, [&](std::uint32_t slot) {
    const Type* type = out.slot_types[slot];
    auto [found, fresh] = undefined.try_emplace(type);
    if (Value value = fresh ? tangents_.stand_ins.of(type) : Value(); value.defined()) {
      found->second = out.constant(value);
    } else if (fresh) {
      ir::Inst inst;
      inst.op = Op::undef;
      inst.type = type;
      inst.block = 0;
      std::uint32_t id = static_cast<std::uint32_t>(out.insts.size());
      out.insts.push_back(std::move(inst));
      out.blocks[0].insts.insert(out.blocks[0].insts.begin(), id);
      found->second = Operand::inst(id);
    }
    return found->second;
  });
  ir::check_after(out, "promotion of slots", ir::Typing::partial);
  if (reverse_start != ir::no_block) adjoints_.drop_zero_terms();
  type_stores(out);
  ir::simplify_cfg(out);
  ir::remove_dead_insts(out);
}

}  // namespace slope::diff
