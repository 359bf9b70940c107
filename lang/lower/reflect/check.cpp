// Checks code that a program made (LoweredCode) for what passes and tiers rely on in lowering's own code, beyond what
// ir::verify checks:
//
//   catch blocks   Only handlers begin with `caught`. Every path to a point of the code enters the same number of
//                  handlers.
//   loops          A loop has one entry. Its header is marked, because limits and interrupts are checked there.
//   undefined      A parameter that may hold the undefined value is used only after a check_defined of its flag. The
//                  flag is another parameter of the block, `false` wherever the first is undefined. Where this cannot
//                  be proved, the undefined value becomes `nothing`; correct code computes the same with either.
#include <algorithm>
#include <map>
#include <set>

#include "lang/ir/cfg.hpp"
#include "lang/lower/reflect/lowered_code.hpp"

namespace slope::lower {

namespace {

std::string in_block(ir::BlockId b) { return "block " + std::to_string(b + 1) + ": "; }

bool begins_with_caught(const ir::Function& code, const ir::Block& block) {
  return !block.insts.empty() && code.insts[block.insts[0]].op == ir::Op::caught;
}

std::string check_catching(const ir::Function& code, const ir::Cfg& cfg) {
  if (begins_with_caught(code, code.blocks[0])) return in_block(0) + "caught stands outside a handler";
  constexpr int unknown = -1;
  std::vector<int> depth(code.blocks.size(), unknown);
  depth[0] = 0;
  for (const ir::BlockId b : cfg.order) {
    const ir::Block& block = code.blocks[b];
    int now = depth[b];
    for (const std::uint32_t id : block.insts) {
      if (code.insts[id].op == ir::Op::caught) ++now;
      if (code.insts[id].op == ir::Op::caught_end && --now < 0) return in_block(b) + "caught_end outside a handler";
    }
    const auto reach = [&](ir::BlockId next, int at) {
      if (depth[next] == unknown) depth[next] = at;
      return depth[next] == at;
    };
    for (const ir::Edge& edge : block.edges) {
      if (begins_with_caught(code, code.blocks[edge.target])) return in_block(b) + "a jump into a handler";
      if (!reach(edge.target, now)) return in_block(edge.target) + "is reached from inside a handler and from outside";
    }
    if (block.handler != ir::no_block && !reach(block.handler, depth[b]))
      return in_block(block.handler) + "is reached from inside a handler and from outside";
  }
  return "";
}

std::string mark_loops(ir::Function& code, const ir::Cfg& cfg) {
  for (ir::Block& block : code.blocks) block.is_loop_header = false;
  for (const ir::BlockId b : cfg.order)
    for (const ir::BlockId next : cfg.successors[b]) {
      if (cfg.position[next] > cfg.position[b]) continue;
      if (!cfg.dominates(next, b)) return in_block(next) + "a loop that can be entered elsewhere, too";
      if (code.blocks[b].handler == next) return in_block(next) + "a handler of its own statements";
      code.blocks[next].is_loop_header = true;
    }
  return "";
}

// Which parameters may be undefined, and which flags tell.
class Undefined {
 public:
  Undefined(Runtime& runtime, ir::Function& code, const ir::Cfg& cfg) : runtime_(runtime), code_(code), cfg_(cfg) {}

  void run() {
    if (std::all_of(code_.constants.begin(), code_.constants.end(), [](Value v) { return v.defined(); })) return;
    // More parameters, fewer flags: until both hold for each other.
    while (find_parameters() || find_flags()) {
    }
    if (all_uses_checked()) return;
    for (std::size_t i = 0; i < code_.constants.size(); ++i)
      if (!code_.constants[i].defined()) code_.constants.define(i, runtime_.nothing());
  }

 private:
  bool is_undefined(ir::Operand o) const { return o.is_constant() && !code_.constant_value(o).defined(); }
  bool is_false(ir::Operand o) const {
    return o.is_constant() && code_.constant_value(o).identical(runtime_.from_bool(false));
  }

  template <class Visit>  // (block of the edge, edge, position of the argument, parameter)
  void each_argument(Visit visit) {
    for (const ir::BlockId b : cfg_.order)
      for (const ir::Edge& edge : code_.blocks[b].edges)
        for (std::size_t i = 0; i < edge.arguments.size(); ++i)
          visit(b, edge, i, code_.blocks[edge.target].parameters[i]);
  }

  bool find_parameters() {
    bool any = false;
    for (bool grew = true; grew;) {
      grew = false;
      each_argument([&](ir::BlockId b, const ir::Edge& edge, std::size_t i, std::uint32_t parameter) {
        if (flags_.count(parameter)) return;
        const ir::Operand o = edge.arguments[i];
        if (!is_undefined(o) && !(o.is_inst() && flags_.count(o.index()) && !checked(o.index(), b, ~0u))) return;
        const auto& all = code_.blocks[edge.target].parameters;
        flags_[parameter].insert(all.begin(), all.end());
        any = grew = true;
      });
    }
    return any;
  }

  // From all parameters of the block to those that are false whenever this one is undefined.
  bool find_flags() {
    bool any = false;
    for (bool shrank = true; shrank;) {
      shrank = false;
      each_argument([&](ir::BlockId b, const ir::Edge& edge, std::size_t i, std::uint32_t parameter) {
        const ir::Operand o = edge.arguments[i];
        const auto found = flags_.find(parameter);
        if (found == flags_.end()) return;
        const auto& all = code_.blocks[edge.target].parameters;
        const auto tells = [&](std::uint32_t flag) {
          const auto at = static_cast<std::size_t>(std::find(all.begin(), all.end(), flag) - all.begin());
          const ir::Operand given = edge.arguments[at];
          if (is_false(given)) return true;
          if (is_undefined(o)) return false;
          if (!o.is_inst() || !flags_.count(o.index()) || checked(o.index(), b, ~0u)) return true;
          return given.is_inst() && flags_[o.index()].count(given.index()) != 0;
        };
        shrank = std::erase_if(found->second, [&](std::uint32_t flag) { return !tells(flag); }) > 0 || shrank;
        any = any || shrank;
      });
    }
    return any;
  }

  // A check of one of its flags stands before the instruction (none: the end of the block).
  bool checked(std::uint32_t parameter, ir::BlockId b, std::uint32_t before) {
    const std::set<std::uint32_t>& flags = flags_[parameter];
    const auto checks = [&](std::uint32_t id) {
      const ir::Inst& inst = code_.insts[id];
      return inst.op == ir::Op::check_defined && inst.operands[0].is_inst() && flags.count(inst.operands[0].index());
    };
    for (const std::uint32_t id : code_.blocks[b].insts) {
      if (id == before) break;
      if (checks(id)) return true;
    }
    for (ir::BlockId up = cfg_.idom[b]; up != ir::no_block; up = cfg_.idom[up])
      if (cfg_.dominates(up, b) && std::any_of(code_.blocks[up].insts.begin(), code_.blocks[up].insts.end(), checks))
        return true;
    return false;
  }

  bool all_uses_checked() {
    for (const ir::BlockId b : cfg_.order) {
      const auto safe = [&](std::uint32_t id) {
        return std::all_of(code_.insts[id].operands.begin(), code_.insts[id].operands.end(), [&](ir::Operand o) {
          return !o.is_inst() || !flags_.count(o.index()) || checked(o.index(), b, id);
        });
      };
      for (const std::uint32_t id : code_.blocks[b].insts)
        if (!safe(id)) return false;
      if (!safe(code_.blocks[b].terminator)) return false;
    }
    return true;
  }

  Runtime& runtime_;
  ir::Function& code_;
  const ir::Cfg& cfg_;
  std::map<std::uint32_t, std::set<std::uint32_t>> flags_;  // by parameter that may be undefined
};

}  // namespace

std::string check_lowered(Runtime& runtime, ir::Function& code) {
  const ir::Cfg cfg = ir::build_cfg(code);
  std::string problem = check_catching(code, cfg);
  if (problem.empty()) problem = mark_loops(code, cfg);
  if (problem.empty()) Undefined(runtime, code, cfg).run();
  return problem;
}

}  // namespace slope::lower
