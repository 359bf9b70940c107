// Forward derivatives of specialisations, in one direction or several: by a rule (`frule`, build_frule) or of the code.
#include <algorithm>

#include "lang/derive/environment.hpp"
#include "lang/diff/rules.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/passes/passes.hpp"

namespace slope {

const diff::Environment::Tangent* Pipeline::tangent(Context& ctx, Specialization& primal,
                                                    const std::vector<char>& active, std::size_t width) {
  const CollectionPause pause(runtime_.heap);
  diff::Refusal refusal;
  auto key = std::make_pair(Impl::Key{&primal, active}, width);
  // Whoever asks for several directions goes on one by one, at each call.
  if (auto known = impl_->refused_directions.find(key); known != impl_->refused_directions.end()) {
    if (known->second.first == ctx.world) {
      impl_->raise(ctx, primal, known->second.second);
      return nullptr;
    }
    impl_->refused_directions.erase(known);
  }
  Impl::TangentCode* made = impl_->make_tangent(ctx, primal, active, width, refusal);
  if (!made) {
    if (ctx.failed()) return nullptr;
    if (width > 1) impl_->refused_directions[key] = {ctx.world, refusal};
    impl_->raise(ctx, primal, refusal);
    return nullptr;
  }
  return &made->answer;
}

// A function that has a reverse rule too says there what it overwrites.
bool Pipeline::Impl::overwrites_arguments(Context& ctx, Specialization& target) {
  switch (diff::find_rule(runtime, target.types, ctx.world, nullptr)) {
    case diff::RuleKind::stateful:
      return overwritten_by(ctx, target.types) != 0;
    case diff::RuleKind::reverse:
    case diff::RuleKind::built:
    case diff::RuleKind::scalar:
      return false;
    default:
      break;
  }
  CodeInstance* code = pipeline.typed_code(ctx, target);
  return !code || (code->effects & effect_writes);
}

Pipeline::Impl::TangentCode* Pipeline::Impl::make_tangent(Context& ctx, Specialization& target,
                                                          const std::vector<char>& active, std::size_t width,
                                                          diff::Refusal& refusal) {
  auto key = std::make_pair(Key{&target, active}, width);
  auto known = tangents.find(key);
  if (known != tangents.end() && (!known->second.ready || valid(ctx, known->second.synthetic->target))) {
    ++derivative_counts[forward_kind].hits;
    return &known->second;
  }
  const Making making(pipeline, derivative_counts[forward_kind], known != tangents.end());
  std::string name = std::string(target.method->name->name);
  std::unique_ptr<ir::Function> by_rule;
  const ir::Function* code = frule_call(ctx, target, active, width, by_rule);
  if (ctx.failed()) return nullptr;  // a rule's builder raised
  // The rule is called once a direction: where it overwrites what it is given, the second call would see the first's.
  if (code && width > 1 && overwrites_arguments(ctx, target)) {
    refusal = {target.method->span, target.method,
               "a rule that overwrites its arguments, in several directions at once"};
    return nullptr;
  }
  diff::RuleKind rule = diff::find_rule(runtime, target.types, ctx.world, nullptr);
  bool whole = rule == diff::RuleKind::scalar || rule == diff::RuleKind::non_differentiable;
  if (!code) code = whole ? primal_or_rule(ctx, target) : primal(ctx, target);
  diff::TangentTypes& tangent_types = diff::tangent_types(runtime);
  if (!code || !tangent_types.known(code->return_type)) {
    refusal = {target.method->span, target.method, "the types of `" + name + "` could not be inferred"};
    if (!code) take_refusal(target, refusal);
    return nullptr;
  }
  std::vector<const Type*> types = parameter_types(by_rule ? *primal(ctx, target) : *code);
  std::vector<char> asked = active;
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::vector<const Type*> all{runtime.types.builtin().nothing};
    all.insert(all.end(), types.begin(), types.end());
    for (std::size_t k = 0; k < width; ++k)
      for (std::size_t i = 0; i < types.size(); ++i)
        if (asked[i] && tangent_types.has_shadow(types[i])) all.push_back(tangent_types.shadow(types[i]));
    for (std::size_t k = 0; k < width; ++k)
      for (std::size_t i = 0; i < types.size(); ++i)
        if (asked[i] && tangent_types.has_cotangent(types[i])) all.push_back(tangent_types.cotangent(types[i]));
    TangentCode entry;
    entry.synthetic = &synthetic("tangent of " + name, all, code);
    const Type* result_type = by_rule ? as_data(code->return_type)->params[0] : code->return_type;
    if (diff::tangent_types(runtime).is_forward_half(&target))
      diff::tangent_types(runtime).note_forward_half(entry.synthetic->target);
    entry.answer = {entry.synthetic->target, entry.synthetic->callee, asked, result_type};
    tangents[key] = entry;
    auto fail = [&] {
      tangents.erase(key);
      return nullptr;
    };
    diff::Derivative derivative;
    if (by_rule) {
      derivative.forward = std::move(by_rule);
      derivative.active = asked;
    } else {
      PipelineEnvironment environment(*this, ctx);
      if (!diff::forward_derivative(environment, *code, asked, width, derivative, refusal)) return fail();
    }
    if (derivative.active != asked) {
      asked = derivative.active;
      continue;
    }
    ++pipeline.statistics_.derivatives;
    ++derivative_counts[forward_kind].calls;
    infer::Inference inference(runtime, ctx, ctx.world, infer_options());
    infer::InferResult result = inference.reinfer(*derivative.forward);
    if (!result.typed) {
      refusal = {target.method->span, target.method, "internal error: the derivative's types could not be inferred"};
      return fail();
    }
    if (verify)
      if (std::string problem = ir::verify(*result.typed); !problem.empty()) {
        refusal = {target.method->span, target.method,
                   "internal error: malformed derivative: " + problem + "\n" + ir::print(*result.typed)};
        return fail();
      }
    opt::optimise(runtime, *result.typed, opt_options(nullptr));
    dump("grad", *result.typed);
    sources[entry.synthetic->target] = std::shared_ptr<ir::Function>(std::move(derivative.forward));
    add_edges(target, derivative.edges);
    diff::find_rule(runtime, target.types, ctx.world, &derivative.edges);  // one defined later ends this
    diff::has_forward_rule(runtime, target.types, ctx.world, &derivative.edges);
    publish(*entry.synthetic, std::move(result), derivative.edges);
    if (pipeline.mode == TierMode::compile) pipeline.on_hot(ctx, *entry.synthetic->target);
    tangents[key].ready = true;
    return &tangents[key];
  }
  refusal = {target.method->span, target.method, "internal error: the active arguments did not settle"};
  return nullptr;
}

// `frule(tangents, f, args...)` as a forward derivative. Null: there is no such rule.
const ir::Function* Pipeline::Impl::frule_call(Context& ctx, Specialization& target, const std::vector<char>& active,
                                               std::size_t width, std::unique_ptr<ir::Function>& made) {
  Binding* rule = runtime.base->find(runtime.symbol("frule"));
  if (!rule || !rule->value.defined() || target.method->is_vararg) return nullptr;
  CodeInstance* basis = pipeline.typed_code(ctx, target);
  if (!basis || !basis->typed) return nullptr;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  const BuiltinTypes& builtin = runtime.types.builtin();
  std::vector<const Type*> types = parameter_types(*basis->typed);
  auto in_base = [&](const char* name) { return runtime.base->find(runtime.symbol(name))->value; };
  auto holds_both = [&](const Type* t) { return tangents.has_shadow(t) && tangents.has_cotangent(t); };
  // Rules see tangents as users do: of what holds numbers and memory, the two merged.
  std::vector<const Type*> given;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Type* of_memory = tangents.shadow(types[i]);
    const Type* of_numbers = tangents.cotangent(types[i]);
    const Type* merged = of_memory;
    if (!active[i]) {
      merged = builtin.nothing;
    } else if (holds_both(types[i])) {
      const Type* call[] = {in_base("merged_tangent").type, of_memory, of_numbers};
      merged = infer::return_type(runtime, ctx, runtime.types.tuple(call), ctx.world, infer_options());
    } else if (!tangents.has_shadow(types[i])) {
      merged = of_numbers;
    }
    given.push_back(merged);
  }
  std::vector<const Type*> call{rule->value.type, runtime.types.tuple(given)};
  for (const Type* t : target.types->params) call.push_back(t);
  const Method* written = runtime.lookup(runtime.types.tuple(call), ctx.world).method;
  // `frule(tangents, f, args…; names…)`: it says nothing of the keywords, which must not carry a derivative.
  bool with_keywords = false;
  if (!written && types.size() > 2 && !active[1]) {
    const Type* positional = runtime.types.tuple(std::span(given).subspan(2));
    const DataType* named = diff::keyword_rule_call(runtime, "frule", target.types, positional);
    written = diff::keyword_rule(runtime, named, ctx.world);
    with_keywords = written != nullptr;
  }
  const DataType* builder_types = diff::builder_call(runtime, "build_frule", target.types);
  const Method* builder = builder_types ? runtime.lookup(builder_types, ctx.world).method : nullptr;
  if (!written && !builder) return nullptr;
  Value called = rule->value;
  if (builder && (!written || builder->min_world > written->min_world)) {
    if (!built_rule(ctx, target.types, true, called)) return nullptr;
    with_keywords = false;
  }
  const Type* result = basis->return_type;
  if (!tangents.known(result)) return nullptr;
  made = std::make_unique<ir::Function>();
  made->method = target.method;
  made->name = "tangent of " + std::string(target.method->name->name);
  made->typed = true;
  made->span = target.method->span;
  made->scopes.push_back({target.method, ~0u, Span{}});
  ir::Builder b(*made);
  b.set_block(b.new_block());
  b.set_span(target.method->span);
  b.add_parameter(0, builtin.nothing);
  std::vector<ir::Operand> operands{b.constant(called), ir::Operand()};
  for (const Type* t : types) operands.push_back(b.add_parameter(0, t));
  std::vector<std::vector<ir::Operand>> directions(width, std::vector<ir::Operand>(types.size()));
  auto numbers = directions;
  for (std::vector<ir::Operand>& parts : directions)
    for (std::size_t i = 0; i < types.size(); ++i)
      if (active[i] && tangents.has_shadow(types[i])) parts[i] = b.add_parameter(0, tangents.shadow(types[i]));
  for (std::vector<ir::Operand>& parts : numbers)
    for (std::size_t i = 0; i < types.size(); ++i)
      if (active[i] && tangents.has_cotangent(types[i])) parts[i] = b.add_parameter(0, tangents.cotangent(types[i]));
  for (std::size_t k = 0; k < width; ++k)
    for (std::size_t i = 0; i < types.size(); ++i) {
      ir::Operand& part = directions[k][i];
      if (!numbers[k][i].valid()) continue;
      part = !part.valid()
                 ? numbers[k][i]
                 : b.emit(ir::Op::call, {b.constant(in_base("merged_tangent")), part, numbers[k][i]}, given[i]);
    }
  ir::Operand nothing = b.constant(runtime.nothing());
  std::vector<const Type*> outcome{result};
  std::vector<ir::Operand> all{ir::Operand()};
  for (std::vector<ir::Operand>& parts : directions) {  // the rule says one direction: the value is the first call's
    for (ir::Operand& part : parts)
      if (!part.valid()) part = nothing;
    if (with_keywords) parts.erase(parts.begin(), parts.begin() + 2);
    operands[1] = b.emit(ir::Op::tuple, parts, nullptr);
    std::vector<ir::Operand> passed = operands;  // kwcall, names, frule, tangents, f, args…
    if (with_keywords) std::rotate(passed.begin(), passed.begin() + 2, passed.begin() + 4);
    ir::Operand pair = b.emit(ir::Op::call, passed, nullptr);
    auto at = [&](std::int64_t i, const Type* type) {
      ir::Operand part = b.emit(ir::Op::get_field, {pair, b.constant(runtime.from_int(i))}, nullptr);
      if (type == tangents.dynamic())
        part = b.emit(ir::Op::call, {b.constant(runtime.base->find(runtime.symbol("boxed_tangent"))->value), part},
                      nullptr);
      return b.emit(ir::Op::type_assert, {part, b.constant(runtime.from_type(type))}, type);
    };
    if (!all[0].valid()) all[0] = at(1, result);
    outcome.insert(outcome.end(), {tangents.shadow(result), tangents.cotangent(result)});
    if (holds_both(result) && result != builtin.any && !tangents.is_dynamic(result)) {  // taken apart again
      ir::Operand tangent = b.emit(ir::Op::get_field, {pair, b.constant(runtime.from_int(2))}, nullptr);
      ir::Operand memory = b.emit(ir::Op::call, {b.constant(in_base("zero_shadow")), all[0]}, nullptr);
      memory = b.emit(ir::Op::type_assert, {memory, b.constant(runtime.from_type(tangents.shadow(result)))},
                      tangents.shadow(result));
      ir::Operand type = b.constant(runtime.from_type(tangents.cotangent(result)));
      ir::Operand number =
          b.emit(ir::Op::call, {b.constant(in_base("accumulate_mixed!")), memory, tangent, type}, nullptr);
      all.push_back(memory);
      all.push_back(b.emit(ir::Op::type_assert, {number, type}, tangents.cotangent(result)));
      continue;
    }
    all.push_back(tangents.has_shadow(result) ? at(2, tangents.shadow(result)) : nothing);
    all.push_back(tangents.has_cotangent(result) ? at(2, tangents.cotangent(result)) : nothing);
  }
  made->return_type = runtime.types.tuple(outcome);
  b.ret(b.emit(ir::Op::tuple, all, made->return_type));
  return made.get();
}

}  // namespace slope
