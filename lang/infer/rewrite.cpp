// Rewrites a solved frame into typed IR, in place. Unreachable control is removed, known values become constants, what
// a branch proves becomes a `refine`, and calls of known methods become `invoke`, `native` or an op.
//
// Rules that the tiers rely on:
//   - An op whose operands' types are not proved is not emitted as that op, but as a call of the builtin, which checks
//     them.
//   - An invoke has the type that its target returns. What this call knows beyond that is a refine after it.
//   - Narrowing is explicit in the code: operands are mapped to the refine that holds in their block.
//   - After a call that never returns comes `unreachable`.
#include "lang/infer/rewrite.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "lang/infer/engine.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/checked.hpp"
#include "lang/support/tuning.hpp"

namespace slope::infer {

std::uint16_t proved_flags(ir::Op op, std::uint32_t effects) {
  std::uint16_t flags = 0;
  bool is_call = op == ir::Op::invoke || op == ir::Op::native || op == ir::Op::call;
  if ((is_call || (ir::op_info(op).effects & effect_throws)) && !(effects & effect_throws)) flags |= ir::inst_nothrow;
  if (is_call && !(effects & visible_effects)) flags |= ir::inst_effect_free;
  return flags;
}

namespace {

using ir::Op;
using ir::Operand;

class Rewriter {
 public:
  Rewriter(Inference::Impl& impl, Frame& frame)
      : impl_(impl), lattice_(impl.lattice), builtin_(impl.builtin), frame_(frame), fn_(*frame.fn) {}

  void run() {
    inst_count_ = fn_.insts.size();
    replacement_.assign(inst_count_, Operand{});
    refines_.assign(fn_.blocks.size(), Operand{});
    types_of_parameters();
    for (ir::BlockId b : frame_.cfg.order)
      if (frame_.blocks[b].executable) block(b);
    for (ir::BlockId b = 0; b < refines_.size(); ++b)
      if (refines_[b].valid()) fn_.blocks[b].insts.insert(fn_.blocks[b].insts.begin(), refines_[b].index());
    for (ir::Block& block : fn_.blocks)
      if (block.handler != ir::no_block && !frame_.blocks[block.handler].executable) block.handler = ir::no_block;
    for (const PendingSplit& pending : splits_)
      split_union_call(fn_, impl_.runtime, pending.inst, pending.split, replacement_);
    ir::replace_all_uses(fn_, replacement_);
    fn_.slot_types.clear();
    for (Known slot : frame_.slots) fn_.slot_types.push_back(slot->type);
    fn_.static_params = frame_.static_params;
    fn_.typed = true;
    ir::remove_unreachable_blocks(fn_);
    ir::simplify_cfg(fn_);
    ir::remove_dead_insts(fn_);
    ir::compact(fn_);
    ir::check_after(fn_, "inference");
  }

 private:
  struct PendingSplit {
    std::uint32_t inst;
    UnionSplit split;
  };

  void types_of_parameters() {
    for (const ir::Block& block : fn_.blocks)
      for (std::uint32_t id : block.parameters) fn_.insts[id].type = frame_.values[id]->type;
  }

  // --- operands ---

  Operand constant(Known known) {
    auto [it, fresh] = constants_.try_emplace(known);
    if (fresh) it->second = fn_.constant(known->value);
    return it->second;
  }

  // frame.constants covers the constants that the body had before rewriting; no operand of an original inst is another.
  Known view(Operand operand, ir::BlockId b) {
    if (operand.is_inst() && operand.index() >= inst_count_) return lattice_.of_type(fn_.insts[operand.index()].type);
    return impl_.view(frame_, operand, b);
  }

  // The operand that stands for `operand` in block b.
  Operand mapped(Operand operand, ir::BlockId b) {
    if (operand.is_constant() || operand.index() >= inst_count_) return operand;
    Known known = impl_.view(frame_, operand, b);
    if (known->is_constant()) return constant(known);
    if (known->is_bottom()) return fn_.constant(Value());  // nothing that is ever looked at
    if (frame_.refined[operand.index()]) {
      ir::BlockId refined = impl_.refining_block(frame_, operand.index(), b);
      if (refined != ir::no_block) return refinement(operand, refined);
    }
    return operand;
  }

  Operand refinement(Operand operand, ir::BlockId b) {
    if (refines_[b].valid()) return refines_[b];
    const Frame::BlockState& state = frame_.blocks[b];
    ir::BlockId above = state.sole_predecessor < Frame::many ? state.sole_predecessor : frame_.cfg.idom[b];
    Operand wider = mapped(operand, above);
    if (state.refinement->type == view(operand, above)->type) return wider;
    ir::Inst inst;
    inst.op = Op::refine;
    inst.operands = {wider};
    inst.type = state.refinement->type;
    inst.block = b;
    inst.scope = fn_.insts[operand.index()].scope;
    if (fn_.blocks[b].terminator != ~0u) inst.span = fn_.insts[fn_.blocks[b].terminator].span;
    fn_.insts.push_back(std::move(inst));
    return refines_[b] = Operand::inst(static_cast<std::uint32_t>(fn_.insts.size() - 1));
  }

  // --- emission ---

  std::uint32_t emit(const ir::Inst& like, Op op, std::vector<Operand> operands, const Type* type,
                     std::uintptr_t aux = 0) {
    ir::Inst inst;
    inst.op = op;
    inst.flags = like.flags;
    inst.scope = like.scope;
    inst.span = like.span;
    inst.block = block_;
    inst.operands = std::move(operands);
    inst.type = type;
    inst.aux = aux;
    std::uint32_t id = static_cast<std::uint32_t>(fn_.insts.size());
    fn_.insts.push_back(std::move(inst));
    emitted_.push_back(id);
    return id;
  }

  // Changes inst `id` itself, so that those who use it need not change.
  void become(std::uint32_t id, Op op, std::vector<Operand> operands, const Type* type, std::uintptr_t aux = 0) {
    ir::Inst& inst = fn_.insts[id];
    inst.op = op;
    inst.operands = std::move(operands);
    inst.type = type;
    inst.aux = aux;
    emitted_.push_back(id);
    proved(id);
  }

  void proved(std::uint32_t id) {
    ir::Inst& inst = fn_.insts[id];
    std::uint32_t effects = frame_.effects[id];
    inst.flags |= proved_flags(inst.op, effects);
  }

  // More is known of the result than its representation says: `id` becomes a refine of what computes it.
  void narrow_after(std::uint32_t id, const Type* type) {
    if (fn_.insts[id].type == type || frame_.values[id]->is_bottom() || frame_.values[id]->is_constant()) return;
    std::uint32_t computed = static_cast<std::uint32_t>(fn_.insts.size());
    ir::Inst copy = fn_.insts[id];
    fn_.insts.push_back(std::move(copy));
    emitted_.back() = computed;
    emitted_.push_back(id);
    ir::Inst& refine = fn_.insts[id];
    refine.op = Op::refine;
    refine.flags = 0;
    refine.operands = {Operand::inst(computed)};
    refine.type = type;
    refine.aux = 0;
  }

  void block(ir::BlockId b) {
    block_ = b;
    emitted_.clear();
    std::vector<std::uint32_t> insts = fn_.blocks[b].insts;
    for (std::uint32_t id : insts) {
      inst(id);
      if (!frame_.values[id]->is_bottom()) continue;
      never_returns(b, id);
      fn_.blocks[b].insts = emitted_;
      return;
    }
    terminator(b);
    fn_.blocks[b].insts = emitted_;
  }

  void never_returns(ir::BlockId b, std::uint32_t after) {
    ir::Block& block = fn_.blocks[b];
    block.edges.clear();
    ir::Inst inst;
    inst.op = Op::unreachable;
    inst.block = b;
    inst.span = fn_.insts[after].span;
    inst.scope = fn_.insts[after].scope;
    // throw(x) through the builtin is the terminator.
    const ir::Inst& last = fn_.insts[after];
    if (last.op == Op::call && last.operands.size() == 2 && last.operands[0].is_constant() && !emitted_.empty() &&
        emitted_.back() == after &&
        ir::as_builtin_op(builtin_, fn_.constants[last.operands[0].index()]) == Op::throw_) {
      inst.op = Op::throw_;
      inst.operands = {last.operands[1]};
      emitted_.pop_back();
    }
    block.terminator = static_cast<std::uint32_t>(fn_.insts.size());
    fn_.insts.push_back(std::move(inst));
  }

  void terminator(ir::BlockId b) {
    std::uint32_t id = fn_.blocks[b].terminator;
    if (id == ~0u) return;
    // By index: mapping an operand may make a refine, and so move the instructions.
    for (std::size_t i = 0; i < fn_.insts[id].operands.size(); ++i) {
      Operand now = mapped(fn_.insts[id].operands[i], b);
      fn_.insts[id].operands[i] = now;
    }
    for (std::size_t e = 0; e < fn_.blocks[b].edges.size(); ++e)
      for (std::size_t i = 0; i < fn_.blocks[b].edges[e].arguments.size(); ++i) {
        Operand now = mapped(fn_.blocks[b].edges[e].arguments[i], b);
        fn_.blocks[b].edges[e].arguments[i] = now;
      }
    ir::Block& block = fn_.blocks[b];
    std::vector<std::size_t> taken;
    for (std::size_t e = 0; e < block.edges.size(); ++e)
      if (frame_.edge_executable(b, e)) taken.push_back(e);
    Op op = fn_.insts[id].op;
    if (op != Op::branch && op != Op::switch_int) return;
    if (taken.size() == 1) {
      // A condition that may not be a Bool at all still has to raise.
      if (op == Op::branch && (frame_.effects[id] & effect_throws)) {
        ir::Inst like = fn_.insts[id];
        emit(like, Op::type_assert, {like.operands[0], type_constant(builtin_.boolean)}, builtin_.boolean,
             ir::assert_condition);
      }
      ir::Edge edge = fn_.blocks[b].edges[taken[0]];
      fn_.blocks[b].edges.clear();
      fn_.blocks[b].edges.push_back(std::move(edge));
      fn_.insts[id].op = Op::jump;
      fn_.insts[id].operands.clear();
    } else if (taken.empty()) {
      // The condition is never a Bool: the branch raises.
      ir::Inst like = fn_.insts[id];
      emit(like, Op::type_assert, {like.operands[0], type_constant(builtin_.boolean)}, builtin_.bottom,
           ir::assert_condition);
      never_returns(b, id);
    }
  }

  Operand type_constant(const Type* t) { return fn_.constant(impl_.runtime.from_type(t)); }

  void inst(std::uint32_t id) {
    Known value = frame_.values[id];
    std::uint32_t effects = frame_.effects[id];
    if (value->is_constant() && !(effects & visible_effects) && !writes_own_memory(id))
      return;  // its users use the constant
    std::vector<Operand> originals = fn_.insts[id].operands;
    std::vector<Operand> operands(originals.size());
    std::vector<Known> known(originals.size());
    for (std::size_t i = 0; i < originals.size(); ++i) {
      known[i] = view(originals[i], block_);
      operands[i] = mapped(originals[i], block_);
    }
    Op op = fn_.insts[id].op;
    if (op == Op::call || op == Op::call_splat)
      call(id, std::move(operands), std::move(known));
    else
      operation(id, op, fn_.insts[id].aux, std::move(operands), known);
  }

  // What was allocated here exists for no one else: writing it is no effect of the function, but no less needed.
  bool writes_own_memory(std::uint32_t id) const {
    Op op = fn_.insts[id].op;
    if (op == Op::invoke || op == Op::native) return false;
    if (op == Op::call || op == Op::call_splat) {
      const Call* call = frame_.call_index[id] == ~0u ? nullptr : &frame_.calls[frame_.call_index[id]];
      if (!call || call->kind != Call::Kind::op) return false;
      op = call->op;
    }
    return (ir::op_info(op).effects & effect_writes) != 0;
  }

  // --- ops ---

  void operation(std::uint32_t id, Op op, std::uintptr_t aux, std::vector<Operand> operands,
                 std::span<const Known> known) {
    Known value = frame_.values[id];
    const Type* type = value->type;
    switch (op) {
      case Op::type_assert:
        if (!(frame_.effects[id] & effect_throws)) {
          replacement_[id] = operands[0];
          return;
        }
        break;
      case Op::refine:
        if (known[0]->type == type) {
          replacement_[id] = operands[0];
          return;
        }
        become(id, op, std::move(operands), type);
        return;
      case Op::get_field:
        if (std::size_t index; known_field(known[0], known[1], index)) {
          become(id, Op::field_at, {operands[0]}, declared_field_type(builtin_, known[0]->type, index), index);
          narrow_after(id, type);
          return;
        }
        break;
      case Op::field_at:
        become(id, op, std::move(operands), declared_field_type(builtin_, known[0]->type, aux), aux);
        narrow_after(id, type);
        return;
      case Op::set_field:
        if (std::size_t index;
            !value->is_bottom() && !(frame_.effects[id] & effect_throws) && known_field(known[0], known[1], index)) {
          Operand stored = operands[2];
          become(id, Op::set_field_at, {operands[0], stored}, builtin_.nothing, index);
          replacement_[id] = stored;
          return;
        }
        become(id, op, operands, type);
        return;
      case Op::make_struct:
        if (const DataType* data = as_data(type_parameter(builtin_, known[0]->type)); data && !value->is_bottom()) {
          ir::Inst like = fn_.insts[id];
          for (std::size_t i = 1; i < operands.size(); ++i) {
            const Type* declared = data->fields[i - 1].type;
            Known fits = lattice_.narrow(lattice_.without_condition(known[i]), declared);
            if (fits == lattice_.without_condition(known[i])) continue;
            operands[i] =
                Operand::inst(emit(like, Op::type_assert, {operands[i], type_constant(declared)}, fits->type));
          }
          become(id, op, std::move(operands), type);
          fn_.insts[id].flags |= ir::inst_nothrow;
          return;
        }
        break;
      case Op::invoke:
        become(id, op, std::move(operands), target_type(*reinterpret_cast<Specialization*>(aux), type), aux);
        narrow_after(id, type);
        return;
      case Op::slot_get:
        become(id, op, std::move(operands), frame_.slots[aux]->type, aux);
        return;
      default:
        break;
    }
    ir::Inst probe;
    probe.op = op;
    probe.aux = aux;
    probe.type = type;
    std::vector<const Type*> types;
    for (Known k : known) types.push_back(k->type);
    Fit fit = op_fit(impl_.runtime, probe, types);
    if (fit != Fit::holds && ir::is_callable_op(op)) {
      operands.insert(operands.begin(), fn_.constant(ir::builtin_op(builtin_, op)));
      become(id, Op::call, std::move(operands), type);
      return;
    }
    become(id, op, std::move(operands), type, aux);
  }

  // Does the type say where the field is?
  bool known_field(Known object, Known name, std::size_t& index) const {
    const DataType* data = as_data(object->type);
    if (!name->is_constant() || !data || !data->is_concrete || known_field_count(data) < 0) return false;
    if (name->value.type == builtin_.symbol) {
      int found = data->is_tuple ? -1 : data->field_index(name->value.symbol);
      index = static_cast<std::size_t>(found);
      return found >= 0;
    }
    index = static_cast<std::size_t>(name->value.bits) - 1;
    return name->value.type == builtin_.int64 && name->value.bits >= 1 &&
           index < static_cast<std::size_t>(known_field_count(data));
  }

  // --- calls ---

  const Type* target_type(const Specialization& target, const Type* otherwise) {
    auto it = impl_.outcomes.find(const_cast<Specialization*>(&target));
    return it == impl_.outcomes.end() || !it->second ? otherwise : it->second->result->type;
  }

  bool linkable(const Combination& combination) const {
    if (!combination.known || combination.matches.size() > 1) return false;
    if (combination.matches.empty()) return true;  // surely a MethodError
    const Match& match = combination.matches[0];
    return combination.covered && match.exact && match.dispatchable && (match.method->native || match.linkable);
  }

  LinkedCall link(const Combination& combination) {
    LinkedCall linked;
    linked.types = combination.types;
    if (combination.matches.empty()) return linked;
    const Match& match = combination.matches[0];
    if (const NativeInfo* native = match.method->native) {
      linked.native = native;
      linked.effects = native->effects;
      std::span<const Type* const> types(combination.types);
      linked.type = native->result_type ? native->result_type(impl_.runtime.types, types.subspan(1)) : builtin_.any;
    } else {
      linked.target = match.target;
      linked.type = target_type(*match.target, builtin_.any);
      auto it = impl_.outcomes.find(match.target);
      if (it != impl_.outcomes.end() && it->second) {
        linked.effects = it->second->effects;
        Known result = it->second->result;
        if (result->is_constant() && !(linked.effects & visible_effects)) linked.constant = result->value;
      }
    }
    return linked;
  }

  void call(std::uint32_t id, std::vector<Operand> operands, std::vector<Known> known) {
    const Type* type = frame_.values[id]->type;
    if (frame_.call_index[id] == ~0u) {  // never evaluated: an argument is bottom
      become(id, fn_.insts[id].op, std::move(operands), type, fn_.insts[id].aux);
      return;
    }
    const Call& call = frame_.calls[frame_.call_index[id]];
    Op op = fn_.insts[id].op;
    std::uintptr_t splatted = fn_.insts[id].aux;
    if (op == Op::call_splat && call.splat_known && can_spread(splatted, known)) {
      spread(id, splatted, operands, known);
      op = Op::call;
      splatted = 0;
    }
    switch (call.kind) {
      case Call::Kind::op:
        operands.erase(operands.begin());
        known.erase(known.begin());
        operation(id, call.op, 0, std::move(operands), known);
        return;
      case Call::Kind::native:
        operands.erase(operands.begin());
        become(id, Op::native, std::move(operands), type, reinterpret_cast<std::uintptr_t>(call.native));
        return;
      case Call::Kind::methods:
        if (call.chosen_by_types && op == Op::call) {
          std::vector<Operand> passed{operands[1]};
          passed.insert(passed.end(), operands.begin() + 3, operands.end());
          if (methods(id, call, passed)) return;
          break;
        }
        if (op == Op::call && methods(id, call, operands)) return;
        break;
      case Call::Kind::unknown:
        break;
    }
    become(id, op, std::move(operands), type, splatted);
  }

  bool methods(std::uint32_t id, const Call& call, const std::vector<Operand>& operands) {
    for (const Combination& combination : call.combinations)
      if (!linkable(combination)) return call.combinations.size() == 1 && by_methods(id, call, operands);
    const Type* type = frame_.values[id]->type;
    if (call.combinations.size() == 1) {
      LinkedCall linked = link(call.combinations[0]);
      if (!linked.type) return false;
      if (linked.native)
        become(id, Op::native, {operands.begin() + 1, operands.end()}, linked.type,
               reinterpret_cast<std::uintptr_t>(linked.native));
      else
        become(id, Op::invoke, operands, linked.type, reinterpret_cast<std::uintptr_t>(linked.target));
      narrow_after(id, type);
      return true;
    }
    if (frame_.values[id]->is_bottom()) return false;
    if (test(id, call, operands)) return true;
    PendingSplit pending;
    pending.inst = id;
    pending.split.arguments = call.split;
    for (const Combination& combination : call.combinations) {
      for (std::size_t i : call.split)
        if (!is_dispatch_type(builtin_, combination.types[i])) return false;
      pending.split.choices.push_back(link(combination));
    }
    pending.split.type = type;
    become(id, Op::call, operands, type);
    splits_.push_back(std::move(pending));
    return true;
  }

  // The argument is of an abstract type, and a few methods are for definite types, or there are few types below it:
  // these are tested for, and called without a lookup.
  bool by_methods(std::uint32_t id, const Call& call, const std::vector<Operand>& operands) {
    const Combination& combination = call.combinations[0];
    if (!combination.known || combination.matches.size() > tuning::most_choices || frame_.values[id]->is_bottom())
      return false;
    PendingSplit pending;
    pending.inst = id;
    for (std::size_t i = 0; i < combination.types.size(); ++i)
      if (!is_dispatch_type(builtin_, combination.types[i])) pending.split.arguments.push_back(i);
    if (pending.split.arguments.empty() || pending.split.arguments[0] == 0) return false;
    if (!call.leaves.empty()) {
      for (const Combination& leaf : call.leaves)
        if (linkable(leaf) && leaf.matches.size() == 1) pending.split.choices.push_back(link(leaf));
    } else {
      for (const Match& match : combination.matches)
        if (std::optional<LinkedCall> choice = of_definite_types(match, combination, pending.split.arguments))
          pending.split.choices.push_back(std::move(*choice));
      // Several tests for each choice pay only where they decide all calls.
      if (pending.split.arguments.size() > 1 && pending.split.choices.size() < combination.matches.size()) return false;
    }
    std::erase_if(pending.split.choices, [](const LinkedCall& choice) { return !choice.type; });
    if (pending.split.choices.empty()) return false;
    const Type* type = frame_.values[id]->type;
    LinkedCall& otherwise = pending.split.choices.emplace_back();
    otherwise.types = combination.types;
    otherwise.type = type;
    otherwise.is_dynamic = true;
    pending.split.type = type;
    become(id, Op::call, operands, type);
    splits_.push_back(std::move(pending));
    return true;
  }

  std::optional<LinkedCall> of_definite_types(const Match& match, const Combination& combination,
                                              std::span<const std::size_t> tested) {
    // The library's own dynamic calls are many and seldom hot: they would double what derivatives of unknown types
    // compile.
    if (!match.target || match.method->module == impl_.runtime.base) return std::nullopt;
    const std::span<const Type* const> types = match.target->types->params;
    if (types.size() != combination.types.size() || !dispatchable(builtin_, types)) return std::nullopt;
    for (std::size_t i : tested)
      if (!is_concrete(types[i]) || types[i]->is_kind) return std::nullopt;
    const auto outcome = impl_.outcomes.find(match.target);
    if (outcome == impl_.outcomes.end() || !outcome->second) return std::nullopt;
    if (impl_.runtime.lookup(match.target->types, impl_.world).method != match.method) return std::nullopt;
    Combination one;
    one.types.assign(types.begin(), types.end());
    one.matches.push_back(match);
    return link(one);
  }

  // isnothing(x::Union{Nothing,A}) is isa(x, Nothing): a Bool that the member of one union decides.
  bool test(std::uint32_t id, const Call& call, const std::vector<Operand>& operands) {
    if (call.split.size() != 1) return false;
    std::vector<const Type*> holds;
    for (const Combination& combination : call.combinations) {
      LinkedCall linked = link(combination);
      if (!linked.constant.defined() || linked.constant.type != builtin_.boolean) return false;
      if (linked.constant.bits & 1) holds.push_back(combination.types[call.split[0]]);
    }
    Operand type = type_constant(impl_.runtime.types.union_of(holds));
    become(id, Op::isa, {operands[call.split[0]], type}, builtin_.boolean);
    return true;
  }

  // Every splatted operand has a known number of elements, as it is seen here.
  static bool can_spread(std::uintptr_t splatted, const std::vector<Known>& known) {
    for (std::size_t i = 0; i < known.size() && i < 64; ++i)
      if ((splatted >> i & 1) && known_field_count(known[i]->is_constant() ? known[i]->value.type : known[i]->type) < 0)
        return false;
    return true;
  }

  // f(a, t...) of a tuple with known elements: f(a, t[1], t[2]).
  void spread(std::uint32_t id, std::uintptr_t splatted, std::vector<Operand>& operands, std::vector<Known>& known) {
    ir::Inst like = fn_.insts[id];
    like.flags = 0;
    std::vector<Operand> all;
    std::vector<Known> all_known;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i >= 64 || !(splatted >> i & 1)) {
        all.push_back(operands[i]);
        all_known.push_back(known[i]);
        continue;
      }
      const Type* aggregate = known[i]->is_constant() ? known[i]->value.type : known[i]->type;
      int count = known_field_count(aggregate);
      for (std::size_t f = 0; f < static_cast<std::size_t>(count); ++f) {
        Known field = lattice_.field(known[i], f);
        all_known.push_back(field);
        if (field->is_constant()) {
          all.push_back(constant(field));
          continue;
        }
        const Type* declared = declared_field_type(builtin_, aggregate, f);
        std::uint32_t element;
        if (is_concrete(aggregate)) {
          element = emit(like, Op::field_at, {operands[i]}, declared, f);
          fn_.insts[element].flags |= ir::inst_nothrow;
        } else {
          Operand index = fn_.constant(impl_.runtime.from_int(static_cast<std::int64_t>(f) + 1));
          element = emit(like, Op::get_field, {operands[i], index}, declared);
        }
        if (field->type != declared) element = emit(like, Op::refine, {Operand::inst(element)}, field->type);
        all.push_back(Operand::inst(element));
      }
    }
    operands = std::move(all);
    known = std::move(all_known);
  }

  Inference::Impl& impl_;
  LatticeTable& lattice_;
  const BuiltinTypes& builtin_;
  Frame& frame_;
  ir::Function& fn_;
  std::size_t inst_count_ = 0;
  ir::BlockId block_ = 0;
  std::vector<std::uint32_t> emitted_;  // of the block at hand
  std::vector<Operand> replacement_;    // by inst: what stands for it
  std::vector<Operand> refines_;        // by block: the refine at its head
  std::unordered_map<Known, Operand> constants_;
  std::vector<PendingSplit> splits_;
};

}  // namespace

void rewrite(Inference::Impl& impl, Frame& frame) { Rewriter(impl, frame).run(); }

}  // namespace slope::infer
