// The search is from the access upwards: along the dominators, to branches whose condition says what is wanted. An index
// is seen as a value and a constant (Linear), all modulo 2^64, as the operations are.
//
// Traps:
//   - `k <= n - 3` says nothing of `k + 2` when something wraps. Signed comparisons are used only of a variable k that is
//     known to be at least 0, with a bound that is a length (0 … 2^62) and a small constant.
//   - An instruction of a block with a handler need not have run when control comes to the handler. Dominance (cfg.hpp)
//     knows that; what an access in the same block says comes after it in any case.
#include "lang/ir/passes/bounds.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "lang/runtime/runtime.hpp"

namespace slope::ir {

bool may_resize(const Inst& inst, bool returns_to_handler, const Type* bottom) {
  if (is_resize(inst.op)) return true;
  switch (inst.op) {
    case Op::call:
    case Op::call_splat:
      return inst.type != bottom || returns_to_handler;
    case Op::invoke: {
      if (inst.type == bottom && !returns_to_handler) return false;  // does not come back
      const CodeInstance* code = inst.aux_as<Specialization>()->current;
      return !code || (code->effects & effect_writes);
    }
    case Op::native:
      return (op_effects(inst) & effect_writes) != 0;
    default:
      return false;
  }
}

namespace {

// Looks into what is called: a callee that writes into new memory of its own resizes nothing.
class Resizes {
 public:
  explicit Resizes(const Type* bottom) : bottom_(bottom) {}

  bool by(const Inst& inst, bool returns_to_handler) {
    if (!may_resize(inst, returns_to_handler, bottom_)) return false;
    if (inst.op != Op::invoke) return true;
    const CodeInstance* code = inst.aux_as<Specialization>()->current;
    return !code || !code->typed || !code->typed->typed || in(*code->typed);
  }

  bool in(const Function& function) {
    auto [known, is_new] = known_.emplace(&function, true);  // of recursion: it may
    if (!is_new) return known->second;
    looked_at_ += static_cast<std::int64_t>(function.insts.size());
    if (looked_at_ > most_insts) return true;
    for (const Block& block : function.blocks)
      for (std::uint32_t id : block.insts)
        if (by(function.insts[id], block.handler != no_block)) return true;
    known_[&function] = false;
    return false;
  }

 private:
  static constexpr std::int64_t most_insts = 20000;
  const Type* bottom_;
  std::int64_t looked_at_ = 0;
  std::unordered_map<const Function*, bool> known_;
};

}  // namespace

bool may_resize(const Function& function, const Type* bottom) {
  for (const Block& block : function.blocks)
    for (std::uint32_t id : block.insts)
      if (may_resize(function.insts[id], block.handler != no_block, bottom)) return true;
  return false;
}

namespace {

constexpr int longest_way = 256;            // blocks that are looked at for one question
constexpr std::int64_t most_work = 400000;  // of a function, in blocks; then the rest is tested
constexpr std::size_t most_accesses = 16;   // of one element that are looked at
constexpr std::int64_t small_constant = std::int64_t{1} << 40;

// value + constant; no value: the constant.
struct Linear {
  Operand value;
  std::int64_t constant = 0;
  friend bool operator==(const Linear&, const Linear&) = default;
};

std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// What an index is compared with: the length of an array (dimension 0), one of its sizes, or any other value (-1).
struct Bound {
  Operand of;
  std::int64_t dimension = -1;
  friend bool operator==(const Bound&, const Bound&) = default;
};

// -1: not known to be an array, or not of how many dimensions.
std::int64_t rank_of_array(const Type* of) {
  const DataType* type = as_data(of);
  if (!type || !type->is_concrete || type->object_kind != DataType::ObjectKind::array || type->params.size() < 2)
    return -1;
  const ValueType* rank = as_value(type->params[1]);
  return rank ? rank->value.bits : -1;
}

class Prover {
 public:
  Prover(Runtime& runtime, const Function& function, const Cfg& cfg)
      : runtime_(runtime),
        builtin_(runtime.types.builtin()),
        function_(function),
        cfg_(cfg),
        resizing_(builtin_.bottom),
        resizes_(resizing_.in(function)),
        position_(function.insts.size()) {}

  bool resizes() const { return resizes_; }

  void run(std::vector<BoundsProof>& proofs) {
    for (BlockId b : cfg_.order) {
      last_resize_ = -1;
      std::int32_t position = 0;
      for (std::uint32_t id : function_.blocks[b].insts) {
        const Inst& inst = function_.insts[id];
        position_[id] = position++;
        if (resizes_ && resizing_.by(inst, function_.blocks[b].handler != no_block)) last_resize_ = position_[id];
        if (!is_element_access(inst.op) || work_ > most_work) continue;
        const Operand array = unrefined(inst.operands[0]);
        const std::int64_t rank = rank_of(array);
        const Operand index = inst.operands[inst.op == Op::array_get ? 1 : 2];
        if (rank < 0 || type_of(index) != builtin_.int64) continue;
        if (proofs.empty()) proofs.resize(function_.insts.size());
        reasons_.clear();
        at_ = b;
        if (accessed_before(array, rank, index) || is_inside(array, rank, index)) proofs[id].reasons = reasons_;
        accesses_[key(array, linear(index))].push_back(id);
      }
    }
  }

 private:
  const Type* type_of(Operand o) const { return function_.type_of(o, runtime_.types); }
  const Inst* definition(Operand o) const { return o.valid() && o.is_inst() ? &function_.inst(o) : nullptr; }

  Operand unrefined(Operand o) const {
    for (const Inst* inst = definition(o); inst && (inst->op == Op::refine || inst->op == Op::type_assert);
         inst = definition(o))
      o = inst->operands[0];
    return o;
  }

  std::int64_t rank_of(Operand array) const { return rank_of_array(type_of(array)); }

  std::optional<std::int64_t> constant(Operand o) const {
    if (!o.valid() || !o.is_constant()) return std::nullopt;
    const Value v = function_.constant_value(o);
    if (v.type != builtin_.int64) return std::nullopt;
    return v.bits;
  }

  Linear linear(Operand o) const {
    Linear l{o, 0};
    for (int depth = 0; depth < 16; ++depth) {
      if (auto c = constant(l.value)) return {Operand(), wrapping_add(l.constant, *c)};
      const Inst* inst = definition(l.value);
      if (!inst || (inst->op != Op::add_int && inst->op != Op::sub_int) || inst->type != builtin_.int64) return l;
      const auto right = constant(inst->operands[1]);
      const auto left = constant(inst->operands[0]);
      if (right && inst->op == Op::add_int) {
        l = {inst->operands[0], wrapping_add(l.constant, *right)};
      } else if (right && *right != INT64_MIN) {
        l = {inst->operands[0], wrapping_add(l.constant, -*right)};
      } else if (left && inst->op == Op::add_int) {
        l = {inst->operands[1], wrapping_add(l.constant, *left)};
      } else {
        return l;
      }
    }
    return l;
  }

  Bound bound(Operand o) const {
    const Inst* inst = definition(o);
    if (!inst || (inst->op != Op::array_length && inst->op != Op::array_size)) return {o, -1};
    const Operand array = unrefined(inst->operands[0]);
    const std::int64_t rank = rank_of(array);
    if (rank < 0 || (rank == 1 && resizes_)) return {o, -1};
    if (inst->op == Op::array_length) return {array, 0};
    const auto dimension = constant(inst->operands[1]);
    if (!dimension || *dimension < 1 || *dimension > rank) return {o, -1};
    return {array, rank == 1 ? 0 : *dimension};
  }

  // `o` is the length or the size of the array that is meant.
  bool is_extent(Operand o, const Bound& wanted) const {
    const Bound b = bound(o);
    if (b == wanted) return true;
    const Inst* made = definition(wanted.of);
    if (!made || made->op != Op::array_new) return false;
    const std::size_t rank = made->operands.size() - 1;
    if (rank == 1 && resizes_) return false;
    if (wanted.dimension == 0 && rank != 1) return false;
    const Operand extent = made->operands[wanted.dimension == 0 ? 1 : static_cast<std::size_t>(wanted.dimension)];
    return extent == o || (b.dimension >= 0 && bound(extent) == b);
  }

  // --- accesses before ---

  static std::uint64_t key(Operand array, const Linear& index) {
    std::uint64_t h = (std::uint64_t{array.bits} << 32 | index.value.bits) * 0x9e3779b97f4a7c15ull;
    return (h ^ static_cast<std::uint64_t>(index.constant)) * 0x100000001b3ull;
  }

  bool accessed_before(Operand array, std::int64_t rank, Operand index) {
    auto known = accesses_.find(key(array, linear(index)));
    if (known == accesses_.end()) return false;
    const auto& ids = known->second;
    for (std::size_t i = ids.size(); i-- > 0 && ids.size() - i <= most_accesses;) {
      const std::uint32_t id = ids[i];
      const Inst& other = function_.insts[id];
      if (unrefined(other.operands[0]) != array ||
          linear(other.operands[other.op == Op::array_get ? 1 : 2]) != linear(index))
        continue;
      const bool holds = rank != 1 || !resizes_ || (other.block == at_ && !resized_since(id));
      if (!holds || !cfg_.dominates(other.block, at_)) continue;
      reasons_.push_back({no_block, id});
      return true;
    }
    return false;
  }

  // Of an instruction that comes before in the same block.
  bool resized_since(std::uint32_t id) const { return last_resize_ > position_[id]; }

  // --- what is known of one index ---

  bool is_inside(Operand array, std::int64_t rank, Operand index) {
    Linear zero_based = linear(index);
    zero_based.constant = wrapping_add(zero_based.constant, -1);
    if (made_with(array, rank, zero_based) || within(zero_based, {array, 0})) return true;
    if (rank < 2) return false;
    const std::size_t before = reasons_.size();
    if (inside_dimensions(zero_based, array, 1, rank)) return true;
    reasons_.resize(before);
    return false;
  }

  // A constant index of an array whose length is a constant.
  bool made_with(Operand array, std::int64_t rank, const Linear& zero_based) {
    const Inst* made = definition(array);
    if (zero_based.value.valid() || !made || made->op != Op::array_new || made->operands.size() != 2 || rank != 1)
      return false;
    const auto length = constant(made->operands[1]);
    if (!length || zero_based.constant < 0 || zero_based.constant >= *length) return false;
    if (resizes_ && (made->block != at_ || resized_since(array.index()))) return false;
    reasons_.push_back({no_block, array.index()});
    return true;
  }

  // first + size * rest, each inside its own dimension.
  bool inside_dimensions(const Linear& zero_based, Operand array, std::int64_t dimension, std::int64_t rank) {
    if (dimension == rank) return within(zero_based, {array, dimension});
    auto product = [&](Operand o, Linear& rest) {
      const Inst* inst = definition(o);
      if (!inst || inst->op != Op::mul_int || inst->type != builtin_.int64) return false;
      for (int k : {0, 1}) {
        if (!is_extent(inst->operands[static_cast<std::size_t>(1 - k)], {array, dimension})) continue;
        rest = linear(inst->operands[static_cast<std::size_t>(k)]);
        return true;
      }
      return false;
    };
    auto both = [&](const Linear& first, const Linear& rest) {
      return within(first, {array, dimension}) && inside_dimensions(rest, array, dimension + 1, rank);
    };
    Linear rest;
    if (product(zero_based.value, rest)) return both({Operand(), zero_based.constant}, rest);
    const Inst* sum = definition(zero_based.value);
    if (sum && sum->op == Op::add_int) {
      for (std::size_t k : {0u, 1u}) {
        if (!product(sum->operands[k], rest)) continue;
        Linear first = linear(sum->operands[1 - k]);
        first.constant = wrapping_add(first.constant, zero_based.constant);
        return both(first, rest);
      }
    }
    return both(zero_based, {Operand(), 0});  // the other indices are 1
  }

  // The conditions of the branches by which every way to `from` comes: visit(condition, true or false, block behind).
  template <class Visit>
  bool on_the_way(BlockId from, const Visit& visit) {
    int steps = 0;
    for (BlockId b = from; b != no_block && steps < longest_way; b = cfg_.idom[b], ++steps) {
      ++work_;
      if (cfg_.predecessors[b].size() != 1) continue;
      const Block& before = function_.blocks[cfg_.predecessors[b][0]];
      if (before.terminator == ~0u || before.edges.size() != 2) continue;
      const Inst& branch = function_.insts[before.terminator];
      if (branch.op != Op::branch || before.edges[0].target == before.edges[1].target) continue;
      if (before.edges[0].target != b && before.edges[1].target != b) continue;  // a handler
      if (parts(branch.operands[0], before.edges[0].target == b, b, visit, 0)) return true;
    }
    return false;
  }

  template <class Visit>
  bool parts(Operand condition, bool truth, BlockId behind, const Visit& visit, int depth) {
    const Inst* inst = definition(condition);
    if (!inst || depth > 8) return false;
    if (inst->op == Op::not_int && type_of(inst->operands[0]) == builtin_.boolean)
      return parts(inst->operands[0], !truth, behind, visit, depth + 1);
    if ((inst->op == Op::and_int && truth) || (inst->op == Op::or_int && !truth)) {
      if (inst->type != builtin_.boolean) return false;
      return parts(inst->operands[0], truth, behind, visit, depth + 1) ||
             parts(inst->operands[1], truth, behind, visit, depth + 1);
    }
    return visit(*inst, truth, behind);
  }

  struct Order {  // smaller < larger, or <=
    Operand smaller, larger;
    bool strict = false;
  };
  std::optional<Order> signed_order(const Inst& test, bool truth) const {
    if (test.op != Op::sle_int && test.op != Op::slt_int) return std::nullopt;
    if (type_of(test.operands[0]) != builtin_.int64) return std::nullopt;
    const bool strict = test.op == Op::slt_int;
    if (truth) return Order{test.operands[0], test.operands[1], strict};
    return Order{test.operands[1], test.operands[0], !strict};
  }

  // 0 <= index < the extent.
  bool within(const Linear& index, const Bound& extent) {
    std::optional<std::int64_t> lower;
    BlockId lower_behind = no_block;
    bool asked = false;
    return on_the_way(at_, [&](const Inst& test, bool truth, BlockId behind) {
      if (test.op == Op::ult_int && truth) {
        if (type_of(test.operands[0]) != builtin_.int64 || linear(test.operands[0]) != index ||
            !is_extent(test.operands[1], extent))
          return false;
        reasons_.push_back({behind, ~0u});
        return true;
      }
      const auto order = signed_order(test, truth);
      if (!order || !index.value.valid() || order->smaller != index.value) return false;
      if (!std::exchange(asked, true)) lower = at_least(index.value, lower_behind);
      if (!lower || index.constant < -*lower || index.constant > small_constant) return false;
      if (!below(order->larger, order->strict, index.constant, *lower, extent, 0)) return false;
      reasons_.push_back({behind, ~0u});
      if (lower_behind != no_block) reasons_.push_back({lower_behind, ~0u});
      return true;
    });
  }

  // k <= limit (or k < limit), and k >= lower >= 0: so k + added < extent.
  bool below(Operand limit, bool strict, std::int64_t added, std::int64_t lower, const Bound& extent, int depth) {
    const Linear l = linear(limit);
    if (l.constant < -small_constant || l.constant > small_constant) return false;
    if (!l.value.valid()) return l.constant - (strict ? 1 : 0) < lower;  // never so: this is not reached
    if (is_extent(l.value, extent)) return l.constant - (strict ? 1 : 0) + added < 0;
    const Inst* inst = definition(l.value);
    if (!inst || inst->op != Op::select || depth > 3) return false;
    // Of a range's length. What is added does not wrap where the alternative is a length or a constant.
    auto alternative = [&](Operand o) {
      const Linear part = linear(o);
      if (part.constant < -small_constant || part.constant > small_constant) return false;
      const std::int64_t sum = part.constant + l.constant;
      if (!part.value.valid()) return sum - (strict ? 1 : 0) < lower;
      if (is_extent(part.value, extent)) return sum - (strict ? 1 : 0) + added < 0;
      return l.constant == 0 && below(o, strict, added, lower, extent, depth + 1);
    };
    return (never(inst->operands[0]) || alternative(inst->operands[1])) && alternative(inst->operands[2]);
  }

  // stop - start < 0 and start <= stop, start >= 0: there is no such range.
  bool never(Operand condition) const {
    const Inst* both = definition(condition);
    if (!both || both->op != Op::and_int || both->type != builtin_.boolean) return false;
    const Inst* negative = definition(both->operands[0]);
    const Inst* ordered = definition(both->operands[1]);
    if (!negative || negative->op != Op::slt_int || !ordered || ordered->op != Op::sle_int) return false;
    const auto zero = constant(negative->operands[1]);
    const auto start = constant(ordered->operands[0]);
    const Inst* steps = definition(negative->operands[0]);
    return zero && *zero == 0 && start && *start >= 0 && steps && steps->op == Op::sub_int &&
           steps->type == builtin_.int64 && steps->operands[0] == ordered->operands[1] &&
           constant(steps->operands[1]) == start;
  }

  // A bound from below of at least 0, from a test (then `behind` it) or because the value is a loop's counter.
  std::optional<std::int64_t> at_least(Operand value, BlockId& behind) {
    const Inst* inst = definition(value);
    if (inst && inst->op == Op::parameter && inst->block != 0) {
      auto known = counters_.find(value.index());
      if (known == counters_.end()) known = counters_.emplace(value.index(), counter_start(value)).first;
      if (known->second) return known->second;
    }
    std::optional<std::int64_t> lower;
    on_the_way(at_, [&](const Inst& test, bool truth, BlockId block) {
      const auto order = signed_order(test, truth);
      if (!order || order->larger != value) return false;
      const auto least = constant(order->smaller);
      if (!least || *least < 0 || *least > small_constant) return false;
      lower = *least + (order->strict ? 1 : 0);
      behind = block;
      return true;
    });
    return lower;
  }

  // A parameter that every edge gives a constant of at least 0, or itself plus one after a test that it is less than
  // something (so that the sum does not wrap).
  std::optional<std::int64_t> counter_start(Operand value) {
    const BlockId header = function_.inst(value).block;
    const auto& parameters = function_.blocks[header].parameters;
    const auto position =
        static_cast<std::size_t>(std::find(parameters.begin(), parameters.end(), value.index()) - parameters.begin());
    std::int64_t least = small_constant;
    for (BlockId from : cfg_.predecessors[header]) {
      if (!cfg_.reachable(from)) continue;
      for (const Edge& edge : function_.blocks[from].edges) {
        if (edge.target != header) continue;
        const Linear given = linear(edge.arguments[position]);
        if (!given.value.valid()) {
          if (given.constant < 0) return std::nullopt;
          least = std::min(least, given.constant);
        } else if (given.value == value && given.constant == 0) {
          continue;
        } else if (given.value != value || given.constant != 1 || !grows_safely(value, from)) {
          return std::nullopt;
        }
      }
    }
    return least < small_constant ? std::optional(least) : std::nullopt;
  }

  bool grows_safely(Operand value, BlockId from) {
    return on_the_way(from, [&](const Inst& test, bool truth, BlockId) {
      if (test.op == Op::ult_int && truth && test.operands[0] == value) return bound(test.operands[1]).dimension >= 0;
      const auto order = signed_order(test, truth);
      if (!order || order->smaller != value) return false;
      return order->strict || is_less_than_largest(order->larger);
    });
  }

  bool is_less_than_largest(Operand o, int depth = 0) const {
    const Linear l = linear(o);
    if (!l.value.valid()) return l.constant < INT64_MAX;
    if (l.constant > 0 || l.constant < -small_constant) return false;
    if (bound(l.value).dimension >= 0) return true;
    if (l.constant < 0) return is_clamped(l.value);
    const Inst* inst = definition(o);
    return inst && inst->op == Op::select && depth < 4 && is_less_than_largest(inst->operands[1], depth + 1) &&
           is_less_than_largest(inst->operands[2], depth + 1);
  }

  // max(n, 0) and the like, as ranges make of what they end with: at least 0.
  bool is_clamped(Operand o) const {
    const Inst* inst = definition(o);
    if (!inst || inst->op != Op::select) return false;
    const Inst* test = definition(inst->operands[0]);
    if (!test) return false;
    const auto order = signed_order(*test, true);
    const auto other = constant(inst->operands[2]);
    if (!order || !other || *other < 0 || order->larger != inst->operands[1]) return false;
    const auto least = constant(order->smaller);
    return least && *least >= 0;
  }

  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  const Function& function_;
  const Cfg& cfg_;
  Resizes resizing_;
  const bool resizes_;
  BlockId at_ = 0;
  std::int64_t work_ = 0;
  std::vector<std::int32_t> position_;  // by inst: its place in its block
  std::int32_t last_resize_ = -1;       // the same, of the last one that may resize, so far
  std::vector<BoundsProof::Reason> reasons_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> accesses_;
  std::unordered_map<std::uint32_t, std::optional<std::int64_t>> counters_;
};

}  // namespace

BoundsProofs prove_bounds(Runtime& runtime, const Function& function, const Cfg& cfg) {
  BoundsProofs proofs;
  Prover prover(runtime, function, cfg);
  proofs.resizes_ = prover.resizes();
  prover.run(proofs.proofs_);
  return proofs;
}

bool BoundsProofs::has_fixed_length(Runtime& runtime, const Function& function, Operand array) const {
  const std::int64_t rank = rank_of_array(function.type_of(array, runtime.types));
  return rank >= 0 && (rank != 1 || !resizes_);
}

std::string check_bounds_proofs(const Function& function, const Cfg& cfg, const BoundsProofs& proofs) {
  for (BlockId b : cfg.order) {
    std::vector<bool> seen;
    for (std::uint32_t id : function.blocks[b].insts) {
      if (!is_element_access(function.insts[id].op) || !proofs.is_inside(id)) continue;
      for (const BoundsProof::Reason& reason : proofs.of(id).reasons) {
        const BlockId where = reason.behind != no_block ? reason.behind : function.insts[reason.inst].block;
        bool before = cfg.dominates(where, b);
        if (before && reason.behind == no_block && where == b) {
          const auto& insts = function.blocks[b].insts;
          before = std::find(insts.begin(), insts.end(), reason.inst) < std::find(insts.begin(), insts.end(), id);
        }
        if (!before) return "%" + std::to_string(id) + " is not tested, and what makes sure does not come before it";
      }
    }
  }
  return {};
}

std::string print_bounds_proofs(const Function& function, const BoundsProofs& proofs) {
  std::string text;
  for (const Block& block : function.blocks) {
    for (std::uint32_t id : block.insts) {
      if (!is_element_access(function.insts[id].op)) continue;
      text += "  %" + std::to_string(id) + " " + std::string(op_name(function.insts[id].op));
      if (!proofs.is_inside(id)) {
        text += ": tested\n";
        continue;
      }
      text += ": inside, by";
      for (const BoundsProof::Reason& reason : proofs.of(id).reasons) {
        text += reason.behind != no_block ? " the branch to b" + std::to_string(reason.behind)
                                          : " %" + std::to_string(reason.inst);
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace slope::ir
