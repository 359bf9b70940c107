// Common subexpressions of operations without effects, by dominance. Also moves array lengths out of loops that do not
// resize, and what loops only read of tapes, so that later passes see counted loops. LLVM does the rest.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "lang/ir/cfg.hpp"
#include "lang/ir/passes/bounds.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/opt/opt.hpp"

namespace slope::opt {

using ir::BlockId;
using ir::Op;
using ir::Operand;

namespace {

bool is_fixed_size(const ir::Function& function, const ir::Inst& inst, Runtime& runtime, bool resizes) {
  const DataType* array = as_data(function.type_of(inst.operands[0], runtime.types));
  if (!array || array->object_kind != DataType::ObjectKind::array) return false;
  if (!resizes) return true;
  // Vectors alone grow and shrink.
  const ValueType* rank = array->params.size() > 1 ? as_value(array->params[1]) : nullptr;
  return rank && rank->value.bits != 1;
}

bool reads_only_fixed(const ir::Function& function, const ir::Inst& inst, Runtime& runtime, bool resizes) {
  if (inst.op == Op::array_length || inst.op == Op::array_size) return is_fixed_size(function, inst, runtime, resizes);
  if (inst.op == Op::field_at) {
    const DataType* object = as_data(function.type_of(inst.operands[0], runtime.types));
    return object && !object->is_mutable;
  }
  if (inst.op == Op::refine || inst.op == Op::undef || inst.op == Op::slot_get) return false;
  return ir::op_info(inst.op).effects == 0 && !ir::is_terminator(inst.op);
}

struct Key {
  std::uint64_t hash;
  std::uint32_t inst;
};

std::uint64_t hash_of(const ir::Inst& inst) {
  std::uint64_t h = static_cast<std::uint64_t>(inst.op) * 0x9e3779b97f4a7c15ull ^ inst.aux;
  for (Operand o : inst.operands) h = (h ^ o.bits) * 0x100000001b3ull;
  return h;
}

}  // namespace

bool common_subexpressions(Runtime& runtime, ir::Function& function) {
  ir::Cfg cfg = ir::build_cfg(function);
  bool resizes = ir::may_resize(function, runtime.types.builtin().bottom);
  std::unordered_multimap<std::uint64_t, std::uint32_t> seen;
  std::vector<Operand> replacement(function.insts.size());
  bool any = false;
  auto follow = [&](Operand o) {
    while (o.is_inst() && replacement[o.index()].valid()) o = replacement[o.index()];
    return o;
  };
  // Reverse postorder visits dominators first.
  for (BlockId b : cfg.order) {
    for (std::uint32_t id : function.blocks[b].insts) {
      ir::Inst& inst = function.insts[id];
      for (Operand& o : inst.operands) o = follow(o);
      if (!reads_only_fixed(function, inst, runtime, resizes)) continue;
      std::uint64_t hash = hash_of(inst);
      bool found = false;
      auto [first, last] = seen.equal_range(hash);
      for (auto at = first; at != last && !found; ++at) {
        const ir::Inst& other = function.insts[at->second];
        if (other.op != inst.op || other.aux != inst.aux || other.type != inst.type || other.operands != inst.operands)
          continue;
        if (!cfg.dominates(other.block, b)) continue;
        replacement[id] = Operand::inst(at->second);
        found = any = true;
      }
      if (!found) seen.emplace(hash, id);
    }
  }
  if (any) ir::replace_all_uses(function, replacement);
  return any;
}

namespace {

// Whether the derivative of an operation that runs without being wanted can be felt: its cotangent is zero then, and
// zero times a partial derivative is not zero where that is infinite.
bool has_partials(const ir::Inst& inst) {
  ir::Derivative kind = ir::op_info(inst.op).derivative;
  return kind == ir::Derivative::operands || kind == ir::Derivative::result;
}

// Loads of a tape's row from loops that leave tapes alone: the shadows of arrays, above all. LLVM cannot move those that
// do not run in every case. The row has its value when the loop is reached: the loop's header reads another column of
// the row (where its own rows begin), and the one store into that column comes after the one into this.
class TapeLoads {
 public:
  TapeLoads(const ir::Function& function, const ir::Cfg& cfg, TypeTable& types)
      : function_(function), cfg_(cfg), types_(types) {
    for (BlockId b : cfg.order)
      for (std::uint32_t id : function.blocks[b].insts) {
        const ir::Inst& inst = function.insts[id];
        has_undefined_ |= inst.op == Op::undef;
        if (inst.op == Op::tape_load) loads_.push_back(id);
        if (inst.op == Op::tape_store) stores_[{inst.operands[0].bits, inst.aux}].push_back(id);
      }
  }
  bool leaves_tapes_alone(const ir::Loop& loop) const {
    if (loads_.empty() || stores_.empty()) return false;
    const Type* tape = types_.builtin().tape;
    for (BlockId b : loop.blocks)
      for (std::uint32_t id : function_.blocks[b].insts) {
        const ir::Inst& inst = function_.insts[id];
        if (inst.op == Op::tape_load) continue;
        if (inst.type == tape) return false;
        for (Operand o : inst.operands)
          if (function_.type_of(o, types_) == tape) return false;
      }
    return true;
  }
  bool has_value(const ir::Inst& load, const ir::Loop& loop, BlockId before) const {
    const ir::Inst* stored = only_store(load);
    if (!stored || (has_undefined_ && may_be_undefined(stored->operands[2]))) return false;
    return std::any_of(loads_.begin(), loads_.end(), [&](std::uint32_t id) {
      const ir::Inst& other = function_.insts[id];
      if (other.operands != load.operands) return false;
      if (other.block != loop.header && other.block != before) return false;  // there when moved already
      const ir::Inst* beside = only_store(other);
      return beside && beside->operands[1] == stored->operands[1] && comes_before(*stored, *beside);
    });
  }

 private:
  const ir::Inst* only_store(const ir::Inst& load) const {
    auto found = stores_.find({load.operands[0].bits, load.aux});
    return found == stores_.end() || found->second.size() != 1 ? nullptr : &function_.insts[found->second[0]];
  }
  // Whether the value may be one that was never made, through whatever blocks it comes.
  bool may_be_undefined(Operand value) const {
    std::set<std::uint32_t> seen;
    std::vector<Operand> open{value};
    while (!open.empty()) {
      const Operand o = open.back();
      open.pop_back();
      if (!o.is_inst() || !seen.insert(o.index()).second) continue;
      const ir::Inst& inst = function_.inst(o);
      const DataType* type = as_data(inst.type);
      const bool is_number = type && type->is_isbits && type->fields.empty();
      if (inst.op == Op::undef || (inst.op != Op::parameter && inst.op != Op::array_new && !is_number)) return true;
      if (inst.op != Op::parameter) continue;
      const std::vector<std::uint32_t>& parameters = function_.blocks[inst.block].parameters;
      const auto place = static_cast<std::size_t>(std::ranges::find(parameters, o.index()) - parameters.begin());
      for (BlockId from : cfg_.predecessors[inst.block])
        for (const ir::Edge& edge : function_.blocks[from].edges)
          if (edge.target == inst.block) open.push_back(edge.arguments[place]);
    }
    return false;
  }
  bool comes_before(const ir::Inst& a, const ir::Inst& b) const {
    if (a.block != b.block) return cfg_.dominates(a.block, b.block);
    for (std::uint32_t id : function_.blocks[a.block].insts) {
      if (&function_.insts[id] == &a) return true;
      if (&function_.insts[id] == &b) return false;
    }
    return false;
  }

  const ir::Function& function_;
  const ir::Cfg& cfg_;
  TypeTable& types_;
  std::vector<std::uint32_t> loads_;
  std::map<std::pair<std::uint64_t, std::uintptr_t>, std::vector<std::uint32_t>> stores_;  // by tape and column
  bool has_undefined_ = false;
};

}  // namespace

// Code that is differentiated later comes through here: what does not run in every case (a loop may run no time at all)
// leaves its loop only when its derivative, too, is nothing but copied. LLVM moves the rest, after differentiation.
bool hoist_invariants(Runtime& runtime, ir::Function& function) {
  ir::Cfg cfg = ir::build_cfg(function);
  ir::LoopForest forest = ir::find_loops(function, cfg);
  bool resizes = ir::may_resize(function, runtime.types.builtin().bottom);
  const TapeLoads tape_loads(function, cfg, runtime.types);
  bool any = false;
  // Inner loops first: what leaves them may leave the outer one too.
  for (auto at = forest.loops.rbegin(); at != forest.loops.rend(); ++at) {
    const ir::Loop& loop = *at;
    std::vector<bool> inside(function.blocks.size());
    for (BlockId b : loop.blocks) inside[b] = true;
    BlockId before = ir::no_block;
    int entries = 0;
    for (BlockId p : cfg.predecessors[loop.header]) {
      if (inside[p] || !cfg.reachable(p)) continue;
      before = p;
      ++entries;
    }
    if (entries != 1 || function.blocks[before].edges.size() != 1 ||
        function.blocks[before].handler != function.blocks[loop.header].handler)
      continue;
    const bool reads_tapes = tape_loads.leaves_tapes_alone(loop);
    for (BlockId b : cfg.order) {
      if (!inside[b]) continue;
      std::vector<std::uint32_t> kept;
      for (std::uint32_t id : function.blocks[b].insts) {
        ir::Inst& inst = function.insts[id];
        // A byte of a string is read without a check: the one that guards it stays in the loop.
        bool invariant = reads_only_fixed(function, inst, runtime, resizes) && !ir::may_throw(inst) &&
                         inst.op != Op::string_byte && (b == loop.header || !has_partials(inst));
        const bool is_kept = reads_tapes && inst.op == Op::tape_load && tape_loads.has_value(inst, loop, before);
        invariant |= is_kept;
        for (Operand o : inst.operands)
          if (o.is_inst() && inside[function.inst(o).block]) invariant = false;
        if (!invariant) {
          kept.push_back(id);
          continue;
        }
        if (is_kept) inst.flags |= ir::inst_nothrow;
        inst.block = before;
        function.blocks[before].insts.push_back(id);
        any = true;
      }
      function.blocks[b].insts = std::move(kept);
    }
  }
  return any;
}

}  // namespace slope::opt
