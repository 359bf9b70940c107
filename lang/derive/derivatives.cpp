#include "lang/derive/derivatives.hpp"

#include <string>

#include "lang/diff/rules.hpp"
#include "lang/ir/ir.hpp"

namespace slope::derive {

Derivatives::Derivatives(Compiler& of_compiler, Runtime& of_runtime)
    : compiler(of_compiler),
      runtime(of_runtime),
      rules(of_compiler, of_runtime),
      primals(*this),
      cache(*this),
      stores(*this),
      segments(*this) {
  root_key_ = runtime.heap.add_root_tracer([this](Tracer& tracer) {
    rules.trace(tracer);
    stores.trace(tracer);
    for (const auto& [target, globals] : globals_)
      for (const Value v : globals->constants) tracer.value(v);
    if (!runtime.hooks().trace_function) return;
    primals.trace(tracer);
    cache.trace(tracer);
  });
}

Derivatives::~Derivatives() { runtime.heap.remove_root_tracer(root_key_); }

const GradientCode* Derivatives::gradient(Context& ctx, Specialization& primal, const std::vector<char>& active) {
  diff::Refusal refusal;
  const GradientCode* made = cache.gradient(ctx, primal, active, refusal);
  if (!made && !ctx.failed()) raise(ctx, primal, refusal);
  return made;
}

const Halves* Derivatives::halves(Context& ctx, Specialization& primal, const std::vector<char>& active) {
  const CollectionPause pause(runtime.heap);
  diff::Refusal refusal;
  const Halves* made = cache.halves(ctx, primal, active, refusal).halves;
  if (!made && !ctx.failed()) raise(ctx, primal, refusal);
  return made;
}

const Tangent* Derivatives::tangent(Context& ctx, Specialization& primal, const std::vector<char>& active,
                                    std::size_t width) {
  const CollectionPause pause(runtime.heap);
  diff::Refusal refusal;
  // Whoever asks for several directions goes on one by one, at each call.
  if (width > 1 && cache.is_refused(ctx, primal, active, width, refusal)) {
    raise(ctx, primal, refusal);
    return nullptr;
  }
  const Tangent* made = cache.tangent(ctx, primal, active, width, refusal);
  if (made || ctx.failed()) return made;
  if (width > 1 && !ctx.interrupt.load(std::memory_order_relaxed))
    cache.note_refused(ctx, primal, active, width, refusal);
  raise(ctx, primal, refusal);
  return nullptr;
}

std::string Derivatives::text_of(const Specialization& primal, const diff::Refusal& refusal) const {
  std::string name = primal.method->name ? std::string(primal.method->name->name) : std::string("this function");
  std::string message = "cannot differentiate `" + name +
                        "`: " + (refusal.reason.empty() ? "its types could not be inferred" : refusal.reason);
  Span span = refusal.reason.empty() ? primal.method->span : refusal.span;
  if (span.file != 0 || span.end != 0) {
    message += "\n  --> " + runtime.sources.describe(span) + "\n" + runtime.sources.excerpt(span);
    while (!message.empty() && message.back() == '\n') message.pop_back();
  }
  return message;
}

void Derivatives::raise(Context& ctx, const Specialization& primal, const diff::Refusal& refusal) {
  if (ctx.interrupt.load(std::memory_order_relaxed) && !ctx.stop()) return;
  refused_ = refusal.reason.empty() ? primal.method->span : refusal.span;
  ctx.raise_message(runtime.types.builtin().differentiation_error, text_of(primal, refusal));
}

// Of functions that write memory the code with rules' calls in it, so that a rule's builtin is not taken for a writer
// of all that it is given.
diff::MemoryEffects& Derivatives::memory(Context& ctx) {
  if (memory_effects_ && memory_world_ == ctx.world) return *memory_effects_;
  memory_world_ = ctx.world;
  globals_.clear();
  memory_effects_ = memory_effects(ctx, diff::MemoryScope::differentiable);
  return *memory_effects_;
}

std::unique_ptr<diff::MemoryEffects> Derivatives::memory_effects(Context& ctx, diff::MemoryScope scope) {
  auto code_of = [this, &ctx](Specialization& target) -> diff::MemoryEffects::Code {
    CodeInstance* code = compiler.typed_code(ctx, target);
    if (!code || !code->typed) return nullptr;
    diff::MemoryEffects::Code typed = code->typed;
    if (!(code->effects & effect_writes)) return typed;
    diff::MemoryEffects::Code primal = primals.kept_primal(ctx, target);
    return primal ? primal : typed;
  };
  auto overwritten = [this, &ctx](const DataType* call_types) { return overwritten_by(ctx, call_types); };
  return std::make_unique<diff::MemoryEffects>(runtime, ctx.world, code_of, overwritten, scope);
}

diff::MemoryMask Derivatives::overwritten_by(Context& ctx, const DataType* call_types) {
  const DataType* call = diff::rule_call(runtime, KnownName::overwrites, call_types);
  if (!call || !runtime.lookup(call, ctx.world).method) return 0;
  const DataType* declared = as_data(infer::return_type(runtime, ctx, call, ctx.world, compiler.infer_options(ctx)));
  if (declared == runtime.types.builtin().nothing) return diff::as_its_code_says;
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

const diff::MemoryEffects::Globals& Derivatives::globals_of(Context& ctx, Specialization& target) {
  memory(ctx);  // of this world
  if (const auto known = globals_.find(&target); known != globals_.end()) return *known->second;
  const CollectionPause pause(runtime.heap);
  const ir::Function* code = primals.primal_or_rule(ctx, target);
  auto found = std::make_unique<diff::MemoryEffects::Globals>();
  if (code) *found = memory(ctx).globals(*code);
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  std::erase_if(found->constants, [&](Value v) { return !tangents.holds_memory(v); });  // an exception with a text
  return *(globals_[&target] = std::move(found));
}

bool Derivatives::is_declared_constant(Context& ctx, const Specialization& target) {
  if (declared_world_ != ctx.world) declared_constant_.clear();
  declared_world_ = ctx.world;
  const auto [known, fresh] = declared_constant_.try_emplace(&target);
  if (fresh)
    known->second = diff::find_rule(runtime, target.types, ctx.world, nullptr) == diff::RuleKind::non_differentiable;
  return known->second;
}

void Derivatives::forget(const GoneCode& gone) {
  rules.forget(gone);
  primals.forget(gone);
  cache.forget(gone);
  stores.forget();
  segments.forget(gone);
  memory_effects_ = nullptr;  // it goes by the addresses of functions
  globals_.clear();
  declared_constant_.clear();
}

void Derivatives::reach(const Specialization& target, Reached& reached) const {
  primals.reach(target, reached);
  cache.reach(target, reached);
}

void Derivatives::reach_refused(Reached& reached) const {
  reached.place(refused_);
  primals.reach_refused(reached);
  cache.reach_refused(reached);
}

}  // namespace slope::derive
