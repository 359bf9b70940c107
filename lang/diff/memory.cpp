#include "lang/diff/memory.hpp"

#include "lang/diff/operations.hpp"

#include <algorithm>

#include "lang/diff/rules.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

MemoryEffects::MemoryEffects(Runtime& runtime, World world, std::function<Code(Specialization&)> code,
                             std::function<MemoryMask(const DataType*)> overwritten)
    : runtime_(runtime),
      tangents_(tangent_types(runtime)),
      world_(world),
      code_(std::move(code)),
      overwritten_(std::move(overwritten)) {}

MemorySummary MemoryEffects::of(Specialization& target) {
  known(target);
  settle();
  return summaries_.at(&target).summary;
}

MemorySummary MemoryEffects::of(const ir::Function& function) {
  analyse(function);
  settle();
  return analyse(function);
}

void MemoryEffects::settle() {
  while (grew_) {
    grew_ = false;
    for (std::size_t i = 0; i < order_.size(); ++i) {  // analysing one may add others
      const Known entry = summaries_.at(order_[i]);
      MemorySummary now = analyse(*entry.code);
      MemorySummary& kept = summaries_.at(order_[i]).summary;
      bool same = (now.writes | kept.writes) == kept.writes && (now.unknown | kept.unknown) == kept.unknown &&
                  (now.result | kept.result) == kept.result && (now.stored | kept.stored) == kept.stored &&
                  (now.reads | kept.reads) == kept.reads;
      if (same) continue;
      kept.writes |= now.writes;
      kept.unknown |= now.unknown;
      kept.result |= now.result;
      kept.stored |= now.stored;
      kept.reads |= now.reads;
      grew_ = true;
    }
  }
}

MemoryEffects::Known& MemoryEffects::known(Specialization& target) {
  auto [at, fresh] = summaries_.try_emplace(&target);
  if (!fresh) return at->second;
  Known& entry = at->second;
  entry.code = code_(target);
  entry.fixed = true;
  if (!entry.code) {
    entry.summary.unknown = ~MemoryMask{0};
    entry.summary.result = entry.summary.stored = entry.summary.reads = ~MemoryMask{0};
    return entry;
  }
  entry.fixed = false;
  order_.push_back(&target);
  grew_ = true;
  return entry;
}

MemorySummary MemoryEffects::of_call(const ir::Inst& invoke) {
  read_call(invoke);
  settle();
  return read_call(invoke);
}

MemorySummary MemoryEffects::read_call(const ir::Inst& call) {
  Specialization& target = *call.aux_as<Specialization>();
  // Functions with rules leave their arguments alone and return memory of their own: that is what a rule promises. A
  // rule with state says what its function overwrites, which the result may be.
  RuleKind rule = find_rule(runtime_, target.types, world_, nullptr);
  if (rule == RuleKind::stateful) {
    MemorySummary declared;
    declared.writes = declared.result = overwritten_(target.types);
    declared.reads = ~MemoryMask{0};
    return declared;
  }
  if (rule != RuleKind::none) {
    MemorySummary promised;
    promised.reads = ~MemoryMask{0};
    return promised;
  }
  MemorySummary found = known(target).summary;
  if (target.current && !(target.current->effects & effect_writes)) found.writes = found.unknown = 0;
  if (target.current && !(target.current->effects & effect_reads)) found.reads = 0;
  if (!target.method->is_vararg) return found;
  std::size_t fixed = target.method->arg_count;
  auto spread = [&](MemoryMask mask) {
    if (!(mask & parameter_mask(fixed))) return mask;
    for (std::size_t i = fixed; i < call.operands.size(); ++i) mask |= parameter_mask(i);
    return mask;
  };
  found.writes = spread(found.writes);
  found.unknown = spread(found.unknown);
  found.result = spread(found.result);
  found.stored = spread(found.stored);
  found.reads = spread(found.reads);
  return found;
}

namespace {

bool is_immutable(const Type* type) {
  const DataType* d = as_data(type);
  return d && !d->is_mutable && d->object_kind == DataType::ObjectKind::fields;
}

}  // namespace

MemorySummary MemoryEffects::analyse(const ir::Function& function) {
  MemorySummary summary;
  MemoryMask kept = 0;  // in memory made here: what is loaded from anywhere may be it
  std::vector<MemoryMask> mask(function.insts.size(), 0);
  auto holds_memory = [&](const Type* t) { return !tangents_.known(t) || tangents_.has_shadow(t); };
  auto of_operand = [&](Operand o) -> MemoryMask {
    if (o.is_inst()) return mask[o.index()];
    if (!o.is_constant()) return 0;
    return tangents_.holds_memory(function.constant_value(o)) ? global_memory : 0;
  };
  const std::vector<std::uint32_t>& parameters = function.blocks[0].parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (holds_memory(function.insts[parameters[i]].type)) mask[parameters[i]] = parameter_mask(i);
  for (bool changed = true; changed;) {
    changed = false;
    auto set = [&](std::uint32_t id, MemoryMask m) {
      if (!holds_memory(function.insts[id].type)) return;
      if ((mask[id] | m) == mask[id]) return;
      mask[id] |= m;
      changed = true;
    };
    auto store = [&](MemoryMask object, MemoryMask value) {
      summary.writes |= object;
      if (object) summary.stored |= value;
      if ((kept | value) != kept) {
        kept |= value;
        changed = true;
      }
    };
    for (const ir::Block& block : function.blocks) {
      for (std::uint32_t id : block.insts) {
        const ir::Inst& inst = function.insts[id];
        MemoryMask all = 0;
        for (Operand o : inst.operands) all |= of_operand(o);
        switch (inst.op) {
          case Op::load_global:
            set(id, global_memory);
            break;
          case Op::invoke: {
            MemorySummary callee = read_call(inst);
            MemoryMask written = 0;
            MemoryMask result = callee.result & global_memory;
            MemoryMask stored = 0;
            for (std::size_t i = 0; i < inst.operands.size(); ++i) {
              MemoryMask bit = parameter_mask(i);
              MemoryMask operand = of_operand(inst.operands[i]);
              if (callee.writes & bit) written |= operand;
              if (callee.unknown & bit) summary.unknown |= operand;
              if (callee.result & bit) result |= operand;
              if (callee.stored & bit) stored |= operand;
              if (callee.reads & bit) summary.reads |= operand;
            }
            if (callee.writes & global_memory) written |= global_memory;
            store(written, stored);
            set(id, result);
            break;
          }
          case Op::call:
          case Op::call_splat:
            summary.reads |= all;
            summary.unknown |= all;
            kept |= all;
            set(id, all | global_memory);
            break;
          case Op::native: {
            summary.reads |= all;
            if (calls_what_it_is_given(inst)) {
              summary.unknown |= all;
              kept |= all;
              set(id, all | global_memory);
              break;
            }
            std::uint32_t effects = inst.aux_as<const NativeInfo>()->effects;
            if (effects & effect_writes) summary.writes |= all;
            set(id, all);
            break;
          }
          case Op::store_global:
            summary.stored |= all;
            break;
          case Op::array_set:
          case Op::array_init:
          case Op::cell_set:
          case Op::set_field_at:
            store(of_operand(inst.operands[0]), of_operand(inst.operands[1]));
            break;
          case Op::set_field:
            store(of_operand(inst.operands[0]), of_operand(inst.operands[2]));
            set(id, of_operand(inst.operands[2]));
            break;
          case Op::array_resize:
          case Op::array_resize_front:
            summary.writes |= all;
            break;
          case Op::array_new:
          case Op::array_check:
            break;
          case Op::slot_set:
            store(0, all);
            break;
          case Op::tape_store:
            store(0, of_operand(inst.operands[2]));
            break;
          case Op::array_get:
          case Op::field_at:
          case Op::get_field:
          case Op::cell_get:
            if (inst.op != Op::field_at || !is_immutable(function.type_of(inst.operands[0], runtime_.types)))
              summary.reads |= all;
            set(id, all | kept);
            break;
          case Op::tape_load:
          case Op::slot_get:
            set(id, all | kept);
            break;
          case Op::make_struct:
          case Op::make_closure:
          case Op::tuple:
          case Op::cell_new:
            if (all && as_data(inst.type) && as_data(inst.type)->is_mutable) store(0, all);
            set(id, all);
            break;
          default:
            set(id, all);
            break;
        }
      }
      for (const ir::Edge& edge : block.edges)
        for (std::size_t i = 0; i < edge.arguments.size(); ++i)
          set(function.blocks[edge.target].parameters[i], of_operand(edge.arguments[i]));
      if (block.terminator != ~0u && function.insts[block.terminator].op == Op::ret) {
        MemoryMask result = of_operand(function.insts[block.terminator].operands[0]);
        if (holds_memory(function.type_of(function.insts[block.terminator].operands[0], runtime_.types)))
          result |= kept;
        summary.result |= result;
      }
    }
  }
  return summary;
}

MemoryEffects::Globals MemoryEffects::globals(const ir::Function& function) {
  Globals found;
  std::vector<const ir::Function*> seen;
  std::vector<Code> kept;
  collect(function, found, seen, kept);
  return found;
}

void MemoryEffects::collect(const ir::Function& function, Globals& found, std::vector<const ir::Function*>& seen,
                            std::vector<Code>& kept) {
  if (std::find(seen.begin(), seen.end(), &function) != seen.end()) return;
  seen.push_back(&function);
  for (Value v : function.constants)
    if (v.defined() && (!tangents_.known(v.type) || tangents_.has_shadow(v.type))) found.constants.push_back(v);
  for (const ir::Block& block : function.blocks)
    for (std::uint32_t id : block.insts) {
      const ir::Inst& inst = function.insts[id];
      if (inst.op == Op::load_global) found.bindings.push_back(inst.aux_as<Binding>());
      if (inst.op != Op::invoke) continue;
      if (Code code = code_(*inst.aux_as<Specialization>())) {
        kept.push_back(code);
        collect(*code, found, seen, kept);
      }
    }
}

}  // namespace slope::diff
