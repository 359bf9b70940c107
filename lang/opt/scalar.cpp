// Scalar replacement of immutable aggregates that are passed through block parameters. A parameter that is a tuple, an
// immutable struct or a closure becomes one parameter for each field. Where the whole is still needed, the start of the
// block makes it again; when only fields are read, folding removes that.
//
// Aggregates that are made and read on one path need nothing here: fold simplifies field_at of tuple and make_struct.
#include "lang/ir/build.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/opt/opt.hpp"
#include "lang/support/tuning.hpp"

namespace slope::opt {

using ir::BlockId;
using ir::Op;
using ir::Operand;

namespace {

class ScalarReplacer {
 public:
  ScalarReplacer(Runtime& runtime, ir::Function& function) : runtime_(runtime), function_(function) {}

  bool run() {
    collect_uses();
    bool any = false;
    for (BlockId b = 1; b < function_.blocks.size(); ++b) {
      for (std::size_t i = 0; i < function_.blocks[b].parameters.size();) {
        std::uint32_t id = function_.blocks[b].parameters[i];
        if (worth_it(b, i, id)) {
          explode(b, i, id);
          any = true;
        } else {
          ++i;
        }
      }
    }
    return any;
  }

 private:
  void collect_uses() {
    read_.assign(function_.insts.size(), false);
    for (const ir::Block& block : function_.blocks)
      for (std::uint32_t id : block.insts)
        if (function_.insts[id].op == Op::field_at && function_.insts[id].operands[0].is_inst())
          read_[function_.insts[id].operands[0].index()] = true;
  }

  static bool makes(Op op) { return op == Op::tuple || op == Op::make_struct || op == Op::make_closure; }

  // At least one edge brings an aggregate that is made on the spot, or its fields are read here.
  bool worth_it(BlockId b, std::size_t position, std::uint32_t id) const {
    const DataType* type = as_data(function_.insts[id].type);
    if (!type || !type->is_concrete || type->is_mutable || type->object_kind != DataType::ObjectKind::fields ||
        type->storage == Storage::singleton || type->storage == Storage::bits ||
        type->fields.size() > tuning::scalar_fields)
      return false;
    for (const Field& field : type->fields)
      if (field.storage == Storage::reference && type->initialized_fields < type->fields.size()) return false;
    bool made = false;
    for (const ir::Block& block : function_.blocks) {
      for (const ir::Edge& edge : block.edges) {
        if (edge.target != b) continue;
        Operand o = edge.arguments[position];
        if (o.is_constant()) {
          if (!function_.constant_value(o).defined()) return false;
          continue;
        }
        const ir::Inst& definition = function_.inst(o);
        if (makes(definition.op) &&
            definition.operands.size() == type->fields.size() + (definition.op == Op::make_struct))
          made = true;
      }
    }
    return made || (id < read_.size() && read_[id]);
  }

  void explode(BlockId b, std::size_t position, std::uint32_t id) {
    const DataType* type = as_data(function_.insts[id].type);
    ir::Builder builder(function_);
    std::vector<Operand> parts;
    std::vector<std::uint32_t> parameters;
    for (const Field& field : type->fields) {
      ir::Inst inst;
      inst.op = Op::parameter;
      inst.type = field.type;
      inst.block = b;
      inst.span = function_.insts[id].span;
      parameters.push_back(static_cast<std::uint32_t>(function_.insts.size()));
      parts.push_back(Operand::inst(parameters.back()));
      function_.insts.push_back(std::move(inst));
    }
    for (BlockId from = 0; from < function_.blocks.size(); ++from) {
      for (std::size_t e = 0; e < function_.blocks[from].edges.size(); ++e) {
        if (function_.blocks[from].edges[e].target != b) continue;
        Operand whole = function_.blocks[from].edges[e].arguments[position];
        std::vector<Operand> fields = fields_of(builder, from, whole, type);
        std::vector<Operand>& arguments = function_.blocks[from].edges[e].arguments;
        arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(position));
        arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(position), fields.begin(), fields.end());
      }
    }
    std::vector<std::uint32_t>& list = function_.blocks[b].parameters;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(position));
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(position), parameters.begin(), parameters.end());

    // The whole, for whoever still wants it: the old inst becomes the one that makes it.
    bool tuple = type->is_tuple;
    ir::Inst& whole = function_.insts[id];
    whole.op = tuple ? Op::tuple : Op::make_struct;
    whole.operands = parts;
    if (!tuple) whole.operands.insert(whole.operands.begin(), function_.constant(runtime_.from_type(type)));
    function_.insts[id].flags |= ir::inst_nothrow;
    function_.blocks[b].insts.insert(function_.blocks[b].insts.begin(), id);
  }

  // At the end of `from`: the fields of an aggregate that goes over an edge.
  std::vector<Operand> fields_of(ir::Builder&, BlockId from, Operand whole, const DataType* type) {
    if (whole.is_inst()) {
      const ir::Inst& made = function_.inst(whole);
      std::size_t skip = made.op == Op::make_struct;
      if (makes(made.op) && made.operands.size() == type->fields.size() + skip && made.type == type)
        return {made.operands.begin() + static_cast<std::ptrdiff_t>(skip), made.operands.end()};
    }
    std::vector<Operand> fields;
    for (std::size_t i = 0; i < type->fields.size(); ++i) {
      ir::Inst inst;
      bool nothing_there = whole.is_inst() && function_.inst(whole).op == Op::undef;
      inst.op = nothing_there ? Op::undef : Op::field_at;
      inst.type = type->fields[i].type;
      if (!nothing_there) {
        inst.operands = {whole};
        inst.aux = i;
      }
      inst.block = from;
      inst.flags = ir::inst_nothrow;
      if (function_.blocks[from].terminator != ~0u) {
        inst.span = function_.insts[function_.blocks[from].terminator].span;
        inst.scope = function_.insts[function_.blocks[from].terminator].scope;
      }
      fields.push_back(Operand::inst(static_cast<std::uint32_t>(function_.insts.size())));
      function_.blocks[from].insts.push_back(static_cast<std::uint32_t>(function_.insts.size()));
      function_.insts.push_back(std::move(inst));
    }
    return fields;
  }

  Runtime& runtime_;
  ir::Function& function_;
  std::vector<bool> read_;
};

}  // namespace

bool scalar_replace(Runtime& runtime, ir::Function& function) { return ScalarReplacer(runtime, function).run(); }

}  // namespace slope::opt
