#include "lang/diff/forward/forward.hpp"

#include "lang/diff/normal_form.hpp"
#include "lang/diff/operations.hpp"
#include "lang/diff/partials.hpp"
#include "lang/ir/passes/checked.hpp"

namespace slope::diff {

using ir::BlockId;
using ir::Op;
using ir::Operand;

Forward::Forward(Environment& env, AnalysedPrimal primal, std::size_t width, Refusal& refusal)
    : Transform(env, std::move(primal), refusal), directions_(width) {}

bool Forward::run(Derivative& result) {
  ir::Cfg cfg = ir::build_cfg(*primal_);
  out_ = made("tangent of ");
  b_ = std::make_unique<ir::Builder>(*out_);
  blocks_.assign(primal_->blocks.size(), ir::no_block);
  value_.assign(primal_->insts.size(), Operand());
  for (Direction& direction : directions_) {
    direction.shadow.assign(primal_->insts.size(), Operand());
    direction.leaves.assign(primal_->insts.size(), {});
  }
  for (BlockId b : cfg.order) blocks_[b] = b_->new_block();
  copy_handlers(blocks_, *out_);
  make_slots();
  make_entry();
  for (BlockId b : cfg.order) {
    if (b == 0) continue;
    out_->blocks[blocks_[b]].is_loop_header = primal_->blocks[b].is_loop_header;
    for (std::uint32_t id : primal_->blocks[b].parameters)
      value_[id] = b_->add_parameter(blocks_[b], primal_->insts[id].type);
    for (std::uint32_t id : primal_->blocks[b].parameters) {
      const Type* type = primal_->insts[id].type;
      if (!activity_.varied[id]) continue;
      for (Direction& direction : directions_) {
        if (tangents_.has_shadow(type)) direction.shadow[id] = b_->add_parameter(blocks_[b], tangents_.shadow(type));
        for (const TangentTypes::Leaf& leaf : tangents_.leaves(type))
          direction.leaves[id].push_back(b_->add_parameter(blocks_[b], leaf.type));
      }
    }
  }
  const Type* return_type = primal_->return_type;
  out_->return_type = result_type(return_type);
  for (BlockId b : cfg.order)
    if (!block(b)) return false;
  if (!refusal_.reason.empty()) return false;
  type_stores(*out_);
  ir::check_after(*out_, "forward mode", ir::Typing::partial);
  ir::simplify_cfg(*out_);
  ir::remove_dead_insts(*out_);
  result.forward = std::move(out_);
  result.active = activity_.active_parameters;
  result.edges = std::move(edges_);
  return true;
}

const Type* Forward::result_type(const Type* primal) {
  if (primal == builtin_.bottom) primal = builtin_.nothing;  // of a function that always raises
  const Type* shadow = tangents_.shadow(primal);
  const Type* cotangent = tangents_.cotangent(primal);
  if (!shadow || !cotangent) shadow = cotangent = builtin_.nothing;
  std::vector<const Type*> parts{primal};
  for (std::size_t k = 0; k < directions_.size(); ++k) parts.insert(parts.end(), {shadow, cotangent});
  return runtime_.types.tuple(parts);
}

void Forward::make_entry() {
  b_->set_block(0);
  b_->add_parameter(0, builtin_.nothing);
  const std::vector<std::uint32_t>& parameters = primal_->blocks[0].parameters;
  for (std::uint32_t id : parameters) value_[id] = b_->add_parameter(0, primal_->insts[id].type);
  struct Given {
    Direction* direction;
    std::uint32_t id;
    Operand tangent;
  };
  std::vector<Given> given;
  for (Direction& direction : directions_)
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Type* type = primal_->insts[parameters[i]].type;
      if (activity_.active_parameters[i] && tangents_.has_shadow(type))
        direction.shadow[parameters[i]] = b_->add_parameter(0, tangents_.shadow(type));
    }
  for (Direction& direction : directions_)
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Type* type = primal_->insts[parameters[i]].type;
      if (activity_.active_parameters[i] && tangents_.has_cotangent(type))
        given.push_back({&direction, parameters[i], b_->add_parameter(0, tangents_.cotangent(type))});
    }
  for (const Given& one : given) unpack(*b_, primal_->insts[one.id].type, one.tangent, one.direction->leaves[one.id]);
}

// A variable that lives across a `try` is a slot: its tangents are slots beside it.
void Forward::make_slots() {
  out_->slots = primal_->slots;
  out_->slot_types = primal_->slot_types;
  slots_.assign(primal_->slots.size(), ~0u);
  for (std::size_t slot = 0; slot < primal_->slots.size(); ++slot) {
    if (slot >= activity_.varied_slots.size() || !activity_.varied_slots[slot]) continue;
    const Type* type = primal_->slot_types[slot];
    slots_[slot] = static_cast<std::uint32_t>(out_->slots.size());
    auto add = [&](const Type* held) {
      out_->slots.push_back(primal_->slots[slot]);
      out_->slot_types.push_back(held);
    };
    for (std::size_t k = 0; k < directions_.size(); ++k) {
      for (const TangentTypes::Leaf& leaf : tangents_.leaves(type)) add(leaf.type);
      if (tangents_.has_shadow(type)) add(tangents_.shadow(type));
    }
  }
}

void Forward::slot_set(const ir::Inst& inst) {
  if (slots_[inst.aux] == ~0u) return;
  const Type* type = primal_->slot_types[inst.aux];
  const auto& described = tangents_.leaves(type);
  std::uintptr_t at = slots_[inst.aux];
  for_each_direction([&] {
    std::vector<Operand> own = leaves_as(inst.operands[0], type);
    for (std::size_t i = 0; i < described.size(); ++i)
      b_->emit(Op::slot_set, {or_zero(*b_, own[i], described[i].type)}, nullptr, at++);
    if (tangents_.has_shadow(type)) b_->emit(Op::slot_set, {shadow_as(inst.operands[0], type)}, nullptr, at++);
  });
}

void Forward::slot_get(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  if (slots_[inst.aux] == ~0u) return;
  const Type* type = primal_->slot_types[inst.aux];
  std::uintptr_t at = slots_[inst.aux];
  for_each_direction([&] {
    std::vector<Operand> found;
    for (const TangentTypes::Leaf& leaf : tangents_.leaves(type))
      found.push_back(b_->emit(Op::slot_get, {}, leaf.type, at++));
    d_->leaves[id] = convert_leaves(*b_, type, found, inst.type);
    if (!tangents_.has_shadow(type)) return;
    Operand own = b_->emit(Op::slot_get, {}, tangents_.shadow(type), at++);
    d_->shadow[id] = as_shadow(*b_, own, tangents_.shadow(type), tangents_.shadow(inst.type));
  });
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
      const auto& described = tangents_.leaves(type);
      for_each_direction([&] {
        if (tangents_.has_shadow(type)) made.arguments.push_back(shadow_as(edge.arguments[i], type));
        std::vector<Operand> passed = leaves_as(edge.arguments[i], type);
        for (std::size_t k = 0; k < passed.size(); ++k)
          made.arguments.push_back(or_zero(*b_, passed[k], described[k].type));
      });
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
      const Type* held = type_of(given);
      bool fresh = !varied(given) && tangents_.has_shadow(held) && env_.memory().of(*primal_).result == 0;
      std::vector<Operand> parts{value(given)};
      for_each_direction([&] {
        parts.push_back(fresh ? as_shadow(*b_, fresh_shadow(given), tangents_.shadow(held), tangents_.shadow(type))
                              : shadow_as(given, type));
        parts.push_back(tangents_.has_cotangent(type) ? pack(*b_, type, leaves_as(given, type)) : nothing(*b_));
      });
      b_->ret(b_->emit(Op::tuple, parts, out_->return_type));
      return true;
    }
    default:
      b_->unreachable();
      return true;
  }
}

// --- operands ---

Operand Forward::value(Operand primal) {
  return primal.is_constant() ? b_->constant(primal_->constant_value(primal)) : value_[primal.index()];
}

Operand Forward::shadow(Operand primal) {
  const Type* type = type_of(primal);
  if (!tangents_.has_shadow(type)) return nothing(*b_);
  if (primal.is_inst() && d_->shadow[primal.index()].valid()) return d_->shadow[primal.index()];
  const Type* wanted = tangents_.shadow(type);
  if (is_undefined(*primal_, primal, runtime_)) return undefined(*b_, wanted);
  return call_library(*b_,
                      wanted == tangents_.dynamic() ? KnownName::constant_dynamic_shadow : KnownName::constant_shadow,
                      {value(primal)}, wanted);
}

Operand Forward::shadow_as(Operand primal, const Type* seen_as) {
  const Type* wanted = tangents_.shadow(seen_as);
  if (!wanted || wanted == builtin_.nothing) return nothing(*b_);
  return as_shadow(*b_, shadow(primal), tangents_.shadow(type_of(primal)), wanted);
}

std::vector<Operand> Forward::leaves(Operand primal) {
  std::vector<Operand> result;
  if (primal.is_inst()) result = d_->leaves[primal.index()];
  result.resize(leaf_count(type_of(primal)));
  return result;
}

std::vector<Operand> Forward::leaves_as(Operand primal, const Type* seen_as) {
  return convert_leaves(*b_, type_of(primal), leaves(primal), seen_as);
}

// A shadow of memory of its own that carries nothing yet: whoever is given it may store into it.
Operand Forward::fresh_shadow(Operand primal) {
  const Type* made = tangents_.shadow(type_of(primal));
  return call_library(*b_, made == tangents_.dynamic() ? KnownName::zero_dynamic_shadow : KnownName::zero_shadow,
                      {value(primal)}, made);
}

// --- operations ---

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
      if (classify(inst, activity_.rules[id]) == Treatment::call && (flows || takes_record(*primal_, inst, runtime_)))
        return call(id);
      break;
    case Op::array_set:
    case Op::array_init:
    case Op::set_field_at:
    case Op::cell_set:
      clone(id);
      if (varied(inst.operands[0])) for_each_direction([&] { store(id); });
      return true;
    case Op::array_resize:
    case Op::array_resize_front:
      clone(id);
      if (varied(inst.operands[0]))
        for_each_direction([&] {
          b_->emit(inst.op, {shadow(inst.operands[0]), value(inst.operands[1])}, builtin_.nothing, inst.aux);
        });
      return true;
    case Op::slot_set:
      clone(id);
      slot_set(inst);
      return true;
    case Op::slot_get:
      clone(id);
      slot_get(id);
      return true;
    case Op::caught:
      clone(id);
      check_caught(id);
      return true;
    default:
      break;
  }
  const bool tells = inst.op == Op::call && std::any_of(inst.operands.begin(), inst.operands.end(),
                                                        [&](Operand o) { return activity_.tells(o); });
  if ((flows || tells) && is_dynamic_call(*primal_, inst, runtime_)) return dynamic_call(id);
  clone(id);
  if (!activity_.varied[id]) return true;
  bool done = true;
  for_each_direction([&] { done = done && tangent_of_value(id); });
  return done;
}

// An exception is not differentiated: numbers that it carries out of the `try` would lose their tangents.
void Forward::check_caught(std::uint32_t id) {
  if (!activity_.any_varied) return;
  std::vector<bool> caught(primal_->insts.size(), false);
  caught[id] = true;
  // A refusal is the derivative's, not the program's: whoever caught it would take another way than the function does.
  call_library(*b_, KnownName::check_refused, {value_[id]}, nullptr);
  if (use_of_exception(*primal_, runtime_, std::move(caught)) == CaughtUse::content)
    call_library(*b_, KnownName::check_caught,
                 {value_[id], b_->constant(runtime_.from_string(described(primal_->insts[id])))}, nullptr);
}

// Long because it is a table: one case for each operation, then those on floating-point numbers.
bool Forward::tangent_of_value(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const Type* shadow_type = tangents_.shadow(inst.type);
  Operand& own = d_->shadow[id];
  std::vector<Operand>& numbers = d_->leaves[id];
  auto sizes = [&](Operand first) {
    std::vector<Operand> operands{first};
    for (std::size_t i = 1; i < inst.operands.size(); ++i) operands.push_back(value(inst.operands[i]));
    return operands;
  };
  switch (inst.op) {
    case Op::array_new:
      own = call_library(*b_, KnownName::new_zero_array, sizes(type_constant(*b_, shadow_type)), shadow_type);
      return true;
    case Op::undef:  // written through, where it is not this
      if (tangents_.has_shadow(inst.type)) own = undefined(*b_, shadow_type);
      numbers.resize(leaf_count(inst.type));
      return true;
    case Op::native:
      if (!makes_shadows(inst)) break;
      if (tangents_.has_shadow(inst.type)) own = fresh_shadow(Operand::inst(id));
      return true;
    case Op::array_share:
      own = b_->emit(Op::array_share, sizes(shadow(inst.operands[0])), shadow_type);
      return true;
    case Op::array_get:
    case Op::field_at:
    case Op::cell_get:
      load(id);
      return true;
    case Op::tuple:
    case Op::make_struct:
    case Op::make_closure:
    case Op::cell_new:
      return aggregate(id);
    case Op::get_field: {  // t[i], all elements of one type
      if (tangents_.has_shadow(inst.type))
        own = b_->emit(Op::get_field, {shadow(inst.operands[0]), value(inst.operands[1])}, shadow_type);
      if (tangents_.has_cotangent(inst.type)) {
        Operand whole = pack(*b_, type_of(inst.operands[0]), leaves(inst.operands[0]));
        Operand part = b_->emit(Op::get_field, {whole, value(inst.operands[1])}, tangents_.cotangent(inst.type));
        unpack(*b_, inst.type, part, numbers);
      }
      return true;
    }
    case Op::invoke:  // made by a function whose results carry nothing, then stored into
      if (tangents_.has_shadow(inst.type)) own = fresh_shadow(Operand::inst(id));
      numbers.resize(leaf_count(inst.type));
      return true;
    case Op::refine:
    case Op::type_assert:
      if (tangents_.has_shadow(inst.type)) own = shadow_as(inst.operands[0], inst.type);
      numbers = leaves_as(inst.operands[0], inst.type);
      return true;
    case Op::select: {
      Operand condition = value(inst.operands[0]);
      if (tangents_.has_shadow(inst.type))
        own = b_->emit(Op::select,
                       {condition, shadow_as(inst.operands[1], inst.type), shadow_as(inst.operands[2], inst.type)},
                       shadow_type);
      std::vector<Operand> a = leaves_as(inst.operands[1], inst.type);
      std::vector<Operand> b = leaves_as(inst.operands[2], inst.type);
      const auto& described_leaves = tangents_.leaves(inst.type);
      numbers.resize(described_leaves.size());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (!a[i].valid() && !b[i].valid()) continue;
        const Type* type = described_leaves[i].type;
        numbers[i] = b_->emit(Op::select, {condition, or_zero(*b_, a[i], type), or_zero(*b_, b[i], type)}, type);
      }
      return true;
    }
    default:
      break;
  }
  return tangent_of_float(id);
}

bool Forward::tangent_of_float(std::uint32_t id) {
  const ir::Inst& inst = primal_->insts[id];
  if (!tangents_.is_float(inst.type) || tangents_.has_shadow(inst.type))
    return refuse(inst, "`" + std::string(ir::op_info(inst.op).name) + "` cannot be differentiated in forward mode");
  Operand sum;
  if (inst.op == Op::fptrunc || inst.op == Op::fpext) {
    sum = leaves(inst.operands[1])[0];
    if (sum.valid() && type_of(inst.operands[1]) != inst.type)
      sum = b_->emit(inst.op, {value(inst.operands[0]), sum}, inst.type);
  } else if (const std::optional<KnownName> function = elementary_function(inst.op)) {
    std::vector<Operand> arguments;
    for (Operand o : inst.operands) arguments.push_back(value(o));
    Operand partials;
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      if (!varied(inst.operands[i])) continue;
      const Operand tangent = leaves(inst.operands[i])[0];
      if (!tangent.valid()) continue;
      if (!partials.valid()) partials = scalar_partials(*b_, library_function(*function, *b_), value_[id], arguments);
      const Operand partial = scalar_partial(*b_, partials, i, inst.type);
      sum = add_leaves(*b_, sum, times_partial(*b_, inst, tangent, partial), inst.type);
    }
  } else {
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      if (!varied(inst.operands[i])) continue;
      Operand tangent = leaves(inst.operands[i])[0];
      if (!tangent.valid()) continue;
      Partials partials;
      partials.active = [&](std::size_t k) { return k == i; };
      partials.value = [&](std::size_t k) { return value(inst.operands[k]); };
      partials.result = [&] { return value_[id]; };
      partials.add = [&](std::size_t, Operand x) { sum = add_leaves(*b_, sum, x, inst.type); };
      if (!emit_partials(*b_, runtime_, inst, tangent, partials))
        return refuse(inst, "`" + std::string(ir::op_info(inst.op).name) + "` has no derivative");
    }
  }
  d_->leaves[id] = {sum};
  return true;
}

void Forward::store(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  Place place = place_of(inst);
  if (!holds_tangent(place)) return;
  Operand stored = inst.operands[1];
  Operand cotangent;
  if (tangents_.has_cotangent(place.declared)) cotangent = pack(*b_, place.declared, leaves_as(stored, place.declared));
  Operand tangent = whole_tangent(*b_, place, shadow_as(stored, place.declared), cotangent);
  if (inst.op == Op::array_init)  // the shadow's element is not there yet either
    b_->emit(inst.op, {shadow(place.memory), tangent, value(place.index)});
  else
    store_tangent(*b_, place, shadow(place.memory), place.index.valid() ? value(place.index) : Operand(), tangent);
}

void Forward::load(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const DataType* object = as_data(type_of(inst.operands[0]));
  Operand own;
  std::vector<Operand> found;
  const Type* declared = nullptr;
  const Type* numbers = nullptr;                          // as what their leaves are seen, where that is something else
  if (inst.op == Op::field_at && !object->is_concrete) {  // of a tuple whose type is known in part
    declared = builtin_.any;
    Operand index = int_constant(*b_, static_cast<std::int64_t>(inst.aux) + 1);
    own = call_library(*b_, KnownName::part_of_tangent, {shadow(inst.operands[0]), index}, tangents_.dynamic());
    Operand whole = leaves(inst.operands[0])[0];
    found.push_back(whole.valid() ? call_library(*b_, KnownName::part_of_tangent, {whole, index}, tangents_.dynamic())
                                  : Operand());
  } else if (inst.op == Op::field_at && !object->is_mutable) {
    declared = object->fields[inst.aux].type;
    if (tangents_.has_shadow(declared)) {
      const Type* held = as_data(tangents_.shadow(object))->params[inst.aux];
      own = as_shadow(*b_, b_->emit(Op::field_at, {shadow(inst.operands[0])}, held, inst.aux), held,
                      tangents_.shadow(declared));
    }
    numbers = tangents_.numbers_of_field(object, inst.aux);
    std::vector<Operand> all = leaves(inst.operands[0]);
    std::size_t first = 0;
    for (std::size_t i = 0; i < inst.aux; ++i) first += leaf_count(tangents_.numbers_of_field(object, i));
    found.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                 all.begin() + static_cast<std::ptrdiff_t>(first + leaf_count(numbers)));
  } else {
    Place place = place_of(inst);
    declared = place.declared;
    if (!holds_tangent(place)) return;
    Operand tangent =
        load_tangent(*b_, place, shadow(place.memory), place.index.valid() ? value(place.index) : Operand());
    own = shadow_part(*b_, place, tangent);
    if (tangents_.has_cotangent(declared)) unpack(*b_, declared, cotangent_part(*b_, place, tangent), found);
  }
  if (tangents_.has_shadow(inst.type))
    d_->shadow[id] = as_shadow(*b_, own, tangents_.shadow(declared), tangents_.shadow(inst.type));
  d_->leaves[id] = convert_leaves(*b_, numbers ? numbers : declared, found, inst.type);
}

bool Forward::aggregate(std::uint32_t id) {
  const ir::Inst inst = primal_->insts[id];
  const DataType* made = as_data(inst.type);
  const Type* shadow_type = tangents_.shadow(inst.type);
  if (inst.op == Op::cell_new) {
    Place place;
    place.declared = builtin_.any;
    place.tangent = as_data(shadow_type)->fields[0].type;
    Operand none_yet = zero(*b_, tangents_.dynamic());
    Operand content =
        inst.operands.empty()
            ? whole_tangent(*b_, place, none_yet, none_yet)
            : whole_tangent(*b_, place, shadow_as(inst.operands[0], builtin_.any),
                            or_zero(*b_, leaves_as(inst.operands[0], builtin_.any)[0], tangents_.dynamic()));
    d_->shadow[id] =
        b_->emit(Op::make_struct, {type_constant(*b_, shadow_type), content, b_->constant(runtime_.from_bool(false))},
                 shadow_type);
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
      tangents.push_back(or_zero(*b_, leaves_as(inst.operands[i], builtin_.any)[0], tangents_.dynamic()));
    }
    if (tangents_.has_shadow(inst.type))
      d_->shadow[id] = call_library(*b_, KnownName::joined_shadows, shadows, shadow_type);
    if (tangents_.has_cotangent(inst.type))
      d_->leaves[id] = {call_library(*b_, KnownName::joined_shadows, tangents, tangents_.dynamic())};
    return true;
  }
  std::vector<Operand> fields;
  bool has_shadow = tangents_.has_shadow(inst.type);
  for (std::size_t i = first; i < inst.operands.size(); ++i) {
    const Type* declared = made->fields[i - first].type;
    std::vector<Operand> own =
        leaves_as(inst.operands[i], made->is_mutable ? declared : tangents_.numbers_of_field(made, i - first));
    if (!made->is_mutable) d_->leaves[id].insert(d_->leaves[id].end(), own.begin(), own.end());
    if (!has_shadow) continue;
    Operand part = shadow_as(inst.operands[i], declared);
    if (made->is_mutable) {
      Place place;
      place.declared = declared;
      place.tangent = as_data(shadow_type)->fields[i - first].type;
      Operand cotangent = tangents_.has_cotangent(declared) ? pack(*b_, declared, own) : Operand();
      fields.push_back(holds_tangent(place) ? whole_tangent(*b_, place, part, cotangent) : nothing(*b_));
    } else {
      fields.push_back(as_shadow(*b_, part, tangents_.shadow(declared), as_data(shadow_type)->params[i - first]));
    }
  }
  if (!has_shadow) return true;
  if (!made->is_mutable) add_unassigned(*b_, made, fields);
  d_->shadow[id] = made->is_mutable ? mutable_shadow(*b_, made, fields) : b_->emit(Op::tuple, fields, shadow_type);
  return true;
}

bool forward_derivative(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                        std::size_t width, Derivative& result, Refusal& refusal) {
  std::optional<AnalysedPrimal> known = analysed(env, primal, active, true, refusal);
  return known && Forward(env, std::move(*known), width, refusal).run(result);
}

}  // namespace slope::diff
