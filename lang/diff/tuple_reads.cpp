#include "lang/diff/tuple_reads.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "lang/diff/operations.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/support/tuning.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

namespace {

constexpr std::size_t widest_switch = tuning::widest_switch;

class TupleReads {
 public:
  TupleReads(ir::Function& function, Runtime& runtime)
      : function_(function), runtime_(runtime), builtin_(runtime.types.builtin()), at_(function) {}

  void run() {
    for (BlockId b = 0; b < function_.blocks.size(); ++b) {  // what follows a read is a block of its own, seen later
      for (std::size_t i = 0; i < function_.blocks[b].insts.size(); ++i) {
        std::uint32_t id = function_.blocks[b].insts[i];
        const DataType* tuple = raising_.count(id) ? nullptr : expandable(function_.insts[id]);
        if (!tuple) continue;
        expand(b, i, *tuple);
        break;
      }
    }
    if (replacement_.empty()) return;
    std::vector<Operand> replacement(function_.insts.size());
    for (auto [id, by] : replacement_) replacement[id] = by;
    ir::replace_all_uses(function_, replacement);
  }

 private:
  const DataType* expandable(const ir::Inst& inst) {
    if (inst.op != Op::get_field || !inst.operands[0].is_inst() || !inst.operands[1].is_inst()) return nullptr;
    if (indexed_element(function_, inst, runtime_)) return nullptr;
    const DataType* tuple = as_data(function_.inst(inst.operands[0]).type);
    if (!tuple || !tuple->is_concrete || !(tuple->is_tuple || tuple->is_named_tuple) || tuple->fields.empty() ||
        function_.inst(inst.operands[1]).type != builtin_.int64)
      return nullptr;
    TangentTypes& tangents = tangent_types(runtime_);
    if (!tangents.known(tuple) || !tangents.differentiable(tuple)) return nullptr;
    return is_wide(*tuple) || tuple->fields.size() <= widest_switch ? tuple : nullptr;
  }
  static bool is_wide(const DataType& tuple) {
    if (tuple.fields.size() <= widest_switch) return false;
    for (const Field& field : tuple.fields)
      if (field.type != tuple.fields[0].type) return false;
    return true;
  }

  void expand(BlockId b, std::size_t position, const DataType& tuple) {
    const bool wide = is_wide(tuple);
    std::uint32_t id = function_.blocks[b].insts[position];
    const ir::Inst read = function_.insts[id];
    Operand elements = wide ? array_of(read.operands[0], tuple) : Operand();
    // The array's code may have come before the read.
    std::vector<std::uint32_t>& insts = function_.blocks[b].insts;
    position = static_cast<std::size_t>(std::find(insts.begin(), insts.end(), id) - insts.begin());
    at_.set_handler(function_.blocks[b].handler);
    at_.set_span(read.span);
    at_.set_scope(read.scope);
    BlockId rest = split(b, position);
    Operand result = at_.add_parameter(rest, wide ? tuple.fields[0].type : read.type);
    replacement_[id] = result;
    at_.set_block(b);
    Operand place = at_.emit(Op::sub_int, {read.operands[1], at_.constant(runtime_.from_int(1))}, builtin_.int64);
    BlockId outside = at_.new_block();
    if (wide) {
      BlockId inside = at_.new_block();
      Operand count = at_.constant(runtime_.from_int(static_cast<std::int64_t>(tuple.fields.size())));
      at_.branch(at_.emit(Op::ult_int, {place, count}, builtin_.boolean), inside, outside);
      at_.set_block(inside);
      at_.jump(rest, {at_.emit(Op::array_get, {elements, read.operands[1]}, tuple.fields[0].type)});
    } else {
      std::vector<ir::Edge> ways;
      for (std::size_t k = 0; k < tuple.fields.size(); ++k) ways.push_back({at_.new_block(), {}});
      ways.push_back({outside, {}});
      at_.switch_int(place, ways);
      for (std::size_t k = 0; k < tuple.fields.size(); ++k) {
        at_.set_block(ways[k].target);
        at_.jump(rest, {at_.emit(Op::field_at, {read.operands[0]}, tuple.fields[k].type, k)});
      }
    }
    at_.set_block(outside);  // raises the BoundsError
    raising_.insert(at_.emit(Op::get_field, read.operands, read.type).index());
    at_.unreachable();
  }

  // The read goes; what comes after it in its block goes to a new one.
  BlockId split(BlockId b, std::size_t position) {
    BlockId rest = at_.new_block();
    ir::Block& from = function_.blocks[b];
    ir::Block& to = function_.blocks[rest];
    to.insts.assign(from.insts.begin() + static_cast<std::ptrdiff_t>(position) + 1, from.insts.end());
    from.insts.resize(position);
    to.terminator = from.terminator;
    to.edges = std::move(from.edges);
    to.handler = from.handler;
    from.terminator = ~0u;
    from.edges.clear();
    for (std::uint32_t id : to.insts) function_.insts[id].block = rest;
    function_.insts[to.terminator].block = rest;
    return rest;
  }

  Operand array_of(Operand tuple, const DataType& type) {
    auto [known, fresh] = arrays_.try_emplace(tuple.index());
    if (!fresh) return known->second;
    const ir::Inst made = function_.inst(tuple);
    const DataType* array = runtime_.types.array_of(type.fields[0].type, 1);
    std::vector<std::uint32_t> added;
    auto add = [&](Op op, std::vector<Operand> operands, const Type* result, std::uintptr_t aux = 0) {
      ir::Inst inst;
      inst.op = op;
      inst.operands = std::move(operands);
      inst.type = result;
      inst.aux = aux;
      inst.span = made.span;
      inst.scope = made.scope;
      inst.block = made.block;
      added.push_back(static_cast<std::uint32_t>(function_.insts.size()));
      function_.insts.push_back(std::move(inst));
      return Operand::inst(added.back());
    };
    auto number = [&](std::size_t n) { return function_.constant(runtime_.from_int(static_cast<std::int64_t>(n))); };
    known->second =
        add(Op::array_new, {function_.constant(runtime_.from_type(array)), number(type.fields.size())}, array);
    for (std::size_t k = 0; k < type.fields.size(); ++k) {
      Operand element = add(Op::field_at, {tuple}, type.fields[k].type, k);
      add(Op::array_init, {known->second, element, number(k + 1)}, builtin_.nothing);
    }
    std::vector<std::uint32_t>& insts = function_.blocks[made.block].insts;
    auto where = insts.begin();
    if (made.op != Op::parameter) where = std::find(insts.begin(), insts.end(), tuple.index()) + 1;
    insts.insert(where, added.begin(), added.end());
    return known->second;
  }

  ir::Function& function_;
  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  ir::Builder at_;
  std::map<std::uint32_t, Operand> arrays_;  // by the inst that makes the tuple
  std::map<std::uint32_t, Operand> replacement_;
  std::set<std::uint32_t> raising_;  // reads outside the tuple
};

}  // namespace

void expand_tuple_reads(ir::Function& function, Runtime& runtime) { TupleReads(function, runtime).run(); }

}  // namespace slope::diff
