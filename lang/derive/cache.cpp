// From a specialisation to its derivative code: typed primal with rules' calls kept, differentiated, inferred again,
// optimised, compiled. A derivative is an ordinary CodeInstance with edges: it ends when something it was made from
// does.
#include <algorithm>
#include <chrono>

#include "lang/derive/environment.hpp"
#include "lang/diff/rules.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/passes/passes.hpp"

namespace slope {

namespace {

// Gives the calls of `callee` another type; whether there are any.
bool retype_calls(ir::Function& function, const Specialization& callee, const Type* type) {
  bool any = false;
  for (const ir::Block& block : function.blocks)
    for (std::uint32_t id : block.insts) {
      ir::Inst& inst = function.insts[id];
      if (inst.op != ir::Op::invoke || inst.aux_as<Specialization>() != &callee) continue;
      any |= inst.type != type;
      inst.type = type;
    }
  return any;
}

}  // namespace

void Pipeline::derivative_counts(Context& ctx, std::vector<std::int64_t>& numbers) const {
  for (std::size_t kind = 0; kind < Impl::derivative_kinds; ++kind) {
    const Impl::DerivativeCounts& counts = impl_->derivative_counts[kind];
    const std::uint64_t bytes = impl_->derivative_bytes(ctx, static_cast<Impl::DerivativeKind>(kind));
    for (const std::uint64_t n :
         {counts.calls, counts.hits, counts.misses, counts.invalidated, bytes, counts.nanoseconds})
      numbers.push_back(static_cast<std::int64_t>(n));
  }
}

Pipeline::Impl::Making::Making(Pipeline& pipeline, DerivativeCounts& counts, bool ended)
    : clock_(pipeline), counts_(counts), start_(clock_nanoseconds()) {
  ++counts.misses;
  if (ended) ++counts.invalidated;
}

Pipeline::Impl::Making::~Making() { counts_.nanoseconds += clock_nanoseconds() - start_; }

std::size_t Pipeline::Impl::derivative_bytes(Context& ctx, DerivativeKind kind) const {
  std::size_t bytes = 0;
  std::vector<const Specialization*> counted;
  const auto add = [&](const Specialization* target) {
    const auto source = sources.find(target);
    if (source == sources.end() || !valid(ctx, target)) return;
    if (std::find(counted.begin(), counted.end(), target) != counted.end()) return;
    counted.push_back(target);
    bytes += ir::byte_count(*source->second);
  };
  if (kind == gradient_kind)
    for (const auto& [key, made] : gradients) add(made.target);
  if (kind == pullback_kind)
    for (const auto& [key, made] : halves) {
      add(made.forward->target);
      add(made.reverse->target);
    }
  if (kind == forward_kind)
    for (const auto& [key, made] : tangents) add(made.synthetic->target);
  return bytes;
}

bool Pipeline::Impl::valid(Context& ctx, const Specialization* target) const {
  return target && valid_code(ctx, const_cast<Specialization&>(*target)) != nullptr;
}

// Of functions that write memory the code with rules' calls in it, so that a rule's builtin is not taken for a writer
// of all that it is given.
diff::MemoryEffects& Pipeline::Impl::memory(Context& ctx) {
  if (!memory_effects || memory_world != ctx.world) {
    memory_world = ctx.world;
    auto code_of = [this, &ctx](Specialization& target) -> diff::MemoryEffects::Code {
      CodeInstance* code = pipeline.typed_code(ctx, target);
      if (!code || !code->typed) return nullptr;
      diff::MemoryEffects::Code typed = code->typed;
      if ((code->effects & effect_writes) && primal(ctx, target)) return primals.at(&target).code;
      return typed;
    };
    auto overwritten = [this, &ctx](const DataType* call_types) { return overwritten_by(ctx, call_types); };
    memory_effects = std::make_unique<diff::MemoryEffects>(runtime, ctx.world, code_of, overwritten);
  }
  return *memory_effects;
}

// `overwrites(f, args…)` says it by its type: Val(i), or a tuple of such.
diff::MemoryMask Pipeline::Impl::overwritten_by(Context& ctx, const DataType* call_types) {
  const DataType* call = diff::rule_call(runtime, "overwrites", call_types);
  if (!call || !runtime.lookup(call, ctx.world).method) return 0;
  const DataType* declared = as_data(infer::return_type(runtime, ctx, call, ctx.world, infer_options()));
  diff::MemoryMask mask = 0;
  auto add = [&](const Type* t) {
    const DataType* val = as_data(t);
    if (!val || val->is_tuple || val->params.size() != 1) return;
    const ValueType* index = as_value(val->params[0]);
    if (index && index->value.type == runtime.types.builtin().int64)
      mask |= diff::parameter_mask(static_cast<std::size_t>(index->value.bits));
  };
  if (declared && declared->is_tuple)
    for (const Type* t : declared->params) add(t);
  else
    add(declared);
  return mask;
}

diff::MemoryEffects& Pipeline::memory(Context& ctx) { return impl_->memory(ctx); }

diff::MemoryEffects::Globals Pipeline::globals_of(Context& ctx, Specialization& target) {
  const CollectionPause pause(runtime_.heap);
  const ir::Function* code = impl_->primal_or_rule(ctx, target);
  return code ? impl_->memory(ctx).globals(*code) : diff::MemoryEffects::Globals{};
}

bool Pipeline::Impl::usable(Context& ctx, const PrimalCode& known, const CodeInstance* basis) const {
  if (known.basis != basis) return false;
  for (const Edge& edge : known.edges)
    if (edge.kind == Edge::Kind::callee && !valid(ctx, edge.callee)) return false;
  return std::all_of(known.rules.begin(), known.rules.end(),
                     [&](const auto& rule) { return runtime.lookup(rule.first, ctx.world).method == rule.second; });
}

diff::RuleKind Pipeline::Impl::rule_of(Context& ctx, const DataType* call_types, PrimalCode& noting) {
  std::vector<Edge> asked;
  const diff::RuleKind kind = diff::find_rule(runtime, call_types, ctx.world, &asked);
  for (const Edge& edge : asked) {
    const DataType* call = as_data(edge.signature);
    noting.rules.emplace(call, runtime.lookup(call, ctx.world).method);
  }
  return kind;
}

bool Pipeline::Impl::has_forward_rule(Context& ctx, const DataType* call_types, PrimalCode& noting) {
  std::vector<Edge> asked;
  const bool found = diff::has_forward_rule(runtime, call_types, ctx.world, &asked);
  for (const Edge& edge : asked) {
    const DataType* call = as_data(edge.signature);
    noting.rules.emplace(call, runtime.lookup(call, ctx.world).method);
  }
  return found;
}

void Pipeline::Impl::add_edges(const Specialization& primal, std::vector<Edge>& edges) const {
  edges.push_back({Edge::Kind::callee, nullptr, nullptr, const_cast<Specialization*>(&primal)});
  for (const auto* known : {&primals, &rule_calls})
    if (const auto found = known->find(&primal); found != known->end())
      for (const auto& [call, method] : found->second.rules)
        edges.push_back({Edge::Kind::lookup, call, nullptr, nullptr});
}

// The callee's code as differentiation wants it: everything inlined but calls that have rules, at any depth.
const ir::Function* Pipeline::Impl::primal(Context& ctx, Specialization& target) {
  const CollectionPause pause(runtime.heap);
  CodeInstance* basis = pipeline.typed_code(ctx, target);
  if (!basis || !basis->typed) return nullptr;
  auto known = primals.find(&target);
  if (known != primals.end() && usable(ctx, known->second, basis)) return known->second.code.get();
  primals[&target] = PrimalCode{basis, nullptr, {}, {}, {}};  // recursion: stays a call
  PrimalCode noted;
  infer::Inference inference(runtime, ctx, ctx.world, infer_options());
  auto source = sources.find(&target);
  infer::InferResult result = source == sources.end() ? inference.infer(target) : inference.reinfer(*source->second);
  if (!result.typed) {
    primals.erase(&target);
    return nullptr;
  }
  const auto refused = [&] {
    primals[&target].refusal = std::move(noted.refusal);
    primals[&target].rules = std::move(noted.rules);
    return nullptr;
  };
  if (!use_rules_under_pass(ctx, *result.typed, noted)) return refused();
  opt::OptOptions options;
  options.is_primitive = [this, &ctx, &noted](const ir::Inst& inst) {
    if (inst.op != ir::Op::invoke) return false;
    switch (rule_of(ctx, inst.aux_as<Specialization>()->types, noted)) {
      case diff::RuleKind::none:
        return has_forward_rule(ctx, inst.aux_as<Specialization>()->types, noted);
      case diff::RuleKind::non_differentiable: {
        // Lengths and tests of types: inlined they show what loops count; what prints must stay a call.
        // What can carry a derivative has none by declaration, whatever the code says.
        if (diff::TangentTypes& tangents = diff::tangent_types(runtime);
            !tangents.known(inst.type) || tangents.differentiable(inst.type))
          return true;
        if (inst.type == runtime.types.builtin().string) return true;  // text of numbers is followed (activity.cpp)
        const CodeInstance* code = valid_code(ctx, *inst.aux_as<Specialization>());
        return !code || !code->typed || (code->effects & effect_writes) || code->typed->insts.size() > 40;
      }
      default:
        return true;
    }
  };
  options.callee = [this, &ctx, &target, &noted](Specialization& callee) -> const ir::Function* {
    // Of a forward half it must be seen that the other half writes what it gives back (activity.cpp).
    if (&callee == &target || diff::tangent_types(runtime).is_forward_half(&callee)) return nullptr;
    const ir::Function* inlined = primal(ctx, callee);
    if (const auto known = primals.find(&callee); known != primals.end())
      noted.rules.insert(known->second.rules.begin(), known->second.rules.end());
    // In two halves a call costs a record and what lies in it: the program's own functions stay calls only when they
    // are larger than those of the library, which have rules where it matters.
    const bool own = callee.method->module != runtime.base && callee.method->module != runtime.core;
    constexpr std::size_t most_of_library = 400;
    std::size_t size = 0;
    if (inlined && !own)
      for (const ir::Block& block : inlined->blocks) size += block.insts.size() + 1;
    return size > most_of_library && callee.method->inline_hint <= 0 ? nullptr : inlined;
  };
  options.inline_budget = 1200;
  opt::optimise(runtime, *result.typed, options);
  // What was inlined is known more precisely in this place than it was on its own; then more calls may be, of gradients
  // too, which are a call of the derivative then.
  std::vector<Edge> edges;
  bool decided = false;  // the last round was for calls alone: what it left undecided stays so
  bool any_expanded = false;
  for (int round = 0; round < 12; ++round) {
    const bool expanded = expand_operators(ctx, *result.typed, edges);
    any_expanded |= expanded;
    if (round > 0 && !expanded && (decided || !(any_expanded || has_decidable_calls(*result.typed)))) break;
    decided = !expanded;
    infer::InferResult refined = infer::Inference(runtime, ctx, ctx.world, infer_options()).reinfer(*result.typed);
    if (!refined.typed) break;
    if (!use_rules_under_pass(ctx, *refined.typed, noted)) return refused();
    opt::optimise(runtime, *refined.typed, options);
    result.typed = std::move(refined.typed);
    if (refined.return_type) result.return_type = refined.return_type;
  }
  result.typed->return_type = result.return_type;
  auto& made = primals[&target];
  made = {basis, std::shared_ptr<ir::Function>(std::move(result.typed)), std::move(edges), std::move(noted.rules), {}};
  return made.code.get();
}

// build_rrule(types) or build_frule(types), run once for each type of call and each definition of the builder.
bool Pipeline::Impl::built_rule(Context& ctx, const DataType* call_types, bool forward, Value& rule) {
  const char* name = forward ? "build_frule" : "build_rrule";
  const Method* builder = runtime.lookup(diff::builder_call(runtime, name, call_types), ctx.world).method;
  BuiltRule& known = built_rules[{call_types, forward}];
  if (!builder || known.builder != builder) {
    Value types = runtime.from_type(call_types);
    Value made;
    if (!runtime.call(ctx, runtime.base->find(runtime.symbol(name))->value, &types, 1, made)) return false;
    built_rules[{call_types, forward}] = {made, builder};
  }
  rule = built_rules[{call_types, forward}].rule;
  return true;
}

// What is differentiated when the user asks for `target`: its code, or, when there is a rule for it, just the call of
// it.
const ir::Function* Pipeline::Impl::primal_or_rule(Context& ctx, Specialization& target) {
  const CollectionPause pause(runtime.heap);
  PrimalCode noted;
  diff::RuleKind rule = rule_of(ctx, target.types, noted);
  Specialization* called = &target;
  if (rule == diff::RuleKind::none) {
    std::string why;
    called = under_pass(ctx, target, noted, why);
    if (!why.empty()) {
      PrimalCode& none = primals[&target];
      none = {};
      none.rules = std::move(noted.rules);
      none.refusal = diff::Refusal{target.method->span, target.method, why};
      return nullptr;
    }
    if (!called) return primal(ctx, target);
  }
  CodeInstance* basis = pipeline.typed_code(ctx, target);
  if (!basis || !basis->typed) return nullptr;
  auto& made = rule_calls[&target];
  if (made.basis == basis && usable(ctx, made, basis)) return made.code.get();
  auto code = std::make_shared<ir::Function>();
  code->method = target.method;
  code->name = std::string(target.method->name->name);
  code->typed = true;
  code->span = target.method->span;
  code->return_type = basis->return_type;
  code->scopes.push_back({target.method, ~0u, Span{}});
  ir::Builder builder(*code);
  builder.set_block(builder.new_block());
  builder.set_span(target.method->span);
  std::vector<ir::Operand> operands;
  std::vector<const Type*> types = parameter_types(*basis->typed);
  for (const Type* t : types) operands.push_back(builder.add_parameter(0, t));
  if (target.method->is_vararg) {
    ir::Operand rest = operands.back();
    const DataType* tuple = as_data(types.back());
    operands.pop_back();
    for (std::size_t i = 0; i < tuple->fields.size(); ++i)
      operands.push_back(builder.emit(ir::Op::field_at, {rest}, tuple->fields[i].type, i));
  }
  if (called != &target) operands.erase(operands.begin());  // the pass
  builder.ret(builder.emit(ir::Op::invoke, operands, basis->return_type, reinterpret_cast<std::uintptr_t>(called)));
  made = {basis, code, {}, std::move(noted.rules), {}};
  return code.get();
}

void Pipeline::Impl::take_refusal(const Specialization& primal, diff::Refusal& refusal) const {
  if (const auto known = primals.find(&primal); known != primals.end() && known->second.refusal)
    refusal = *known->second.refusal;
}

void Pipeline::Impl::raise(Context& ctx, const Specialization& primal, const diff::Refusal& refusal) {
  std::string name = primal.method->name ? std::string(primal.method->name->name) : std::string("this function");
  std::string message = "cannot differentiate `" + name +
                        "`: " + (refusal.reason.empty() ? "its types could not be inferred" : refusal.reason);
  Span span = refusal.reason.empty() ? primal.method->span : refusal.span;
  if (span.file != 0 || span.end != 0) {
    message += "\n  --> " + runtime.sources.describe(span) + "\n" + runtime.sources.excerpt(span);
    while (!message.empty() && message.back() == '\n') message.pop_back();
  }
  pipeline.refused_ = span;
  ctx.raise_message(runtime.types.builtin().differentiation_error, message);
}

bool Pipeline::Impl::make_gradient(Context& ctx, Specialization& target, const std::vector<char>& active,
                                   GradientCode& made, diff::Refusal& refusal) {
  const ir::Function* code = primal_or_rule(ctx, target);
  if (!code) {
    take_refusal(target, refusal);
    return false;
  }
  PipelineEnvironment environment(*this, ctx);
  diff::Derivative derivative;
  if (!diff::gradient_function(environment, *code, active, derivative, refusal)) return false;
  ++pipeline.statistics_.derivatives;
  ++derivative_counts[gradient_kind].calls;
  infer::Inference inference(runtime, ctx, ctx.world, infer_options());
  infer::InferResult result = inference.reinfer(*derivative.combined);
  if (!result.typed) {
    refusal = {target.method->span, target.method, "internal error: the derivative's types could not be inferred"};
    return false;
  }
  if (verify)
    if (std::string problem = ir::verify(*result.typed); !problem.empty()) {
      refusal = {target.method->span, target.method,
                 "internal error: malformed derivative: " + problem + "\n" + ir::print(*result.typed)};
      return false;
    }
  opt::optimise(runtime, *result.typed, opt_options(nullptr));
  dump("grad", *result.typed);
  Synthetic& synthetic_code =
      synthetic("∇" + std::string(target.method->name->name), parameter_types(*result.typed), code);
  synthetic_code.layouts = std::move(derivative.layouts);
  add_edges(target, derivative.edges);
  diff::find_rule(runtime, target.types, ctx.world, &derivative.edges);  // one defined later ends this
  sources[synthetic_code.target] = std::shared_ptr<ir::Function>(std::move(derivative.combined));
  saved[synthetic_code.target] = std::move(derivative.saved);
  publish(synthetic_code, std::move(result), derivative.edges);
  made.target = synthetic_code.target;
  made.callee = synthetic_code.callee;
  made.active = derivative.active;
  return true;
}

const Pipeline::GradientCode* Pipeline::Impl::find_gradient(Context& ctx, Specialization& primal,
                                                            const std::vector<char>& active, diff::Refusal& refusal) {
  const CollectionPause pause(runtime.heap);
  Key key{&primal, active};
  auto known = gradients.find(key);
  DerivativeCounts& counts = derivative_counts[gradient_kind];
  if (known != gradients.end() && valid(ctx, known->second.target)) {
    ++counts.hits;
    return &known->second;
  }
  if (std::find(gradients_in_work.begin(), gradients_in_work.end(), key) != gradients_in_work.end()) return nullptr;
  const Making making(pipeline, counts, known != gradients.end());
  GradientCode made;
  gradients_in_work.push_back(key);
  bool done = make_gradient(ctx, primal, active, made, refusal);
  gradients_in_work.pop_back();
  if (!done) return nullptr;
  // In automatic mode the first gradients are interpreted: machine code would cost more than they take.
  if (pipeline.mode == TierMode::compile) pipeline.on_hot(ctx, *made.target);
  return &(gradients[key] = made);
}

const Pipeline::GradientCode* Pipeline::gradient_code(Context& ctx, Specialization& primal,
                                                      const std::vector<char>& active) {
  diff::Refusal refusal;
  const GradientCode* made = impl_->find_gradient(ctx, primal, active, refusal);
  if (!made && !ctx.failed()) impl_->raise(ctx, primal, refusal);
  return made;
}

const diff::Environment::Halves* Pipeline::halves(Context& ctx, Specialization& primal,
                                                  const std::vector<char>& active) {
  const CollectionPause pause(runtime_.heap);
  diff::Refusal refusal;
  Impl::Halves* made = impl_->make_halves(ctx, primal, active, refusal);
  if (!made) {
    if (!ctx.failed()) impl_->raise(ctx, primal, refusal);
    return nullptr;
  }
  return &made->answer;
}

Pipeline::Impl::Halves* Pipeline::Impl::make_halves(Context& ctx, Specialization& target,
                                                    const std::vector<char>& active, diff::Refusal& refusal) {
  Key key{&target, active};
  auto known = halves.find(key);
  if (known != halves.end() && (!known->second.ready || (valid(ctx, known->second.forward->target) &&
                                                         valid(ctx, known->second.reverse->target)))) {
    ++derivative_counts[pullback_kind].hits;
    return &known->second;
  }
  const Making making(pipeline, derivative_counts[pullback_kind], known != halves.end());
  const ir::Function* code = primal_or_rule(ctx, target);
  if (!code) {
    refusal = {target.method->span, target.method,
               "the types of `" + std::string(target.method->name->name) + "` could not be inferred"};
    take_refusal(target, refusal);
    return nullptr;
  }
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  const Type* nothing = runtime.types.builtin().nothing;
  std::vector<const Type*> primal_types = parameter_types(*code);
  const Type* result_type = code->return_type;
  if (!tangents.known(result_type)) {
    refusal = {target.method->span, target.method,
               "the result type of `" + std::string(target.method->name->name) + "` is not inferred (" +
                   to_string(result_type) + ")"};
    return nullptr;
  }
  // Both specialisations exist, with their types, before their code does: a recursive call finds them.
  std::vector<char> asked = active;
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::vector<const Type*> forward_types{nothing};
    forward_types.insert(forward_types.end(), primal_types.begin(), primal_types.end());
    for (std::size_t i = 0; i < primal_types.size(); ++i)
      if (asked[i] && tangents.has_shadow(primal_types[i])) forward_types.push_back(tangents.shadow(primal_types[i]));
    const Type* reverse_types[] = {nothing, runtime.types.builtin().any, tangents.cotangent(result_type)};
    std::string name = std::string(target.method->name->name);
    Halves entry;
    entry.forward = &synthetic("∇" + name, forward_types, code);
    entry.reverse = &synthetic("∇" + name + " (reverse)", reverse_types, code);
    tangents.note_forward_half(entry.forward->target);
    // What they are derived from was not inlined either; when it is recursive, they would go into each other.
    entry.forward->method->inline_hint = entry.reverse->method->inline_hint = -1;
    entry.answer = {entry.forward->target,
                    entry.reverse->target,
                    entry.forward->callee,
                    entry.reverse->callee,
                    asked,
                    result_type,
                    entry.reverse->serial,
                    ~std::uint64_t{0},
                    true};
    halves[key] = entry;
    if (asked != active) halves[{&target, asked}] = entry;

    PipelineEnvironment environment(*this, ctx);
    diff::Derivative derivative;
    if (!diff::split_derivative(environment, *code, asked, derivative, refusal)) {
      halves.erase(key);
      halves.erase({&target, asked});
      return nullptr;
    }
    if (derivative.active != asked) {  // it writes what was not said to be active: start again with that
      asked = derivative.active;
      continue;
    }
    ++pipeline.statistics_.derivatives;
    ++derivative_counts[pullback_kind].calls;
    for (auto [function, part] :
         {std::pair{derivative.forward.get(), entry.forward}, {derivative.reverse.get(), entry.reverse}}) {
      infer::InferResult result = infer::Inference(runtime, ctx, ctx.world, infer_options()).reinfer(*function);
      // What it gives back is known better now, to its own recursive calls too.
      if (result.typed && result.return_type && retype_calls(*function, *part->target, result.return_type)) {
        infer::InferResult again = infer::Inference(runtime, ctx, ctx.world, infer_options()).reinfer(*function);
        const bool same = again.typed && again.return_type == result.return_type;
        if (same) result = std::move(again);
        if (!same) retype_calls(*function, *part->target, function->return_type);
      }
      if (!result.typed) {
        refusal = {target.method->span, target.method, "internal error: the derivative's types could not be inferred"};
        halves.erase(key);
        halves.erase({&target, asked});
        return nullptr;
      }
      opt::optimise(runtime, *result.typed, opt_options(nullptr));
      dump("grad", *result.typed);
      part->layouts = derivative.layouts;
      std::vector<Edge> edges = derivative.edges;
      add_edges(target, edges);
      diff::find_rule(runtime, target.types, ctx.world, &edges);  // one defined later ends this
      sources[part->target] = std::make_shared<ir::Function>(*function);
      publish(*part, std::move(result), edges);
    }
    for (Halves* made : {&halves[key], &halves[{&target, asked}]}) {
      made->ready = true;
      made->answer.recalled = derivative.recalled;
      made->answer.recalls_result = derivative.recalls_result;
    }
    return &halves[key];
  }
  refusal = {target.method->span, target.method, "internal error: the active arguments did not settle"};
  return nullptr;
}

}  // namespace slope
