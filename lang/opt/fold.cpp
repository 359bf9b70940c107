// Constants, identities and decided branches. Rules look at one instruction and the definitions of its operands.
//
// Requirements of every rule: the result has a type that is at most the instruction's, raises nothing that the
// instruction would not have raised, and reads no memory that could have changed.
#include "lang/ir/execute/execute.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/opt/opt.hpp"

namespace slope::opt {

using ir::Op;
using ir::Operand;

namespace {

class Folder {
 public:
  Folder(Runtime& runtime, ir::Function& function)
      : runtime_(runtime), builtin_(runtime.types.builtin()), function_(function), replacement_(function.insts.size()) {
    for (const ir::Block& block : function_.blocks)
      for (std::uint32_t id : block.insts)
        if (ir::is_resize(function_.insts[id].op)) resized_ = true;
  }

  bool run() {
    bool branches = false;
    for (std::size_t b = 0; b < function_.blocks.size(); ++b) {
      for (std::size_t i = 0; i < function_.blocks[b].insts.size(); ++i) {
        std::uint32_t id = function_.blocks[b].insts[i];
        Operand result = fold(id);
        if (!result.valid()) continue;
        replacement_[id] = result;
        function_.insts[id].flags |= ir::inst_nothrow | ir::inst_effect_free;  // its value is known: it goes
        changed_ = true;
      }
      branches |= fold_branch(function_.blocks[b]);
    }
    fold_parameters();
    if (changed_) ir::replace_all_uses(function_, replacement_);
    if (branches) ir::simplify_cfg(function_);
    return changed_ || branches;
  }

 private:
  Operand follow(Operand o) const {
    while (o.is_inst() && o.index() < replacement_.size() && replacement_[o.index()].valid())
      o = replacement_[o.index()];
    return o;
  }
  const ir::Inst* definition(Operand o) const { return o.is_inst() ? &function_.inst(o) : nullptr; }
  bool is_int(Operand o, std::int64_t n) const {
    if (!o.is_constant()) return false;
    Value v = function_.constant_value(o);
    const DataType* d = as_data(v.type);
    return d && d->storage == Storage::bits && is_subtype(runtime_.types, v.type, builtin_.integer) && v.bits == n;
  }
  Operand boolean(bool b) { return function_.constant(runtime_.from_bool(b)); }
  const Type* type_of(Operand o) const { return function_.type_of(o, runtime_.types); }

  static bool is_array(const Type* type) {
    const DataType* data = as_data(type);
    return data && data->is_concrete && data->object_kind == DataType::ObjectKind::array;
  }

  static bool pure_of_values(Op op) {
    std::uint32_t effects = ir::op_info(op).effects;
    if (effects & (effect_writes | effect_reads | effect_allocates)) return false;
    switch (op) {
      case Op::refine:
      case Op::undef:
      case Op::static_param:
      case Op::type_assert:
      case Op::select:
      case Op::slot_get:
        return false;
      default:
        return !ir::is_terminator(op);
    }
  }

  Operand evaluate(const ir::Inst& inst) {
    if (!pure_of_values(inst.op) || inst.operands.empty()) return {};
    Value operands[4];
    if (inst.operands.size() > 4) return {};
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      Operand o = follow(inst.operands[i]);
      if (!o.is_constant()) return {};
      operands[i] = function_.constant_value(o);
      if (!operands[i].defined()) return {};
      if (storage_of(operands[i].type) != Storage::bits && inst.op != Op::isa && inst.op != Op::subtype &&
          inst.op != Op::type_of && !runtime_.is_type_value(operands[i]))
        return {};
    }
    Context& ctx = runtime_.context;
    if (ctx.failed()) return {};
    Value result;
    if (!ir::execute(ctx, inst.op, operands, inst.operands.size(), inst.aux, result)) {
      ctx.take_error();
      return {};
    }
    return function_.constant(result);
  }

  Operand fold(std::uint32_t id) {
    ir::Inst& inst = function_.insts[id];
    for (Operand& o : inst.operands) o = follow(o);
    if (Operand value = evaluate(inst); value.valid()) return value;
    switch (inst.op) {
      case Op::add_int:
      case Op::or_int:
      case Op::xor_int:
        if (is_int(inst.operands[0], 0)) return inst.operands[1];
        if (is_int(inst.operands[1], 0)) return inst.operands[0];
        return {};
      case Op::sub_int: {
        if (is_int(inst.operands[1], 0)) return inst.operands[0];
        // (a + b) - b, as index arithmetic makes it
        const ir::Inst* sum = definition(inst.operands[0]);
        if (sum && sum->op == Op::add_int && follow(sum->operands[1]) == inst.operands[1])
          return follow(sum->operands[0]);
        if (sum && sum->op == Op::add_int && follow(sum->operands[0]) == inst.operands[1])
          return follow(sum->operands[1]);
        return {};
      }
      case Op::array_check: {  // nothing that the host may lend
        const DataType* array = as_data(type_of(inst.operands[0]));
        const DataType* item = as_data(type_of(inst.operands[1]));
        const bool fits = is_array(array) && item && item->is_concrete && item->is_isbits &&
                          is_subtype(runtime_.types, item, array->params[0]);
        return fits ? function_.constant(runtime_.nothing()) : Operand();
      }
      case Op::mul_int:
        if (is_int(inst.operands[0], 1)) return inst.operands[1];
        if (is_int(inst.operands[1], 1)) return inst.operands[0];
        return {};
      case Op::not_int: {
        const ir::Inst* inner = definition(inst.operands[0]);
        return inner && inner->op == Op::not_int ? follow(inner->operands[0]) : Operand();
      }
      case Op::select:
        if (inst.operands[0].is_constant())
          return function_.constant_value(inst.operands[0]).bits ? inst.operands[1] : inst.operands[2];
        return inst.operands[1] == inst.operands[2] ? inst.operands[1] : Operand();
      case Op::refine:
      case Op::type_assert:
        return is_subtype(runtime_.types, type_of(inst.operands[0]), inst.type) &&
                       (inst.op == Op::refine || asserts_nothing(inst))
                   ? inst.operands[0]
                   : Operand();
      case Op::isa: {
        if (!inst.operands[1].is_constant()) return {};
        Value type = function_.constant_value(inst.operands[1]);
        if (!runtime_.is_type_value(type)) return {};
        const Type* known = type_of(inst.operands[0]);
        if (is_subtype(runtime_.types, known, type.as_type)) return boolean(true);
        if (certainly_disjoint(runtime_.types, known, type.as_type)) return boolean(false);
        return {};
      }
      case Op::type_of: {
        const Type* known = type_of(inst.operands[0]);
        return is_concrete(known) && as_data(known)->name != builtin_.type_name
                   ? function_.constant(runtime_.from_type(known))
                   : Operand();
      }
      case Op::egal:
        return fold_egal(inst);
      case Op::eq_int:
        return inst.operands[0] == inst.operands[1] && inst.operands[0].is_inst() ? boolean(true) : Operand();
      case Op::native:
        return evaluate_native(inst);
      case Op::get_field:
      case Op::set_field:
        name_field(inst);
        return inst.op == Op::field_at ? field(inst) : Operand();
      case Op::field_at:
        // A part of what nobody looks at.
        if (const ir::Inst* object = definition(inst.operands[0]); object && object->op == Op::undef) {
          inst.op = Op::undef;
          inst.operands.clear();
          inst.aux = 0;
          changed_ = true;
          return {};
        }
        return field(inst);
      case Op::array_length:
        return fresh_length(inst, 0);
      case Op::array_size:
        if (!inst.operands[1].is_constant()) return {};
        if (function_.constant_value(inst.operands[1]).type == builtin_.int64 &&
            function_.constant_value(inst.operands[1]).bits >= 1 && is_array(type_of(inst.operands[0])))
          inst.flags |= ir::inst_nothrow;
        return fresh_length(inst, function_.constant_value(inst.operands[1]).bits);
      default:
        return {};
    }
  }

  Operand fold_egal(ir::Inst& inst) {
    const Type* a = type_of(inst.operands[0]);
    const Type* b = type_of(inst.operands[1]);
    if (certainly_disjoint(runtime_.types, a, b)) return boolean(false);
    if (a == b && storage_of(a) == Storage::singleton) return boolean(true);
    if (inst.operands[0].is_constant() && inst.operands[1].is_constant()) {
      // Identity: what the objects hold does not matter, so it may change.
      Value left = function_.constant_value(inst.operands[0]), right = function_.constant_value(inst.operands[1]);
      return left.defined() && right.defined() ? boolean(egal(left, right)) : Operand();
    }
    if (inst.operands[0] == inst.operands[1] && inst.operands[0].is_inst()) return boolean(true);
    const ir::Inst* left = definition(inst.operands[0]);
    const ir::Inst* right = definition(inst.operands[1]);
    if (left && right && left->op == Op::tuple && right->op == Op::tuple && left->operands.size() == 1 &&
        right->operands.size() == 1) {
      Operand first = follow(left->operands[0]);
      Operand second = follow(right->operands[0]);
      inst.operands = {first, second};
      changed_ = true;
      return first == second && first.is_inst() ? boolean(true) : Operand();
    }
    if (a == b && storage_of(a) == Storage::bits && is_subtype(runtime_.types, a, builtin_.integer)) {
      inst.op = Op::eq_int;
      changed_ = true;
    }
    return {};
  }

  bool asserts_nothing(const ir::Inst& inst) const {
    if (!inst.operands[1].is_constant()) return false;
    Value type = function_.constant_value(inst.operands[1]);
    return runtime_.is_type_value(type) && is_subtype(runtime_.types, type_of(inst.operands[0]), type.as_type);
  }

  // A native without effects, of constants that are types, symbols or plain bits.
  Operand evaluate_native(const ir::Inst& inst) {
    const NativeInfo& native = *inst.aux_as<const NativeInfo>();
    if ((native.effects & ~static_cast<std::uint32_t>(effect_throws)) || inst.operands.size() > 4 ||
        runtime_.context.failed())
      return {};
    Value operands[4];
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      if (!inst.operands[i].is_constant()) return {};
      operands[i] = function_.constant_value(inst.operands[i]);
      if (!operands[i].defined() || !(runtime_.is_type_value(operands[i]) || operands[i].type == builtin_.symbol ||
                                      storage_of(operands[i].type) == Storage::bits))
        return {};
    }
    Value result;
    if (!native.function(runtime_.context, operands, inst.operands.size(), result)) {
      runtime_.context.take_error();
      return {};
    }
    return storage_of(result.type) == Storage::bits || runtime_.is_type_value(result) ? function_.constant(result)
                                                                                      : Operand();
  }

  // A field by a constant name or index of an object of known type: by position from now on.
  void name_field(ir::Inst& inst) {
    const DataType* object = as_data(type_of(inst.operands[0]));
    if (!object || !object->is_concrete || object->object_kind != DataType::ObjectKind::fields ||
        !inst.operands[1].is_constant() || object->name == builtin_.type_name || object->is_kind)
      return;
    Value name = function_.constant_value(inst.operands[1]);
    std::int64_t index = -1;
    if (name.type == builtin_.symbol) index = object->field_index(name.symbol);
    if (name.type == builtin_.int64) index = name.bits - 1;
    if (index < 0 || index >= static_cast<std::int64_t>(object->fields.size())) return;
    const Field& field = object->fields[static_cast<std::size_t>(index)];
    if (inst.op == Op::set_field) {
      if (!object->is_mutable || field.is_const || !is_subtype(runtime_.types, type_of(inst.operands[2]), field.type))
        return;
      inst.op = Op::set_field_at;
      inst.operands = {inst.operands[0], inst.operands[2]};
      inst.type = builtin_.nothing;
      // The op gives nothing, set_field the value: whoever uses that gets the value itself.
      replacement_[static_cast<std::size_t>(&inst - function_.insts.data())] = inst.operands[1];
    } else {
      inst.op = Op::field_at;
      inst.operands = {inst.operands[0]};
      inst.type = field.type;
    }
    inst.aux = static_cast<std::uintptr_t>(index);
    changed_ = true;
  }

  Operand field(const ir::Inst& inst) {
    const DataType* object = as_data(type_of(inst.operands[0]));
    if (!object || object->is_mutable) return {};
    if (inst.operands[0].is_constant()) {
      Value v = function_.constant_value(inst.operands[0]);
      if (object->storage == Storage::singleton || !v.object) return {};
      Value part = load_field(runtime_.heap, v.object, object->fields[inst.aux]);
      return part.defined() ? function_.constant(part) : Operand();
    }
    const ir::Inst* made = definition(inst.operands[0]);
    while (made && made->op == Op::refine) made = definition(follow(made->operands[0]));
    if (!made) return {};
    std::size_t skip = made->op == Op::make_struct ? 1 : 0;
    if (made->op != Op::make_struct && made->op != Op::tuple && made->op != Op::make_closure) return {};
    std::size_t at = inst.aux + skip;
    if (at >= made->operands.size()) return {};
    Operand part = follow(made->operands[at]);
    return is_subtype(runtime_.types, type_of(part), inst.type) ? part : Operand();
  }

  // The length of an array made in this function is what it was made with, as long as nothing here resizes arrays;
  // others can't if the array never leaves, which is not asked: vectors may grow in callees, other arrays can't.
  Operand fresh_length(const ir::Inst& inst, std::int64_t dimension) {
    const ir::Inst* made = definition(inst.operands[0]);
    if (!made || made->op != Op::array_new) return {};
    std::size_t dims = made->operands.size() - 1;
    if (dims == 1 && (resized_ || escapes(inst.operands[0]))) return {};
    if (dimension == 0 && dims != 1) return {};
    if (dimension == 0) dimension = 1;
    if (dimension < 1 || static_cast<std::size_t>(dimension) > dims) return {};
    Operand length = follow(made->operands[static_cast<std::size_t>(dimension)]);
    return type_of(length) == builtin_.int64 ? length : Operand();
  }

  // Given to a call, stored or passed on: someone else may resize it.
  bool escapes(Operand array) const {
    for (const ir::Block& block : function_.blocks) {
      for (std::uint32_t id : block.insts) {
        const ir::Inst& inst = function_.insts[id];
        if (inst.op == Op::array_get || inst.op == Op::array_length || inst.op == Op::array_size) continue;
        bool store = inst.op == Op::array_set || inst.op == Op::array_init;
        for (std::size_t i = 0; i < inst.operands.size(); ++i)
          if (follow(inst.operands[i]) == array && !(store && i == 0)) return true;
      }
      for (const ir::Edge& edge : block.edges)
        for (Operand o : edge.arguments)
          if (follow(o) == array) return true;
    }
    return false;
  }

  bool fold_branch(ir::Block& block) {
    if (block.terminator == ~0u) return false;
    ir::Inst& inst = function_.insts[block.terminator];
    for (Operand& o : inst.operands) o = follow(o);
    if (inst.op != Op::branch) return false;
    const ir::Inst* condition = definition(inst.operands[0]);
    if (condition && condition->op == Op::not_int && type_of(condition->operands[0]) == builtin_.boolean) {
      inst.operands[0] = follow(condition->operands[0]);
      std::swap(block.edges[0], block.edges[1]);
      changed_ = true;
    }
    if (!inst.operands[0].is_constant()) return false;
    Value v = function_.constant_value(inst.operands[0]);
    if (v.type != builtin_.boolean) return false;
    ir::Edge taken = block.edges[v.bits ? 0 : 1];
    inst.op = Op::jump;
    inst.operands.clear();
    block.edges = {taken};
    return true;
  }

  // A parameter that every edge gives the same value (or itself) is that value.
  void fold_parameters() {
    std::vector<Operand> same(function_.insts.size());
    std::vector<bool> differs(function_.insts.size());
    for (const ir::Block& block : function_.blocks) {
      for (const ir::Edge& edge : block.edges) {
        const std::vector<std::uint32_t>& parameters = function_.blocks[edge.target].parameters;
        for (std::size_t i = 0; i < edge.arguments.size(); ++i) {
          Operand o = follow(edge.arguments[i]);
          if (o == Operand::inst(parameters[i])) continue;
          if (!same[parameters[i]].valid())
            same[parameters[i]] = o;
          else if (same[parameters[i]] != o)
            differs[parameters[i]] = true;
        }
      }
    }
    for (std::size_t b = 1; b < function_.blocks.size(); ++b) {
      for (std::uint32_t id : function_.blocks[b].parameters) {
        if (differs[id] || !same[id].valid() || replacement_[id].valid()) continue;
        Operand value = follow(same[id]);
        if (value == Operand::inst(id)) continue;
        if (value.is_constant() && !function_.constant_value(value).defined()) continue;
        if (!is_subtype(runtime_.types, type_of(value), function_.insts[id].type)) continue;
        replacement_[id] = value;
        changed_ = true;
      }
    }
  }

  Runtime& runtime_;
  const BuiltinTypes& builtin_;
  ir::Function& function_;
  std::vector<Operand> replacement_;
  bool resized_ = false;
  bool changed_ = false;
};

}  // namespace

bool fold(Runtime& runtime, ir::Function& function) { return Folder(runtime, function).run(); }

}  // namespace slope::opt
