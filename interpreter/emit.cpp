#include <algorithm>

#include "interpreter/bytecode.hpp"
#include "lang/ir/cfg.hpp"

namespace slope::interpreter {

namespace {

class Emitter {
 public:
  explicit Emitter(const ir::Function& function) : function_(function), result_(std::make_shared<Bytecode>()) {}

  std::shared_ptr<Bytecode> run() {
    result_->function = &function_;
    number_registers();
    find_catch_depths();
    if (function_.typed) position_ = ir::build_cfg(function_).position;
    block_pc_.assign(function_.blocks.size(), 0);
    for (ir::BlockId b = 0; b < function_.blocks.size(); ++b) emit_block(b);
    for (std::size_t i = 0; i < result_->edges.size(); ++i) result_->edges[i].target_pc = block_pc_[edge_targets_[i]];
    for (ir::BlockId b = 0; b < function_.blocks.size(); ++b) {
      ir::BlockId handler = function_.blocks[b].handler;
      if (handler != ir::no_block) result_->blocks[b].handler_pc = block_pc_[handler];
    }
    if (!result_->loops.empty()) result_->register_of = register_;
    return result_;
  }

 private:
  void number_registers() {
    register_.assign(function_.insts.size(), ~0u);
    std::uint32_t next = 0;
    for (const ir::Block& block : function_.blocks) {
      for (std::uint32_t id : block.parameters) register_[id] = next++;
      for (std::uint32_t id : block.insts) register_[id] = next++;
    }
    spare_ = next++;
    result_->register_count = next;
    result_->slot_count = static_cast<std::uint32_t>(function_.slots.size());
    for (std::uint32_t id : function_.blocks[0].parameters) result_->parameters.push_back(register_[id]);
  }

  // How many catch blocks surround each block's start: +1 at `caught`, -1 at `caught_end`.
  void find_catch_depths() {
    catch_depth_.assign(function_.blocks.size(), 0);
    std::vector<bool> seen(function_.blocks.size());
    std::vector<ir::BlockId> work{0};
    seen[0] = true;
    while (!work.empty()) {
      ir::BlockId b = work.back();
      work.pop_back();
      const ir::Block& block = function_.blocks[b];
      std::uint32_t depth = catch_depth_[b];
      for (std::uint32_t id : block.insts) {
        if (function_.insts[id].op == ir::Op::caught) {
          ++depth;
          result_->uses_catch = true;
        }
        if (function_.insts[id].op == ir::Op::caught_end && depth > 0) --depth;
      }
      auto visit = [&](ir::BlockId next, std::uint32_t at) {
        if (next == ir::no_block || seen[next]) return;
        seen[next] = true;
        catch_depth_[next] = at;
        work.push_back(next);
      };
      for (const ir::Edge& edge : block.edges) visit(edge.target, depth);
      visit(block.handler, catch_depth_[b]);
    }
  }

  std::uint32_t operand(ir::Operand o) const { return o.is_constant() ? o.bits : register_[o.index()]; }

  void emit_block(ir::BlockId b) {
    const ir::Block& block = function_.blocks[b];
    block_pc_[b] = static_cast<std::uint32_t>(result_->code.size());
    result_->blocks.push_back({block_pc_[b], ~0u, catch_depth_[b]});
    for (std::uint32_t id : block.insts) emit_inst(id);
    if (block.terminator == ~0u) return;
    std::uintptr_t first_edge = result_->edges.size();
    for (const ir::Edge& edge : block.edges) emit_edge(b, edge);
    emit_inst(block.terminator);
    if (!block.edges.empty()) result_->code.back().aux = first_edge;
  }

  void emit_inst(std::uint32_t id) {
    const ir::Inst& inst = function_.insts[id];
    Instruction code{};
    code.op = inst.op;
    code.operand_count = static_cast<std::uint32_t>(inst.operands.size()) & most_operands;
    code.destination = register_[id];
    code.first_operand = static_cast<std::uint32_t>(result_->operands.size());
    code.inst = id;
    code.aux = inst.aux;
    for (ir::Operand o : inst.operands) result_->operands.push_back(operand(o));
    result_->scratch_count = std::max<std::uint32_t>(result_->scratch_count, std::uint32_t{code.operand_count});
    if (inst.op == ir::Op::call) {
      code.aux = result_->call_sites.size();
      result_->call_sites.emplace_back();
    }
    result_->code.push_back(code);
  }

  void emit_edge(ir::BlockId from, const ir::Edge& edge) {
    const ir::Block& target = function_.blocks[edge.target];
    EdgeCode code;
    code.first_move = static_cast<std::uint32_t>(result_->moves.size());
    std::vector<Move> pending;
    for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
      Move move{register_[target.parameters[i]], operand(edge.arguments[i])};
      if (move.destination != move.source) pending.push_back(move);
    }
    order_moves(pending);
    code.move_count = static_cast<std::uint32_t>(result_->moves.size()) - code.first_move;
    // A safe point; where the header is marked also a place to continue in machine code. Typed code goes on anywhere.
    if (is_back_edge(from, edge.target)) code.loop = loop_index(edge.target, target.is_loop_header || function_.typed);
    result_->edges.push_back(code);
    edge_targets_.push_back(edge.target);
  }

  // Lowering puts a loop's header before its body, so a header already emitted is behind. Passes, above all reverse
  // mode, put blocks anywhere.
  bool is_back_edge(ir::BlockId from, ir::BlockId target) const {
    return position_.empty() ? target < result_->blocks.size() : position_[target] <= position_[from];
  }

  std::uint32_t loop_index(ir::BlockId header, bool is_marked) {
    for (std::uint32_t i = 0; i < result_->loops.size(); ++i)
      if (result_->loops[i].header == header) return i;
    LoopCode loop;
    loop.header = header;
    loop.possible = is_marked;
    result_->loops.push_back(std::move(loop));
    return static_cast<std::uint32_t>(result_->loops.size() - 1);
  }

  // Parallel moves in sequence: a move whose destination nobody still reads goes first; a cycle is broken by the spare.
  void order_moves(std::vector<Move>& pending) {
    while (!pending.empty()) {
      bool progress = false;
      for (std::size_t i = 0; i < pending.size(); ++i) {
        std::uint32_t destination = pending[i].destination;
        bool still_read = std::any_of(pending.begin(), pending.end(),
                                      [&](const Move& m) { return &m != &pending[i] && m.source == destination; });
        if (still_read) continue;
        result_->moves.push_back(pending[i]);
        pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
        progress = true;
        break;
      }
      if (progress) continue;
      std::uint32_t saved = pending[0].destination;
      result_->moves.push_back({spare_, saved});
      for (Move& m : pending)
        if (m.source == saved) m.source = spare_;
    }
  }

  const ir::Function& function_;
  std::shared_ptr<Bytecode> result_;
  std::vector<std::uint32_t> register_;
  std::vector<std::uint32_t> block_pc_;
  std::vector<std::uint32_t> catch_depth_;
  std::vector<std::uint32_t> position_;  // of blocks in reverse postorder, of typed functions
  std::vector<ir::BlockId> edge_targets_;
  std::uint32_t spare_ = 0;
};

}  // namespace

const BlockRange& Bytecode::range_of(std::uint32_t pc) const {
  auto after = std::upper_bound(blocks.begin(), blocks.end(), pc,
                                [](std::uint32_t at, const BlockRange& range) { return at < range.first_pc; });
  return *(after - 1);
}

std::shared_ptr<Bytecode> emit(const ir::Function& function) { return Emitter(function).run(); }

}  // namespace slope::interpreter
