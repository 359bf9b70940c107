#include "lang/diff/transform.hpp"

#include "lang/diff/normal_form.hpp"
#include "lang/diff/operations.hpp"

namespace slope::diff {

using ir::Op;
using ir::Operand;

std::optional<AnalysedPrimal> analysed(Environment& env, const ir::Function& primal, const std::vector<char>& active,
                                       bool forward_mode, Refusal& refusal) {
  AnalysedPrimal result;
  result.function = primal.clone();
  if (!normalise(*result.function, env.runtime(), env.world(), refusal, forward_mode ? nullptr : &env.memory()))
    return std::nullopt;
  if (!analyse_activity(*result.function, tangent_types(env.runtime()), env.memory(), env.world(), active,
                        &result.edges, result.activity, refusal, forward_mode))
    return std::nullopt;
  return result;
}

Transform::Transform(Environment& env, AnalysedPrimal primal, Refusal& refusal)
    : TangentCode(env.runtime()),
      env_(env),
      refusal_(refusal),
      primal_(std::move(primal.function)),
      activity_(std::move(primal.activity)),
      edges_(std::move(primal.edges)) {}

bool Transform::refuse(const ir::Inst& at, std::string reason) {
  if (refusal_.reason.empty()) refusal_ = refusal_at(*primal_, at, runtime_, std::move(reason));
  return false;
}

std::string Transform::described(const ir::Inst& at) {
  Refusal here = refusal_at(*primal_, at, runtime_, "");
  std::string where = "\n  --> " + runtime_.sources.describe(here.span) + "\n" + runtime_.sources.excerpt(here.span);
  while (where.back() == '\n') where.pop_back();
  return where;
}

std::unique_ptr<ir::Function> Transform::made(const std::string& prefix, const std::string& suffix) const {
  auto made = std::make_unique<ir::Function>();
  made->method = primal_->method;
  made->name = prefix + primal_->name + suffix;
  made->typed = true;
  made->scopes = primal_->scopes;
  made->span = primal_->span;
  made->static_params = primal_->static_params;
  return made;
}

void Transform::copy_handlers(const std::vector<ir::BlockId>& blocks, ir::Function& made) const {
  for (ir::BlockId b = 0; b < blocks.size(); ++b)
    if (ir::BlockId handler = primal_->blocks[b].handler; blocks[b] != ir::no_block && handler != ir::no_block)
      made.blocks[blocks[b]].handler = blocks[handler];
}

void Transform::type_stores(ir::Function& made) const {
  for (ir::Inst& inst : made.insts)
    if (!inst.type && ir::op_info(inst.op).derivative != ir::Derivative::none && inst.op != Op::call &&
        inst.op != Op::get_field)
      inst.type = builtin_.nothing;
}

TangentCode::Place Transform::place_of(const ir::Inst& inst) {
  Place place;
  place.memory = inst.operands[0];
  const DataType* object = as_data(type_of(place.memory));
  const DataType* shadow = as_data(tangents_.shadow(object));
  switch (inst.op) {
    case Op::array_get:
    case Op::array_set:
    case Op::array_init:
      place.index = inst.operands[inst.op == Op::array_get ? 1 : 2];
      place.declared = object->params[0];
      if (shadow && shadow != builtin_.nothing) place.tangent = shadow->params[0];
      return place;
    case Op::cell_get:
    case Op::cell_set:
      place.is_cell = true;
      place.declared = builtin_.any;
      place.tangent = shadow->fields[0].type;
      return place;
    default:
      place.field = inst.aux;
      place.declared = object->fields[inst.aux].type;
      if (shadow && shadow != builtin_.nothing) place.tangent = shadow->fields[inst.aux].type;
      return place;
  }
}

std::vector<Packed> packed_arguments(const ir::Function& primal, const ir::Inst& inst, Runtime& runtime) {
  TangentTypes& tangents = tangent_types(runtime);
  const Method& method = *inst.aux_as<Specialization>()->method;
  std::vector<Packed> result;
  std::size_t fixed = method.is_vararg ? method.arg_count : inst.operands.size();
  std::span<const Type* const> declared = inst.aux_as<Specialization>()->types->params;
  for (std::size_t i = 0; i < fixed; ++i) {
    const Type* type = primal.type_of(inst.operands[i], runtime.types);
    // A record is known more precisely here than where it is received.
    bool wider = i < declared.size() && tangents.known(declared[i]) &&
                 (tangents.shadow(declared[i]) != tangents.shadow(type) ||
                  tangents.cotangent(declared[i]) != tangents.cotangent(type));
    result.push_back({{inst.operands[i]}, wider ? declared[i] : type, false});
  }
  if (method.is_vararg) {
    Packed rest;
    rest.is_tuple = true;
    std::vector<const Type*> types;
    for (std::size_t i = fixed; i < inst.operands.size(); ++i) {
      rest.operands.push_back(inst.operands[i]);
      types.push_back(primal.type_of(inst.operands[i], runtime.types));
    }
    rest.type = runtime.types.tuple(types);
    result.push_back(std::move(rest));
  }
  return result;
}

std::vector<char> active_operands(const Activity& activity, const std::vector<Packed>& arguments) {
  std::vector<char> active;
  for (const Packed& argument : arguments) {
    bool any = false;
    for (Operand o : argument.operands) any |= activity.carries(o);
    active.push_back(any);
  }
  return active;
}

bool Transform::has_parts_of(const std::vector<Packed>& arguments) {
  return std::all_of(arguments.begin(), arguments.end(), [&](const Packed& argument) {
    if (!argument.is_tuple) return true;
    std::size_t leaves = 0;
    for (Operand o : argument.operands) leaves += leaf_count(type_of(o));
    return leaves == leaf_count(argument.type) && tangents_.shadow(argument.type) != tangents_.dynamic();
  });
}

}  // namespace slope::diff
