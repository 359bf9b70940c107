// Replaces calls by the typed code of their callees. Callees are optimised before their callers (inference finishes
// them first), so what is copied is already small.
#include <algorithm>
#include <utility>

#include "lang/ir/build.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/opt/opt.hpp"
#include "lang/support/tuning.hpp"

namespace slope::opt {

using ir::BlockId;
using ir::Op;
using ir::Operand;

namespace {

std::size_t live_insts(const ir::Function& function) {
  std::size_t count = 0;
  for (const ir::Block& block : function.blocks) count += block.insts.size() + 1;
  return count;
}

class Inliner {
 public:
  Inliner(Runtime& runtime, ir::Function& function, const OptOptions& options)
      : runtime_(runtime), function_(function), options_(options) {}

  void inline_whole(std::uint32_t id, const ir::Function& body, const Specialization& target) {
    const BlockId b = function_.insts[id].block;
    const auto& insts = function_.blocks[b].insts;
    const auto at = std::find(insts.begin(), insts.end(), id);
    if (at != insts.end()) inline_at(b, static_cast<std::size_t>(at - insts.begin()), body, target);
  }

  // A function goes into itself with what its other callees have made of it: their size counts at each level.
  bool run() {
    bool any = inline_calls(nullptr);
    if (!calls_itself()) return any;
    const std::unique_ptr<ir::Function> self = function_.clone();
    if (live_insts(*self) <= static_cast<std::size_t>(options_.self_recursion_budget)) any |= inline_calls(self.get());
    return any;
  }

 private:
  // The calls of other functions, or those of itself.
  bool inline_calls(const ir::Function* self) {
    bool any = false;
    const bool split = split_long_blocks();
    std::size_t size = live_insts(function_);
    most_ = static_cast<std::size_t>(options_.inline_total) + growth * size;
    for (BlockId b = 0; b < function_.blocks.size(); ++b) {
      if (only_raises(b)) continue;
      for (std::size_t i = 0; i < function_.blocks[b].insts.size(); ++i) {
        std::uint32_t id = function_.blocks[b].insts[i];
        if (function_.insts[id].op != Op::invoke) continue;
        const ir::Inst& call = function_.insts[id];
        if (options_.is_primitive && options_.is_primitive(call)) continue;
        Specialization& target = *call.aux_as<Specialization>();
        const ir::Function* body = nullptr;
        if (self) {
          if (&target == options_.self && depth_of(call, written(target, function_)) < options_.self_recursion_depth)
            body = self;
        } else if (&target != options_.self) {
          body = options_.callee ? options_.callee(target) : nullptr;
          if (body && depth_of(call, written(target, *body)) > 0) body = nullptr;  // recursion through others
        }
        if (!body || !worth_it(target, *body, size)) continue;
        size += live_insts(*body);
        inline_at(b, i, *body, target);
        any = true;
        --i;  // here now stands the callee's first block; the rest of this one moved to a new block, which comes later
      }
    }
    if (any || split) ir::simplify_cfg(function_);
    return any;
  }

  // Each call that is inlined moves the rest of its block: that must not be most of a long function each time.
  bool split_long_blocks() {
    constexpr std::size_t longest = tuning::inline_block;
    const std::size_t before = function_.blocks.size();
    ir::Builder builder(function_);
    for (BlockId b = 0; b < function_.blocks.size(); ++b) {
      if (function_.blocks[b].insts.size() <= longest || function_.blocks[b].terminator == ~0u) continue;
      const BlockId rest = builder.new_block();
      ir::Block& from = function_.blocks[b];
      ir::Block& to = function_.blocks[rest];
      to.insts.assign(from.insts.begin() + longest, from.insts.end());
      from.insts.resize(longest);
      from.insts.shrink_to_fit();
      to.terminator = std::exchange(from.terminator, ~0u);
      to.edges = std::exchange(from.edges, {});
      to.handler = from.handler;
      for (std::uint32_t moved : to.insts) function_.insts[moved].block = rest;
      function_.insts[to.terminator].block = rest;
      builder.set_block(b);
      builder.jump(rest);
    }
    return function_.blocks.size() != before;
  }

  // The method whose text the body is: a generated method's may be another's.
  static const Method* written(const Specialization& target, const ir::Function& body) {
    return body.scopes.empty() || !body.scopes[0].method ? target.method : body.scopes[0].method;
  }

  // What makes the message of an error stays a call: it runs once at most, and is large.
  bool only_raises(BlockId b) const {
    std::uint32_t last = function_.blocks[b].terminator;
    return last != ~0u && (function_.insts[last].op == Op::throw_ || function_.insts[last].op == Op::unreachable);
  }

  bool calls_itself() const {
    for (const ir::Block& block : function_.blocks)
      for (std::uint32_t id : block.insts)
        if (function_.insts[id].op == Op::invoke && function_.insts[id].aux_as<Specialization>() == options_.self)
          return true;
    return false;
  }

  int depth_of(const ir::Inst& call, const Method* method) const {
    int depth = 0;
    for (std::uint32_t scope = call.scope; scope < function_.scopes.size(); scope = function_.scopes[scope].parent)
      if (function_.scopes[scope].method == method && function_.scopes[scope].parent != ~0u) ++depth;
    return depth;
  }

  bool worth_it(const Specialization& target, const ir::Function& body, std::size_t size) const {
    const int hint = written(target, body)->inline_hint;
    if (size > most_) return false;
    if (hint < 0 || !body.slots.empty()) return false;
    for (const ir::Block& block : body.blocks) {
      if (block.handler != ir::no_block) return false;
      // What still stands there is a parameter that the arguments left open; its number is the callee's.
      for (std::uint32_t inside : block.insts) {
        if (body.insts[inside].op == Op::static_param) return false;
        if (body.insts[inside].op == Op::tape_open && options_.is_ordinary) return false;
      }
    }
    std::size_t cost = live_insts(body);
    if (cost <= tuning::inline_tiny) return true;
    if (size > static_cast<std::size_t>(options_.inline_total)) return false;
    return hint > 0 ? cost <= tuning::inline_hinted : cost <= static_cast<std::size_t>(options_.inline_budget);
  }

  void inline_at(BlockId b, std::size_t position, const ir::Function& body, const Specialization& target) {
    const std::uint32_t id = function_.blocks[b].insts[position];
    Copy copy{body, target, function_.insts[id]};
    copy.rest = split_at(b, position);
    copy.scopes = add_scopes(body, copy.call, copy.target);

    ir::Builder builder(function_);
    builder.set_block(b);
    builder.set_span(copy.call.span);
    builder.set_scope(copy.call.scope);
    copy.mapped.resize(body.insts.size());
    bind_arguments(builder, body, target, copy.call, copy.mapped);

    copy.first_slot = function_.slots.size();
    function_.slots.insert(function_.slots.end(), body.slots.begin(), body.slots.end());
    function_.slot_types.insert(function_.slot_types.end(), body.slot_types.begin(), body.slot_types.end());
    copy.block_of.assign(body.blocks.size(), ir::no_block);
    copy.block_of[0] = b;
    if (body.blocks[0].handler != ir::no_block) {  // it is the call's block that does not have it
      copy.block_of[0] = builder.new_block();
      builder.jump(copy.block_of[0]);
    }
    for (BlockId k = 1; k < body.blocks.size(); ++k) {
      copy.block_of[k] = builder.new_block();
      function_.blocks[copy.block_of[k]].handler = function_.blocks[b].handler;
      function_.blocks[copy.block_of[k]].is_loop_header = body.blocks[k].is_loop_header;
      for (std::uint32_t parameter : body.blocks[k].parameters)
        copy.mapped[parameter] = builder.add_parameter(copy.block_of[k], body.insts[parameter].type);
    }
    for (BlockId k = 0; k < body.blocks.size(); ++k)
      if (body.blocks[k].handler != ir::no_block)
        function_.blocks[copy.block_of[k]].handler = copy.block_of[body.blocks[k].handler];
    copy_insts(copy);
    copy_terminators(copy);
  }

  // A callee that is being copied to the place of a call.
  struct Copy {
    const ir::Function& body;
    const Specialization& target;
    ir::Inst call;
    BlockId rest = ir::no_block;          // what follows the call
    std::vector<std::uint32_t> scopes{};  // by scope of the callee; its only one when it has none listed
    std::vector<Operand> mapped{};        // by inst of the callee
    std::vector<BlockId> block_of{};      // by its block
    std::size_t first_slot = 0;           // of its variables
  };

  Operand map(const Copy& copy, Operand o) {
    return o.is_constant() ? function_.constant(copy.body.constant_value(o)) : copy.mapped[o.index()];
  }

  // What follows the call goes to a new block whose parameter is the result. The call's own instruction becomes that
  // parameter: nothing that uses it needs to change.
  BlockId split_at(BlockId b, std::size_t position) {
    const BlockId rest = ir::Builder(function_).new_block();
    const std::uint32_t id = function_.blocks[b].insts[position];
    ir::Inst result;
    result.op = Op::parameter;
    result.type = function_.insts[id].type;
    result.span = function_.insts[id].span;
    result.scope = function_.insts[id].scope;
    result.block = rest;
    function_.insts[id] = std::move(result);
    function_.blocks[rest].parameters.push_back(id);
    ir::Block& from = function_.blocks[b];
    ir::Block& to = function_.blocks[rest];
    to.insts.assign(from.insts.begin() + static_cast<std::ptrdiff_t>(position) + 1, from.insts.end());
    to.terminator = from.terminator;
    to.edges = std::move(from.edges);
    to.handler = from.handler;
    from.insts.resize(position);
    from.insts.shrink_to_fit();
    from.terminator = ~0u;
    from.edges.clear();
    for (std::uint32_t moved : to.insts) function_.insts[moved].block = rest;
    if (to.terminator != ~0u) function_.insts[to.terminator].block = rest;
    return rest;
  }

  // The callee's frames that its instructions still lie in, under the call's; by their number there. Frames whose
  // instructions are gone stay behind: where a callee is inlined twice, and its callees were, they would double each time.
  std::vector<std::uint32_t> add_scopes(const ir::Function& body, const ir::Inst& call, const Specialization& target) {
    const auto add = [&](const ir::InlineScope& scope) {
      function_.scopes.push_back(scope);
      return static_cast<std::uint32_t>(function_.scopes.size() - 1);
    };
    if (body.scopes.empty()) return {add({body.method, call.scope, call.span, target.types})};
    std::vector<bool> used(body.scopes.size());
    const auto use = [&](std::uint32_t id) {
      for (std::uint32_t scope = body.insts[id].scope; scope < used.size() && !used[scope];
           scope = body.scopes[scope].parent)
        used[scope] = true;
    };
    for (const ir::Block& block : body.blocks) {
      for (std::uint32_t id : block.insts) use(id);
      use(block.terminator);
    }
    std::vector<std::uint32_t> added(body.scopes.size(), call.scope);
    for (std::size_t i = 0; i < body.scopes.size(); ++i) {
      if (!used[i]) continue;
      ir::InlineScope copy = body.scopes[i];
      if (copy.parent == ~0u) {
        copy.parent = call.scope;
        copy.call_site = call.span;
        if (copy.method == target.method) copy.types = target.types;
      } else {
        copy.parent = added[copy.parent];  // parents come first
      }
      added[i] = add(copy);
    }
    return added;
  }

  // Two passes: operands may refer to insts of blocks that come later in the list.
  void copy_insts(Copy& copy) {
    const ir::Function& body = copy.body;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> copied;
    for (BlockId k = 0; k < body.blocks.size(); ++k) {
      for (std::uint32_t source : body.blocks[k].insts) {
        std::uint32_t made = copy_inst(copy, source, copy.block_of[k]);
        // @fastmath and @simd mean the arithmetic behind the operators, which are methods of Base.
        bool arithmetic = body.insts[source].op == Op::invoke || body.insts[source].op == Op::call ||
                          ir::group_of(body.insts[source].op) == ir::OpGroup::floats;
        if (arithmetic && copy.target.method->module == runtime_.base)
          function_.insts[made].flags |= copy.call.flags & math_flags;
        function_.blocks[copy.block_of[k]].insts.push_back(made);
        copy.mapped[source] = Operand::inst(made);
        copied.emplace_back(made, source);
      }
    }
    for (auto [made, source] : copied) {
      std::vector<Operand> operands;
      for (Operand o : body.insts[source].operands) operands.push_back(map(copy, o));
      function_.insts[made].operands = std::move(operands);
    }
  }

  void copy_terminators(const Copy& copy) {
    const ir::Function& body = copy.body;
    std::vector<bool> returns;
    if (copy.call.flags & ir::inst_inbounds) returns = blocks_that_return(body);
    auto edge_to = [&](const ir::Edge& edge) {
      ir::Edge made{copy.block_of[edge.target], {}};
      for (Operand o : edge.arguments) made.arguments.push_back(map(copy, o));
      return made;
    };
    for (BlockId k = 0; k < body.blocks.size(); ++k) {
      const ir::Block& block = body.blocks[k];
      const ir::Inst& terminator = body.insts[block.terminator];
      const BlockId here = copy.block_of[k];
      const std::uint32_t made = copy_inst(copy, block.terminator, here);
      std::vector<ir::Edge> edges;
      if (!returns.empty() && terminator.op == Op::branch && (terminator.flags & ir::inst_boundscheck) &&
          returns[block.edges[0].target] != returns[block.edges[1].target]) {
        // `@inbounds` at the call: the check that guards the error is not made.
        function_.insts[made].op = Op::jump;
        edges.push_back(edge_to(block.edges[returns[block.edges[0].target] ? 0 : 1]));
      } else if (terminator.op == Op::ret) {
        Operand value = map(copy, terminator.operands[0]);
        if (!is_subtype(runtime_.types, body.type_of(terminator.operands[0], runtime_.types), copy.call.type)) {
          // The call was inferred more precisely (from constant arguments) than its code was.
          ir::Builder builder(function_);
          builder.set_span(copy.call.span);
          builder.set_scope(copy.call.scope);
          builder.set_block(here);
          value = builder.emit(Op::refine, {value}, copy.call.type);
        }
        function_.insts[made].op = Op::jump;
        edges.push_back({copy.rest, {value}});
      } else {
        std::vector<Operand> operands;
        for (Operand o : terminator.operands) operands.push_back(map(copy, o));
        function_.insts[made].operands = std::move(operands);
        for (const ir::Edge& edge : block.edges) edges.push_back(edge_to(edge));
      }
      function_.blocks[here].terminator = made;
      function_.blocks[here].edges = std::move(edges);
    }
  }

  static std::vector<bool> blocks_that_return(const ir::Function& body) {
    std::vector<bool> returns(body.blocks.size());
    for (bool grew = true; grew;) {
      grew = false;
      for (BlockId b = 0; b < body.blocks.size(); ++b) {
        if (returns[b]) continue;
        bool now = body.insts[body.blocks[b].terminator].op == Op::ret;
        for (const ir::Edge& edge : body.blocks[b].edges) now = now || returns[edge.target];
        if (now) returns[b] = grew = true;
      }
    }
    return returns;
  }

  void bind_arguments(ir::Builder& builder, const ir::Function& body, const Specialization& target,
                      const ir::Inst& call, std::vector<Operand>& mapped) {
    const std::vector<std::uint32_t>& parameters = body.blocks[0].parameters;
    std::size_t fixed = target.method->is_vararg ? target.method->arg_count : parameters.size();
    for (std::size_t i = 0; i < fixed && i < call.operands.size(); ++i) mapped[parameters[i]] = call.operands[i];
    if (!target.method->is_vararg) return;
    std::vector<Operand> rest(call.operands.begin() + static_cast<std::ptrdiff_t>(fixed), call.operands.end());
    mapped[parameters[fixed]] = builder.emit(Op::tuple, rest, body.insts[parameters[fixed]].type);
  }

  static constexpr std::uint16_t math_flags = ir::inst_fast | ir::inst_reassociate;

  // A test that was inside @boundscheck belongs to the call that is inlined: `@inbounds` at a call of the function that it
  // goes into means that function's own tests, not those of what it calls.
  std::uint32_t copy_inst(const Copy& copy, std::uint32_t source, BlockId block) {
    ir::Inst inst = copy.body.insts[source];
    inst.flags &= static_cast<std::uint16_t>(~ir::inst_boundscheck);
    inst.block = block;
    inst.scope = inst.scope < copy.scopes.size() ? copy.scopes[inst.scope] : copy.call.scope;
    inst.operands.clear();
    if (inst.op == Op::slot_get || inst.op == Op::slot_set || inst.op == Op::slot_defined || inst.op == Op::slot_clear)
      inst.aux += copy.first_slot;
    function_.insts.push_back(std::move(inst));
    return static_cast<std::uint32_t>(function_.insts.size() - 1);
  }

  Runtime& runtime_;
  ir::Function& function_;
  const OptOptions& options_;
  static constexpr std::size_t growth = tuning::inlining_growth;
  std::size_t most_ = 0;
};

}  // namespace

bool inline_calls(Runtime& runtime, ir::Function& function, const OptOptions& options) {
  if (!options.callee && !options.self) return false;
  if (function.scopes.empty()) function.scopes.push_back({function.method, ~0u, Span{}});
  ir::InlineScope& own = function.scopes[0];
  if (options.self && own.method == options.self->method) own.types = options.self->types;
  return Inliner(runtime, function, options).run();
}

void inline_with_handlers(Runtime& runtime, ir::Function& function, std::uint32_t id, const ir::Function& body,
                          const Specialization& target) {
  if (function.scopes.empty()) function.scopes.push_back({function.method, ~0u, Span{}});
  Inliner(runtime, function, OptOptions{}).inline_whole(id, body, target);
}

}  // namespace slope::opt
