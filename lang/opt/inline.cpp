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

  bool run() {
    // A function goes into itself as it was before anything was inlined.
    std::unique_ptr<ir::Function> self;
    if (calls_itself()) self = function_.clone();
    bool any = false;
    const bool split = split_long_blocks();
    std::size_t size = live_insts(function_);
    for (BlockId b = 0; b < function_.blocks.size(); ++b) {
      if (only_raises(b)) continue;
      for (std::size_t i = 0; i < function_.blocks[b].insts.size(); ++i) {
        std::uint32_t id = function_.blocks[b].insts[i];
        if (function_.insts[id].op != Op::invoke) continue;
        const ir::Inst& call = function_.insts[id];
        if (options_.is_primitive && options_.is_primitive(call)) continue;
        Specialization& target = *call.aux_as<Specialization>();
        const ir::Function* body = nullptr;
        if (&target == options_.self) {
          if (depth_of(call, written(target, function_)) < options_.self_recursion_depth && self &&
              live_insts(*self) <= static_cast<std::size_t>(options_.self_recursion_budget))
            body = self.get();
        } else {
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

 private:
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
    if (hint < 0 || !body.slots.empty()) return false;
    for (const ir::Block& block : body.blocks) {
      if (block.handler != ir::no_block) return false;
      // What still stands there is a parameter that the arguments left open; its number is the callee's.
      for (std::uint32_t inside : block.insts)
        if (body.insts[inside].op == Op::static_param) return false;
    }
    std::size_t cost = live_insts(body);
    if (cost <= tuning::inline_tiny) return true;
    if (size > static_cast<std::size_t>(options_.inline_total)) return false;
    return hint > 0 ? cost <= tuning::inline_hinted : cost <= static_cast<std::size_t>(options_.inline_budget);
  }

  void inline_at(BlockId b, std::size_t position, const ir::Function& body, const Specialization& target) {
    ir::Builder builder(function_);
    std::uint32_t id = function_.blocks[b].insts[position];
    const ir::Inst call = function_.insts[id];

    // Split: what follows the call goes to a new block whose parameter is the result. The call's own instruction
    // becomes that parameter: nothing that uses it needs to change.
    BlockId rest = builder.new_block();
    {
      ir::Inst result;
      result.op = Op::parameter;
      result.type = call.type;
      result.span = call.span;
      result.scope = call.scope;
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
    }

    // The callee's frames, under the call's.
    std::uint32_t first_scope = static_cast<std::uint32_t>(function_.scopes.size());
    for (const ir::InlineScope& scope : body.scopes) {
      ir::InlineScope copy = scope;
      if (copy.parent == ~0u) {
        copy.parent = call.scope;
        copy.call_site = call.span;
      } else {
        copy.parent += first_scope;
      }
      function_.scopes.push_back(copy);
    }
    if (body.scopes.empty()) function_.scopes.push_back({body.method, call.scope, call.span});

    builder.set_block(b);
    builder.set_span(call.span);
    builder.set_scope(call.scope);
    std::vector<Operand> mapped(body.insts.size());
    bind_arguments(builder, body, target, call, mapped);

    std::vector<BlockId> block_of(body.blocks.size(), ir::no_block);
    block_of[0] = b;
    for (BlockId k = 1; k < body.blocks.size(); ++k) {
      block_of[k] = builder.new_block();
      function_.blocks[block_of[k]].handler = function_.blocks[b].handler;
      function_.blocks[block_of[k]].is_loop_header = body.blocks[k].is_loop_header;
      for (std::uint32_t parameter : body.blocks[k].parameters)
        mapped[parameter] = builder.add_parameter(block_of[k], body.insts[parameter].type);
    }
    // Two passes: operands may refer to insts of blocks that come later in the list.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> copied;
    for (BlockId k = 0; k < body.blocks.size(); ++k) {
      for (std::uint32_t source : body.blocks[k].insts) {
        std::uint32_t copy = copy_inst(body, source, block_of[k], first_scope);
        // @fastmath and @simd mean the arithmetic behind the operators, which are methods of Base.
        bool arithmetic = body.insts[source].op == Op::invoke || body.insts[source].op == Op::call ||
                          ir::group_of(body.insts[source].op) == ir::OpGroup::floats;
        if (arithmetic && target.method->module == runtime_.base)
          function_.insts[copy].flags |= call.flags & math_flags;
        function_.blocks[block_of[k]].insts.push_back(copy);
        mapped[source] = Operand::inst(copy);
        copied.emplace_back(copy, source);
      }
    }
    auto map = [&](Operand o) {
      return o.is_constant() ? function_.constant(body.constant_value(o)) : mapped[o.index()];
    };
    for (auto [copy, source] : copied) {
      std::vector<Operand> operands;
      for (Operand o : body.insts[source].operands) operands.push_back(map(o));
      function_.insts[copy].operands = std::move(operands);
    }
    std::vector<bool> returns;
    if (call.flags & ir::inst_inbounds) returns = blocks_that_return(body);
    for (BlockId k = 0; k < body.blocks.size(); ++k) {
      const ir::Block& block = body.blocks[k];
      const ir::Inst& terminator = body.insts[block.terminator];
      if (!returns.empty() && terminator.op == Op::branch && (terminator.flags & ir::inst_boundscheck) &&
          returns[block.edges[0].target] != returns[block.edges[1].target]) {
        // `@inbounds` at the call: the check that guards the error is not made.
        const ir::Edge& kept = block.edges[returns[block.edges[0].target] ? 0 : 1];
        std::uint32_t jump = copy_inst(body, block.terminator, block_of[k], first_scope);
        function_.insts[jump].op = Op::jump;
        ir::Edge made{block_of[kept.target], {}};
        for (Operand o : kept.arguments) made.arguments.push_back(map(o));
        function_.blocks[block_of[k]].terminator = jump;
        function_.blocks[block_of[k]].edges = {made};
        continue;
      }
      std::uint32_t copy = copy_inst(body, block.terminator, block_of[k], first_scope);
      std::vector<ir::Edge> edges;
      if (terminator.op == Op::ret) {
        Operand value = map(terminator.operands[0]);
        if (!is_subtype(runtime_.types, body.type_of(terminator.operands[0], runtime_.types), call.type)) {
          // The call was inferred more precisely (from constant arguments) than its code was.
          builder.set_block(block_of[k]);
          value = builder.emit(Op::refine, {value}, call.type);
        }
        function_.insts[copy].op = Op::jump;
        edges.push_back({rest, {value}});
      } else {
        std::vector<Operand> operands;
        for (Operand o : terminator.operands) operands.push_back(map(o));
        function_.insts[copy].operands = std::move(operands);
        for (const ir::Edge& edge : block.edges) {
          ir::Edge made{block_of[edge.target], {}};
          for (Operand o : edge.arguments) made.arguments.push_back(map(o));
          edges.push_back(std::move(made));
        }
      }
      function_.blocks[block_of[k]].terminator = copy;
      function_.blocks[block_of[k]].edges = std::move(edges);
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
  std::uint32_t copy_inst(const ir::Function& body, std::uint32_t source, BlockId block, std::uint32_t first_scope) {
    ir::Inst copy = body.insts[source];
    copy.flags &= static_cast<std::uint16_t>(~ir::inst_boundscheck);
    copy.block = block;
    copy.scope = first_scope + (body.scopes.empty() ? 0 : copy.scope);
    copy.operands.clear();
    function_.insts.push_back(std::move(copy));
    return static_cast<std::uint32_t>(function_.insts.size() - 1);
  }

  Runtime& runtime_;
  ir::Function& function_;
  const OptOptions& options_;
};

}  // namespace

bool inline_calls(Runtime& runtime, ir::Function& function, const OptOptions& options) {
  if (!options.callee && !options.self) return false;
  if (function.scopes.empty()) function.scopes.push_back({function.method, ~0u, Span{}});
  return Inliner(runtime, function, options).run();
}

}  // namespace slope::opt
