#include "lang/derive/primal.hpp"

#include <algorithm>
#include <iterator>

#include "lang/derive/derivatives.hpp"
#include "lang/diff/normal_form.hpp"
#include "lang/diff/tangent.hpp"
#include "lang/infer/growth.hpp"
#include "lang/ir/build.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/runtime/stop_scope.hpp"
#include "lang/support/tuning.hpp"

namespace slope::derive {

bool PrimalCodes::usable(Context& ctx, const PrimalCode& known, const CodeInstance* basis) const {
  if (known.basis != basis) return false;
  for (const Edge& edge : known.edges)
    if (edge.kind == Edge::Kind::callee && !valid_code(ctx, *edge.callee)) return false;
  if (known.rules_hold_in == ctx.world) return true;
  const auto& rules = known.rules.all;
  const bool hold = std::all_of(rules.begin(), rules.end(), [&](const NotedRules::Rule& rule) {
    return derivatives_.runtime.lookup(rule.first, ctx.world).method == rule.second;
  });
  if (hold) known.rules_hold_in = ctx.world;
  return hold;
}

void PrimalCodes::NotedRules::add(const DataType* call, const Method* found) {
  const auto at = std::lower_bound(all.begin(), all.end(), call,
                                   [](const Rule& rule, const DataType* wanted) { return rule.first < wanted; });
  if (at == all.end() || at->first != call) all.insert(at, {call, found});
}

void PrimalCodes::NotedRules::add(const NotedRules& others) {
  std::vector<Rule> both;
  both.reserve(all.size() + others.all.size());
  const auto by_call = [](const Rule& a, const Rule& b) { return a.first < b.first; };
  std::set_union(all.begin(), all.end(), others.all.begin(), others.all.end(), std::back_inserter(both), by_call);
  both.shrink_to_fit();
  all = std::move(both);
}

void PrimalCodes::note(Context& ctx, const std::vector<Edge>& asked, PrimalCode& noting) {
  for (const Edge& edge : asked) {
    const DataType* call = as_data(edge.signature);
    noting.rules.add(call, derivatives_.runtime.lookup(call, ctx.world).method);
  }
}

diff::RuleKind PrimalCodes::rule_of(Context& ctx, const DataType* call_types, PrimalCode& noting) {
  std::vector<Edge> asked;
  const diff::RuleKind kind = diff::find_rule(derivatives_.runtime, call_types, ctx.world, &asked);
  note(ctx, asked, noting);
  return kind;
}

bool PrimalCodes::has_forward_rule(Context& ctx, const DataType* call_types, PrimalCode& noting) {
  std::vector<Edge> asked;
  const bool found = diff::has_forward_rule(derivatives_.runtime, call_types, ctx.world, &asked);
  note(ctx, asked, noting);
  return found;
}

void PrimalCodes::add_edges(const Specialization& target, std::vector<Edge>& edges) const {
  edges.push_back({Edge::Kind::callee, nullptr, nullptr, const_cast<Specialization*>(&target)});
  for (const Codes* known : {&primals_, &rule_calls_})
    if (const auto found = known->find(&target); found != known->end())
      for (const auto& [call, method] : found->second.rules.all)
        edges.push_back({Edge::Kind::lookup, call, nullptr, nullptr});
}

void PrimalCodes::take_refusal(const Specialization& target, diff::Refusal& refusal) const {
  if (const auto known = primals_.find(&target); known != primals_.end() && known->second.refusal)
    refusal = *known->second.refusal;
}

// A program that lives long makes ever new functions (closures above all), of which most are differentiated once.
void PrimalCodes::let_go_unused() {
  constexpr std::size_t bytes_of_generation = std::size_t{16}
                                              << 20;  // as ir::byte_count; about three times as much in all
  if (made_bytes_ < bytes_of_generation || !in_work_.empty()) return;
  std::erase_if(primals_, [&](const auto& entry) { return entry.second.code && entry.second.asked_in < generation_; });
  ++generation_;
  made_bytes_ = 0;
}

void PrimalCodes::trace(Tracer& tracer) const {
  for (const Codes* known : {&primals_, &rule_calls_})
    for (const auto& [target, primal] : *known)
      if (primal.code) derivatives_.runtime.hooks().trace_function(*primal.code, tracer);
}

void PrimalCodes::reach_refused(Reached& reached) const {
  for (const Codes* known : {&primals_, &rule_calls_})
    for (const auto& [target, primal] : *known)
      if (primal.refusal) reached.place(primal.refusal->span);
}

void PrimalCodes::reach(const Specialization& target, Reached& reached) const {
  for (const Codes* known : {&primals_, &rule_calls_}) {
    const auto found = known->find(&target);
    if (found == known->end()) continue;
    const PrimalCode& primal = found->second;
    if (primal.code) reached.function(*primal.code);
    for (const Edge& edge : primal.edges) {
      reached.word(edge.signature);
      if (edge.callee) reached.specialization(*edge.callee);
    }
    for (const auto& [call, method] : primal.rules.all) {
      reached.word(call);
      reached.word(method);
    }
  }
}

void PrimalCodes::forget(const GoneCode& gone) {
  for (Codes* known : {&primals_, &rule_calls_})
    std::erase_if(*known, [&](const auto& entry) {
      if (gone.codes.contains(entry.second.basis)) return true;
      if (!gone.destroys) return false;
      return gone.emptied.contains(entry.first) ||
             std::any_of(entry.second.rules.all.begin(), entry.second.rules.all.end(),
                         [&](const auto& rule) { return gone.methods.contains(rule.second); });
    });
}

std::shared_ptr<const ir::Function> PrimalCodes::kept_primal(Context& ctx, Specialization& target) {
  return primal(ctx, target) ? primals_.at(&target).code : nullptr;
}

// What is inlined into `target` for differentiation. Rules that are looked up on the way go to `noted`.
opt::OptOptions PrimalCodes::inlining(Context& ctx, const Specialization& target, PrimalCode& noted) {
  opt::OptOptions options;
  options.is_primitive = [this, &ctx, &noted](const ir::Inst& inst) {
    if (inst.op != ir::Op::invoke) return false;
    switch (rule_of(ctx, inst.aux_as<Specialization>()->types, noted)) {
      case diff::RuleKind::none:
        return has_forward_rule(ctx, inst.aux_as<Specialization>()->types, noted);
      case diff::RuleKind::non_differentiable: {
        // Lengths and tests of types: inlined they show what loops count; what prints must stay a call.
        // A result that can carry a derivative has none by declaration, whatever the code says.
        if (diff::TangentTypes& tangents = diff::tangent_types(derivatives_.runtime);
            !tangents.known(inst.type) || tangents.differentiable(inst.type))
          return true;
        // The text of a number is followed (lang/diff/activity.cpp).
        if (inst.type == derivatives_.runtime.types.builtin().string) return true;
        const CodeInstance* code = valid_code(ctx, *inst.aux_as<Specialization>());
        return !code || !code->typed || (code->effects & effect_writes) ||
               code->typed->insts.size() > tuning::primal_writes_size;
      }
      default:
        return true;
    }
  };
  options.callee = [this, &ctx, &target, &noted](Specialization& callee) -> const ir::Function* {
    // Of a forward half it must be seen that the other half writes what it gives back (activity.cpp).
    if (&callee == &target || infer::types_grow(in_work_, callee) ||
        diff::tangent_types(derivatives_.runtime).is_forward_half(&callee))
      return nullptr;
    const ir::Function* inlined = primal(ctx, callee);
    if (const auto known = primals_.find(&callee); known != primals_.end()) noted.rules.add(known->second.rules);
    // In two halves a call costs a record and what lies in it: the program's own functions stay calls only when they
    // are larger than those of the library, which have rules where it matters.
    const bool own =
        callee.method->module != derivatives_.runtime.base && callee.method->module != derivatives_.runtime.core;
    constexpr std::size_t most_of_library = tuning::primal_library_size;
    std::size_t size = 0;
    if (inlined && !own)
      for (const ir::Block& block : inlined->blocks) size += block.insts.size() + 1;
    return size > most_of_library && callee.method->inline_hint <= 0 ? nullptr : inlined;
  };
  options.inline_budget = 1200;
  return options;
}

namespace {

class InWork {
 public:
  InWork(std::vector<const Specialization*>& stack, const Specialization& target) : stack_(stack) {
    stack_.push_back(&target);
  }
  ~InWork() { stack_.pop_back(); }
  InWork(const InWork&) = delete;

 private:
  std::vector<const Specialization*>& stack_;
};

}  // namespace

namespace {

// No parameter of its own is left open in it, and it is of a size that blocks of single instructions bear.
bool stands_anywhere(const ir::Function& body) {
  std::size_t size = 0;
  for (const ir::Block& block : body.blocks) {
    size += block.insts.size() + 1;
    for (std::uint32_t id : block.insts)
      if (body.insts[id].op == ir::Op::static_param) return false;
  }
  return size <= tuning::inline_total;
}

}  // namespace

// In Base.caught_call the call is replaced by its code, so that every point of it where something may be raised is in the
// `try` and the reverse sweep can begin there (lang/diff/exceptions.cpp).
bool PrimalCodes::inline_caught_call(Context& ctx, const Specialization& target, ir::Function& code,
                                     const opt::OptOptions& options, PrimalCode& noted) {
  if (!diff::is_caught_call(derivatives_.runtime, target)) return false;
  for (ir::BlockId b = 0; b < code.blocks.size(); ++b) {
    if (code.blocks[b].handler == ir::no_block) continue;
    for (std::uint32_t id : code.blocks[b].insts) {
      const ir::Inst& call = code.insts[id];
      if (call.op != ir::Op::invoke) continue;
      Specialization& callee = *call.aux_as<Specialization>();
      if (options.is_primitive(call) && !diff::goes_without_rule_in_try(derivatives_.runtime, callee, ctx.world))
        continue;
      const ir::Function* body = primal(ctx, callee);
      if (const auto known = primals_.find(&callee); known != primals_.end()) noted.rules.add(known->second.rules);
      if (!body || !stands_anywhere(*body)) return false;
      const std::unique_ptr<ir::Function> copy = body->clone();
      opt::inline_with_handlers(derivatives_.runtime, code, id, *copy, callee);
      return true;
    }
  }
  return false;
}

// The callee's code as differentiation wants it: everything inlined but calls that have rules, at any depth.
const ir::Function* PrimalCodes::primal(Context& ctx, Specialization& target) {
  return without_stops([&] { return make_primal(ctx, target); });
}

const ir::Function* PrimalCodes::make_primal(Context& ctx, Specialization& target) {
  const CollectionPause pause(derivatives_.runtime.heap);
  CodeInstance* basis = derivatives_.compiler.typed_code(ctx, target);
  if (!basis || !basis->typed) return nullptr;
  auto known = primals_.find(&target);
  if (known != primals_.end() && usable(ctx, known->second, basis)) {
    known->second.asked_in = generation_;
    return known->second.code.get();
  }
  primals_[&target] = PrimalCode{basis, nullptr, {}, {}, 0, generation_, {}};  // recursion: stays a call
  const InWork work(in_work_, target);
  PrimalCode noted;
  infer::Inference inference(derivatives_.runtime, ctx, ctx.world, derivatives_.compiler.infer_options(ctx));
  const ir::Function* source = derivatives_.cache.source_of(target);
  infer::InferResult result = source ? inference.reinfer(*source) : inference.infer(target);
  if (!result.typed) {
    primals_.erase(&target);
    return nullptr;
  }
  const auto refused = [&] {
    primals_[&target].refusal = std::move(noted.refusal);
    primals_[&target].rules = std::move(noted.rules);
    return nullptr;
  };
  if (!use_rules_under_pass(ctx, *result.typed, noted)) return refused();
  const opt::OptOptions options = inlining(ctx, target, noted);
  bool promoted = opt::optimise(derivatives_.runtime, ctx, *result.typed, options);
  if (inline_caught_call(ctx, target, *result.typed, options, noted))
    promoted = opt::optimise(derivatives_.runtime, ctx, *result.typed, options) || promoted;
  // What was inlined is known more precisely in this place than it was on its own; then more calls may be, of gradients
  // too, which are a call of the derivative then.
  std::vector<Edge> edges;
  bool decided = false;  // the last round was for calls alone: what it left undecided stays so
  bool any_expanded = false;
  for (int round = 0; round < tuning::primal_rounds; ++round) {
    const bool expanded = derivatives_.expand_operators(ctx, *result.typed, edges);
    any_expanded |= expanded;
    if (round > 0 && !expanded && !promoted &&
        (decided || !(any_expanded || derivatives_.compiler.has_decidable_calls(*result.typed))))
      break;
    decided = !expanded;
    infer::InferResult refined =
        infer::Inference(derivatives_.runtime, ctx, ctx.world, derivatives_.compiler.infer_options(ctx))
            .reinfer(*result.typed);
    if (!refined.typed) break;
    if (!use_rules_under_pass(ctx, *refined.typed, noted)) return refused();
    promoted = opt::optimise(derivatives_.runtime, ctx, *refined.typed, options);
    result.typed = std::move(refined.typed);
    if (refined.return_type) result.return_type = refined.return_type;
  }
  result.typed->return_type = result.return_type;
  dump("primal", *result.typed);
  auto& made = primals_[&target];
  made = {basis,
          std::shared_ptr<ir::Function>(std::move(result.typed)),
          std::move(edges),
          std::move(noted.rules),
          0,
          generation_,
          {}};
  made_bytes_ += ir::byte_count(*made.code) + made.rules.all.size() * sizeof(NotedRules::Rule);
  return made.code.get();
}

// A function that calls `called`, which has a rule, with the arguments of `target`.
std::shared_ptr<ir::Function> PrimalCodes::rule_call(const CodeInstance& basis, Specialization& target,
                                                     Specialization& called) {
  auto code = std::make_shared<ir::Function>();
  code->method = target.method;
  code->name = std::string(target.method->name->name);
  code->typed = true;
  code->span = target.method->span;
  code->return_type = basis.return_type;
  code->scopes.push_back({target.method, ~0u, Span{}});
  ir::Builder builder(*code);
  builder.set_block(builder.new_block());
  builder.set_span(target.method->span);
  std::vector<ir::Operand> operands;
  std::vector<const Type*> types = parameter_types(*basis.typed);
  for (const Type* t : types) operands.push_back(builder.add_parameter(0, t));
  if (target.method->is_vararg) {
    ir::Operand rest = operands.back();
    const DataType* tuple = as_data(types.back());
    operands.pop_back();
    for (std::size_t i = 0; i < tuple->fields.size(); ++i)
      operands.push_back(builder.emit(ir::Op::field_at, {rest}, tuple->fields[i].type, i));
  }
  if (&called != &target) operands.erase(operands.begin());  // the pass
  builder.ret(builder.emit(ir::Op::invoke, operands, basis.return_type, reinterpret_cast<std::uintptr_t>(&called)));
  return code;
}

// What is differentiated when the user asks for `target`: its code, or, when there is a rule for it, just the call of
// it.
const ir::Function* PrimalCodes::primal_or_rule(Context& ctx, Specialization& target) {
  const CollectionPause pause(derivatives_.runtime.heap);
  PrimalCode noted;
  diff::RuleKind rule = rule_of(ctx, target.types, noted);
  Specialization* called = &target;
  if (rule == diff::RuleKind::none) {
    std::string why;
    called = under_pass(ctx, target, noted, why);
    if (!why.empty()) {
      PrimalCode& none = primals_[&target];
      none = {};
      none.rules = std::move(noted.rules);
      none.refusal = diff::Refusal{target.method->span, target.method, why};
      return nullptr;
    }
    if (!called) return primal(ctx, target);
  }
  CodeInstance* basis = derivatives_.compiler.typed_code(ctx, target);
  if (!basis || !basis->typed) return nullptr;
  auto& made = rule_calls_[&target];
  if (made.basis == basis && usable(ctx, made, basis)) return made.code.get();
  made = {basis, rule_call(*basis, target, *called), {}, std::move(noted.rules), 0, generation_, {}};
  return made.code.get();
}

}  // namespace slope::derive
