#include "lang/diff/normal_form.hpp"

#include <algorithm>

#include "lang/diff/operations.hpp"
#include "lang/diff/record_seal.hpp"
#include "lang/diff/reducible.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/diff/tuple_reads.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/cfg.hpp"
#include "lang/ir/passes/checked.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::diff {

namespace {

using ir::BlockId;
using ir::Op;
using ir::Operand;

void unify_returns(ir::Function& function) {
  std::vector<BlockId> returns;
  for (BlockId b = 0; b < function.blocks.size(); ++b)
    if (function.insts[function.blocks[b].terminator].op == Op::ret) returns.push_back(b);
  if (returns.size() < 2) return;
  ir::Builder builder(function);
  BlockId exit = builder.new_block();
  Operand result = builder.add_parameter(exit, function.return_type);
  builder.set_block(exit);
  builder.ret(result);
  for (BlockId b : returns) {
    ir::Block& block = function.blocks[b];
    ir::Inst& terminator = function.insts[block.terminator];
    Operand value = terminator.operands[0];
    terminator.op = Op::jump;
    terminator.operands.clear();
    block.edges = {ir::Edge{exit, {value}}};
  }
}

// Sends the given edges into `target` through one new block. It has a parameter for what they do not all pass alike:
// what a counter starts from stays in sight.
void merge_edges(ir::Function& function, BlockId target, const std::vector<BlockId>& sources) {
  ir::Builder builder(function);
  BlockId merged = builder.new_block();
  std::vector<ir::Edge*> edges;
  for (BlockId source : sources)
    for (ir::Edge& edge : function.blocks[source].edges)
      if (edge.target == target) edges.push_back(&edge);
  std::vector<Operand> passed = edges[0]->arguments;
  std::vector<bool> alike(passed.size(), true);
  for (const ir::Edge* edge : edges)
    for (std::size_t i = 0; i < passed.size(); ++i)
      if (edge->arguments[i] != passed[i] || (edges.size() > 1 && passed[i].is_inst())) alike[i] = false;
  for (ir::Edge* edge : edges) {
    std::vector<Operand> kept;
    for (std::size_t i = 0; i < passed.size(); ++i)
      if (!alike[i]) kept.push_back(edge->arguments[i]);
    edge->target = merged;
    edge->arguments = std::move(kept);
  }
  const std::vector<std::uint32_t> parameters = function.blocks[target].parameters;
  for (std::size_t i = 0; i < passed.size(); ++i)
    if (!alike[i]) passed[i] = builder.add_parameter(merged, function.insts[parameters[i]].type);
  builder.set_block(merged);
  builder.jump(target, passed);
}

// One latch and one entering edge a loop. True when something changed.
bool simplify_one_loop(ir::Function& function) {
  ir::Cfg cfg = ir::build_cfg(function);
  ir::LoopForest forest = ir::find_loops(function, cfg);
  for (const ir::Loop& loop : forest.loops) {
    std::vector<BlockId> latches;
    std::vector<BlockId> entries;
    std::size_t latch_edges = 0;
    std::size_t entry_edges = 0;
    for (BlockId p = 0; p < function.blocks.size(); ++p) {
      if (!cfg.reachable(p)) continue;
      std::size_t edges =
          static_cast<std::size_t>(std::count_if(function.blocks[p].edges.begin(), function.blocks[p].edges.end(),
                                                 [&](const ir::Edge& edge) { return edge.target == loop.header; }));
      if (!edges) continue;
      bool inside = std::find(loop.blocks.begin(), loop.blocks.end(), p) != loop.blocks.end();
      (inside ? latches : entries).push_back(p);
      (inside ? latch_edges : entry_edges) += edges;
    }
    if (latch_edges > 1) {
      merge_edges(function, loop.header, latches);
      return true;
    }
    // The block before the loop must be the loop's own: it opens tapes and remembers where the rows of this entry
    // start.
    bool own = entry_edges == 1 && function.blocks[entries[0]].edges.size() == 1;
    if (!own) {
      merge_edges(function, loop.header, entries);
      return true;
    }
  }
  return false;
}

// f(a, v..., b) with groups that are not known to be tuples: the groups become tuples first (Base.splat_tuple), then it
// is a call like any other, of Base.call_with_groups.
void group_splats(ir::Function& function, Runtime& runtime) {
  Binding* whole = library_binding(runtime, KnownName::call_with_groups);
  Binding* group = library_binding(runtime, KnownName::splat_tuple);
  if (!whole || !group) return;
  for (BlockId b = 0; b < function.blocks.size(); ++b) {
    std::vector<std::uint32_t> insts;
    for (std::uint32_t id : function.blocks[b].insts) {
      if (function.insts[id].op == Op::call_splat) {
        const ir::Inst splat = function.insts[id];
        auto add = [&](Op op, std::vector<Operand> operands, const Type* type) {
          ir::Inst made = splat;
          made.op = op;
          made.operands = std::move(operands);
          made.type = type;
          made.aux = 0;
          made.flags = 0;
          std::uint32_t at = static_cast<std::uint32_t>(function.insts.size());
          function.insts.push_back(std::move(made));
          insts.push_back(at);
          return Operand::inst(at);
        };
        const BuiltinTypes& builtin = runtime.types.builtin();
        std::vector<Operand> operands{function.constant(whole->value), splat.operands[0]};
        for (std::size_t i = 1; i < splat.operands.size(); ++i) {
          Operand o = splat.operands[i];
          if (splat.aux >> i & 1) {
            const DataType* known = as_data(function.type_of(o, runtime.types));
            operands.push_back(known && known->is_concrete && known->is_tuple
                                   ? o
                                   : add(Op::call, {function.constant(group->value), o}, builtin.any));
          } else {
            const Type* element[] = {function.type_of(o, runtime.types)};
            operands.push_back(add(Op::tuple, {o}, runtime.types.tuple(element)));
          }
        }
        ir::Inst& inst = function.insts[id];
        inst.op = Op::call;
        inst.aux = 0;
        inst.operands = std::move(operands);
      }
      insts.push_back(id);
    }
    function.blocks[b].insts = std::move(insts);
  }
}

// An expression that holds what may carry a derivative is an object with a vector of anything.
void spell_expressions_out(ir::Function& function, Runtime& runtime) {
  const BuiltinTypes& builtin = runtime.types.builtin();
  TangentTypes& tangents = tangent_types(runtime);
  for (ir::Block& block : function.blocks) {
    std::vector<std::uint32_t> insts;
    for (const std::uint32_t id : block.insts) {
      const ir::Inst whole = function.insts[id];
      const bool holds =
          whole.op == Op::expr && std::any_of(whole.operands.begin() + 1, whole.operands.end(), [&](Operand o) {
            return tangents.differentiable(function.type_of(o, runtime.types));
          });
      if (holds) {
        const auto add = [&](Op op, std::vector<Operand> operands, const Type* type) {
          ir::Inst made = whole;
          made.op = op;
          made.operands = std::move(operands);
          made.type = type;
          insts.push_back(static_cast<std::uint32_t>(function.insts.size()));
          function.insts.push_back(std::move(made));
          return Operand::inst(insts.back());
        };
        const auto number = [&](std::size_t n) {
          return function.constant(runtime.from_int(static_cast<std::int64_t>(n)));
        };
        const Type* vector = runtime.types.array_of(builtin.any, 1);
        const Operand parts = add(
            Op::array_new, {function.constant(runtime.from_type(vector)), number(whole.operands.size() - 1)}, vector);
        for (std::size_t i = 1; i < whole.operands.size(); ++i)
          add(Op::array_set, {parts, whole.operands[i], number(i)}, builtin.nothing);
        ir::Inst& inst = function.insts[id];
        inst.op = Op::make_struct;
        inst.operands = {function.constant(runtime.from_type(builtin.expr)), whole.operands[0], parts};
      }
      insts.push_back(id);
    }
    block.insts = std::move(insts);
  }
}

// Builtins that are differentiated as functions of the standard library: what derivatives of calls whose target is not
// known are made of, pullbacks, a tuple of an array's elements.
void replace_builtins(ir::Function& function, Runtime& runtime) {
  static constexpr std::pair<std::string_view, KnownName> written_out[] = {
      {"dynamic_forward", KnownName::dynamic_forward_again},   {"dynamic_reverse", KnownName::dynamic_reverse_again},
      {"dynamic_tangent", KnownName::dynamic_tangent_again},   {"pullback_forward", KnownName::pullback_forward_again},
      {"pullback_reverse", KnownName::pullback_reverse_again}, {"tuple_from_array", KnownName::tuple_of_elements},
  };
  for (ir::Block& block : function.blocks)
    for (std::uint32_t id : block.insts) {
      if (function.insts[id].op != Op::native) continue;
      std::string_view name = function.insts[id].aux_as<const NativeInfo>()->name;
      if (name == "invoke_latest") {  // what it calls is found when it runs, as in a derivative
        function.insts[id].op = Op::call;
        function.insts[id].aux = 0;
        function.insts[id].flags = 0;
        continue;
      }
      for (const auto& [builtin, by] : written_out) {
        if (name != builtin) continue;
        Binding* binding = library_binding(runtime, by);
        if (!binding || !binding->value.defined()) break;
        Operand callee = function.constant(binding->value);
        ir::Inst& inst = function.insts[id];
        inst.op = Op::call;
        inst.aux = 0;
        inst.flags = 0;
        inst.operands.insert(inst.operands.begin(), callee);
        break;
      }
    }
}

// Whether a checkpointed call may be run again depends on what it is differentiated for (lang/derive/natives/checkpoint.cpp).
void choose_roads(ir::Function& function, Runtime& runtime) {
  for (ir::Block& block : function.blocks)
    for (std::uint32_t id : block.insts) {
      ir::Inst& inst = function.insts[id];
      if (inst.op != Op::native) continue;
      const std::string_view name = inst.aux_as<const NativeInfo>()->name;
      const bool once = name == "recomputable";
      if (!once && name != "recomputable_once") continue;
      const Value next = runtime.core->find(runtime.symbol(once ? "recomputable_once" : "recomputable_again"))->value;
      inst.aux = reinterpret_cast<std::uintptr_t>(next.pointer);
    }
}

// A variable without a value yet, passed on to a block, becomes a value of that block's type which nobody looks at:
// derivatives save it and put it back like any other.
void define_undefined(ir::Function& function, Runtime& runtime) {
  for (BlockId b = 0; b < function.blocks.size(); ++b) {
    for (std::size_t e = 0; e < function.blocks[b].edges.size(); ++e) {
      for (std::size_t i = 0; i < function.blocks[b].edges[e].arguments.size(); ++i) {
        ir::Operand& passed = function.blocks[b].edges[e].arguments[i];
        const ir::Edge& edge = function.blocks[b].edges[e];
        const Type* type = function.insts[function.blocks[edge.target].parameters[i]].type;
        if (!type || !passed.is_constant() || function.constant_value(passed).defined()) continue;
        if (Value value = tangent_types(runtime).stand_ins.of(type); value.defined()) {
          passed = function.constant(value);
          continue;
        }
        ir::Inst inst;
        inst.op = Op::undef;
        inst.type = type;
        inst.block = b;
        const auto id = static_cast<std::uint32_t>(function.insts.size());
        function.insts.push_back(std::move(inst));
        function.blocks[b].insts.push_back(id);
        passed = ir::Operand::inst(id);
      }
    }
  }
}

// A derivative that is differentiated again keeps no states of rules for later calls: the outer reverse sweep may still
// want what they hold. Each call has one made, which is garbage after. Nor are its records sealed: what is around it is.
void drop_rule_states(ir::Function& function, Runtime& runtime) {
  std::vector<Operand> replacement(function.insts.size());
  bool any = false;
  for (ir::Block& block : function.blocks)
    std::erase_if(block.insts, [&](std::uint32_t id) {
      const ir::Inst& inst = function.insts[id];
      if (inst.op != Op::native) return false;
      const auto* native = inst.aux_as<const NativeInfo>();
      if (native == &record_seal_native || native == &record_check_native) {
        replacement[id] = native == &record_check_native ? inst.operands[0] : function.constant(runtime.from_int(0));
        return any = true;
      }
      std::string_view name = native->name;
      if (name != "take_rule_state" && name != "give_rule_state") return false;
      replacement[id] = function.constant(runtime.nothing());
      return any = true;
    });
  if (any) ir::replace_all_uses(function, replacement);
}

}  // namespace

bool normalise(ir::Function& function, Runtime& runtime, World world, Refusal& refusal, MemoryEffects* memory) {
  ir::remove_unreachable_blocks(function);
  group_splats(function, runtime);
  spell_expressions_out(function, runtime);
  replace_builtins(function, runtime);
  choose_roads(function, runtime);
  close_kept_levels(function, runtime);
  if (memory) follow_exceptions(function, runtime, world, *memory);
  if (!function.slots.empty()) ir::promote_slots(function, &runtime.types.builtin());
  if (!ir::find_loops(function, ir::build_cfg(function)).reducible) make_reducible(function, runtime);
  define_undefined(function, runtime);
  expand_tuple_reads(function, runtime);
  drop_rule_states(function, runtime);
  // The entry is never a loop header, so that what is made before everything else has a place.
  ir::Cfg cfg = ir::build_cfg(function);
  ir::LoopForest forest = ir::find_loops(function, cfg);
  if (!forest.reducible && !memory) {  // handlers stay; forward mode goes along any graph
    unify_returns(function);
    ir::check_after(function, "normalisation", ir::Typing::partial);
    return true;
  }
  if (!forest.reducible) {
    refusal.span = function.span;
    refusal.method = function.method;
    refusal.reason = "a loop with more than one entry, with a `try` in it, cannot be differentiated";
    return false;
  }
  unify_returns(function);
  while (simplify_one_loop(function)) {
  }
  ir::check_after(function, "normalisation", ir::Typing::partial);
  return true;
}

}  // namespace slope::diff
