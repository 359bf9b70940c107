#include "lang/diff/activity.hpp"

#include "lang/diff/operations.hpp"

namespace slope::diff {

namespace {

using ir::Op;
using ir::Operand;

class Analysis {
 public:
  Analysis(const ir::Function& function, TangentTypes& tangents, World world, std::vector<Edge>* edges,
           Activity& result, Refusal& refusal)
      : function_(function), tangents_(tangents), world_(world), edges_(edges), result_(result), refusal_(refusal) {}

  bool run(const std::vector<char>& active) {
    result_.varied.assign(function_.insts.size(), false);
    result_.written.assign(function_.insts.size(), false);
    result_.rules.assign(function_.insts.size(), RuleKind::none);
    const std::vector<std::uint32_t>& parameters = function_.blocks[0].parameters;
    result_.active_parameters.assign(active.begin(), active.end());
    result_.active_parameters.resize(parameters.size(), false);
    for (const ir::Block& block : function_.blocks)
      for (std::uint32_t id : block.insts)
        if (function_.insts[id].op == Op::invoke)
          result_.rules[id] =
              find_rule(tangents_.runtime(), function_.insts[id].aux_as<Specialization>()->types, world_, edges_);
    find_returning_blocks();
    do {
      changed_ = false;
      for (std::size_t i = 0; i < parameters.size(); ++i)
        if (result_.active_parameters[i]) vary(parameters[i]);
      for (ir::BlockId b = 0; b < function_.blocks.size(); ++b) {
        // What only leads to an error is never reversed: anything may stand there.
        if (!result_.returns[b]) continue;
        const ir::Block& block = function_.blocks[b];
        for (std::uint32_t id : block.insts)
          if (!visit(id)) return false;
        for (const ir::Edge& edge : block.edges)
          if (result_.returns[edge.target]) visit_edge(edge);
      }
      for (std::size_t i = 0; i < parameters.size(); ++i)
        if (result_.written[parameters[i]] && !result_.active_parameters[i]) {
          result_.active_parameters[i] = true;
          changed_ = true;
        }
    } while (changed_);
    return true;
  }

 private:
  void find_returning_blocks() {
    result_.returns.assign(function_.blocks.size(), false);
    for (ir::BlockId b = 0; b < function_.blocks.size(); ++b)
      if (function_.insts[function_.blocks[b].terminator].op == Op::ret) result_.returns[b] = true;
    for (bool grew = true; grew;) {
      grew = false;
      for (ir::BlockId b = 0; b < function_.blocks.size(); ++b) {
        if (result_.returns[b]) continue;
        for (const ir::Edge& edge : function_.blocks[b].edges)
          if (result_.returns[edge.target]) result_.returns[b] = grew = true;
      }
    }
  }

  bool varied(Operand o) const { return o.is_inst() && result_.varied[o.index()]; }
  bool is_memory(const Type* t) { return !tangents_.known(t) || tangents_.has_shadow(t); }
  bool may_carry(const Type* t) { return !tangents_.known(t) || tangents_.differentiable(t); }
  const Type* type_of(Operand o) { return function_.type_of(o, tangents_.runtime().types); }

  void vary(std::uint32_t id) {
    if (result_.varied[id] || !may_carry(function_.insts[id].type)) return;
    result_.varied[id] = true;
    changed_ = true;
  }

  // Memory that receives varied values: its definition chain must lead to real shadows.
  bool write(Operand o, const ir::Inst& at) {
    if (o.is_constant()) {
      if (!is_memory(type_of(o))) return true;
      refusal_ =
          refusal_at(function_, at, tangents_.runtime(), "a value that carries a derivative is stored into a global");
      return false;
    }
    if (!result_.written[o.index()] && is_memory(function_.inst(o).type)) {
      result_.written[o.index()] = true;
      changed_ = true;
    }
    return true;
  }

  bool any_varied(const ir::Inst& inst) const {
    for (Operand o : inst.operands)
      if (varied(o)) return true;
    return false;
  }

  bool visit(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    bool flows = any_varied(inst);
    Treatment treatment = classify(inst, result_.rules[id]);
    if (indexed_element(function_, inst, tangents_.runtime())) treatment = Treatment::value;
    switch (treatment) {
      case Treatment::inert:
        break;
      case Treatment::value:
        if (flows) vary(id);
        // A struct or alias that is written through must be made of real shadows.
        if (result_.written[id])
          for (Operand o : inst.operands)
            if (!write(o, inst)) return false;
        break;
      case Treatment::store: {
        Operand object = inst.operands[0];
        Operand value =
            inst.operands[inst.op == Op::array_set || inst.op == Op::array_init ? 1 : inst.operands.size() - 1];
        if (varied(value) && !write(object, inst)) return false;
        // What is kept in memory that is written may be read back and written through.
        if (object.is_inst() && result_.written[object.index()] && is_memory(type_of(value)) && !write(value, inst))
          return false;
        break;
      }
      case Treatment::call:
        if (flows) vary(id);
        // A callee may write derivative-carrying values into any memory it is given.
        if (flows && result_.rules[id] == RuleKind::none)
          for (Operand o : inst.operands)
            if (is_memory(type_of(o)) && !o.is_constant() && !write(o, inst)) return false;
        if (result_.written[id]) vary(id);
        break;
      case Treatment::refused:
        if (!flows) break;
        refusal_ = refusal_at(function_, inst, tangents_.runtime(), why_refused(inst, tangents_.runtime()));
        return false;
    }
    if (result_.written[id]) vary(id);
    if (result_.varied[id] && !tangents_.known(inst.type)) {
      refusal_ = refusal_at(
          function_, inst, tangents_.runtime(),
          "the type of this value is not inferred (" + to_string(inst.type) + "), and it carries a derivative");
      return false;
    }
    return true;
  }

  void visit_edge(const ir::Edge& edge) {
    const ir::Block& target = function_.blocks[edge.target];
    for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
      if (varied(edge.arguments[i])) vary(target.parameters[i]);
      if (result_.written[target.parameters[i]]) {
        vary(target.parameters[i]);
        if (edge.arguments[i].is_inst() && !result_.written[edge.arguments[i].index()]) {
          result_.written[edge.arguments[i].index()] = true;
          changed_ = true;
        }
      }
    }
  }

  const ir::Function& function_;
  TangentTypes& tangents_;
  World world_;
  std::vector<Edge>* edges_;
  Activity& result_;
  Refusal& refusal_;
  bool changed_ = false;
};

}  // namespace

bool analyse_activity(const ir::Function& function, TangentTypes& tangents, World world,
                      const std::vector<char>& active, std::vector<Edge>* edges, Activity& result, Refusal& refusal) {
  if (!Analysis(function, tangents, world, edges, result, refusal).run(active)) return false;
  // Parameters of blocks that turned out varied with unknown types.
  for (const ir::Block& block : function.blocks) {
    for (std::uint32_t id : block.parameters) {
      if (!result.varied[id] || tangents.known(function.insts[id].type)) continue;
      Span span = block.insts.empty() ? function.span : function.insts[block.insts[0]].span;
      refusal = {span, function.method,
                 "the type of a variable is not inferred here (" + to_string(function.insts[id].type) +
                     "), and it carries a derivative"};
      return false;
    }
  }
  return true;
}

}  // namespace slope::diff
