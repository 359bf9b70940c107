#include "lang/derive/segments.hpp"

#include <algorithm>

#include "lang/derive/derivatives.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/continuation.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

using ir::BlockId;
using ir::Op;
using ir::Operand;

namespace {

bool is_half(Runtime& runtime, const ir::Inst& inst) {
  return inst.op == Op::invoke && diff::tangent_types(runtime).is_forward_half(inst.aux_as<Specialization>());
}

// Values that are no state: what they stand for ends with its use (tapes, levels of kept memory, records for reverse
// halves), so that a segment that is run again would find it used; variables that have no value yet.
class NoState {
 public:
  NoState(Runtime& runtime, const ir::Function& function)
      : runtime_(runtime), function_(function), found_(function.insts.size()) {
    const Value pullback = library_value(runtime, KnownName::pullback_type);
    for (std::uint32_t id = 0; id < found_.size(); ++id) {
      const ir::Inst& inst = function.insts[id];
      found_[id] = inst.op == Op::undef || inst.type == runtime.types.builtin().tape || opens_level(inst) ||
                   is_half(runtime, inst) ||
                   (inst.type && inst.type->kind == TypeKind::data && pullback.defined() &&
                    is_subtype(runtime.types, inst.type, pullback.as_type));
    }
    while (spread()) continue;
  }
  bool contains(std::uint32_t id) const { return found_[id]; }

 private:
  bool contains(Operand o) const { return o.is_inst() ? found_[o.index()] : !function_.constant_value(o).defined(); }
  bool holds(const ir::Inst& inst) const {
    switch (inst.op) {
      case Op::field_at:  // (value, shadow, record)
        if (inst.operands[0].is_inst() && is_half(runtime_, function_.inst(inst.operands[0]))) return inst.aux == 2;
        [[fallthrough]];
      case Op::tuple:
      case Op::make_struct:
      case Op::select:
      case Op::type_assert:
        return std::any_of(inst.operands.begin(), inst.operands.end(), [&](Operand o) { return contains(o); });
      default:
        return false;
    }
  }
  bool spread() {
    bool more = false;
    const auto add = [&](std::uint32_t id) {
      more |= !found_[id];
      found_[id] = true;
    };
    for (const ir::Block& block : function_.blocks) {
      for (std::uint32_t id : block.insts)
        if (!found_[id] && holds(function_.insts[id])) add(id);
      for (const ir::Edge& edge : block.edges)
        for (std::size_t i = 0; i < edge.arguments.size(); ++i)
          if (contains(edge.arguments[i])) add(function_.blocks[edge.target].parameters[i]);
    }
    return more;
  }

  Runtime& runtime_;
  const ir::Function& function_;
  std::vector<bool> found_;
};

}  // namespace

Segments::Program* Segments::program(Context& ctx, Specialization& target) {
  std::shared_ptr<const ir::Function> primal = derivatives_.primals.kept_primal(ctx, target);
  if (!primal) return nullptr;
  Program& known = programs_[&target];
  if (known.primal == primal) return &known;
  known = {};
  known.primal = primal;
  known.forest = ir::find_loops(*primal, ir::build_cfg(*primal));
  if (!known.forest.reducible || !primal->slots.empty()) known.forest.loops.clear();
  const NoState no_state(derivatives_.runtime, *primal);
  const auto is_open = [&](std::uint32_t id) { return no_state.contains(id); };
  for (const ir::Loop& loop : known.forest.loops) {
    std::vector<std::uint32_t> live = ir::live_at_loop(*primal, loop.header).insts;
    // The parameters of the primal are told anyway.
    std::erase_if(
        live, [&](std::uint32_t id) { return primal->insts[id].op == Op::parameter && primal->insts[id].block == 0; });
    known.is_cut.push_back((loop.parent == ~0u || known.is_cut[loop.parent]) &&
                           std::none_of(live.begin(), live.end(), is_open));
    known.live.push_back(std::move(live));
  }
  std::vector<char> asked(primal->blocks[0].parameters.size(), 1);
  asked[0] = 0;
  diff::Refusal refusal;
  diff::TangentTypes& tangents = diff::tangent_types(derivatives_.runtime);
  // Where it is refused here, it is by the segment that it lies in.
  if (!diff::analyse_activity(*primal, tangents, derivatives_.memory(ctx), ctx.world, asked, nullptr, known.activity,
                              refusal))
    known.activity = {};
  return &known;
}

std::vector<char> Segments::active_of(const Program& program, std::size_t loop) const {
  std::vector<char> active(2, 0);
  const diff::Activity& activity = program.activity;
  const auto add = [&](std::uint32_t id) {
    active.push_back(activity.varied.empty() || activity.varied[id] || activity.written[id]);
  };
  for (std::uint32_t id : program.primal->blocks[0].parameters) add(id);
  if (loop != 0)
    for (std::uint32_t id : program.live[loop - 1]) add(id);
  return active;
}

const std::vector<char>* Segments::active(const Specialization& segment) const {
  for (const auto& [target, program] : programs_)
    for (const auto& [which, made] : program.made)
      if (made.code && made.code->target == &segment) return &made.active;
  return nullptr;
}

std::vector<std::int64_t> Segments::loops(Context& ctx, Specialization& target) {
  std::vector<std::int64_t> parents;
  const Program* known = program(ctx, target);
  if (known && known->primal.get() == derivatives_.primals.primal_or_rule(ctx, target))  // not of a rule's call
    for (std::size_t k = 0; k < known->forest.loops.size(); ++k) {
      const std::uint32_t parent = known->forest.loops[k].parent;
      parents.push_back(!known->is_cut[k] ? -1 : parent == ~0u ? 0 : static_cast<std::int64_t>(parent) + 1);
    }
  return parents;
}

namespace {

// The edges to cuts, and returns, of a segment that is being made.
class Cutting {
 public:
  Cutting(Runtime& runtime, ir::Function& function) : runtime_(runtime), at_(function), function_(function) {}
  ir::Builder& builder() { return at_; }

  // In the present block: returns the number of a loop with values.
  void stop(std::int64_t loop, const std::vector<Operand>& values) {
    std::vector<Operand> parts{integer(loop)};
    parts.insert(parts.end(), values.begin(), values.end());
    std::vector<const Type*> types;
    for (const Operand part : parts) types.push_back(function_.type_of(part, runtime_.types));
    at_.ret(at_.emit(Op::tuple, parts, runtime_.types.tuple(types)));
  }
  Operand integer(std::int64_t n) { return at_.constant(runtime_.from_int(n)); }

 private:
  Runtime& runtime_;
  ir::Builder at_;
  ir::Function& function_;
};

// The old entry becomes an ordinary block, whose number is the answer; the new one is swapped into position 0.
BlockId move_entry(ir::Function& function, ir::Builder& at) {
  const BlockId entry = at.new_block();
  std::swap(function.blocks[0], function.blocks[entry]);
  const auto renamed = [&](BlockId b) { return b == 0 ? entry : b == entry ? 0 : b; };
  for (ir::Block& block : function.blocks) {
    for (ir::Edge& edge : block.edges) edge.target = renamed(edge.target);
    if (block.handler != ir::no_block) block.handler = renamed(block.handler);
  }
  for (ir::Inst& inst : function.insts)
    if (inst.block != ir::no_block) inst.block = renamed(inst.block);
  return entry;
}

void replace_values(ir::Function& function, const std::unordered_map<std::uint32_t, Operand>& instead) {
  const auto replace = [&](auto& operands) {
    for (Operand& o : operands)
      if (o.is_inst())
        if (const auto value = instead.find(o.index()); value != instead.end()) o = value->second;
  };
  for (ir::Block& block : function.blocks) {
    for (ir::Edge& edge : block.edges) replace(edge.arguments);
    for (std::uint32_t id : block.insts) replace(function.insts[id].operands);
    if (block.terminator != ~0u) replace(function.insts[block.terminator].operands);
  }
}

}  // namespace

std::unique_ptr<ir::Function> Segments::cut(const Program& program, std::size_t loop, bool within) const {
  const ir::Function& primal = *program.primal;
  const std::vector<ir::Loop>& loops = program.forest.loops;
  Runtime& runtime = derivatives_.runtime;
  const BuiltinTypes& builtin = runtime.types.builtin();
  std::unique_ptr<ir::Function> made = primal.clone();
  made->name = primal.name + (loop == 0 ? " (from its beginning)" : " (from loop)");
  made->return_type = builtin.any;
  Cutting cutting(runtime, *made);
  ir::Builder& at = cutting.builder();
  at.set_span(primal.span);

  const BlockId entry = move_entry(*made, at);
  const auto renamed = [&](BlockId b) { return b == 0 ? entry : b == entry ? 0 : b; };
  const std::size_t old_blocks = made->blocks.size();

  // Parameters, and what stands for the values that they bring.
  at.add_parameter(0, builtin.nothing);
  const Operand passes = at.add_parameter(0, builtin.int64);
  std::vector<Operand> given;
  std::unordered_map<std::uint32_t, Operand> instead;
  for (std::uint32_t id : primal.blocks[0].parameters) {
    given.push_back(at.add_parameter(0, primal.insts[id].type));
    if (loop != 0) instead[id] = given.back();
  }
  Operand left;  // passes, at the header of a segment of a loop
  BlockId start = entry;
  std::vector<Operand> arguments = given;
  if (loop != 0) {
    start = renamed(loops[loop - 1].header);
    const std::size_t of_header = primal.blocks[loops[loop - 1].header].parameters.size();
    arguments.clear();
    const std::vector<std::uint32_t>& live = program.live[loop - 1];
    for (std::size_t i = 0; i < live.size(); ++i) {
      const Operand value = at.add_parameter(0, primal.insts[live[i]].type);
      if (i < of_header)
        arguments.push_back(value);
      else
        instead[live[i]] = value;
    }
    if (!within) {
      left = at.add_parameter(start, builtin.int64);
      arguments.push_back(passes);
    }
  }

  // Cut are all loops but those within the loop; of a pass those right within it as well.
  const auto is_within = [&](std::size_t one) {
    for (std::uint32_t k = loops[one].parent; k != ~0u; k = loops[k].parent)
      if (k + 1 == loop) return true;
    return false;
  };
  std::unordered_map<BlockId, std::size_t> cut_at;
  for (std::size_t k = 0; k < loops.size(); ++k)
    if (program.is_cut[k] &&
        (loop == 0 ? loops[k].parent == ~0u : !is_within(k) || (within && loops[k].parent + 1 == loop)))
      cut_at[renamed(loops[k].header)] = k;

  const auto values_at = [&](std::size_t k, const std::vector<Operand>& of_edge) {
    std::vector<Operand> values = of_edge;
    const std::vector<std::uint32_t>& live = program.live[k];
    for (std::size_t i = primal.blocks[loops[k].header].parameters.size(); i < live.size(); ++i)
      values.push_back(Operand::inst(live[i]));
    return values;
  };
  for (BlockId b = 1; b < old_blocks; ++b) {
    if (made->blocks[b].terminator != ~0u && made->insts[made->blocks[b].terminator].op == Op::ret) {
      const Operand result = made->insts[made->blocks[b].terminator].operands[0];
      made->blocks[b].terminator = ~0u;
      at.set_block(b);
      cutting.stop(0, {result});
      continue;
    }
    for (std::size_t e = 0; e < made->blocks[b].edges.size(); ++e) {
      const BlockId target = made->blocks[b].edges[e].target;
      const auto found = cut_at.find(target);
      if (found == cut_at.end()) continue;
      const std::vector<Operand> of_edge = made->blocks[b].edges[e].arguments;
      const BlockId between = at.new_block();
      made->blocks[b].edges[e] = {between, {}};
      at.set_block(between);
      if (found->second + 1 == loop && !within) {
        const Operand rest = at.emit(Op::sub_int, {left, cutting.integer(1)}, builtin.int64);
        const Operand goes_on = at.emit(Op::slt_int, {cutting.integer(0), rest}, builtin.boolean);
        const BlockId stopping = at.new_block();
        std::vector<Operand> again = of_edge;
        again.push_back(rest);
        at.branch(goes_on, target, stopping, again);
        at.set_block(stopping);
      }
      cutting.stop(static_cast<std::int64_t>(found->second) + 1, values_at(found->second, of_edge));
    }
  }
  at.set_block(0);
  at.jump(start, arguments);
  ir::remove_unreachable_blocks(*made);

  replace_values(*made, instead);
  return made;
}

const Synthetic* Segments::segment(Context& ctx, Specialization& target, std::size_t loop, bool within) {
  const CollectionPause pause(derivatives_.runtime.heap);
  Program* known = program(ctx, target);
  if (!known || loop > known->forest.loops.size() || (loop != 0 && !known->is_cut[loop - 1])) return nullptr;
  Made& made = known->made[{loop, within}];
  if (made.code && valid_code(ctx, *made.code->target)) return made.code;
  made.code = nullptr;
  std::unique_ptr<ir::Function> code = cut(*known, loop, within);
  if (!ir::verify(*code).empty()) return nullptr;  // not every function can be cut so
  Compiler& compiler = derivatives_.compiler;
  infer::InferResult result =
      infer::Inference(derivatives_.runtime, ctx, ctx.world, compiler.infer_options(ctx)).reinfer(*code);
  if (!result.typed) return nullptr;
  std::vector<Edge> edges;
  derivatives_.primals.add_edges(target, edges);
  limit_to_worlds_of(ctx, edges, result);
  code->return_type = result.return_type;
  Synthetic& part = compiler.synthetic(code->name, parameter_types(*code), known->primal.get());
  opt::optimise(derivatives_.runtime, ctx, *result.typed, compiler.opt_options(ctx, nullptr));
  dump("segment", *result.typed);
  derivatives_.cache.keep_source(*part.target, std::move(code));
  compiler.publish(part, std::move(result), edges);
  made = {&part, active_of(*known, loop)};
  return made.code;
}

void Segments::forget(const GoneCode& gone) {
  std::erase_if(programs_, [&](const auto& entry) {
    if (gone.emptied.contains(entry.first)) return true;
    return std::any_of(entry.second.made.begin(), entry.second.made.end(), [&](const auto& one) {
      return one.second.code && gone.emptied.contains(one.second.code->target);
    });
  });
}

}  // namespace slope::derive
