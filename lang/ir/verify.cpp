// Checks the rules that every pass may rely on. Reports the first fault, with the block and the instruction.
#include <algorithm>

#include "lang/ir/passes/passes.hpp"

namespace slope::ir {

namespace {

class Verifier {
 public:
  Verifier(const Function& function, Typing typing)
      : function_(function), wants_types_(function.typed && typing == Typing::complete) {}

  std::string run() {
    if (function_.blocks.empty()) return "no blocks";
    if (function_.blocks[0].handler != no_block) return "the entry block has a handler";
    for (BlockId b = 0; b < function_.blocks.size() && error_.empty(); ++b) check_shape(b);
    if (!error_.empty()) return error_;
    for (const Block& block : function_.blocks)
      begins_catch_.push_back(!block.insts.empty() && function_.insts[block.insts[0]].op == Op::caught);
    for (BlockId b = 0; b < function_.blocks.size() && error_.empty(); ++b) check_edges(b);
    if (!error_.empty()) return error_;
    cfg_ = build_cfg(function_);
    if (!cfg_.predecessors[0].empty()) return "the entry block is the target of a jump";
    number_dominators();
    for (BlockId b : cfg_.order) {
      check_uses(b);
      if (!error_.empty()) break;
    }
    return error_;
  }

 private:
  void fail(BlockId b, std::uint32_t id, const std::string& what) {
    if (!error_.empty()) return;
    error_ = "b" + std::to_string(b);
    if (id < function_.insts.size())
      error_ += ", %" + std::to_string(id) + " (" + std::string(op_name(function_.insts[id].op)) + ")";
    error_ += ": " + what;
  }

  bool place(BlockId b, std::uint32_t id, std::uint32_t position) {
    if (id >= function_.insts.size()) {
      fail(b, id, "instruction number out of range");
      return false;
    }
    if (position_.empty()) {
      position_.assign(function_.insts.size(), unplaced);
    }
    if (position_[id] != unplaced) fail(b, id, "stands twice");
    if (function_.insts[id].block != b) fail(b, id, "its block number is " + std::to_string(function_.insts[id].block));
    if (!function_.scopes.empty() && function_.insts[id].scope >= function_.scopes.size())
      fail(b, id, "scope out of range");
    position_[id] = position;
    return error_.empty();
  }

  void check_shape(BlockId b) {
    const Block& block = function_.blocks[b];
    for (std::uint32_t id : block.parameters) {
      if (!place(b, id, 0)) return;
      if (function_.insts[id].op != Op::parameter) fail(b, id, "is no parameter");
      if (wants_types_ && !function_.insts[id].type) fail(b, id, "has no type");
    }
    std::uint32_t position = 1;
    for (std::uint32_t id : block.insts) {
      if (!place(b, id, position++)) return;
      const Inst& inst = function_.insts[id];
      if (inst.op == Op::parameter || is_terminator(inst.op)) fail(b, id, "may not stand among the instructions");
      if (inst.op == Op::caught && position != 2) fail(b, id, "is not the first of its block");
      if (wants_types_ && !inst.type) fail(b, id, "has no type");
      check_operation(b, id);
    }
    if (block.terminator == ~0u) return fail(b, ~0u, "has no terminator");
    if (!place(b, block.terminator, position)) return;
    if (!is_terminator(function_.insts[block.terminator].op)) fail(b, block.terminator, "is no terminator");
    check_operation(b, block.terminator);
    if (block.handler == no_block) return;
    if (block.handler >= function_.blocks.size()) return fail(b, ~0u, "handler out of range");
    const Block& handler = function_.blocks[block.handler];
    if (!handler.parameters.empty()) fail(block.handler, ~0u, "a handler with parameters");
    if (handler.insts.empty() || handler.insts[0] >= function_.insts.size() ||
        function_.insts[handler.insts[0]].op != Op::caught)
      fail(block.handler, ~0u, "a handler that does not begin with caught");
  }

  void check_operation(BlockId b, std::uint32_t id) {
    const Inst& inst = function_.insts[id];
    const OpInfo& info = op_info(inst.op);
    int count = static_cast<int>(inst.operands.size());
    if (count < info.min_operands || (info.max_operands >= 0 && count > info.max_operands))
      fail(b, id, "has " + std::to_string(count) + " operands");
    for (Operand o : inst.operands) check_operand(b, id, o);
    switch (aux_kind(inst.op)) {
      case AuxKind::none:
      case AuxKind::index:
        break;
      case AuxKind::slot:
        if (inst.aux >= function_.slots.size()) fail(b, id, "slot out of range");
        break;
      case AuxKind::symbol:  // a cell_get that comes after cell_defined has no name for an error
        if (!inst.aux && inst.op != Op::cell_get) fail(b, id, "lacks what it refers to");
        break;
      case AuxKind::binding:
      case AuxKind::type_name:
      case AuxKind::specialization:
      case AuxKind::native:
      case AuxKind::tape_layout:
        if (!inst.aux) fail(b, id, "lacks what it refers to");
        break;
    }
  }

  void check_operand(BlockId b, std::uint32_t id, Operand o) {
    if (!o.valid()) return fail(b, id, "an operand is missing");
    std::size_t limit = o.is_constant() ? function_.constants.size() : function_.insts.size();
    if (o.index() >= limit) fail(b, id, "an operand is out of range");
  }

  void check_edges(BlockId b) {
    const Block& block = function_.blocks[b];
    Op op = function_.insts[block.terminator].op;
    std::size_t count = block.edges.size();
    bool right = op == Op::jump         ? count == 1
                 : op == Op::branch     ? count == 2
                 : op == Op::switch_int ? count >= 1
                                        : count == 0;
    if (!right) fail(b, block.terminator, "has " + std::to_string(count) + " edges");
    for (const Edge& edge : block.edges) {
      if (edge.target >= function_.blocks.size()) return fail(b, block.terminator, "an edge leads nowhere");
      const Block& target = function_.blocks[edge.target];
      if (begins_catch_[edge.target])
        return fail(b, block.terminator, "jumps to the handler b" + std::to_string(edge.target));
      if (edge.arguments.size() != target.parameters.size())
        return fail(b, block.terminator,
                    std::to_string(edge.arguments.size()) + " arguments for the " +
                        std::to_string(target.parameters.size()) + " parameters of b" + std::to_string(edge.target));
      for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
        check_operand(b, block.terminator, edge.arguments[i]);
        if (error_.empty() && function_.typed) check_argument(b, edge, i);
      }
    }
  }

  const Type* type_of(Operand o) const {
    return o.is_constant() ? function_.constants[o.index()].type : function_.insts[o.index()].type;
  }

  // Subtyping needs the type table; that different concrete types don't mix is seen without.
  static bool differ(const Type* given, const Type* wanted) {
    return given && wanted && given != wanted && is_concrete(given) && is_concrete(wanted) && !given->is_kind &&
           !wanted->is_kind;
  }

  void check_arithmetic(BlockId b, std::uint32_t id) {
    const Inst& inst = function_.insts[id];
    const OpInfo& info = op_info(inst.op);
    if (!inst.type || !is_concrete(inst.type)) return;  // known to raise, or of unknown type
    const Type* first = type_of(inst.operands[0]);
    if (info.result == ResultKind::first && differ(inst.type, first))
      return fail(b, id, "makes a " + to_string(inst.type) + " of a " + to_string(first));
    if (info.shape == Shape::shift) return;
    for (Operand o : inst.operands)
      if (const Type* other = type_of(o); differ(other, first))
        return fail(b, id, "mixes a " + to_string(first) + " and a " + to_string(other));
  }

  // What a derivative calls itself has the type Nothing: nobody looks at it. Where the derivative is differentiated
  // again, it is an argument, and the function that stands for the derivative is brought for it.
  static bool stands_for_itself(const Type* given, const Type* wanted) {
    return storage_of(wanted) == Storage::singleton && storage_of(given) == Storage::singleton &&
           as_data(given)->name->is_function && !as_data(wanted)->name->is_function;
  }

  // A specialisation gets what it was made for, its callee first; what is returned is what the function says.
  void check_types(BlockId b, std::uint32_t id) {
    const Inst& inst = function_.insts[id];
    if (inst.op == Op::ret && function_.return_type && differ(type_of(inst.operands[0]), function_.return_type))
      return fail(b, id,
                  "returns a " + to_string(type_of(inst.operands[0])) + " from a function that returns a " +
                      to_string(function_.return_type));
    if (is_arithmetic(inst.op)) return check_arithmetic(b, id);
    if (inst.op != Op::invoke) return;
    const DataType* types = inst.aux_as<Specialization>()->types;
    if (!types) return;  // made by hand, in tests of code generation
    std::span<const Type* const> wanted = types->params;
    for (std::size_t i = 0; i < wanted.size() && i < inst.operands.size(); ++i)
      if (const Type* given = type_of(inst.operands[i]);
          differ(given, wanted[i]) && !(i > 0 && stands_for_itself(given, wanted[i])))
        return fail(b, id, "gives a " + to_string(given) + " where " + to_string(wanted[i]) + " is wanted");
  }

  void check_argument(BlockId b, const Edge& edge, std::size_t i) {
    const Type* wanted = function_.insts[function_.blocks[edge.target].parameters[i]].type;
    const Type* given = type_of(edge.arguments[i]);
    if (!differ(given, wanted)) return;
    fail(b, function_.blocks[b].terminator,
         "an argument of type " + to_string(given) + " for a parameter of type " + to_string(wanted) + " of b" +
             std::to_string(edge.target));
  }

  // The first and the last number of each block's subtree of the dominator tree, so that a question takes no walk. In
  // the order of cfg_ a block comes after its dominator.
  void number_dominators() {
    const std::size_t count = function_.blocks.size();
    first_.assign(count, 0);
    size_.assign(count, 1);
    for (std::size_t k = cfg_.order.size(); k-- > 1;) {
      BlockId b = cfg_.order[k];
      size_[cfg_.idom[b]] += size_[b];
    }
    std::vector<std::uint32_t> next(count, 1);  // the number, from the parent's, that the next child gets
    for (std::size_t k = 1; k < cfg_.order.size(); ++k) {
      BlockId b = cfg_.order[k];
      BlockId parent = cfg_.idom[b];
      first_[b] = first_[parent] + next[parent];
      next[parent] += size_[b];
    }
  }
  bool dominates(BlockId a, BlockId b) const {
    return cfg_.reachable(a) && cfg_.reachable(b) && first_[b] - first_[a] < size_[a];
  }

  void check_uses(BlockId b) {
    const Block& block = function_.blocks[b];
    for (std::uint32_t id : block.insts) {
      for (Operand o : function_.insts[id].operands) check_dominance(b, id, o);
      if (function_.typed && error_.empty()) check_types(b, id);
    }
    for (Operand o : function_.insts[block.terminator].operands) check_dominance(b, block.terminator, o);
    if (function_.typed && error_.empty()) check_types(b, block.terminator);
    for (const Edge& edge : block.edges)
      for (Operand o : edge.arguments) check_dominance(b, block.terminator, o);
  }

  void check_dominance(BlockId b, std::uint32_t user, Operand o) {
    if (!o.is_inst()) return;
    std::uint32_t id = o.index();
    BlockId home = function_.insts[id].block;
    bool defined = home < function_.blocks.size() && position_[id] != unplaced &&
                   (home == b ? position_[id] < position_[user] : dominates(home, b));
    if (!defined) fail(b, user, "uses %" + std::to_string(id) + ", which is not defined on every way here");
    if (is_terminator(function_.insts[id].op)) fail(b, user, "uses a terminator");
  }

  static constexpr std::uint32_t unplaced = ~0u;
  const Function& function_;
  const bool wants_types_;
  Cfg cfg_;
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> size_;
  std::vector<std::uint32_t> position_;
  std::vector<bool> begins_catch_;
  std::string error_;
};

}  // namespace

std::string verify(const Function& function, Typing typing) { return Verifier(function, typing).run(); }

}  // namespace slope::ir
