#include "lang/diff/memory.hpp"

#include "lang/diff/operations.hpp"

#include <algorithm>

#include "lang/diff/rules.hpp"
#include "lang/diff/texts.hpp"
#include "lang/infer/growth.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

MemoryEffects::MemoryEffects(Runtime& runtime, World world, std::function<Code(Specialization&)> code,
                             std::function<MemoryMask(const DataType*)> overwritten, MemoryScope scope)
    : runtime_(runtime),
      tangents_(tangent_types(runtime)),
      world_(world),
      code_(std::move(code)),
      overwritten_(std::move(overwritten)),
      scope_(scope) {}

MemoryEffects::~MemoryEffects() = default;

TextEffects& MemoryEffects::texts() {
  if (!texts_) texts_ = std::make_unique<TextEffects>(runtime_, world_, code_);
  return *texts_;
}

namespace {

template <class T>
bool insert_sorted(std::vector<T>& into, T what) {
  const auto at = std::lower_bound(into.begin(), into.end(), what);
  if (at != into.end() && *at == what) return false;
  into.insert(at, what);
  return true;
}

// Adds what is written to what is known to be; whether that is more.
bool merge_written(MemorySummary& into, const MemorySummary& from) {
  bool grew = false;
  for (const Type* t : from.written_types) grew |= insert_sorted(into.written_types, t);
  for (Binding* b : from.assigned) grew |= insert_sorted(into.assigned, b);
  grew |= (from.writes_any_type && !into.writes_any_type) || (from.calls_unknown && !into.calls_unknown) ||
          (from.resizes && !into.resizes);
  into.writes_any_type |= from.writes_any_type;
  into.calls_unknown |= from.calls_unknown;
  into.resizes |= from.resizes;
  return grew;
}

}  // namespace

// An object that can be stored into, or a value that leads to one.
bool MemoryEffects::holds_memory(const Type* t) {
  if (!follows_all()) return !tangents_.known(t) || tangents_.has_shadow(t);
  if (!t || t->kind == TypeKind::bottom) return false;
  if (const UnionType* u = as_union(t)) {
    for (const Type* member : u->members)
      if (holds_memory(member)) return true;
    return false;
  }
  const DataType* d = as_data(t);
  if (!d || !d->is_concrete) return true;
  if (d->is_isbits || d->is_type_of_type || d == runtime_.types.builtin().builtin_function) return false;
  switch (d->object_kind) {
    case DataType::ObjectKind::string:
    case DataType::ObjectKind::immortal:
      return false;
    case DataType::ObjectKind::fields:
      break;
    default:
      return true;
  }
  if (d->is_mutable) return true;
  const auto [known, fresh] = holds_.try_emplace(t, false);  // a type within itself adds nothing
  if (!fresh) return known->second;
  bool any = false;
  for (const Field& field : d->fields) any = any || holds_memory(field.type);
  return holds_[t] = any;
}

bool MemoryEffects::holds_tape(const Type* t) {
  const auto [known, fresh] = holds_tape_.try_emplace(t, false);
  if (fresh) known->second = diff::holds_tape(t, runtime_);
  return known->second;
}

bool MemoryEffects::holds_memory(Value v) {
  return follows_all() ? v.defined() && holds_memory(v.type) : tangents_.holds_memory(v);
}

void MemoryEffects::note_written(MemorySummary& summary, MemoryMask memory, const Type* type) const {
  if (!follows_all() || !memory) return;
  const DataType* d = as_data(type);
  if (!d || !d->is_concrete)
    summary.writes_any_type = true;
  else if (d->is_mutable || d->object_kind != DataType::ObjectKind::fields)
    insert_sorted<const Type*>(summary.written_types, d);
}

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

void MemoryEffects::wait(Specialization& target, Known& entry) {
  if (entry.is_waiting) return;
  entry.is_waiting = true;
  waiting_.push_back(&target);
}

// Callees were met after their callers: the last first.
void MemoryEffects::settle() {
  while (!waiting_.empty()) {
    Specialization* target = waiting_.back();
    waiting_.pop_back();
    Known& entry = summaries_.at(target);  // stays where it is when others are added
    entry.is_waiting = false;
    analysed_ = target;
    const MemorySummary now = analyse(*entry.code);
    analysed_ = nullptr;
    MemorySummary& kept = entry.summary;
    const bool same = !merge_written(kept, now) && (now.writes | kept.writes) == kept.writes &&
                      (now.unknown | kept.unknown) == kept.unknown && (now.result | kept.result) == kept.result &&
                      (now.stored | kept.stored) == kept.stored && (now.carries | kept.carries) == kept.carries &&
                      (now.reads | kept.reads) == kept.reads;
    if (same) continue;
    kept.writes |= now.writes;
    kept.unknown |= now.unknown;
    kept.result |= now.result;
    kept.stored |= now.stored;
    kept.carries |= now.carries;
    kept.reads |= now.reads;
    for (Specialization* caller : entry.callers) wait(*caller, summaries_.at(caller));
  }
}

bool MemoryEffects::is_growing(const Specialization& target) const {
  std::vector<const Specialization*> stack;
  for (const Specialization* s = analysed_; s && s != &target;) {
    stack.push_back(s);
    const auto at = summaries_.find(const_cast<Specialization*>(s));
    s = at == summaries_.end() ? nullptr : at->second.asked_by;
  }
  std::reverse(stack.begin(), stack.end());
  return infer::types_grow(stack, target);
}

MemoryEffects::Known& MemoryEffects::known(Specialization& target) {
  auto [at, fresh] = summaries_.try_emplace(&target);
  Known& entry = at->second;
  if (analysed_ && (fresh || !entry.fixed)) insert_sorted(entry.callers, analysed_);
  if (!fresh) return entry;
  entry.asked_by = analysed_;
  if (is_growing(target)) {  // followed when it runs
    entry.fixed = true;
    entry.summary.unknown = entry.summary.result = entry.summary.stored = entry.summary.reads = ~MemoryMask{0};
    entry.summary.calls_unknown = true;
    return entry;
  }
  entry.code = code_(target);
  entry.fixed = true;
  if (!entry.code) {
    entry.summary.unknown = ~MemoryMask{0};
    entry.summary.result = entry.summary.stored = entry.summary.reads = ~MemoryMask{0};
    entry.summary.calls_unknown = entry.summary.writes_any_type = true;
    if (follows_all()) entry.summary.writes = entry.summary.carries = ~MemoryMask{0};
    return entry;
  }
  entry.fixed = false;
  wait(target, entry);
  return entry;
}

MemorySummary MemoryEffects::of_call(const ir::Inst& invoke) {
  read_call(invoke);
  settle();
  return read_call(invoke);
}

// Functions with rules leave their arguments alone and return memory of their own: that is what a rule promises. A rule
// with state says what its function overwrites, which the result may be.
MemorySummary MemoryEffects::of_rule(RuleKind rule, const DataType* types) {
  MemorySummary promised;
  promised.reads = ~MemoryMask{0};
  if (rule != RuleKind::stateful) return promised;
  promised.writes = promised.carries = promised.result = overwritten_(types);
  for (std::size_t i = 0; i < types->params.size(); ++i)
    note_written(promised, promised.writes & parameter_mask(i), types->params[i]);
  return promised;
}

// What is declared to be a constant may store something on its way.
bool MemoryEffects::is_promised(RuleKind rule, const DataType* call_types) const {
  if (rule == RuleKind::stateful) return overwritten_(call_types) != as_its_code_says;
  return rule != RuleKind::none && !(follows_all() && rule == RuleKind::non_differentiable);
}

MemorySummary MemoryEffects::of_target(Specialization& target) {
  const RuleKind rule = find_rule(runtime_, target.types, world_, nullptr);
  return is_promised(rule, target.types) ? of_rule(rule, target.types) : of(target);
}

MemorySummary MemoryEffects::read_call(const ir::Inst& call) {
  Specialization& target = *call.aux_as<Specialization>();
  RuleKind rule = find_rule(runtime_, target.types, world_, nullptr);
  if (is_promised(rule, target.types)) return of_rule(rule, target.types);
  MemorySummary found = known(target).summary;
  if (target.current && !(target.current->effects & effect_writes)) {
    found.writes = found.carries = found.unknown = 0;
    found.calls_unknown = found.writes_any_type = found.resizes = false;
    found.written_types.clear();
    found.assigned.clear();
  }
  if (target.current && !(target.current->effects & effect_reads)) found.reads = 0;
  if (!target.method->is_vararg) return found;
  std::size_t fixed = target.method->arg_count;
  auto spread = [&](MemoryMask mask) {
    if (!(mask & parameter_mask(fixed))) return mask;
    for (std::size_t i = fixed; i < call.operands.size(); ++i) mask |= parameter_mask(i);
    return mask;
  };
  found.writes = spread(found.writes);
  found.carries = spread(found.carries);
  found.unknown = spread(found.unknown);
  found.result = spread(found.result);
  found.stored = spread(found.stored);
  found.reads = spread(found.reads);
  return found;
}

namespace {

// What puts memory back (lang/derive/kept_memory.hpp) leaves it as it was.
bool keeps_memory(const ir::Inst& native) {
  const std::string_view name = native.aux_as<const NativeInfo>()->name;
  return name == "keep_memory" || name == "keep_memory_within" || name == "put_back_memory" ||
         name == "exchange_memory" || name == "keep_unchanged" || name == "watch_calls" || name == "open_level_for" ||
         name == "close_level" || name == "check_kept_numbers" || name == "give_to_pullback" ||
         name == "take_from_pullback";
}

bool builtin_stores(Value callee) {
  if (callee.bits & 1)
    return ir::is_store(static_cast<Op>(callee.bits >> 1)) || ir::is_resize(static_cast<Op>(callee.bits >> 1));
  return (static_cast<const NativeInfo*>(callee.pointer)->effects & effect_writes) != 0;
}

bool is_immutable(const Type* type) {
  const DataType* d = as_data(type);
  return d && !d->is_mutable && d->object_kind == DataType::ObjectKind::fields;
}

}  // namespace

// One function's summary, by sweeps over its code until nothing changes.
class MemoryEffects::Analysis {
 public:
  Analysis(MemoryEffects& effects, const ir::Function& function)
      : effects_(effects),
        function_(function),
        mask_(function.insts.size(), 0),
        keeps_(function.insts.size(), unasked) {
    const std::vector<std::uint32_t>& parameters = function.blocks[0].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (keeps(parameters[i])) mask_[parameters[i]] = parameter_mask(i);
  }

  MemorySummary run() {
    do {
      changed_ = false;
      for (const ir::Block& block : function_.blocks) {
        for (std::uint32_t id : block.insts) visit(id);
        for (const ir::Edge& edge : block.edges)
          for (std::size_t i = 0; i < edge.arguments.size(); ++i)
            set(function_.blocks[edge.target].parameters[i], of_operand(edge.arguments[i]));
        if (block.terminator != ~0u && function_.insts[block.terminator].op == Op::ret)
          returned(function_.insts[block.terminator].operands[0]);
      }
    } while (changed_);
    return summary_;
  }

 private:
  bool holds_memory(const Type* t) const { return effects_.holds_memory(t); }
  // A tape, in a record or given to a derivative of a recursive function, leads to what the other half finds there.
  bool holds_tape(const Type* t) const { return effects_.holds_tape(t); }
  bool keeps(std::uint32_t id) {  // asked again and again of the same
    std::uint8_t& known = keeps_[id];
    if (known == unasked) {
      const Type* t = function_.insts[id].type;
      known = holds_tape(t) || holds_memory(t);
    }
    return known;
  }
  MemoryMask of_operand(Operand o) const {
    if (o.is_inst()) return mask_[o.index()];
    if (!o.is_constant()) return 0;
    return effects_.holds_memory(function_.constant_value(o)) ? global_memory : 0;
  }
  void set(std::uint32_t id, MemoryMask m) {
    if ((mask_[id] | m) == mask_[id] || !keeps(id)) return;
    mask_[id] |= m;
    changed_ = true;
  }
  void store(MemoryMask object, MemoryMask value, bool carries = true) {
    summary_.writes |= object;
    if (carries) summary_.carries |= object;
    if (object) summary_.stored |= value;
    if ((kept_ | value) != kept_) {
      kept_ |= value;
      changed_ = true;
    }
  }
  const Type* type_of(Operand o) const { return function_.type_of(o, effects_.runtime_.types); }
  bool may_carry(Operand o) const {
    const Type* type = type_of(o);
    return !effects_.tangents_.known(type) || effects_.tangents_.differentiable(type);
  }
  void wrote(Operand object) { effects_.note_written(summary_, of_operand(object), type_of(object)); }
  void give_to_unknown(std::uint32_t id, MemoryMask all) {
    summary_.unknown |= all;
    kept_ |= all;
    set(id, all | global_memory);
  }
  void returned(Operand value) {
    summary_.result |= of_operand(value);
    if (holds_memory(type_of(value)) || holds_tape(type_of(value))) summary_.result |= kept_;
  }
  void invoke(std::uint32_t id);
  void native(std::uint32_t id, MemoryMask all);
  void unknown_call(std::uint32_t id, MemoryMask all);
  void access(std::uint32_t id, MemoryMask all);
  void visit(std::uint32_t id);

  MemoryEffects& effects_;
  const ir::Function& function_;
  MemorySummary summary_;
  MemoryMask kept_ = 0;  // in memory made here: what is loaded from anywhere may be it
  std::vector<MemoryMask> mask_;
  static constexpr std::uint8_t unasked = 2;
  std::vector<std::uint8_t> keeps_;
  bool changed_ = false;
};

void MemoryEffects::Analysis::invoke(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  MemorySummary callee = effects_.read_call(inst);
  MemoryMask written = 0;
  MemoryMask result = callee.result & global_memory;
  MemoryMask stored = 0;
  MemoryMask carrying = callee.carries & global_memory;
  for (std::size_t i = 0; i < inst.operands.size(); ++i) {
    MemoryMask bit = parameter_mask(i);
    MemoryMask operand = of_operand(inst.operands[i]);
    if (holds_tape(type_of(inst.operands[i]))) operand |= kept_;
    if (callee.writes & bit) written |= operand;
    if (callee.carries & bit) carrying |= operand;
    if (callee.unknown & bit) summary_.unknown |= operand;
    if (callee.result & bit) result |= operand;
    if (callee.stored & bit) stored |= operand;
    if (callee.reads & bit) summary_.reads |= operand;
  }
  if (callee.writes & global_memory) written |= global_memory;
  store(written, stored, false);
  summary_.carries |= carrying;
  if (!written) callee.written_types.clear(), callee.writes_any_type = callee.resizes = false;
  merge_written(summary_, callee);
  set(id, result);
}

void MemoryEffects::Analysis::native(std::uint32_t id, MemoryMask all) {
  const ir::Inst& inst = function_.insts[id];
  summary_.reads |= all;
  if (makes_shadows(inst)) return;  // memory of its own
  // dynamic_forward and its like: what they call is checked when it is known.
  if (calls_what_it_is_given(inst) || std::string_view(inst.aux_as<const NativeInfo>()->name).starts_with("dynamic_")) {
    summary_.calls_unknown = true;
    give_to_unknown(id, all);
    return;
  }
  std::uint32_t effects = inst.aux_as<const NativeInfo>()->effects;
  if ((effects & effect_writes) && !keeps_memory(inst)) {
    summary_.writes |= all;
    summary_.carries |= all;
    for (Operand o : inst.operands) wrote(o);
  }
  if (effects == effect_all) summary_.calls_unknown = true;  // it may call
  set(id, all);
}

// A builtin's own stores are in what it is given.
void MemoryEffects::Analysis::unknown_call(std::uint32_t id, MemoryMask all) {
  const ir::Inst& inst = function_.insts[id];
  const Operand callee = inst.operands[0];
  const bool builtin = callee.is_constant() &&
                       function_.constant_value(callee).type == effects_.runtime_.types.builtin().builtin_function;
  if (!builtin) {
    summary_.calls_unknown = true;
  } else if (effects_.follows_all() && builtin_stores(function_.constant_value(callee))) {
    summary_.writes |= all;
    summary_.carries |= all;
    summary_.writes_any_type |= all != 0;
  }
  summary_.reads |= all;
  give_to_unknown(id, all);
}

// What the table of operations says. `all`: what the operands may be.
void MemoryEffects::Analysis::access(std::uint32_t id, MemoryMask all) {
  const ir::Inst& inst = function_.insts[id];
  const ir::OpInfo& info = ir::op_info(inst.op);
  switch (info.access) {
    case ir::Access::none:
    case ir::Access::checks:
      set(id, all);
      return;
    case ir::Access::loads:
      summary_.reads |= all;
      set(id, all | kept_);
      return;
    case ir::Access::stores: {
      const Operand stored = inst.operands[static_cast<std::size_t>(info.stored)];
      store(of_operand(inst.operands[0]), of_operand(stored), may_carry(stored));
      wrote(inst.operands[0]);
      set(id, all);
      return;
    }
    case ir::Access::keeps:
      if (all && as_data(inst.type) && as_data(inst.type)->is_mutable) store(0, all);
      set(id, all);
      return;
    case ir::Access::resizes:
      summary_.writes |= all;
      summary_.resizes |= of_operand(inst.operands[0]) != 0 && effects_.tangents_.has_shadow(type_of(inst.operands[0]));
      wrote(inst.operands[0]);
      set(id, all);
      return;
  }
}

void MemoryEffects::Analysis::visit(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  MemoryMask all = 0;
  for (Operand o : inst.operands) all |= of_operand(o);
  switch (inst.op) {
    case Op::load_global:
      set(id, global_memory);
      break;
    case Op::invoke:
      invoke(id);
      break;
    case Op::call:
    case Op::call_splat:
      unknown_call(id, all);
      break;
    case Op::native:
      native(id, all);
      break;
    case Op::store_global:
      summary_.stored |= all;
      if (effects_.follows_all()) insert_sorted(summary_.assigned, inst.aux_as<Binding>());
      break;
    case Op::set_field:
      wrote(inst.operands[0]);
      store(of_operand(inst.operands[0]), of_operand(inst.operands[2]), may_carry(inst.operands[2]));
      set(id, of_operand(inst.operands[2]));
      break;
    case Op::array_new:
      break;
    case Op::slot_set:
      store(0, all);
      break;
    case Op::tape_store:
      store(of_operand(inst.operands[0]), of_operand(inst.operands[2]));
      break;
    case Op::field_at:
      if (!is_immutable(function_.type_of(inst.operands[0], effects_.runtime_.types))) summary_.reads |= all;
      set(id, all | kept_);
      break;
    case Op::tape_load:
    case Op::slot_get:
      set(id, all | kept_);
      break;
    default:
      access(id, all);
      break;
  }
}

MemorySummary MemoryEffects::analyse(const ir::Function& function) { return Analysis(*this, function).run(); }

MemoryEffects::Globals MemoryEffects::globals(const ir::Function& function) {
  Globals found;
  std::vector<const ir::Function*> seen;
  std::vector<Code> kept;
  std::vector<const Specialization*> path;
  collect(function, found, seen, kept, path);
  return found;
}

void MemoryEffects::collect(const ir::Function& function, Globals& found, std::vector<const ir::Function*>& seen,
                            std::vector<Code>& kept, std::vector<const Specialization*>& path) {
  if (std::find(seen.begin(), seen.end(), &function) != seen.end()) return;
  seen.push_back(&function);
  for (Value v : function.constants)
    if (v.defined() && holds_memory(v.type)) found.constants.push_back(v);
  for (const ir::Block& block : function.blocks)
    for (std::uint32_t id : block.insts) {
      const ir::Inst& inst = function.insts[id];
      if (inst.op == Op::load_global) found.bindings.push_back(inst.aux_as<Binding>());
      if (inst.op != Op::invoke) continue;
      Specialization& target = *inst.aux_as<Specialization>();
      if (infer::types_grow(path, target)) continue;
      if (Code code = code_(target)) {
        kept.push_back(code);
        path.push_back(&target);
        collect(*code, found, seen, kept, path);
        path.pop_back();
      }
    }
}

}  // namespace slope::diff
