// Control-flow clean-up, to a fixed point of these rewrites:
//   a branch on a constant, or with equal edges          → a jump
//   check_defined of false                               → the end of its block; of true: removed
//   an edge into a block that only jumps                 → an edge to the target of that jump
//   a jump to a block that nothing else enters           → one block
//   a parameter with the same value from all edges       → that value; unused parameters are removed
//   parameters that only give each other one value       → that value
// A block that lowering marked as a loop's header stays the only entry of its loop: it is never threaded away.
#include <algorithm>

#include "lang/ir/passes/passes.hpp"
#include "lang/support/tuning.hpp"
#include "lang/types/module.hpp"
#include "lang/types/symbol.hpp"

namespace slope::ir {

namespace {

bool is_bool(Value v) {
  const DataType* type = as_data(v.type);
  return type && type->size == 1 && type->storage == Storage::bits && type->name->name->name == "Bool" &&
         type->name->is_primitive && (!type->name->module || type->name->module->name->name == "Core");
}

bool equal_edges(const Edge& a, const Edge& b) { return a.target == b.target && a.arguments == b.arguments; }

class Simplifier {
 public:
  explicit Simplifier(Function& function) : function_(function) {}

  void run() {
    for (int round = 0; round < tuning::simplify_rounds; ++round) {
      bool changed = fold_branches();
      remove_unreachable_blocks(function_);
      replacement_.assign(function_.insts.size(), Operand{});
      changed |= thread_jumps();
      changed |= merge_lines();
      replace_all_uses(function_, replacement_);
      remove_unreachable_blocks(function_);
      replacement_.assign(function_.insts.size(), Operand{});
      changed |= drop_parameters();
      replacement_.assign(function_.insts.size(), Operand{});
      changed |= drop_cycles();
      if (!changed) break;
    }
  }

 private:
  void make_jump(Block& block, Edge edge) {
    Inst& inst = function_.insts[block.terminator];
    inst.op = Op::jump;
    inst.operands.clear();
    block.edges.clear();
    block.edges.push_back(std::move(edge));
  }

  bool cut_after_failing_check(Block& block) {
    for (std::size_t i = 0; i < block.insts.size(); ++i) {
      const Inst& inst = function_.insts[block.insts[i]];
      if (inst.op != Op::check_defined || !inst.operands[0].is_constant()) continue;
      Value flag = function_.constant_value(inst.operands[0]);
      if (!is_bool(flag)) continue;
      if (flag.bits) {
        function_.insts[block.insts[i]].block = no_block;
        block.insts.erase(block.insts.begin() + static_cast<std::ptrdiff_t>(i--));
        continue;
      }
      Inst& end = function_.insts[block.terminator];
      if (i + 1 == block.insts.size() && end.op == Op::unreachable) return false;
      for (std::size_t k = i + 1; k < block.insts.size(); ++k) function_.insts[block.insts[k]].block = no_block;
      block.insts.resize(i + 1);
      end.op = Op::unreachable;
      end.operands.clear();
      block.edges.clear();
      return true;
    }
    return false;
  }

  bool fold_branches() {
    bool changed = false;
    for (Block& block : function_.blocks) {
      changed |= cut_after_failing_check(block);
      if (block.terminator == ~0u || block.edges.empty()) continue;
      const Inst& inst = function_.insts[block.terminator];
      if (inst.op == Op::branch && inst.operands[0].is_constant()) {
        Value condition = function_.constant_value(inst.operands[0]);
        if (!is_bool(condition)) continue;  // a TypeError when it runs
        make_jump(block, std::move(block.edges[condition.bits ? 0 : 1]));
        changed = true;
      } else if (inst.op == Op::switch_int && inst.operands[0].is_constant()) {
        std::uint64_t k = static_cast<std::uint64_t>(function_.constant_value(inst.operands[0]).bits);
        make_jump(block, std::move(block.edges[std::min<std::uint64_t>(k, block.edges.size() - 1)]));
        changed = true;
      } else if (inst.op == Op::switch_int || (inst.op == Op::branch && function_.typed)) {
        // Untyped, a branch is also a test that its condition is a Bool.
        bool equal = std::all_of(block.edges.begin() + 1, block.edges.end(),
                                 [&](const Edge& edge) { return equal_edges(edge, block.edges[0]); });
        if (!equal || block.edges.size() < 2) continue;
        make_jump(block, std::move(block.edges[0]));
        changed = true;
      }
    }
    return changed;
  }

  // Blocks that do nothing but jump, and whose parameters nobody else reads.
  bool thread_jumps() {
    std::size_t count = function_.blocks.size();
    std::vector<bool> empty(count);
    std::vector<bool> is_handler(count);
    for (BlockId b = 0; b < count; ++b) {
      const Block& block = function_.blocks[b];
      if (block.handler != no_block) is_handler[block.handler] = true;
      empty[b] = b != 0 && block.insts.empty() && !block.is_loop_header && block.terminator != ~0u &&
                 function_.insts[block.terminator].op == Op::jump && block.edges[0].target != b;
    }
    auto used_in = [&](BlockId user, Operand o) {
      if (!o.is_inst()) return;
      const Inst& inst = function_.insts[o.index()];
      if (inst.op == Op::parameter && inst.block != user && inst.block != no_block) empty[inst.block] = false;
    };
    for (BlockId b = 0; b < count; ++b) {
      const Block& block = function_.blocks[b];
      for (std::uint32_t id : block.insts)
        for (Operand o : function_.insts[id].operands) used_in(b, o);
      if (block.terminator != ~0u)
        for (Operand o : function_.insts[block.terminator].operands) used_in(b, o);
      for (const Edge& edge : block.edges)
        for (Operand o : edge.arguments) used_in(b, o);
    }
    bool changed = false;
    for (BlockId b = 0; b < count; ++b) {
      if (empty[b] && !is_handler[b]) continue;  // goes away
      Block& block = function_.blocks[b];
      for (std::size_t e = 0; e < block.edges.size(); ++e) {
        for (int hops = 0; hops < 16 && empty[block.edges[e].target] && block.edges[e].target != b; ++hops) {
          const Block& through = function_.blocks[block.edges[e].target];
          Edge next = through.edges[0];
          for (Operand& o : next.arguments) {
            auto position = std::find_if(through.parameters.begin(), through.parameters.end(),
                                         [&](std::uint32_t id) { return o == Operand::inst(id); });
            if (position != through.parameters.end())
              o = block.edges[e].arguments[static_cast<std::size_t>(position - through.parameters.begin())];
          }
          // Two edges from one block to the same block must bring the same, or code generation had to split them again.
          bool clash = false;
          for (std::size_t other = 0; other < block.edges.size(); ++other)
            clash |= other != e && block.edges[other].target == next.target && !equal_edges(block.edges[other], next);
          if (clash) break;
          block.edges[e] = std::move(next);
          changed = true;
        }
      }
    }
    return changed;
  }

  bool merge_lines() {
    std::vector<std::uint32_t> entries(function_.blocks.size());
    for (const Block& block : function_.blocks) {
      for (const Edge& edge : block.edges) ++entries[edge.target];
      if (block.handler != no_block) entries[block.handler] += 2;  // what several exceptions enter
    }
    // A block that just lost its last entry by threading still counts its own edges; the next round sees that.
    bool changed = false;
    for (BlockId b = 0; b < function_.blocks.size(); ++b) {
      for (;;) {
        Block& block = function_.blocks[b];
        if (block.terminator == ~0u || function_.insts[block.terminator].op != Op::jump) break;
        BlockId next = block.edges[0].target;
        if (next == b || next == 0 || entries[next] != 1 || function_.blocks[next].handler != block.handler) break;
        Block merged = std::move(function_.blocks[next]);
        function_.blocks[next] = Block{};
        for (std::size_t i = 0; i < merged.parameters.size(); ++i)
          replacement_[merged.parameters[i]] = block.edges[0].arguments[i];
        for (std::uint32_t id : merged.insts) {
          function_.insts[id].block = b;
          block.insts.push_back(id);
        }
        function_.insts[block.terminator].block = no_block;
        block.terminator = merged.terminator;
        if (block.terminator != ~0u) function_.insts[block.terminator].block = b;
        block.edges = std::move(merged.edges);
        entries[next] = 0;
        changed = true;
      }
    }
    return changed;
  }

  bool drop_parameters() {
    std::vector<std::vector<Edge*>> incoming(function_.blocks.size());
    std::vector<std::uint32_t> uses(function_.insts.size());
    auto use = [&](Operand o) {
      if (o.is_inst()) ++uses[o.index()];
    };
    for (Block& block : function_.blocks) {
      for (std::uint32_t id : block.insts)
        for (Operand o : function_.insts[id].operands) use(o);
      if (block.terminator != ~0u)
        for (Operand o : function_.insts[block.terminator].operands) use(o);
      for (Edge& edge : block.edges) {
        incoming[edge.target].push_back(&edge);
        for (Operand o : edge.arguments) use(o);
      }
    }
    auto resolve = [&](Operand o) {
      while (o.is_inst() && replacement_[o.index()].valid()) o = replacement_[o.index()];
      return o;
    };
    bool changed = false;
    for (BlockId b = 1; b < function_.blocks.size(); ++b) {
      Block& block = function_.blocks[b];
      for (std::size_t i = block.parameters.size(); i-- > 0;) {
        Operand self = Operand::inst(block.parameters[i]);
        Operand only;
        bool same = true;
        for (Edge* edge : incoming[b]) {
          Operand o = resolve(edge->arguments[i]);
          if (o == self || o == only) continue;
          same = !only.valid();
          only = o;
          if (!same) break;
        }
        bool unused = uses[self.index()] == 0;
        if (!unused && (!same || !only.valid())) continue;
        // The undefined value may stand in edge arguments only.
        if (!unused && only.is_constant() && !function_.constant_value(only).defined()) continue;
        if (!unused) {
          replacement_[self.index()] = only;
          if (only.is_inst()) uses[only.index()] += uses[self.index()];
        }
        for (Edge* edge : incoming[b]) {
          if (edge->arguments[i].is_inst()) --uses[edge->arguments[i].index()];
          edge->arguments.erase(edge->arguments.begin() + static_cast<std::ptrdiff_t>(i));
        }
        function_.insts[self.index()].block = no_block;
        block.parameters.erase(block.parameters.begin() + static_cast<std::ptrdiff_t>(i));
        changed = true;
      }
    }
    if (changed) replace_all_uses(function_, replacement_);
    return changed;
  }

  // Parameters that change places in a loop, as the cotangents of running sums do, and start with the same value.
  bool drop_cycles() {
    std::vector<std::vector<Edge*>> incoming(function_.blocks.size());
    for (Block& block : function_.blocks)
      for (Edge& edge : block.edges) incoming[edge.target].push_back(&edge);
    bool changed = false;
    for (BlockId b = 1; b < function_.blocks.size(); ++b)
      while (function_.blocks[b].parameters.size() > 1 && drop_cycle(b, incoming[b])) changed = true;
    if (changed) replace_all_uses(function_, replacement_);
    return changed;
  }

  bool drop_cycle(BlockId b, const std::vector<Edge*>& incoming) {
    std::vector<std::uint32_t>& parameters = function_.blocks[b].parameters;
    const std::size_t count = parameters.size();
    auto position = [&](Operand o) {
      if (!o.is_inst() || function_.insts[o.index()].op != Op::parameter || function_.insts[o.index()].block != b)
        return count;
      return static_cast<std::size_t>(std::find(parameters.begin(), parameters.end(), o.index()) - parameters.begin());
    };
    // Those that get another of them, and at most one value from elsewhere.
    std::vector<bool> candidate(count);
    std::vector<Operand> outside(count);
    for (std::size_t i = 0; i < count; ++i) {
      bool inside = false, one = true;
      for (const Edge* edge : incoming) {
        Operand o = edge->arguments[i];
        const std::size_t from = position(o);
        inside |= from != count && from != i;
        if (from != count || o == outside[i]) continue;
        one &= !outside[i].valid();
        outside[i] = o;
      }
      candidate[i] = inside && one;
    }
    for (std::size_t first = 0; first < count; ++first) {
      const Operand value = outside[first];
      if (!candidate[first] || !value.valid()) continue;
      if (value.is_constant() && !function_.constant_value(value).defined()) continue;
      std::vector<bool> member(count);
      for (std::size_t i = 0; i < count; ++i) member[i] = candidate[i] && (!outside[i].valid() || outside[i] == value);
      for (bool left = true; left;) {
        left = false;
        for (std::size_t i = 0; i < count; ++i) {
          if (!member[i]) continue;
          for (const Edge* edge : incoming) {
            const std::size_t from = position(edge->arguments[i]);
            if (from == count || from == i || member[from]) continue;
            member[i] = false;
            left = true;
            break;
          }
        }
      }
      if (!member[first]) continue;
      for (std::size_t i = count; i-- > 0;) {
        if (!member[i]) continue;
        replacement_[parameters[i]] = value;
        function_.insts[parameters[i]].block = no_block;
        for (Edge* edge : incoming) edge->arguments.erase(edge->arguments.begin() + static_cast<std::ptrdiff_t>(i));
        parameters.erase(parameters.begin() + static_cast<std::ptrdiff_t>(i));
      }
      return true;
    }
    return false;
  }

  Function& function_;
  std::vector<Operand> replacement_;
};

}  // namespace

void simplify_cfg(Function& function) {
  if (!function.blocks.empty()) Simplifier(function).run();
}

}  // namespace slope::ir
