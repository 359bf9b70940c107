// From a specialisation to its derivative code, whatever the kind (build):
//
//   the subject: its typed primal with rules' calls kept, or the forward derivative that a rule says
//   the declaration: specialisations with their types, so that a recursive call finds them before their code exists
//   the transform (lang/diff)
//   completion of each part: infer again → optimise → publish with the edges of all that it was made from
#include "lang/derive/cache.hpp"

#include <algorithm>
#include <utility>

#include "lang/derive/derivatives.hpp"
#include "lang/derive/environment.hpp"
#include "lang/diff/normal_form.hpp"
#include "lang/diff/rules.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/infer/growth.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/stop_scope.hpp"

namespace slope::derive {

namespace {

bool has_loops(const ir::Function& function) {
  return std::any_of(function.blocks.begin(), function.blocks.end(),
                     [](const ir::Block& block) { return block.is_loop_header; });
}

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

bool are_halves(DerivativeKind kind) { return counted_as(kind) == DerivativeKind::pullback; }

diff::Refusal refusal_of(const Specialization& target, const std::string& reason) {
  return {target.method->span, target.method, reason};
}

diff::Refusal not_inferred(const Specialization& target, const std::string& reason) {
  diff::Refusal refusal = refusal_of(target, reason);
  refusal.not_inferred = true;
  return refusal;
}

std::string name_of(const Specialization& target) { return std::string(target.method->name->name); }

}  // namespace

class DerivativeCache::Making {
 public:
  Making(Compiler& compiler, Counts& counts, bool ended)
      : clock_(compiler), counts_(counts), start_(clock_nanoseconds()) {
    ++counts.misses;
    if (ended) ++counts.invalidated;
  }
  ~Making() { counts_.nanoseconds += clock_nanoseconds() - start_; }

 private:
  CompileClock clock_;
  Counts& counts_;
  std::uint64_t start_;
};

const GradientCode* DerivativeCache::gradient(Context& ctx, Specialization& primal, const std::vector<char>& active,
                                              diff::Refusal& refusal) {
  const Key key{DerivativeKind::gradient, &primal, active, 1};
  if (std::find(gradients_in_work_.begin(), gradients_in_work_.end(), key) != gradients_in_work_.end()) return nullptr;
  Entry* found = find(ctx, key, primal, refusal);
  return found ? &found->gradient : nullptr;
}

DerivativeCache::FoundHalves DerivativeCache::halves(Context& ctx, Specialization& primal,
                                                     const std::vector<char>& active, diff::Refusal& refusal) {
  Entry* found = find(ctx, {DerivativeKind::pullback, &primal, active, 1}, primal, refusal);
  return found ? FoundHalves{&found->halves, found->ready} : FoundHalves{};
}

DerivativeCache::FoundHalves DerivativeCache::stacked_halves(Context& ctx, Specialization& primal,
                                                             const std::vector<char>& active, diff::Refusal& refusal) {
  Entry* found = find(ctx, {DerivativeKind::stacked, &primal, active, 1}, primal, refusal);
  return found ? FoundHalves{&found->halves, found->ready} : FoundHalves{};
}

bool DerivativeCache::calls_itself(Context& ctx, Specialization& primal) {
  const ir::Function* code = derivatives_.primals.primal_or_rule(ctx, primal);
  if (!code) return false;
  bool calls = false;
  for (const ir::Block& block : code->blocks) {
    if (block.handler != ir::no_block) return false;
    for (std::uint32_t id : block.insts)
      calls |= code->insts[id].op == ir::Op::invoke && code->insts[id].aux_as<Specialization>() == &primal;
  }
  return calls;
}

const Tangent* DerivativeCache::tangent(Context& ctx, Specialization& primal, const std::vector<char>& active,
                                        std::size_t width, diff::Refusal& refusal) {
  Entry* found = find(ctx, {DerivativeKind::forward, &primal, active, width}, primal, refusal);
  return found ? &found->tangent : nullptr;
}

bool DerivativeCache::is_refused(Context& ctx, const Specialization& primal, const std::vector<char>& active,
                                 std::size_t width, diff::Refusal& refusal) {
  const auto known = refused_.find({DerivativeKind::forward, &primal, active, width});
  if (known == refused_.end()) return false;
  if (known->second.first != ctx.world) {
    refused_.erase(known);
    return false;
  }
  refusal = known->second.second;
  return true;
}

void DerivativeCache::note_refused(Context& ctx, const Specialization& primal, const std::vector<char>& active,
                                   std::size_t width, const diff::Refusal& refusal) {
  refused_[{DerivativeKind::forward, &primal, active, width}] = {ctx.world, refusal};
}

bool DerivativeCache::holds(Context& ctx, const Entry& entry) const {
  return std::all_of(entry.parts.begin(), entry.parts.end(),
                     [&](const Synthetic* part) { return valid_code(ctx, *part->target) != nullptr; });
}

DerivativeCache::Entry* DerivativeCache::find(Context& ctx, const Key& key, Specialization& target,
                                              diff::Refusal& refusal) {
  const CollectionPause pause(derivatives_.runtime.heap);
  Counts& counts = counts_[static_cast<std::size_t>(counted_as(key.kind))];
  const auto known = entries_.find(key);
  if (known != entries_.end() && (!known->second.ready || holds(ctx, known->second))) {
    ++counts.hits;
    return &known->second;
  }
  // Derivatives of derivatives take long to make. Code that asked for it is left with a call that is made when it runs.
  if (ctx.interrupt.load(std::memory_order_relaxed)) {
    refusal = refusal_of(target, "it was stopped while its derivative was made");
    return nullptr;
  }
  if (in_work_.empty()) derivatives_.primals.let_go_unused();
  const Making making(derivatives_.compiler, counts, known != entries_.end());
  if (key.kind == DerivativeKind::gradient) gradients_in_work_.push_back(key);
  in_work_.push_back(&target);
  Entry* const made = without_stops([&] { return build(ctx, key, target, refusal); });
  in_work_.pop_back();
  if (key.kind == DerivativeKind::gradient) gradients_in_work_.pop_back();
  // In automatic mode the first derivatives are interpreted: machine code would cost more than they take. Halves are
  // called by code that is compiled, and with it.
  if (made && !are_halves(key.kind) && derivatives_.compiler.mode == TierMode::compile)
    derivatives_.compiler.on_hot(ctx, *made->parts[0]->target);
  return made;
}

DerivativeCache::Entry* DerivativeCache::build(Context& ctx, const Key& key, Specialization& target,
                                               diff::Refusal& refusal) {
  const StageTime time(derivatives_.compiler.times, StageTimes::Stage::differentiation,
                       [&] { return "derivative of " + name_of(target); });
  Subject subject{target, nullptr, nullptr, nullptr, {}, {}, nullptr};
  if (!find_subject(ctx, key, subject, refusal)) return nullptr;
  // Gradients are not called by other derivatives: they are entered when they are complete, what was kept stays till
  // then.
  const bool declared = key.kind != DerivativeKind::gradient;
  Key widened = key;
  const auto fail = [&]() -> Entry* {
    if (!declared) return nullptr;
    entries_.erase(key);
    entries_.erase(widened);
    return nullptr;
  };
  for (int attempt = 0; attempt < 4; ++attempt) {
    Entry entry = declare(key, subject, widened.active);
    if (declared) entries_[key] = entry;
    if (are_halves(key.kind) && widened.active != key.active) entries_[widened] = entry;
    diff::Derivative derivative;
    if (!differentiate(ctx, key, subject, widened.active, entry.halves.stack, derivative, refusal)) return fail();
    if (declared && derivative.active != widened.active) {  // it writes what was not said to be active: start again
      widened.active = derivative.active;
      continue;
    }
    ++made_;
    ++counts_[static_cast<std::size_t>(counted_as(key.kind))].calls;
    if (!complete(ctx, key, subject, derivative, entry, refusal)) return fail();
    entry.ready = true;
    if (are_halves(key.kind) && widened.active != key.active) entries_[widened] = entry;
    return &(entries_[key] = std::move(entry));
  }
  refusal = refusal_of(target, "internal error: the active arguments did not settle");
  return nullptr;
}

bool DerivativeCache::find_subject(Context& ctx, const Key& key, Subject& subject, diff::Refusal& refusal) {
  Specialization& target = subject.target;
  PrimalCodes& primals = derivatives_.primals;
  diff::TangentTypes& tangents = diff::tangent_types(derivatives_.runtime);
  if (key.kind == DerivativeKind::forward) {
    subject.by_rule = forward_rule_call(derivatives_, ctx, target, key.active, key.width, subject.edges);
    if (ctx.failed()) return false;  // a rule's builder raised
    // The rule is called once a direction: where it overwrites what it is given, the second call would see the first's.
    if (subject.by_rule && key.width > 1 && overwrites_arguments(ctx, target)) {
      refusal = refusal_of(target, "a rule that overwrites its arguments, in several directions at once");
      return false;
    }
    const diff::RuleKind rule = diff::find_rule(derivatives_.runtime, target.types, ctx.world, nullptr);
    const bool whole = rule == diff::RuleKind::scalar || rule == diff::RuleKind::non_differentiable;
    subject.code = !subject.by_rule && whole ? primals.primal_or_rule(ctx, target) : primals.primal(ctx, target);
  } else {
    subject.code = primals.primal_or_rule(ctx, target);
  }
  if (!subject.code) {
    if (key.kind != DerivativeKind::gradient)
      refusal = not_inferred(target, "the types of `" + name_of(target) + "` could not be inferred");
    primals.take_refusal(target, refusal);
    return false;
  }
  subject.types = parameter_types(*subject.code);
  if (subject.by_rule) subject.code = subject.by_rule.get();
  subject.result_type = subject.by_rule ? as_data(subject.by_rule->return_type)->params[0] : subject.code->return_type;
  if (key.kind == DerivativeKind::gradient || tangents.known(subject.code->return_type)) return true;
  refusal = not_inferred(target, key.kind == DerivativeKind::forward
                                     ? "the types of `" + name_of(target) + "` could not be inferred"
                                     : "the result type of `" + name_of(target) + "` is not inferred (" +
                                           to_string(subject.result_type) + ")");
  return false;
}

// A function that has a reverse rule too says there what it overwrites.
bool DerivativeCache::overwrites_arguments(Context& ctx, Specialization& target) {
  switch (diff::find_rule(derivatives_.runtime, target.types, ctx.world, nullptr)) {
    case diff::RuleKind::stateful: {
      const diff::MemoryMask declared = derivatives_.overwritten_by(ctx, target.types);
      if (declared == diff::as_its_code_says) break;
      return declared != 0;
    }
    case diff::RuleKind::reverse:
    case diff::RuleKind::built:
    case diff::RuleKind::scalar:
      return false;
    default:
      break;
  }
  CodeInstance* code = derivatives_.compiler.typed_code(ctx, target);
  return !code || (code->effects & effect_writes);
}

// The specialisations of the parts, without code yet. That of a gradient gets its types from its code.
DerivativeCache::Entry DerivativeCache::declare(const Key& key, const Subject& subject,
                                                const std::vector<char>& asked) {
  Entry entry;
  if (key.kind == DerivativeKind::gradient) return entry;
  Runtime& runtime = derivatives_.runtime;
  Compiler& compiler = derivatives_.compiler;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  const std::string name = name_of(subject.target);
  std::vector<const Type*> types{runtime.types.builtin().nothing};
  types.insert(types.end(), subject.types.begin(), subject.types.end());
  for (std::size_t k = 0; k < key.width; ++k)
    for (std::size_t i = 0; i < subject.types.size(); ++i)
      if (asked[i] && tangents.has_shadow(subject.types[i])) types.push_back(tangents.shadow(subject.types[i]));
  if (key.kind == DerivativeKind::forward) {
    for (std::size_t k = 0; k < key.width; ++k)
      for (std::size_t i = 0; i < subject.types.size(); ++i)
        if (asked[i] && tangents.has_cotangent(subject.types[i])) types.push_back(tangents.cotangent(subject.types[i]));
    Synthetic& made = compiler.synthetic("tangent of " + name, types, subject.code);
    if (tangents.is_forward_half(&subject.target)) tangents.note_forward_half(made.target);
    if (is_reverse_half(subject.target)) tangents.note_reverse_half(made.target);
    if (!source_of(subject.target) || is_forward_mode(subject.target)) forward_mode_.insert(made.target);
    entry.parts = {&made};
    entry.tangent = {made.target, made.callee, asked, subject.result_type};
    return entry;
  }
  const BuiltinTypes& builtin = runtime.types.builtin();
  const bool stacked = key.kind == DerivativeKind::stacked;
  std::vector<const Type*> reverse_types{types[0], stacked ? builtin.int64 : builtin.any,
                                         tangents.cotangent(subject.result_type)};
  if (stacked) {
    types.insert(types.end(), {builtin.tape, builtin.int64});
    reverse_types.push_back(builtin.tape);
  }
  Synthetic& forward = compiler.synthetic("∇" + name, types, subject.code);
  Synthetic& reverse = compiler.synthetic("∇" + name + " (reverse)", reverse_types, subject.code);
  tangents.note_forward_half(forward.target);
  tangents.note_reverse_half(reverse.target);
  // What they are derived from was not inlined either; when it is recursive, they would go into each other.
  forward.method->inline_hint = reverse.method->inline_hint = -1;
  entry.parts = {&forward, &reverse};
  entry.halves = {forward.target, reverse.target,
                  forward.callee, reverse.callee,
                  asked,          subject.result_type,
                  reverse.serial, ~std::uint64_t{0},
                  true,           stacked ? std::make_shared<TapeLayout>() : nullptr};
  return entry;
}

bool DerivativeCache::is_reverse_half(const Specialization& target) const {
  return diff::tangent_types(derivatives_.runtime).is_reverse_half(&target);
}

// What Base.caught_call calls, of such a call.
const Specialization* DerivativeCache::called_within(Context& ctx, const Specialization* target) const {
  if (!diff::is_caught_call(derivatives_.runtime, *target)) return target;
  const std::vector<const Type*> types(target->types->params.begin() + 1, target->types->params.end());
  const Specialization* called =
      derivatives_.runtime.lookup_specialization(derivatives_.runtime.types.tuple(types), ctx.world);
  return called ? called : target;
}

// Recursion whose argument types grow: the derivative of each call would ask for that of the next. Such a call becomes
// one whose target is found when it runs.
void DerivativeCache::leave_growing_calls(Context& ctx, Subject& subject) const {
  std::vector<const Specialization*> followed;
  for (const Specialization* target : in_work_) followed.push_back(called_within(ctx, target));
  std::vector<std::uint32_t> growing;
  for (const ir::Block& block : subject.code->blocks)
    for (std::uint32_t id : block.insts) {
      const ir::Inst& inst = subject.code->insts[id];
      if (inst.op != ir::Op::invoke || inst.operands.empty()) continue;
      const Specialization& callee = *inst.aux_as<Specialization>();
      if (infer::types_grow(followed, callee) &&
          diff::find_rule(derivatives_.runtime, callee.types, ctx.world, nullptr) == diff::RuleKind::none)
        growing.push_back(id);
    }
  if (growing.empty()) return;
  auto changed = subject.code->clone();
  for (std::uint32_t id : growing) {
    changed->insts[id].op = ir::Op::call;
    changed->insts[id].aux = 0;
  }
  subject.changed = std::move(changed);
  subject.code = subject.changed.get();
}

bool DerivativeCache::differentiate(Context& ctx, const Key& key, Subject& subject, const std::vector<char>& asked,
                                    const std::shared_ptr<TapeLayout>& stack, diff::Derivative& derivative,
                                    diff::Refusal& refusal) {
  if (subject.by_rule) {
    derivative.forward = subject.by_rule->clone();
    derivative.active = asked;
    derivative.edges = subject.edges;
    return true;
  }
  DerivationEnvironment environment(derivatives_, ctx);
  bool done = false;
  leave_growing_calls(ctx, subject);
  switch (key.kind) {
    case DerivativeKind::gradient:
      done = diff::gradient_function(environment, *subject.code, asked, derivative, refusal);
      break;
    case DerivativeKind::pullback:
    case DerivativeKind::stacked:
      done = diff::split_derivative(environment, *subject.code, asked, stack, derivative, refusal);
      break;
    case DerivativeKind::forward:
      done = diff::forward_derivative(environment, *subject.code, asked, key.width, derivative, refusal);
      break;
  }
  derivative.edges.insert(derivative.edges.end(), environment.edges.begin(), environment.edges.end());
  return done;
}

// `self`: what the function calls itself by, when it may.
infer::InferResult DerivativeCache::infer_part(Context& ctx, ir::Function& function, const Specialization* self) {
  const auto infer = [&] {
    return infer::Inference(derivatives_.runtime, ctx, ctx.world, derivatives_.compiler.infer_options(ctx))
        .reinfer(function);
  };
  infer::InferResult result = infer();
  // What it gives back is known better now, to its own recursive calls too.
  if (!self || !result.typed || !result.return_type || !retype_calls(function, *self, result.return_type))
    return result;
  infer::InferResult again = infer();
  if (again.typed && again.return_type == result.return_type) return again;
  retype_calls(function, *self, function.return_type);
  return result;
}

bool DerivativeCache::complete(Context& ctx, const Key& key, const Subject& subject, diff::Derivative& derivative,
                               Entry& entry, diff::Refusal& refusal) {
  Runtime& runtime = derivatives_.runtime;
  Compiler& compiler = derivatives_.compiler;
  derivatives_.primals.add_edges(subject.target, derivative.edges);
  diff::find_rule(runtime, subject.target.types, ctx.world, &derivative.edges);  // one defined later ends this
  if (key.kind == DerivativeKind::forward)
    diff::has_forward_rule(runtime, subject.target.types, ctx.world, &derivative.edges);
  std::vector<std::unique_ptr<ir::Function>> functions;
  for (auto* function : {&derivative.combined, &derivative.forward, &derivative.reverse})
    if (*function) functions.push_back(std::move(*function));
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const bool is_half = are_halves(key.kind);
    infer::InferResult result = infer_part(ctx, *functions[i], is_half ? entry.parts[i]->target : nullptr);
    if (!result.typed) {
      refusal = refusal_of(subject.target, "internal error: the derivative's types could not be inferred");
      return false;
    }
    limit_to_worlds_of(ctx, derivative.edges, result);
    opt::optimise(runtime, ctx, *result.typed, compiler.opt_options(ctx, nullptr));
    dump("grad", *result.typed);
    if (key.kind == DerivativeKind::gradient)
      entry.parts = {&compiler.synthetic("∇" + name_of(subject.target), parameter_types(*result.typed), subject.code)};
    Synthetic& part = *entry.parts[i];
    part.layouts = derivative.layouts;
    ir::compact(*functions[i]);
    sources_[part.target] = std::shared_ptr<ir::Function>(std::move(functions[i]));
    compiler.publish(part, std::move(result), derivative.edges);
  }
  if (key.kind == DerivativeKind::gradient) {
    entry.gradient = {entry.parts[0]->target, entry.parts[0]->callee, derivative.active};
    if (!put_memory_back(ctx, subject, derivative.edges, entry, refusal)) return false;
    saved_[entry.gradient.target] = std::move(derivative.saved);
  }
  entry.halves.recalled = derivative.recalled;
  entry.halves.recalls_result = derivative.recalls_result;
  return true;
}

// A gradient of a function that stores into memory which was there before it is called by one that puts that back.
bool DerivativeCache::put_memory_back(Context& ctx, const Subject& subject, const std::vector<Edge>& edges,
                                      Entry& entry, diff::Refusal& refusal) {
  const Stores& stores = derivatives_.stores.of(ctx, subject.target);
  if (ctx.failed()) return false;
  if (!stores.any() && !stores.calls_unknown) return true;
  Compiler& compiler = derivatives_.compiler;
  const GradientCode inner = entry.gradient;
  std::unique_ptr<ir::Function> guarded = call_putting_back(derivatives_.runtime, stores, inner, true);
  infer::InferResult result = infer_part(ctx, *guarded, nullptr);
  if (!result.typed) {
    refusal = refusal_of(subject.target, "internal error: the types of what puts memory back could not be inferred");
    return false;
  }
  limit_to_worlds_of(ctx, edges, result);
  opt::OptOptions options = compiler.opt_options(ctx, nullptr);
  // Loops stay outside the `try`, where each turn would ask whether to stop, and no turns be done together.
  if (has_loops(*inner.target->current->typed))
    options.is_primitive = [&](const ir::Inst& call) { return call.aux_as<Specialization>() == inner.target; };
  opt::optimise(derivatives_.runtime, ctx, *result.typed, options);
  dump("grad", *result.typed);
  Synthetic& part = compiler.synthetic("∇" + name_of(subject.target), parameter_types(*result.typed), subject.code);
  sources_[part.target] =
      std::shared_ptr<ir::Function>(call_putting_back(derivatives_.runtime, stores, inner, false).release());
  std::vector<Edge> all = edges;
  all.push_back({Edge::Kind::callee, nullptr, nullptr, inner.target});
  compiler.publish(part, std::move(result), all);
  guarded_.insert(part.target);
  entry.parts.insert(entry.parts.begin(), &part);
  entry.gradient.target = part.target;
  entry.gradient.callee = part.callee;
  return true;
}

bool opens_level(const ir::Inst& inst) {
  if (inst.op != ir::Op::native) return false;
  const std::string_view name = inst.aux_as<const NativeInfo>()->name;
  return name == "keep_memory_within" || name == "keep_memory_of" || name == "open_level_for";
}

// What catches, the gradients of put_memory_back, ends its own levels and those within.
bool DerivativeCache::may_leave_level(const Specialization& target) {
  std::vector<const Specialization*> work{&target};
  std::vector<const Specialization*> seen{&target};
  bool found = false;
  while (!work.empty() && !found) {
    const Specialization& one = *work.back();
    work.pop_back();
    if (guarded_.contains(&one)) continue;
    if (!one.current || !one.current->typed) {  // still being made
      found = true;
      break;
    }
    if (const auto known = leave_level_.find(&one); known != leave_level_.end() && known->second.first == one.current) {
      found = known->second.second;
      continue;
    }
    for (const ir::Block& block : one.current->typed->blocks)
      for (std::uint32_t id : block.insts) {
        const ir::Inst& inst = one.current->typed->insts[id];
        found |= opens_level(inst);
        const auto* callee = inst.op == ir::Op::invoke ? inst.aux_as<Specialization>() : nullptr;
        if (!callee || std::find(seen.begin(), seen.end(), callee) != seen.end()) continue;
        seen.push_back(callee);
        if (!callee->current || (callee->current->effects & effect_writes)) work.push_back(callee);
      }
  }
  if (found)
    leave_level_[&target] = {target.current, true};
  else
    for (const Specialization* one : seen) leave_level_[one] = {one->current, false};
  return found;
}

const ir::Function* DerivativeCache::source_of(const Specialization& target) const {
  const auto found = sources_.find(&target);
  return found == sources_.end() ? nullptr : found->second.get();
}

const std::vector<diff::SavedValue>* DerivativeCache::saved_of(const Specialization& gradient) const {
  const auto found = saved_.find(&gradient);
  return found == saved_.end() ? nullptr : &found->second;
}

std::string DerivativeCache::saved_text(const Specialization& gradient) const {
  const std::vector<diff::SavedValue>* saved = saved_of(gradient);
  if (!saved || saved->empty()) return "";
  std::string text = "kept for the reverse sweep:\n";
  for (const diff::SavedValue& value : *saved)
    text += "  " + std::string(diff::saved_where(value.where)) + ": " + value.what + ", " + value.why + "  ; " +
            derivatives_.runtime.sources.describe(value.span) + "\n";
  return text;
}

std::uint64_t DerivativeCache::made() const { return made_; }

std::size_t DerivativeCache::bytes(Context& ctx, DerivativeKind kind) const {
  std::size_t bytes = 0;
  std::vector<const Specialization*> counted;
  for (const auto& [key, entry] : entries_) {
    if (counted_as(key.kind) != kind) continue;
    for (const Synthetic* part : entry.parts) {
      const auto source = sources_.find(part->target);
      if (source == sources_.end() || !valid_code(ctx, *part->target)) continue;
      if (std::find(counted.begin(), counted.end(), part->target) != counted.end()) continue;
      counted.push_back(part->target);
      bytes += ir::byte_count(*source->second);
    }
  }
  return bytes;
}

void DerivativeCache::counts(Context& ctx, std::vector<std::int64_t>& numbers) const {
  for (std::size_t kind = 0; kind < derivative_kinds; ++kind) {
    const Counts& of = counts_[kind];
    const std::uint64_t held = bytes(ctx, static_cast<DerivativeKind>(kind));
    const std::uint64_t time = ctx.runtime->capabilities.time ? of.nanoseconds : 0;
    for (const std::uint64_t n : {of.calls, of.hits, of.misses, of.invalidated, held, time})
      numbers.push_back(static_cast<std::int64_t>(n));
  }
}

void DerivativeCache::trace(Tracer& tracer) const {
  for (const auto& [target, source] : sources_) derivatives_.runtime.hooks().trace_function(*source, tracer);
}

void DerivativeCache::each_part(const Specialization& primal,
                                const std::function<void(const Synthetic& part)>& look) const {
  for (const DerivativeKind kind :
       {DerivativeKind::gradient, DerivativeKind::pullback, DerivativeKind::forward, DerivativeKind::stacked})
    for (auto at = entries_.lower_bound(Key{kind, &primal, {}, 0});
         at != entries_.end() && at->first.kind == kind && at->first.primal == &primal; ++at)
      for (const Synthetic* part : at->second.parts) look(*part);
}

void DerivativeCache::reach(const Specialization& target, Reached& reached) const {
  each_part(target, [&](const Synthetic& part) { reached.specialization(*part.target); });
  if (const auto source = sources_.find(&target); source != sources_.end()) reached.function(*source->second);
}

void DerivativeCache::reach_refused(Reached& reached) const {
  for (const auto& [key, refused] : refused_) reached.place(refused.second.span);
}

void DerivativeCache::forget(const GoneCode& gone) {
  const auto is_emptied = [&](const auto& entry) { return gone.emptied.contains(entry.first); };
  std::erase_if(sources_, is_emptied);
  std::erase_if(saved_, is_emptied);
  const auto is_gone = [&](const Specialization* target) { return gone.emptied.contains(target); };
  for (auto* some : {&forward_mode_, &guarded_}) std::erase_if(*some, is_gone);
  diff::tangent_types(derivatives_.runtime).forget_halves(is_gone);
  leave_level_.clear();
  std::erase_if(refused_, [&](const auto& entry) { return gone.emptied.contains(entry.first.primal); });
  std::erase_if(entries_, [&](const auto& entry) {
    const std::vector<Synthetic*>& parts = entry.second.parts;
    if (gone.destroys && gone.emptied.contains(entry.first.primal)) return true;
    return std::any_of(parts.begin(), parts.end(),
                       [&](const Synthetic* part) { return gone.emptied.contains(part->target); });
  });
}

}  // namespace slope::derive
