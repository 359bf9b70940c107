#include "lang/diff/sharing.hpp"

#include <numeric>
#include <string_view>

#include "lang/diff/operations.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

Sharing::Sharing(const ir::Function& function, const ir::Cfg& cfg, TangentTypes& tangents, MemoryEffects& memory,
                 const std::vector<RuleKind>& rules, const std::vector<bool>& reached)
    : function_(function), cfg_(cfg), tangents_(tangents), memory_(memory), rules_(rules) {
  outer_ = static_cast<std::uint32_t>(function.insts.size());
  first_slot_ = outer_ + 1;
  parent_.resize(first_slot_ + function.slots.size());
  std::iota(parent_.begin(), parent_.end(), 0u);
  marked_outer_.assign(parent_.size(), false);
  marked_outer_[outer_] = true;
  position_.assign(function.insts.size(), 0);
  for (const ir::Block& block : function.blocks) has_handlers_ |= block.handler != ir::no_block;

  for (std::uint32_t id : function.blocks[0].parameters) expose(Operand::inst(id));
  for (ir::BlockId b = 0; b < function.blocks.size(); ++b) {
    const ir::Block& block = function.blocks[b];
    for (std::size_t i = 0; i < block.insts.size(); ++i) position_[block.insts[i]] = static_cast<std::uint32_t>(i);
    if (!reached[b]) continue;
    for (std::uint32_t id : block.insts) visit(id);
    for (const ir::Edge& edge : block.edges)
      for (std::size_t i = 0; i < edge.arguments.size(); ++i)
        unite(Operand::inst(function.blocks[edge.target].parameters[i]), edge.arguments[i]);
    if (has_handlers_ && block.terminator != ~0u && function.insts[block.terminator].op == Op::throw_)
      expose(function.insts[block.terminator].operands[0]);
  }
  // What a tape holds that came from elsewhere, or went there, is not this function's alone.
  for (bool grew = true; grew;) {
    grew = false;
    for (ir::BlockId b = 0; b < function.blocks.size(); ++b) {
      for (std::uint32_t id : function.blocks[b].insts) {
        const ir::Inst& inst = function.insts[id];
        if (!reached[b] || (inst.op != Op::tape_store && inst.op != Op::tape_load)) continue;
        std::uint32_t tape = group(inst.operands[0]);
        if ((tape != no_group && !is_outer(tape)) || is_outer(column(inst.aux))) continue;
        unite_outer(column(inst.aux));
        grew = true;
      }
    }
  }

  // Objects that one inst makes, which no variable of a loop carries on: another execution makes another.
  std::map<std::uint32_t, std::uint32_t> makers;
  std::vector<bool> carried(parent_.size(), false);
  for (std::uint32_t n = 0; n < parent_.size(); ++n) {
    bool inst = n < function.insts.size();
    if (inst && !holds_memory(function.insts[n].type)) continue;
    Op op = inst ? function.insts[n].op : Op::parameter;
    if (op == Op::parameter) carried[find(n)] = true;
    if (op == Op::array_new || op == Op::make_struct || op == Op::cell_new || op == Op::invoke || op == Op::native) {
      ++makers[find(n)];
      maker_[find(n)] = n;
    }
  }
  std::erase_if(maker_, [&](const auto& entry) {
    return makers[entry.first] != 1 || carried[entry.first] || is_outer(entry.first);
  });
}

// Whether memory that can be written is reached through a value of this type.
bool Sharing::holds_memory(const Type* type) const {
  const DataType* d = as_data(type);
  if (!d || !d->is_concrete) return type && type->kind != TypeKind::bottom;
  if (d->is_isbits || d->storage == Storage::singleton || d->is_kind ||
      d->object_kind == DataType::ObjectKind::string || d == tangents_.runtime().types.builtin().symbol)
    return false;
  if (d->is_mutable || d->object_kind != DataType::ObjectKind::fields) return true;
  auto [known, fresh] = holds_.try_emplace(type, true);  // of a type that contains itself
  if (!fresh) return known->second;
  bool any = false;
  for (const Field& field : d->fields) any |= holds_memory(field.type);
  return holds_[type] = any;
}

bool Sharing::holds_memory(Operand o) const {
  if (o.is_inst()) return holds_memory(function_.inst(o).type);
  Value v = function_.constant_value(o);
  return v.defined() && !tangents_.stand_ins.contains(v) && holds_memory(v.type);
}

std::uint32_t Sharing::node(Operand o) const {
  if (!holds_memory(o)) return no_group;
  return o.is_constant() ? outer_ : o.index();
}

std::uint32_t Sharing::group(Operand o) const {
  std::uint32_t n = node(o);
  return n == no_group ? no_group : find(n);
}

std::uint32_t Sharing::find(std::uint32_t n) const {
  while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
  return n;
}

// Memory that came from outside stays in groups of its own: two arguments are rarely the same, and who asks whether
// they may be is told so (may_meet).
void Sharing::unite(std::uint32_t a, std::uint32_t b) {
  if (a == no_group || b == no_group) return;
  a = find(a);
  b = find(b);
  if (a == b) return;
  if (a == find(outer_) || b == find(outer_)) {
    marked_outer_[a] = marked_outer_[b] = true;
    return;
  }
  parent_[b] = a;
  marked_outer_[a] = marked_outer_[a] || marked_outer_[b];
}

void Sharing::unite(Operand a, Operand b) { unite(node(a), node(b)); }

void Sharing::unite_outer(std::uint32_t n) {
  if (n != no_group) marked_outer_[find(n)] = true;
}

std::uint32_t Sharing::column(std::uintptr_t aux) {
  auto [known, fresh] = columns_.try_emplace(aux, static_cast<std::uint32_t>(parent_.size()));
  if (fresh) {
    parent_.push_back(known->second);
    marked_outer_.push_back(false);
  }
  return known->second;
}

void Sharing::visit(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  Operand result = Operand::inst(id);
  auto expose_all = [&] {
    for (Operand o : inst.operands) expose(o);
    expose(result);
  };
  switch (inst.op) {
    case Op::array_new:
    case Op::array_length:
    case Op::array_size:
    case Op::array_check:
    case Op::array_resize:
    case Op::array_resize_front:
    case Op::tape_open:
    case Op::tape_reserve:
    case Op::tape_close:
    case Op::type_of:
    case Op::isa:
    case Op::subtype:
    case Op::egal:
    case Op::field_count:
    case Op::field_defined:
    case Op::cell_defined:
    case Op::check_defined:
    case Op::undef:
    case Op::string_length:
    case Op::string_byte:
      return;
    case Op::refine:
    case Op::type_assert:
    case Op::field_at:
    case Op::array_get:
    case Op::array_share:
    case Op::cell_get:
      return unite(result, inst.operands[0]);
    case Op::select:
      unite(result, inst.operands[1]);
      return unite(result, inst.operands[2]);
    case Op::make_struct:
    case Op::tuple:
    case Op::make_closure:
    case Op::cell_new:
      for (std::size_t i = inst.op == Op::make_struct ? 1 : 0; i < inst.operands.size(); ++i)
        unite(result, inst.operands[i]);
      return;
    case Op::array_set:
    case Op::array_init:
    case Op::set_field_at:
    case Op::cell_set:
      unite(result, inst.operands[0]);
      return unite(inst.operands[0], inst.operands[1]);
    case Op::get_field:
      if (is_dynamic_call(function_, inst, tangents_.runtime())) return expose_all();
      return unite(result, inst.operands[0]);
    case Op::slot_set:
      if (std::uint32_t value = node(inst.operands[0]); value != no_group)
        unite(first_slot_ + static_cast<std::uint32_t>(inst.aux), value);
      return;
    case Op::slot_get:
      if (std::uint32_t value = node(result); value != no_group)
        unite(first_slot_ + static_cast<std::uint32_t>(inst.aux), value);
      return;
    case Op::tape_store:
      return unite(column(inst.aux), node(inst.operands[2]));
    case Op::tape_load:
      return unite(column(inst.aux), node(result));
    case Op::invoke:
      return visit_call(id);
    case Op::call:
    case Op::call_splat:
      if (inst.type && inst.type->kind == TypeKind::bottom && !has_handlers_) return;
      written_[id].push_back(outer_);
      return expose_all();
    case Op::native: {
      const NativeInfo& native = *inst.aux_as<NativeInfo>();
      std::string_view name = native.name;
      if (!(native.effects & effect_writes)) {
        if (!holds_memory(inst.type)) return;
        if (name == "zero_shadows") return;  // memory of its own
        return expose_all();
      }
      bool of_elements = name.starts_with("blas_") || name.starts_with("lapack_") || forgets_element(inst);
      if (!of_elements) written_[id].push_back(outer_);
      for (Operand o : inst.operands) {
        if (std::uint32_t n = node(o); n != no_group) written_[id].push_back(n);
        if (!of_elements) expose(o);
      }
      return expose(result);
    }
    default:
      if (!ir::is_arithmetic(inst.op) && ir::group_of(inst.op) != ir::OpGroup::conversions) expose_all();
      return;
  }
}

bool Sharing::is_followed(const Type* type) const {
  const DataType* d = as_data(type);
  if (!d || !d->is_concrete) return false;
  if (!holds_memory(type)) return true;
  if (d->object_kind == DataType::ObjectKind::array && d->params.size() == 2) {
    const DataType* element = as_data(d->params[0]);
    return element && element->is_isbits && tangents_.differentiable(element);
  }
  if (d->is_mutable || d->object_kind != DataType::ObjectKind::fields) return false;
  for (const Field& field : d->fields)
    if (field.type == type || !is_followed(field.type)) return false;
  return true;
}

void Sharing::visit_call(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  Operand result = Operand::inst(id);
  if (inst.type && inst.type->kind == TypeKind::bottom) {
    // It raises, and holds what it is given only for a handler.
    if (has_handlers_)
      for (Operand o : inst.operands) expose(o);
    return;
  }
  auto wrote = [&](Operand o) {
    if (std::uint32_t n = node(o); n != no_group) written_[id].push_back(n);
  };
  const CodeInstance* code = inst.aux_as<Specialization>()->current;
  bool writes = !code || (code->effects & effect_writes);
  MemorySummary summary = memory_.of_call(inst);
  switch (rules_[id]) {
    case RuleKind::scalar:
      return;
    case RuleKind::reverse:
    case RuleKind::built:  // they promise memory of their own; one that gives back an argument shows in its type
      for (Operand o : inst.operands)
        if (o.is_inst() && function_.inst(o).type == inst.type) unite(result, o);
      return;
    case RuleKind::stateful:
      if ((summary.unknown | summary.stored | (summary.writes & global_memory)) != 0) break;  // as its code says
      for (std::size_t i = 0; i < inst.operands.size(); ++i) {
        if (!(summary.writes & parameter_mask(i))) continue;
        wrote(inst.operands[i]);
        unite(result, inst.operands[i]);
      }
      return;
    case RuleKind::non_differentiable:
      for (Operand o : inst.operands) {
        unite(result, o);
        if (!writes) continue;
        wrote(o);
        expose(o);
      }
      if (writes) written_[id].push_back(outer_);
      return;
    case RuleKind::none:
      break;
  }
  bool unfollowed = !is_followed(inst.type);
  if (unfollowed || (summary.result & global_memory)) expose(result);
  if (writes && (!code || ((summary.writes | summary.unknown) & global_memory))) written_[id].push_back(outer_);
  // What is stored from one argument into another is found there again.
  bool moves = writes && (summary.stored & ~global_memory) != 0;
  for (std::size_t i = 0; i < inst.operands.size(); ++i) {
    Operand o = inst.operands[i];
    if (node(o) == no_group) continue;
    MemoryMask bit = parameter_mask(i);
    bool hidden = !is_followed(function_.type_of(o, tangents_.runtime().types));
    if ((summary.result & bit) || (summary.stored & bit) || (unfollowed && hidden)) unite(result, o);
    if (!writes) continue;
    if ((summary.writes & bit) || (summary.unknown & bit) || hidden) wrote(o);
    if ((summary.unknown & bit) || (summary.stored & bit) || hidden || (moves && (summary.writes & bit))) expose(o);
    if (summary.unknown & bit) written_[id].push_back(outer_);
  }
}

const std::vector<std::uint32_t>& Sharing::written_by(std::uint32_t id) const {
  static const std::vector<std::uint32_t> none;
  auto known = written_.find(id);
  return known == written_.end() ? none : known->second;
}

bool Sharing::may_follow(std::uint32_t group, std::uint32_t earlier, std::uint32_t later) const {
  ir::BlockId from = function_.insts[earlier].block;
  ir::BlockId to = function_.insts[later].block;
  auto known = maker_.find(find(group));
  std::uint32_t maker = known == maker_.end() ? ~0u : known->second;
  ir::BlockId made_in = maker == ~0u ? ir::no_block : function_.insts[maker].block;
  bool made_after = made_in == from && maker != earlier && position_[maker] > position_[earlier];
  if (from == to && position_[later] > position_[earlier]) return !(made_after && position_[later] > position_[maker]);
  if (made_after) return false;
  std::vector<bool> seen(function_.blocks.size(), false);
  std::vector<ir::BlockId> work{from};
  while (!work.empty()) {
    ir::BlockId at = work.back();
    work.pop_back();
    for (ir::BlockId next : cfg_.successors[at]) {
      if (seen[next]) continue;
      seen[next] = true;
      if (next == to && (next != made_in || position_[later] < position_[maker])) return true;
      if (next != made_in) work.push_back(next);
    }
  }
  return false;
}

}  // namespace slope::diff
