#include "lang/diff/texts.hpp"

#include <algorithm>

#include "lang/diff/operations.hpp"
#include "lang/diff/rules.hpp"
#include "lang/infer/growth.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

namespace {

// Any, or another abstract type.
bool is_open(const Type* t) {
  const DataType* data = as_data(t);
  return data && !data->is_concrete;
}

// Types nest, and may contain themselves.
constexpr int deepest_text = 4;

// `or_open`: what may hold anything counts.
bool holds_text_within(TangentTypes& tangents, const Type* t, bool or_open, int depth) {
  const BuiltinTypes& builtin = tangents.runtime().types.builtin();
  if (t == builtin.string || t == builtin.symbol || t == builtin.character) return true;
  if (depth > deepest_text) return false;
  const auto holds = [&](const Type* part) { return holds_text_within(tangents, part, or_open, depth + 1); };
  if (const UnionType* choices = as_union(t))
    return std::any_of(choices->members.begin(), choices->members.end(), holds);
  const DataType* data = as_data(t);
  if (!data || !data->is_concrete || data->is_type_of_type) return false;
  if (data->object_kind == DataType::ObjectKind::array)
    return data->params[0] == builtin.uint8 || holds(data->params[0]) || (or_open && is_open(data->params[0]));
  return std::any_of(data->fields.begin(), data->fields.end(),
                     [&](const Field& field) { return holds(field.type) || (or_open && is_open(field.type)); });
}

std::string_view name_of_native(const ir::Inst& native) { return native.aux_as<const NativeInfo>()->name; }

}  // namespace

bool holds_text(TangentTypes& tangents, const Type* type) { return holds_text_within(tangents, type, true, 0); }

bool may_be_text(TangentTypes& tangents, const Type* type) {
  if (const UnionType* choices = as_union(type))
    return std::any_of(choices->members.begin(), choices->members.end(),
                       [&](const Type* part) { return may_be_text(tangents, part); });
  return is_open(type) || holds_text(tangents, type);
}

bool is_memory_object(Value value) {
  const DataType* data = value.defined() ? as_data(value.type) : nullptr;
  return data && (data->is_mutable || data->object_kind == DataType::ObjectKind::array ||
                  data->object_kind == DataType::ObjectKind::cell);
}

bool is_mutable_text(TangentTypes& tangents, const Type* type) {
  const DataType* data = as_data(type);
  const bool memory = data && (data->is_mutable || data->object_kind == DataType::ObjectKind::array);
  return memory && holds_text(tangents, type);
}

bool makes_float_of_bits(const ir::Inst& inst, TangentTypes& tangents) {
  return (inst.op == Op::bitcast || inst.op == Op::sitofp || inst.op == Op::uitofp) && tangents.is_float(inst.type);
}

// parse_float64 and its like; code that is run.
bool makes_number_of_text(const ir::Inst& inst, TangentTypes& tangents) {
  if (inst.op != Op::native) return false;
  const std::string_view name = name_of_native(inst);
  if (name == "eval_expression" || name.ends_with("_parse")) return true;
  return name.starts_with("parse_") && (!tangents.known(inst.type) || tangents.differentiable(inst.type));
}

bool may_be_read_number(TangentTypes& tangents, const Type* type) {
  return type != tangents.runtime().types.builtin().boolean && type != tangents.runtime().types.builtin().nothing &&
         type->kind != TypeKind::bottom && (is_open(type) || !holds_text(tangents, type));
}

bool hands_on_integer(const ir::Inst& inst) {
  if (ir::is_integer_arithmetic(inst.op)) return true;
  switch (inst.op) {
    case Op::bitcast:
    case Op::select:
    case Op::sext_int:
    case Op::zext_int:
    case Op::trunc_int:
    case Op::sdiv_int:
    case Op::udiv_int:
    case Op::srem_int:
    case Op::urem_int:
    case Op::refine:
    case Op::type_assert:
    case Op::array_share:
    case Op::string_byte:
      return true;
    case Op::native: {
      const std::string_view name = name_of_native(inst);
      return name.ends_with("_hash") || name.starts_with("parse_");
    }
    default:
      return false;
  }
}

bool looks_at_bits(const ir::Inst& inst, const ir::Function& function, TangentTypes& tangents) {
  if (tangents.is_float(inst.type)) return false;
  TypeTable& types = tangents.runtime().types;
  const auto is_number = [&](Operand o) { return tangents.is_float(function.type_of(o, types)); };
  if ((inst.op != Op::bitcast && inst.op != Op::native) || !hands_on_integer(inst)) return false;
  if (inst.op == Op::bitcast || !name_of_native(inst).ends_with("_hash"))
    return std::any_of(inst.operands.begin(), inst.operands.end(), is_number);
  return std::any_of(inst.operands.begin(), inst.operands.end(), [&](Operand o) {
    const DataType* type = as_data(function.type_of(o, types));
    if (!type || type->is_mutable || type->object_kind == DataType::ObjectKind::array) return !type;
    return !tangents.known(type) || tangents.differentiable(type);
  });
}

bool leads_to_memory(Op op) {
  return op == Op::field_at || op == Op::get_field || op == Op::array_get || op == Op::array_share ||
         op == Op::refine || op == Op::type_assert;
}

OutsideEffects outside_effects(const ir::Inst& native) {
  const std::string_view name = name_of_native(native);
  const bool is_file = name.starts_with("file_") || name.starts_with("directory_");
  const bool is_of_task = name == "coroutine_task";
  return {is_file || is_of_task || name == "environment_text" || name.starts_with("standard_"), is_file};
}

std::size_t parameter_of_operand(const Specialization& callee, std::size_t operand) {
  const std::size_t fixed = callee.method->arg_count;
  return callee.method->is_vararg ? std::min(operand, fixed) : operand;
}

TextEffects::TextEffects(Runtime& runtime, World world, std::function<MemoryEffects::Code(Specialization&)> code)
    : runtime_(runtime), tangents_(tangent_types(runtime)), world_(world), code_(std::move(code)) {}

// One function's summary, by sweeps over its code until nothing changes. A value's mask: the parameters that it is made
// of, whether they are numbers or texts.
class TextEffects::Analysis {
 public:
  Analysis(TextEffects& effects, const ir::Function& function, Specialization& caller)
      : effects_(effects),
        caller_(caller),
        tangents_(effects.tangents_),
        function_(function),
        mask_(function.insts.size(), 0),
        texts_(function.insts.size(), 0),
        bits_(function.insts.size(), 0),
        slots_(function.slots.size(), 0) {
    const std::vector<std::uint32_t>& parameters = function.blocks[0].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      mask_[parameters[i]] = parameter_mask(i);
      if (may_be_text(tangents_, function.insts[parameters[i]].type)) texts_[parameters[i]] = parameter_mask(i);
    }
  }

  TextSummary run() {
    do {
      changed_ = false;
      for (const ir::Block& block : function_.blocks) {
        for (std::uint32_t id : block.insts) visit(id);
        for (const ir::Edge& edge : block.edges)
          for (std::size_t i = 0; i < edge.arguments.size(); ++i)
            pass(edge.arguments[i], function_.blocks[edge.target].parameters[i]);
        if (block.terminator != ~0u && function_.insts[block.terminator].op == Op::ret)
          returned(function_.insts[block.terminator].operands[0]);
      }
    } while (changed_);
    return summary_;
  }

 private:
  const Type* type_of(Operand o) const { return function_.type_of(o, effects_.runtime_.types); }
  MemoryMask of(Operand o) const {
    if (o.is_inst()) return mask_[o.index()];
    return o.is_constant() && is_memory_object(function_.constant_value(o)) ? outside : 0;
  }
  // The same, without what comes from numbers that stand beside texts.
  MemoryMask text_of(Operand o) const { return o.is_inst() ? texts_[o.index()] : of(o); }
  MemoryMask bits_of(Operand o) const { return o.is_inst() ? bits_[o.index()] : 0; }
  void pass(Operand from, std::uint32_t to) {
    add(to, of(from), text_of(from));
    grow(bits_[to], bits_of(from));
  }
  void returned(Operand o) {
    summary_.result |= of(o);
    if (!tangents_.is_float(type_of(o))) summary_.bits |= bits_of(o);
  }
  void add(std::uint32_t id, MemoryMask mask, MemoryMask texts) {
    grow(mask_[id], mask);
    grow(texts_[id], texts);
  }
  void read(MemoryMask mask, MemoryMask texts) {
    summary_.read |= mask;
    summary_.read_of_text |= texts;
  }
  void grow(MemoryMask& into, MemoryMask mask) {
    if ((into | mask) == into) return;
    into |= mask;
    changed_ = true;
  }
  MemoryMask all_of(const ir::Inst& inst, bool texts_only) const {
    MemoryMask all = 0;
    for (Operand o : inst.operands)
      if (!texts_only || may_be_text(tangents_, type_of(o))) all |= of(o);
    return all;
  }
  MemoryMask all_texts_of(const ir::Inst& inst) const {
    MemoryMask all = 0;
    for (Operand o : inst.operands) all |= text_of(o);
    return all;
  }
  void add_all(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    const bool is_number = tangents_.is_float(inst.type);
    add(id, all_of(inst, false), is_number ? 0 : all_texts_of(inst));
  }
  void keep(MemoryMask keepers, MemoryMask what) {
    summary_.keepers |= keepers;
    summary_.kept |= what;
  }
  // In memory, and in what leads there: it is read again from that.
  void keep_in(Operand memory, MemoryMask what) {
    while (what) {
      keep(of(memory), what & ~of(memory));
      if (!memory.is_inst()) return;
      add(memory.index(), what, what);
      const ir::Inst& from = function_.insts[memory.index()];
      if (from.operands.empty() || !leads_to_memory(from.op)) return;
      memory = from.operands[0];
    }
  }
  void keep_bits_in(Operand memory, MemoryMask bits) {
    while (bits && memory.is_inst()) {
      grow(bits_[memory.index()], bits);
      const ir::Inst& from = function_.insts[memory.index()];
      if (from.operands.empty() || !leads_to_memory(from.op)) return;
      memory = from.operands[0];
    }
  }
  void keep_in_mutable(const ir::Inst& inst, MemoryMask what) {
    for (Operand o : inst.operands)
      if (is_mutable_text(tangents_, type_of(o))) keep_in(o, what);
  }
  MemoryMask shown_in_type(const ir::Inst& inst) const {
    MemoryMask all = 0;
    for (Operand o : inst.operands)
      if (holds_text(tangents_, type_of(o)) || tangents_.is_float(type_of(o))) all |= of(o);
    return all;
  }
  void declared_constant(std::uint32_t id, Specialization& target);
  void called_with_texts(std::uint32_t id);
  void visit(std::uint32_t id);
  void invoke(std::uint32_t id);
  void native(std::uint32_t id);
  void made_by_operation(std::uint32_t id);
  void made_of_bits(std::uint32_t id);

  TextEffects& effects_;
  Specialization& caller_;
  TangentTypes& tangents_;
  const ir::Function& function_;
  TextSummary summary_;
  std::vector<MemoryMask> mask_;
  std::vector<MemoryMask> texts_;  // of it
  std::vector<MemoryMask> bits_;   // of it: whole numbers, of the bits of floats
  std::vector<MemoryMask> slots_;
  bool changed_ = false;
};

// A function whose result is declared to have no derivative: a text of what it is given, or what it makes of texts.
void TextEffects::Analysis::declared_constant(std::uint32_t id, Specialization& target) {
  const ir::Inst& inst = function_.insts[id];
  if (keeps_for_reverse(function_, inst, effects_.runtime_)) return;
  if (may_be_text(tangents_, inst.type)) {
    const MemoryMask all = all_of(inst, false);
    add(id, all, all);
  }
  if (inst.type == effects_.runtime_.types.builtin().uint64) grow(bits_[id], all_of(inst, false));  // a hash
  keep_in_mutable(inst, all_of(inst, false));
  if (!all_texts_of(inst) || !may_be_read_number(tangents_, inst.type)) return;
  Specialization* told = effects_.with_texts(function_, inst);
  const TextSummary callee = effects_.known(told ? *told : target, caller_).summary;
  const bool has_keywords = positional_call(effects_.runtime_, target.types) != nullptr;  // as in activity.cpp
  MemoryMask result = has_keywords && !tangents_.differentiable(inst.type) ? all_texts_of(inst) : 0;
  for (std::size_t i = 0; i < inst.operands.size(); ++i) {
    const MemoryMask bit = parameter_mask(parameter_of_operand(target, i));
    const MemoryMask texts = text_of(inst.operands[i]);
    if (callee.read & bit) read(texts, texts);
    if (callee.result & bit) result |= texts;
  }
  add(id, result, result);
}

void TextEffects::Analysis::called_with_texts(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  Specialization* target = all_texts_of(inst) ? effects_.with_texts(function_, inst) : nullptr;
  if (!target) return;
  const TextSummary callee = effects_.known(*target, caller_).summary;
  for (std::size_t i = 0; i < inst.operands.size(); ++i) {
    const MemoryMask texts = text_of(inst.operands[i]);
    if (callee.read & parameter_mask(parameter_of_operand(*target, i))) read(texts, texts);
  }
}

void TextEffects::Analysis::invoke(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  Specialization& target = *inst.aux_as<Specialization>();
  if (find_rule(effects_.runtime_, target.types, effects_.world_, nullptr) == RuleKind::non_differentiable)
    return declared_constant(id, target);
  const TextSummary callee = effects_.known(target, caller_).summary;
  MemoryMask result = callee.result & outside;
  MemoryMask result_texts = result;
  MemoryMask kept = callee.kept & outside;
  read(callee.read & outside, callee.read_of_text & outside);
  for (std::size_t i = 0; i < inst.operands.size(); ++i) {
    const MemoryMask bit = parameter_mask(parameter_of_operand(target, i));
    const MemoryMask mask = of(inst.operands[i]);
    const MemoryMask texts = text_of(inst.operands[i]);
    if (callee.read & bit) read(mask, callee.read_of_text & bit ? texts : 0);
    if (callee.result & bit) result |= mask, result_texts |= texts;
    if (callee.kept & bit) kept |= mask;
  }
  if (holds_text(tangents_, inst.type)) result_texts = result;  // a text of numbers
  for (std::size_t i = 0; i < inst.operands.size(); ++i)
    if (callee.bits & parameter_mask(parameter_of_operand(target, i))) grow(bits_[id], of(inst.operands[i]));
  add(id, result, tangents_.is_float(inst.type) ? 0 : result_texts);
  if (!kept) return;
  if (callee.keepers & outside) keep(outside, kept);
  for (std::size_t i = 0; i < inst.operands.size(); ++i)
    if (callee.keepers & parameter_mask(parameter_of_operand(target, i))) keep_in(inst.operands[i], kept);
}

void TextEffects::Analysis::native(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  const MemoryMask all = all_of(inst, false);
  if (makes_number_of_text(inst, tangents_)) return read(all_of(inst, true), all_texts_of(inst));
  if (name_of_native(inst) == "invoke_latest") called_with_texts(id);
  const OutsideEffects effects = outside_effects(inst);
  if (effects.reads) add(id, outside, outside);
  if (effects.writes) keep(outside, all);
  if (inst.aux_as<const NativeInfo>()->effects & effect_writes) keep_in_mutable(inst, all);
  made_by_operation(id);
}

// A type, a truth, a float, a length is no such number.
void TextEffects::Analysis::made_of_bits(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  if (inst.type == effects_.runtime_.types.builtin().boolean || tangents_.is_float(inst.type)) return;
  if (looks_at_bits(inst, function_, tangents_)) grow(bits_[id], all_of(inst, false));
  if (leads_to_memory(inst.op)) return grow(bits_[id], bits_of(inst.operands[0]));  // an index is no part of it
  if (hands_on_integer(inst) || inst.op == Op::make_struct || inst.op == Op::tuple)
    for (Operand o : inst.operands) grow(bits_[id], bits_of(o));
}

// Lengths and answers are no text of what is asked, and numbers that stand beside a text are not made of it.
void TextEffects::Analysis::made_by_operation(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  if (inst.op == Op::type_of || inst.type == effects_.runtime_.types.builtin().boolean) return;
  const bool follows = may_be_text(tangents_, inst.type) || tangents_.differentiable(inst.type);
  if (follows || hands_on_integer(inst) || inst.op == Op::array_get) add_all(id);
  // The text of a number.
  if (inst.op == Op::native && holds_text(tangents_, inst.type)) add(id, 0, all_of(inst, false));
}

void TextEffects::Analysis::visit(std::uint32_t id) {
  const ir::Inst& inst = function_.insts[id];
  made_of_bits(id);
  if (makes_float_of_bits(inst, tangents_)) read(all_of(inst, false), all_texts_of(inst));
  if (inst.op == Op::apply_type) read(shown_in_type(inst), shown_in_type(inst) & all_texts_of(inst));
  switch (inst.op) {
    case Op::load_global:
      if (may_be_text(tangents_, inst.type)) add(id, outside, outside);
      return;
    case Op::store_global:
      return keep(outside, of(inst.operands[0]));
    case Op::invoke:
      return invoke(id);
    case Op::native:
      return native(id);
    case Op::call:
    case Op::call_splat:
      // The library's own calls of what it is given are looked at when they run.
      if (!is_of_library(effects_.runtime_, caller_.method)) called_with_texts(id);
      add_all(id);
      return keep_in_mutable(inst, all_of(inst, false));
    case Op::slot_set:
      return grow(slots_[inst.aux], of(inst.operands[0]));
    case Op::slot_get:
      return add(id, slots_[inst.aux], may_be_text(tangents_, inst.type) ? slots_[inst.aux] : 0);
    default:
      break;
  }
  if (ir::is_store(inst.op) && inst.operands.size() > 1) {
    const Operand stored = inst.operands[inst.op == Op::set_field ? 2 : 1];
    if (!tangents_.is_float(type_of(stored))) keep_in(inst.operands[0], of(stored));
    keep_bits_in(inst.operands[0], bits_of(stored));
    return;
  }
  made_by_operation(id);
}

Specialization* TextEffects::with_texts(const ir::Function& function, const ir::Inst& inst) {
  return with(runtime_.types.builtin().string, function, inst);
}

bool TextEffects::makes_text_of_number(const ir::Function& function, const ir::Inst& inst) {
  Specialization* target = is_open(inst.type) ? with(runtime_.types.builtin().float64, function, inst) : nullptr;
  if (!target || (!target->current && !code_(*target))) return false;
  return target->current && holds_text_within(tangents_, target->current->return_type, false, 0);
}

Specialization* TextEffects::with(const Type* unknown, const ir::Function& function, const ir::Inst& inst) {
  const BuiltinTypes& builtin = runtime_.types.builtin();
  if (inst.op == Op::call_splat || inst.operands.empty() || !inst.operands[0].is_constant()) return nullptr;
  if (function.constant_value(inst.operands[0]).type == builtin.builtin_function) return nullptr;

  std::vector<const Type*> types;
  for (Operand o : inst.operands) {
    const Type* type = o.is_constant() ? runtime_.types.type_of_constant(function.constant_value(o))
                                       : function.type_of(o, runtime_.types);
    const bool may_be = (is_open(type) || as_union(type)) && is_subtype(runtime_.types, unknown, type);
    types.push_back(may_be ? unknown : type);
  }
  return runtime_.lookup_specialization(runtime_.types.tuple(types), world_);
}

namespace {

// Of what is not followed: it may read all texts and keep all numbers. Recursion whose types grow is the caller's own.
TextSummary summary_of_unknown(bool grows) {
  TextSummary summary;
  summary.result = ~MemoryMask{0};
  summary.read = summary.read_of_text = grows ? ~outside : ~MemoryMask{0};
  if (!grows) summary.kept = summary.keepers = ~MemoryMask{0};
  return summary;
}

}  // namespace

TextEffects::Known& TextEffects::known(Specialization& target, Specialization& caller) {
  const auto [at, fresh] = summaries_.try_emplace(&target);
  Known& entry = at->second;
  if (&caller != &target && std::find(entry.callers.begin(), entry.callers.end(), &caller) == entry.callers.end())
    entry.callers.push_back(&caller);
  if (!fresh) return entry;
  // Types that grow have no end, and the library prints by much code: what is beyond is not followed.
  constexpr std::size_t most_functions = 1000;
  constexpr std::size_t longest_path = 100;  // of first callers, which may lead around
  std::vector<const Specialization*> path;
  for (Specialization* s = &caller; s != &target && path.size() < longest_path; s = summaries_.at(s).callers[0]) {
    path.push_back(s);
    if (summaries_.at(s).callers.empty()) break;
  }
  std::reverse(path.begin(), path.end());
  const bool grows = infer::types_grow(path, target);
  if (++met_ <= most_functions && !grows) entry.code = code_(target);
  if (entry.code)
    wait(target, entry);
  else
    entry.summary = summary_of_unknown(grows || met_ <= most_functions);
  return entry;
}

void TextEffects::wait(Specialization& target, Known& entry) {
  if (entry.is_waiting || !entry.code) return;
  entry.is_waiting = true;
  waiting_.push_back(&target);
}

// Callees were met after their callers: the last first.
const TextSummary& TextEffects::of(Specialization& target) {
  met_ = 0;
  Known& asked = known(target, target);
  while (!waiting_.empty()) {
    Specialization& next = *waiting_.back();
    waiting_.pop_back();
    Known& entry = summaries_.at(&next);
    entry.is_waiting = false;
    const TextSummary now = Analysis(*this, *entry.code, next).run();
    TextSummary& kept = entry.summary;
    const TextSummary was = kept;
    kept = {kept.read | now.read,
            kept.result | now.result,
            kept.kept | now.kept,
            kept.keepers | now.keepers,
            kept.read_of_text | now.read_of_text,
            kept.bits | now.bits};
    if (kept.read == was.read && kept.read_of_text == was.read_of_text && kept.result == was.result &&
        kept.kept == was.kept && kept.keepers == was.keepers && kept.bits == was.bits)
      continue;
    wait(next, entry);  // it may call itself
    for (Specialization* caller : entry.callers) wait(*caller, summaries_.at(caller));
  }
  return asked.summary;
}

}  // namespace slope::diff
