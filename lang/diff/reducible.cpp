// The reverse sweep of a loop with several exits is a loop with several entries. First-order code runs it as it is.
// Code that is differentiated again must be reducible.
//
// All edges into the entries of such a region are led through one new block, which continues at the entry that a slot
// names. (Arguments of the edges are slots, too.) The regions are the strongly connected components with more than one
// entry. Those with one entry are searched again without it, for the loops inside. A value that no longer dominates its
// uses becomes a slot. In the end promote_slots makes SSA of all slots.
#include "lang/diff/reducible.hpp"

#include <algorithm>
#include <unordered_map>

#include "lang/diff/tangent.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/passes/passes.hpp"

namespace slope::diff {

namespace {

using ir::BlockId;
using ir::Op;
using ir::Operand;

constexpr std::uint32_t unvisited = ~0u;

// Strongly connected components of the blocks in `inside` (Tarjan 1972), without recursion.
class Components {
 public:
  Components(const ir::Cfg& cfg, const std::vector<bool>& inside) : cfg_(cfg), inside_(inside) {
    index_.assign(inside.size(), unvisited);
    low_.assign(inside.size(), 0);
    open_.assign(inside.size(), false);
    for (BlockId b : cfg.order)
      if (inside[b] && index_[b] == unvisited) walk(b);
  }
  std::vector<std::vector<BlockId>> found;

 private:
  struct Frame {
    BlockId block;
    std::size_t next;
  };
  void enter(BlockId b) {
    index_[b] = low_[b] = count_++;
    open_[b] = true;
    stack_.push_back(b);
    frames_.push_back({b, 0});
  }
  void walk(BlockId root) {
    enter(root);
    while (!frames_.empty()) {
      const BlockId b = frames_.back().block;
      if (frames_.back().next < cfg_.successors[b].size()) {
        const BlockId to = cfg_.successors[b][frames_.back().next++];
        if (!inside_[to]) continue;
        if (index_[to] == unvisited)
          enter(to);
        else if (open_[to])
          low_[b] = std::min(low_[b], index_[to]);
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) low_[frames_.back().block] = std::min(low_[frames_.back().block], low_[b]);
      if (low_[b] != index_[b]) continue;
      std::vector<BlockId> component;
      BlockId member = ir::no_block;
      do {
        member = stack_.back();
        stack_.pop_back();
        open_[member] = false;
        component.push_back(member);
      } while (member != b);
      found.push_back(std::move(component));
    }
  }

  const ir::Cfg& cfg_;
  const std::vector<bool>& inside_;
  std::vector<std::uint32_t> index_;
  std::vector<std::uint32_t> low_;
  std::vector<bool> open_;
  std::vector<BlockId> stack_;
  std::vector<Frame> frames_;
  std::uint32_t count_ = 0;
};

// The entries of a region that has more than one; empty: there is none.
std::vector<BlockId> entries_of_region(const ir::Cfg& cfg) {
  std::vector<std::vector<bool>> work{std::vector<bool>(cfg.position.size(), true)};
  while (!work.empty()) {
    const std::vector<bool> inside = std::move(work.back());
    work.pop_back();
    for (const std::vector<BlockId>& component : Components(cfg, inside).found) {
      if (component.size() < 2) continue;
      std::vector<bool> members(inside.size());
      for (BlockId b : component) members[b] = true;
      std::vector<BlockId> entries;
      for (BlockId b : component) {
        bool entered = b == 0;
        for (BlockId p : cfg.predecessors[b]) entered |= cfg.reachable(p) && !members[p];
        if (entered) entries.push_back(b);
      }
      if (entries.size() > 1) return entries;
      if (!entries.empty()) members[entries[0]] = false;
      work.push_back(std::move(members));
    }
  }
  return {};
}

class Dispatching {
 public:
  Dispatching(ir::Function& function, Runtime& runtime) : function_(function), runtime_(runtime), builder_(function) {}

  void run() {
    for (;;) {
      const std::vector<BlockId> entries = entries_of_region(ir::build_cfg(function_));
      if (entries.empty()) break;
      dispatch(entries);
    }
    keep_in_slots();
    std::unordered_map<const Type*, Operand> undefined;
    ir::promote_slots(function_, &runtime_.types.builtin(),
                      [&](std::uint32_t slot) { return undefined_of(function_.slot_types[slot], undefined); });
  }

 private:
  std::uintptr_t new_slot(const Type* type) {
    function_.slots.push_back(runtime_.symbol("#dispatch"));
    function_.slot_types.push_back(type);
    return function_.slots.size() - 1;
  }

  Operand undefined_of(const Type* type, std::unordered_map<const Type*, Operand>& known) {
    auto [found, fresh] = known.try_emplace(type);
    if (!fresh) return found->second;
    if (Value value = tangent_types(runtime_).stand_ins.of(type); value.defined())
      return found->second = function_.constant(value);
    ir::Inst inst;
    inst.op = Op::undef;
    inst.type = type;
    inst.block = 0;
    const auto id = static_cast<std::uint32_t>(function_.insts.size());
    function_.insts.push_back(std::move(inst));
    function_.blocks[0].insts.insert(function_.blocks[0].insts.begin(), id);
    return found->second = Operand::inst(id);
  }

  void dispatch(const std::vector<BlockId>& entries) {
    const BuiltinTypes& builtin = runtime_.types.builtin();
    const std::uintptr_t chosen = new_slot(builtin.int64);
    std::vector<std::vector<std::uintptr_t>> passed(entries.size());
    for (std::size_t k = 0; k < entries.size(); ++k)
      for (std::uint32_t id : function_.blocks[entries[k]].parameters)
        passed[k].push_back(new_slot(function_.insts[id].type));
    const auto blocks = static_cast<BlockId>(function_.blocks.size());
    const BlockId hub = builder_.new_block();
    for (BlockId b = 0; b < blocks; ++b)
      for (std::size_t e = 0; e < function_.blocks[b].edges.size(); ++e) {
        const ir::Edge edge = function_.blocks[b].edges[e];
        const auto at = std::find(entries.begin(), entries.end(), edge.target);
        if (at == entries.end()) continue;
        const auto k = static_cast<std::size_t>(at - entries.begin());
        const BlockId way = builder_.new_block();
        builder_.set_block(way);
        for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
          const Operand o = edge.arguments[i];
          // Nothing is assigned where nothing was passed.
          if (o.is_constant() && !function_.constant_value(o).defined()) continue;
          set(passed[k][i], o);
        }
        set(chosen, builder_.constant(runtime_.from_int(static_cast<std::int64_t>(k))));
        builder_.jump(hub);
        function_.blocks[b].edges[e] = {way, {}};
      }
    std::vector<ir::Edge> ways;
    for (std::size_t k = 0; k < entries.size(); ++k) {
      const BlockId way = builder_.new_block();
      builder_.set_block(way);
      std::vector<Operand> arguments;
      for (std::size_t i = 0; i < passed[k].size(); ++i)
        arguments.push_back(builder_.emit(Op::slot_get, {}, function_.slot_types[passed[k][i]], passed[k][i]));
      builder_.jump(entries[k], arguments);
      ways.push_back({way, {}});
    }
    builder_.set_block(hub);
    const Operand which = builder_.emit(Op::slot_get, {}, builtin.int64, chosen);
    if (ways.size() == 2) {
      const Operand first =
          builder_.emit(Op::eq_int, {which, builder_.constant(runtime_.from_int(0))}, builtin.boolean);
      builder_.branch(first, ways[0].target, ways[1].target);
    } else {
      builder_.switch_int(which, ways);
    }
  }

  void set(std::uintptr_t slot, Operand o) {
    const Operand made = builder_.emit(Op::slot_set, {o}, runtime_.types.builtin().nothing, slot);
    (void)made;
  }

  // What does not dominate its uses any more goes through a slot.
  void keep_in_slots() {
    const ir::Cfg cfg = ir::build_cfg(function_);
    const std::size_t insts = function_.insts.size();
    std::vector<std::uintptr_t> slot_of(insts, ~std::uintptr_t{0});
    auto use = [&](BlockId b, Operand& o, std::vector<std::uint32_t>& before) {
      if (!o.is_inst() || o.index() >= insts) return;
      const ir::Inst& made = function_.insts[o.index()];
      if (made.block == ir::no_block || made.block == b || cfg.dominates(made.block, b)) return;
      if (slot_of[o.index()] == ~std::uintptr_t{0})
        slot_of[o.index()] = new_slot(made.type ? made.type : runtime_.types.builtin().any);
      ir::Inst get;
      get.op = Op::slot_get;
      get.aux = slot_of[o.index()];
      get.type = function_.slot_types[get.aux];
      get.block = b;
      o = Operand::inst(static_cast<std::uint32_t>(function_.insts.size()));
      before.push_back(o.index());
      function_.insts.push_back(std::move(get));
    };
    for (BlockId b : cfg.order) {
      std::vector<std::uint32_t> list;
      for (std::uint32_t id : std::vector<std::uint32_t>(function_.blocks[b].insts)) {
        std::vector<Operand> operands = function_.insts[id].operands;
        for (Operand& o : operands) use(b, o, list);
        function_.insts[id].operands = std::move(operands);
        list.push_back(id);
      }
      if (const std::uint32_t end = function_.blocks[b].terminator; end != ~0u) {
        std::vector<Operand> operands = function_.insts[end].operands;
        for (Operand& o : operands) use(b, o, list);
        function_.insts[end].operands = std::move(operands);
      }
      for (ir::Edge& edge : function_.blocks[b].edges)
        for (Operand& o : edge.arguments) use(b, o, list);
      function_.blocks[b].insts = std::move(list);
    }
    for (BlockId b : cfg.order) {
      std::vector<std::uint32_t> list;
      auto keep = [&](std::uint32_t id) {
        if (id >= insts || slot_of[id] == ~std::uintptr_t{0}) return;
        ir::Inst put;
        put.op = Op::slot_set;
        put.aux = slot_of[id];
        put.operands = {Operand::inst(id)};
        put.type = runtime_.types.builtin().nothing;
        put.block = b;
        list.push_back(static_cast<std::uint32_t>(function_.insts.size()));
        function_.insts.push_back(std::move(put));
      };
      for (std::uint32_t id : function_.blocks[b].parameters) keep(id);
      for (std::uint32_t id : function_.blocks[b].insts) {
        list.push_back(id);
        keep(id);
      }
      function_.blocks[b].insts = std::move(list);
    }
  }

  ir::Function& function_;
  Runtime& runtime_;
  ir::Builder builder_;
};

}  // namespace

bool make_reducible(ir::Function& function, Runtime& runtime) {
  for (const ir::Block& block : function.blocks)
    if (block.handler != ir::no_block) return false;
  if (!function.slots.empty()) return false;
  Dispatching(function, runtime).run();
  return true;
}

}  // namespace slope::diff
