#include "lang/diff/forward.hpp"

#include "lang/diff/normal_form.hpp"
#include "lang/diff/operations.hpp"
#include "lang/diff/partials.hpp"
#include "lang/ir/passes.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

Forward::Forward(Environment& env, std::unique_ptr<ir::Function> primal, Refusal& refusal)
    : env_(env),
      runtime_(env.runtime()),
      tangents_(tangent_types(env.runtime())),
      builtin_(env.runtime().types.builtin()),
      refusal_(refusal),
      primal_(std::move(primal)) {}

bool Forward::refuse(const ir::Inst& at, std::string reason) {
  if (refusal_.reason.empty()) refusal_ = refusal_at(*primal_, at, runtime_, std::move(reason));
  return false;
}

bool Forward::run(const std::vector<char>& active, Derivative& result) {
  if (!normalise(*primal_, runtime_, refusal_)) return false;
  if (!analyse_activity(*primal_, tangents_, env_.memory(), env_.world(), active, &edges_, activity_, refusal_, true))
    return false;
  ir::Cfg cfg = ir::build_cfg(*primal_);
  out_ = std::make_unique<ir::Function>();
  out_->method = primal_->method;
  out_->name = "tangent of " + primal_->name;
  out_->typed = true;
  out_->scopes = primal_->scopes;
  out_->span = primal_->span;
  out_->static_params = primal_->static_params;
  b_ = std::make_unique<ir::Builder>(*out_);
  blocks_.assign(primal_->blocks.size(), ir::no_block);
  value_.assign(primal_->insts.size(), Operand());
  shadow_.assign(primal_->insts.size(), Operand());
  leaves_.assign(primal_->insts.size(), {});
  for (BlockId b : cfg.order) blocks_[b] = b_->new_block();
  b_->set_block(0);
  b_->add_parameter(0, builtin_.nothing);
  const std::vector<std::uint32_t>& parameters = primal_->blocks[0].parameters;
  for (std::uint32_t id : parameters) value_[id] = b_->add_parameter(0, primal_->insts[id].type);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Type* type = primal_->insts[parameters[i]].type;
    if (activity_.active_parameters[i] && tangents_.has_shadow(type))
      shadow_[parameters[i]] = b_->add_parameter(0, tangents_.shadow(type));
  }
  std::vector<std::pair<std::uint32_t, Operand>> given;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Type* type = primal_->insts[parameters[i]].type;
    if (activity_.active_parameters[i] && tangents_.has_cotangent(type))
      given.push_back({parameters[i], b_->add_parameter(0, tangents_.cotangent(type))});
  }
  for (auto [id, tangent] : given) unpack(primal_->insts[id].type, tangent, leaves_[id]);
  for (BlockId b : cfg.order) {
    if (b == 0) continue;
    out_->blocks[blocks_[b]].is_loop_header = primal_->blocks[b].is_loop_header;
    for (std::uint32_t id : primal_->blocks[b].parameters)
      value_[id] = b_->add_parameter(blocks_[b], primal_->insts[id].type);
    for (std::uint32_t id : primal_->blocks[b].parameters) {
      const Type* type = primal_->insts[id].type;
      if (!activity_.varied[id]) continue;
      if (tangents_.has_shadow(type)) shadow_[id] = b_->add_parameter(blocks_[b], tangents_.shadow(type));
      for (const TangentTypes::Leaf& leaf : tangents_.leaves(type))
        leaves_[id].push_back(b_->add_parameter(blocks_[b], leaf.type));
    }
  }
  const Type* return_type = primal_->return_type;
  const Type* parts[] = {return_type, tangents_.shadow(return_type), tangents_.cotangent(return_type)};
  if (!parts[1] || !parts[2]) parts[1] = parts[2] = builtin_.nothing;
  out_->return_type = runtime_.types.tuple(parts);
  for (BlockId b : cfg.order)
    if (!block(b)) return false;
  if (!refusal_.reason.empty()) return false;
  for (ir::Inst& inst : out_->insts)
    if (!inst.type && ir::op_info(inst.op).derivative != ir::Derivative::none && inst.op != Op::call &&
        inst.op != Op::get_field)
      inst.type = builtin_.nothing;
  ir::simplify_cfg(*out_);
  ir::remove_dead_insts(*out_);
  result.forward = std::move(out_);
  result.active = activity_.active_parameters;
  result.edges = std::move(edges_);
  return true;
}

bool Forward::block(BlockId b) {
  b_->set_block(blocks_[b]);
  const ir::Block& block = primal_->blocks[b];
  for (std::uint32_t id : block.insts) {
    b_->set_span(primal_->insts[id].span);
    b_->set_scope(primal_->insts[id].scope);
    if (!activity_.returns[b])
      clone(id);
    else if (!inst(id))
      return false;
  }
  const ir::Inst terminator = primal_->insts[block.terminator];
  b_->set_span(terminator.span);
  b_->set_scope(terminator.scope);
  std::vector<ir::Edge> edges;
  for (const ir::Edge& edge : block.edges) {
    ir::Edge made{blocks_[edge.target], {}};
    const std::vector<std::uint32_t>& parameters = primal_->blocks[edge.target].parameters;
    for (Operand o : edge.arguments) made.arguments.push_back(value(o));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!activity_.varied[parameters[i]]) continue;
      const Type* type = primal_->insts[parameters[i]].type;
      if (tangents_.has_shadow(type)) made.arguments.push_back(shadow_as(edge.arguments[i], type));
      std::vector<Operand> passed = leaves_as(edge.arguments[i], type);
      const auto& described = tangents_.leaves(type);
      for (std::size_t k = 0; k < passed.size(); ++k)
        made.arguments.push_back(passed[k].valid() ? passed[k] : zero(described[k].type));
    }
    edges.push_back(std::move(made));
  }
  switch (terminator.op) {
    case Op::jump:
      b_->jump(edges[0].target, edges[0].arguments);
      return true;
    case Op::branch:
      b_->branch(value(terminator.operands[0]), edges[0].target, edges[1].target, edges[0].arguments,
                 edges[1].arguments);
      return true;
    case Op::switch_int:
      b_->switch_int(value(terminator.operands[0]), edges);
      return true;
    case Op::throw_:
      b_->raise(value(terminator.operands[0]));
      return true;
    case Op::ret: {
      Operand given = terminator.operands[0];
      const Type* type = primal_->return_type;
      Operand tangent =
          tangents_.has_cotangent(type) ? packed(type, leaves_as(given, type)) : b_->constant(runtime_.nothing());
      Operand own;
      if (const Type* held = type_of(given);
          !varied(given) && tangents_.has_shadow(held) && env_.memory().of(*primal_).result == 0) {
        // Memory of its own that carries nothing yet: the caller may store into it.
        const Type* made = tangents_.shadow(held);
        own = call_base(made == tangents_.dynamic() ? "zero_dynamic_shadow" : "zero_shadow", {value(given)}, made);
        own = as_shadow(own, made, tangents_.shadow(type));
      } else {
        own = shadow_as(given, type);
      }
      b_->ret(b_->emit(Op::tuple, {value(given), own, tangent}, out_->return_type));
      return true;
    }
    default:
      b_->unreachable();
      return true;
  }
}

// --- operands
// ---------------------------------------------------------------------------------------------------------

Operand Forward::value(Operand primal) {
  return primal.is_constant() ? b_->constant(primal_->constant_value(primal)) : value_[primal.index()];
}

Operand Forward::call_base(const char* name, std::vector<Operand> args, const Type* type) {
  Binding* binding = runtime_.base->find(runtime_.symbol(name));
  args.insert(args.begin(), b_->constant(binding ? binding->value : runtime_.nothing()));
  Operand result = b_->emit(Op::call, args, nullptr);
  if (!type) return result;
  return b_->emit(Op::type_assert, {result, b_->constant(runtime_.from_type(type))}, type);
}

Operand Forward::shadow(Operand primal) {
  const Type* type = type_of(primal);
  if (!tangents_.has_shadow(type)) return b_->constant(runtime_.nothing());
  if (primal.is_inst() && shadow_[primal.index()].valid()) return shadow_[primal.index()];
  const Type* wanted = tangents_.shadow(type);
  if (is_undefined(*primal_, primal))
    return wanted == tangents_.dynamic() ? zero(wanted) : b_->emit(Op::undef, {}, wanted);
  return call_base(wanted == tangents_.dynamic() ? "constant_dynamic_shadow" : "constant_shadow", {value(primal)},
                   wanted);
}

Operand Forward::as_shadow(Operand shadow, const Type* from, const Type* to) {
  if (from == to) return shadow;
  if (to == builtin_.nothing) return b_->constant(runtime_.nothing());
  if (to == tangents_.dynamic()) return b_->emit(Op::make_struct, {b_->constant(runtime_.from_type(to)), shadow}, to);
  Operand content = b_->emit(Op::field_at, {shadow}, builtin_.any, 0);
  return b_->emit(Op::type_assert, {content, b_->constant(runtime_.from_type(to))}, to);
}

Operand Forward::shadow_as(Operand primal, const Type* seen_as) {
  const Type* wanted = tangents_.shadow(seen_as);
  if (!wanted || wanted == builtin_.nothing) return b_->constant(runtime_.nothing());
  return as_shadow(shadow(primal), tangents_.shadow(type_of(primal)), wanted);
}

Operand Forward::zero(const Type* leaf_type) {
  if (leaf_type == builtin_.float64) return b_->constant(Value(leaf_type, 0.0));
  if (leaf_type == builtin_.float32) return b_->constant(Value(leaf_type, std::int64_t{0}));
  return b_->constant(runtime_.base->find(runtime_.symbol("no_tangent"))->value);
}

Operand Forward::add(Operand a, Operand b, const Type* leaf_type) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  if (!tangents_.is_float(leaf_type)) return call_base("add_tangents", {a, b}, leaf_type);
  return b_->emit(Op::add_float, {a, b}, leaf_type);
}

std::vector<Operand> Forward::leaves(Operand primal) {
  std::vector<Operand> result;
  if (primal.is_inst()) result = leaves_[primal.index()];
  result.resize(tangents_.leaves(type_of(primal)).size());
  return result;
}

std::vector<Operand> Forward::convert(const Type* from, const std::vector<Operand>& leaves, const Type* to) {
  std::size_t count = tangents_.leaves(to).size();
  if (from == to) return leaves;
  bool any = false;
  for (Operand o : leaves) any |= o.valid();
  if (!any || count == 0) return std::vector<Operand>(count);
  if (tangents_.is_dynamic(from) == tangents_.is_dynamic(to)) return leaves;
  if (tangents_.is_dynamic(to)) {
    Operand content = packed(from, leaves);
    return {b_->emit(Op::make_struct, {b_->constant(runtime_.from_type(tangents_.dynamic())), content},
                     tangents_.dynamic())};
  }
  const Type* type = tangents_.cotangent(to);
  std::vector<Operand> result;
  unpack(to, call_base("as_cotangent", {b_->constant(runtime_.from_type(type)), leaves[0]}, type), result);
  return result;
}

std::vector<Operand> Forward::leaves_as(Operand primal, const Type* seen_as) {
  return convert(type_of(primal), leaves(primal), seen_as);
}

Operand Forward::pack(const Type* t, const std::vector<Operand>& leaves, std::size_t& next) {
  if (tangents_.is_float(t) || tangents_.is_dynamic(t)) {
    Operand leaf = leaves[next++];
    return leaf.valid() ? leaf : zero(tangents_.cotangent(t));
  }
  if (!tangents_.has_cotangent(t)) return b_->constant(runtime_.nothing());
  std::vector<Operand> fields;
  for (const Field& field : as_data(t)->fields) fields.push_back(pack(field.type, leaves, next));
  return b_->emit(Op::tuple, fields, tangents_.cotangent(t));
}

Operand Forward::packed(const Type* t, const std::vector<Operand>& leaves) {
  std::size_t next = 0;
  return pack(t, leaves, next);
}

void Forward::unpack(const Type* t, Operand tangent, std::vector<Operand>& leaves) {
  if (tangents_.is_float(t) || tangents_.is_dynamic(t)) {
    leaves.push_back(tangent);
    return;
  }
  if (!tangents_.has_cotangent(t)) return;
  const DataType* d = as_data(t);
  for (std::size_t i = 0; i < d->fields.size(); ++i)
    if (tangents_.has_cotangent(d->fields[i].type))
      unpack(d->fields[i].type, b_->emit(Op::field_at, {tangent}, tangents_.cotangent(d->fields[i].type), i), leaves);
}

// --- operations
// -------------------------------------------------------------------------------------------------------

void Forward::clone(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  std::vector<Operand> operands;
  for (Operand o : inst.operands) operands.push_back(value(o));
  Operand made = b_->emit(inst.op, operands, inst.type, inst.aux);
  out_->inst(made).flags = inst.flags;
  value_[id] = made;
}

bool Forward::inst(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  bool flows = activity_.varied[id];
  for (Operand o : inst.operands) flows |= varied(o);
  switch (inst.op) {
    case Op::tape_open:
    case Op::tape_reserve:
    case Op::tape_store:
    case Op::tape_load:
    case Op::tape_close:
      return tape(id);
    case Op::invoke:
      if (flows && classify(inst, activity_.rules[id]) == Treatment::call) return call(id);
      break;
    case Op::array_set:
    case Op::array_init:
    case Op::set_field_at:
    case Op::cell_set:
      clone(id);
      return !varied(inst.operands[0]) || store(id);
    case Op::array_resize:
      clone(id);
      if (varied(inst.operands[0]))
        b_->emit(Op::array_resize, {shadow(inst.operands[0]), value(inst.operands[1])}, builtin_.nothing);
      return true;
    default:
      break;
  }
  if (flows && is_dynamic_call(*primal_, inst, runtime_)) return dynamic_call(id);
  clone(id);
  return !activity_.varied[id] || tangent_of_value(id);
}

bool Forward::tangent_of_value(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const Type* shadow_type = tangents_.shadow(inst.type);
  switch (inst.op) {
    case Op::array_new: {
      std::vector<Operand> operands{b_->constant(runtime_.from_type(shadow_type))};
      for (std::size_t i = 1; i < inst.operands.size(); ++i) operands.push_back(value(inst.operands[i]));
      shadow_[id] = call_base("new_zero_array", operands, shadow_type);
      return true;
    }
    case Op::array_share: {
      std::vector<Operand> operands{shadow(inst.operands[0])};
      for (std::size_t i = 1; i < inst.operands.size(); ++i) operands.push_back(value(inst.operands[i]));
      shadow_[id] = b_->emit(Op::array_share, operands, shadow_type);
      return true;
    }
    case Op::array_get:
    case Op::field_at:
    case Op::cell_get:
      return load(id);
    case Op::tuple:
    case Op::make_struct:
    case Op::make_closure:
    case Op::cell_new:
      return aggregate(id);
    case Op::get_field: {  // t[i], all elements of one type
      if (tangents_.has_shadow(inst.type))
        shadow_[id] = b_->emit(Op::get_field, {shadow(inst.operands[0]), value(inst.operands[1])}, shadow_type);
      if (tangents_.has_cotangent(inst.type)) {
        Operand whole = packed(type_of(inst.operands[0]), leaves(inst.operands[0]));
        unpack(inst.type, b_->emit(Op::get_field, {whole, value(inst.operands[1])}, tangents_.cotangent(inst.type)),
               leaves_[id]);
      }
      return true;
    }
    case Op::refine:
    case Op::type_assert:
      if (tangents_.has_shadow(inst.type)) shadow_[id] = shadow_as(inst.operands[0], inst.type);
      leaves_[id] = leaves_as(inst.operands[0], inst.type);
      return true;
    case Op::select: {
      Operand condition = value(inst.operands[0]);
      if (tangents_.has_shadow(inst.type))
        shadow_[id] = b_->emit(
            Op::select, {condition, shadow_as(inst.operands[1], inst.type), shadow_as(inst.operands[2], inst.type)},
            shadow_type);
      std::vector<Operand> a = leaves_as(inst.operands[1], inst.type);
      std::vector<Operand> b = leaves_as(inst.operands[2], inst.type);
      const auto& described = tangents_.leaves(inst.type);
      leaves_[id].resize(described.size());
      for (std::size_t i = 0; i < described.size(); ++i) {
        if (!a[i].valid() && !b[i].valid()) continue;
        const Type* type = described[i].type;
        leaves_[id][i] =
            b_->emit(Op::select, {condition, a[i].valid() ? a[i] : zero(type), b[i].valid() ? b[i] : zero(type)}, type);
      }
      return true;
    }
    default:
      break;
  }
  if (!tangents_.is_float(inst.type) || tangents_.has_shadow(inst.type))
    return refuse(inst, "`" + std::string(ir::op_info(inst.op).name) + "` cannot be differentiated in forward mode");
  Operand sum;
  if (inst.op == Op::fptrunc || inst.op == Op::fpext) {
    sum = leaves(inst.operands[1])[0];
    if (sum.valid() && type_of(inst.operands[1]) != inst.type)
      sum = b_->emit(inst.op, {value(inst.operands[0]), sum}, inst.type);
  } else {
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      if (!varied(inst.operands[i])) continue;
      Operand tangent = leaves(inst.operands[i])[0];
      if (!tangent.valid()) continue;
      Partials partials;
      partials.active = [&](std::size_t k) { return k == i; };
      partials.value = [&](std::size_t k) { return value(inst.operands[k]); };
      partials.result = [&] { return value_[id]; };
      partials.add = [&](std::size_t, Operand x) { sum = add(sum, x, inst.type); };
      if (!emit_partials(*b_, runtime_, inst, tangent, partials))
        return refuse(inst, "`" + std::string(ir::op_info(inst.op).name) + "` has no derivative");
    }
  }
  leaves_[id] = {sum};
  return true;
}

// What a shadow holds for one place, from its two parts, and back.
Operand Forward::whole(const Type* declared, const Type* held, Operand shadow, const std::vector<Operand>& leaves) {
  const Type* own = tangents_.shadow(declared);
  if (!tangents_.has_cotangent(declared)) return as_shadow(shadow, own, held);
  Operand tangent = packed(declared, leaves);
  if (own == builtin_.nothing) return tangent;
  return b_->emit(Op::tuple, {as_shadow(shadow, own, as_data(held)->params[0]), tangent}, held);
}

void Forward::split(const Type* declared, const Type* held, Operand tangent, Operand& shadow,
                    std::vector<Operand>& leaves) {
  const Type* own = tangents_.shadow(declared);
  bool both = own != builtin_.nothing && tangents_.has_cotangent(declared);
  if (own != builtin_.nothing) {
    const Type* type = both ? as_data(held)->params[0] : held;
    shadow = as_shadow(both ? b_->emit(Op::field_at, {tangent}, type, 0) : tangent, type, own);
  }
  if (tangents_.has_cotangent(declared))
    unpack(declared, both ? b_->emit(Op::field_at, {tangent}, tangents_.cotangent(declared), 1) : tangent, leaves);
}

namespace {

struct Held {
  const Type* declared = nullptr;
  const Type* tangent = nullptr;
  std::uintptr_t field = 0;
};

Held held_at(const ir::Inst& inst, const DataType* object, const DataType* shadow, const BuiltinTypes& builtin) {
  switch (inst.op) {
    case Op::array_get:
    case Op::array_set:
    case Op::array_init:
      return {object->params[0], shadow->params[0], 0};
    case Op::cell_get:
    case Op::cell_set:
      return {builtin.any, shadow->fields[0].type, 0};
    default:
      return {object->fields[inst.aux].type, shadow->fields[inst.aux].type, inst.aux};
  }
}

}  // namespace

bool Forward::store(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const DataType* object = as_data(type_of(inst.operands[0]));
  const DataType* shadow_type = as_data(tangents_.shadow(object));
  if (!shadow_type || shadow_type == builtin_.nothing) return true;
  Held held = held_at(inst, object, shadow_type, builtin_);
  if (held.tangent == builtin_.nothing) return true;
  Operand tangent = whole(held.declared, held.tangent, shadow_as(inst.operands[1], held.declared),
                          leaves_as(inst.operands[1], held.declared));
  if (inst.op == Op::array_set || inst.op == Op::array_init)
    b_->emit(inst.op, {shadow(inst.operands[0]), tangent, value(inst.operands[2])});
  else
    b_->emit(Op::set_field_at, {shadow(inst.operands[0]), tangent}, nullptr, held.field);
  return true;
}

bool Forward::load(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const DataType* object = as_data(type_of(inst.operands[0]));
  Operand own;
  std::vector<Operand> found;
  const Type* declared = nullptr;
  if (inst.op == Op::field_at && !object->is_concrete) {  // of a tuple whose type is known in part
    declared = builtin_.any;
    Operand index = b_->constant(runtime_.from_int(static_cast<std::int64_t>(inst.aux) + 1));
    own = call_base("part_of_tangent", {shadow(inst.operands[0]), index}, tangents_.dynamic());
    Operand whole = leaves(inst.operands[0])[0];
    found.push_back(whole.valid() ? call_base("part_of_tangent", {whole, index}, tangents_.dynamic()) : Operand());
  } else if (inst.op == Op::field_at && !object->is_mutable) {
    declared = object->fields[inst.aux].type;
    if (tangents_.has_shadow(declared)) {
      const Type* held = as_data(tangents_.shadow(object))->params[inst.aux];
      own = as_shadow(b_->emit(Op::field_at, {shadow(inst.operands[0])}, held, inst.aux), held,
                      tangents_.shadow(declared));
    }
    std::vector<Operand> all = leaves(inst.operands[0]);
    std::size_t first = 0;
    for (std::size_t i = 0; i < inst.aux; ++i) first += tangents_.leaves(object->fields[i].type).size();
    std::size_t count = tangents_.leaves(declared).size();
    found.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                 all.begin() + static_cast<std::ptrdiff_t>(first + count));
  } else {
    Held held = held_at(inst, object, as_data(tangents_.shadow(object)), builtin_);
    declared = held.declared;
    if (held.tangent == builtin_.nothing) return true;
    Operand memory = shadow(inst.operands[0]);
    Operand tangent = inst.op == Op::array_get
                          ? b_->emit(Op::array_get, {memory, value(inst.operands[1])}, held.tangent)
                          : b_->emit(Op::field_at, {memory}, held.tangent, held.field);
    split(declared, held.tangent, tangent, own, found);
  }
  if (tangents_.has_shadow(inst.type))
    shadow_[id] = as_shadow(own, tangents_.shadow(declared), tangents_.shadow(inst.type));
  leaves_[id] = convert(declared, found, inst.type);
  return true;
}

bool Forward::aggregate(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const DataType* made = as_data(inst.type);
  const Type* shadow_type = tangents_.shadow(inst.type);
  if (inst.op == Op::cell_new) {
    const Type* held = as_data(shadow_type)->fields[0].type;
    Operand none = zero(tangents_.dynamic());
    Operand content = inst.operands.empty() ? whole(builtin_.any, held, none, {none})
                                            : whole(builtin_.any, held, shadow_as(inst.operands[0], builtin_.any),
                                                    leaves_as(inst.operands[0], builtin_.any));
    shadow_[id] = b_->emit(
        Op::make_struct,
        {b_->constant(runtime_.from_type(shadow_type)), content, b_->constant(runtime_.from_bool(false))}, shadow_type);
    return true;
  }
  std::size_t first = inst.op == Op::make_struct ? 1 : 0;
  if (!is_concrete(inst.type)) {  // what it is shows when its parts are there
    if (inst.op == Op::make_struct && (!made || made->is_mutable))
      return refuse(inst, "an object whose type is not inferred (" + to_string(inst.type) + ") carries a derivative");
    std::vector<Operand> shadows;
    std::vector<Operand> tangents;
    for (std::size_t i = first; i < inst.operands.size(); ++i) {
      shadows.push_back(shadow_as(inst.operands[i], builtin_.any));
      Operand leaf = leaves_as(inst.operands[i], builtin_.any)[0];
      tangents.push_back(leaf.valid() ? leaf : zero(tangents_.dynamic()));
    }
    if (tangents_.has_shadow(inst.type)) shadow_[id] = call_base("joined_shadows", shadows, shadow_type);
    if (tangents_.has_cotangent(inst.type)) leaves_[id] = {call_base("joined_shadows", tangents, tangents_.dynamic())};
    return true;
  }
  if (made->is_mutable && inst.operands.size() - first < made->fields.size())
    return refuse(inst, "an incompletely initialised object carries a derivative");
  std::vector<Operand> fields;
  bool has_shadow = tangents_.has_shadow(inst.type);
  if (made->is_mutable) fields.push_back(b_->constant(runtime_.from_type(shadow_type)));
  for (std::size_t i = first; i < inst.operands.size(); ++i) {
    const Type* declared = made->fields[i - first].type;
    std::vector<Operand> own = leaves_as(inst.operands[i], declared);
    if (!made->is_mutable) leaves_[id].insert(leaves_[id].end(), own.begin(), own.end());
    if (!has_shadow) continue;
    Operand part = shadow_as(inst.operands[i], declared);
    if (made->is_mutable) {
      const Type* held = as_data(shadow_type)->fields[i - first].type;
      fields.push_back(held == builtin_.nothing ? b_->constant(runtime_.nothing()) : whole(declared, held, part, own));
    } else {
      fields.push_back(as_shadow(part, tangents_.shadow(declared), as_data(shadow_type)->params[i - first]));
    }
  }
  if (!has_shadow) return true;
  if (made->is_mutable) fields.push_back(b_->constant(runtime_.from_bool(false)));
  shadow_[id] = b_->emit(made->is_mutable ? Op::make_struct : Op::tuple, fields, shadow_type);
  return true;
}

// A tape's layout with columns for tangents: after the primal's columns, for each of them its leaves, then its shadow.
bool Forward::tape(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  if (inst.op == Op::tape_open) {
    clone(id);
    out_->inst(value_[id]).aux =
        reinterpret_cast<std::uintptr_t>(tangents_.with_tangents(inst.aux_as<const TapeLayout>()));
    return true;
  }
  clone(id);
  if (inst.op != Op::tape_store && inst.op != Op::tape_load) return true;
  Operand handle = inst.operands[0];
  while (handle.is_inst() && primal_->inst(handle).op == Op::refine) handle = primal_->inst(handle).operands[0];
  if (!handle.is_inst() || primal_->inst(handle).op != Op::tape_open)
    return refuse(inst, "in forward mode a pullback's tape");
  const TapeLayout& layout = *primal_->inst(handle).aux_as<const TapeLayout>();
  std::uintptr_t column = layout.columns.size();
  for (std::size_t i = 0; i < inst.aux; ++i)
    column += tangents_.leaves(layout.columns[i]).size() + (tangents_.has_shadow(layout.columns[i]) ? 1 : 0);
  const Type* type = layout.columns[inst.aux];
  Operand tape = value(inst.operands[0]);
  Operand row = value(inst.operands[1]);
  const auto& described = tangents_.leaves(type);
  if (inst.op == Op::tape_store) {
    Operand stored = inst.operands[2];
    std::vector<Operand> own = leaves_as(stored, type);
    for (std::size_t i = 0; i < described.size(); ++i)
      b_->emit(Op::tape_store, {tape, row, own[i].valid() ? own[i] : zero(described[i].type)}, nullptr, column + i);
    if (tangents_.has_shadow(type))
      b_->emit(Op::tape_store, {tape, row, shadow_as(stored, type)}, nullptr, column + described.size());
    return true;
  }
  std::vector<Operand> found;
  for (std::size_t i = 0; i < described.size(); ++i)
    found.push_back(b_->emit(Op::tape_load, {tape, row}, described[i].type, column + i));
  leaves_[id] = convert(type, found, inst.type);
  if (tangents_.has_shadow(type))
    shadow_[id] = as_shadow(b_->emit(Op::tape_load, {tape, row}, tangents_.shadow(type), column + described.size()),
                            tangents_.shadow(type), tangents_.shadow(inst.type));
  return true;
}

bool Forward::call(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  if (activity_.rules[id] != RuleKind::scalar) return halves(id);
  clone(id);
  std::vector<Operand> operands{b_->constant(runtime_.base->find(runtime_.symbol("scalar_partials"))->value),
                                value(inst.operands[0]), value_[id]};
  for (std::size_t i = 1; i < inst.operands.size(); ++i) operands.push_back(value(inst.operands[i]));
  Operand partials = b_->emit(Op::call, operands, nullptr);
  Operand sum;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    std::vector<Operand> tangent = leaves(inst.operands[i]);
    if (!varied(inst.operands[i]) || !tangent[0].valid()) continue;
    Operand partial =
        b_->emit(Op::get_field, {partials, b_->constant(runtime_.from_int(static_cast<std::int64_t>(i)))}, nullptr);
    Operand number = call_base("as_cotangent", {b_->constant(runtime_.from_type(inst.type)), partial}, inst.type);
    sum = add(sum, b_->emit(Op::mul_float, {tangent[0], number}, inst.type), inst.type);
  }
  leaves_[id] = {sum};
  return true;
}

// A call whose target is found when it runs: Core.dynamic_tangent (lang/pipeline_dynamic.cpp).
bool Forward::dynamic_call(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  if (inst.operands.size() > 60) return refuse(inst, "a call with more than 60 arguments whose target is not known");
  bool is_call = inst.op == Op::call;
  Operand nothing = b_->constant(runtime_.nothing());
  Operand callee = is_call
                       ? value(inst.operands[0])
                       : b_->constant(Value(builtin_.builtin_function, static_cast<std::int64_t>(inst.op) << 1 | 1));
  std::vector<Operand> values;
  std::vector<Operand> shadows;
  std::vector<Operand> tangents;
  std::uint64_t active = 0;
  if (!is_call) {
    shadows.push_back(nothing);
    tangents.push_back(nothing);
  }
  for (std::size_t i = 0; i < inst.operands.size(); ++i) {
    Operand o = inst.operands[i];
    if (varied(o)) active |= std::uint64_t{1} << shadows.size();
    shadows.push_back(varied(o) && tangents_.has_shadow(type_of(o)) ? shadow(o) : nothing);
    Operand leaf = varied(o) && tangents_.has_cotangent(type_of(o)) ? leaves_as(o, builtin_.any)[0] : Operand();
    tangents.push_back(leaf.valid() ? leaf : nothing);
    if (!is_call || i > 0) values.push_back(value(o));
  }
  Refusal here = refusal_at(*primal_, inst, runtime_, "");
  std::string where = "\n  --> " + runtime_.sources.describe(here.span) + "\n" + runtime_.sources.excerpt(here.span);
  while (where.back() == '\n') where.pop_back();
  Binding* native = runtime_.core->find(runtime_.symbol("dynamic_tangent"));
  Operand result = b_->emit(
      Op::call,
      {b_->constant(native->value), callee, b_->emit(Op::tuple, values, nullptr), b_->emit(Op::tuple, shadows, nullptr),
       b_->constant(runtime_.from_int(static_cast<std::int64_t>(active))), b_->constant(runtime_.from_string(where)),
       b_->emit(Op::tuple, tangents, nullptr)},
      nullptr);
  Binding* made = runtime_.base->find(runtime_.symbol("DynamicCall"));
  result = b_->emit(Op::type_assert, {result, b_->constant(made->value)}, made->value.as_type);
  Operand found = b_->emit(Op::field_at, {result}, builtin_.any, 0);
  if (inst.type != builtin_.any)
    found = b_->emit(Op::type_assert, {found, b_->constant(runtime_.from_type(inst.type))}, inst.type);
  value_[id] = found;
  if (!activity_.varied[id]) return true;
  if (tangents_.has_shadow(inst.type))
    shadow_[id] = as_shadow(b_->emit(Op::field_at, {result}, tangents_.dynamic(), 1), tangents_.dynamic(),
                            tangents_.shadow(inst.type));
  if (tangents_.has_cotangent(inst.type)) {
    Operand tangent = b_->emit(Op::field_at, {result}, builtin_.any, 2);
    tangent = b_->emit(Op::type_assert, {tangent, b_->constant(runtime_.from_type(tangents_.dynamic()))},
                       tangents_.dynamic());
    leaves_[id] = convert(builtin_.any, {tangent}, inst.type);
  }
  return true;
}

// The callee's own forward derivative.
bool Forward::halves(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const Method& method = *inst.aux_as<Specialization>()->method;
  std::size_t fixed = method.is_vararg ? method.arg_count : inst.operands.size();
  std::vector<char> active;
  for (std::size_t i = 0; i < fixed; ++i) active.push_back(varied(inst.operands[i]));
  if (method.is_vararg) {
    bool any = false;
    for (std::size_t i = fixed; i < inst.operands.size(); ++i) any |= varied(inst.operands[i]);
    active.push_back(any);
  }
  Environment::Tangent callee = env_.tangent(*inst.aux_as<Specialization>(), active, refusal_);
  if (!callee.target) {
    if (refusal_.reason.empty()) return refuse(inst, "the function called here cannot be differentiated");
    return false;
  }
  edges_.push_back({Edge::Kind::callee, nullptr, nullptr, callee.target});
  std::vector<Operand> operands{b_->constant(callee.callee)};
  for (std::size_t i = 0; i < fixed; ++i) operands.push_back(value(inst.operands[i]));
  const DataType* rest = nullptr;
  if (method.is_vararg) {
    std::vector<Operand> parts;
    std::vector<const Type*> types;
    for (std::size_t i = fixed; i < inst.operands.size(); ++i) {
      parts.push_back(value(inst.operands[i]));
      types.push_back(type_of(inst.operands[i]));
    }
    rest = runtime_.types.tuple(types);
    operands.push_back(b_->emit(Op::tuple, parts, rest));
  }
  for (std::size_t i = 0; i < fixed; ++i)
    if (callee.active[i] && tangents_.has_shadow(type_of(inst.operands[i])))
      operands.push_back(shadow(inst.operands[i]));
  if (rest && callee.active[fixed] && tangents_.has_shadow(rest)) {
    std::vector<Operand> parts;
    const DataType* type = as_data(tangents_.shadow(rest));
    for (std::size_t i = fixed; i < inst.operands.size(); ++i)
      parts.push_back(
          as_shadow(shadow(inst.operands[i]), tangents_.shadow(type_of(inst.operands[i])), type->params[i - fixed]));
    operands.push_back(b_->emit(Op::tuple, parts, type));
  }
  for (std::size_t i = 0; i < fixed; ++i) {
    const Type* type = type_of(inst.operands[i]);
    if (callee.active[i] && tangents_.has_cotangent(type)) operands.push_back(packed(type, leaves(inst.operands[i])));
  }
  if (rest && callee.active[fixed] && tangents_.has_cotangent(rest)) {
    std::vector<Operand> all;
    for (std::size_t i = fixed; i < inst.operands.size(); ++i)
      for (Operand o : leaves(inst.operands[i])) all.push_back(o);
    operands.push_back(packed(rest, all));
  }
  const Type* parts[] = {callee.result_type, tangents_.shadow(callee.result_type),
                         tangents_.cotangent(callee.result_type)};
  Operand result =
      b_->emit(Op::invoke, operands, runtime_.types.tuple(parts), reinterpret_cast<std::uintptr_t>(callee.target));
  value_[id] = b_->emit(Op::field_at, {result}, parts[0], 0);
  if (!activity_.varied[id]) return true;
  if (tangents_.has_shadow(inst.type))
    shadow_[id] = as_shadow(b_->emit(Op::field_at, {result}, parts[1], 1), parts[1], tangents_.shadow(inst.type));
  if (tangents_.has_cotangent(callee.result_type)) {
    std::vector<Operand> found;
    unpack(callee.result_type, b_->emit(Op::field_at, {result}, parts[2], 2), found);
    leaves_[id] = convert(callee.result_type, found, inst.type);
  }
  return true;
}

bool forward_derivative(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                        Derivative& result, Refusal& refusal) {
  return Forward(env, primal.clone(), refusal).run(active, result);
}

}  // namespace slope::diff
