#include "lang/derive/built_rules.hpp"

#include <algorithm>

#include "lang/derive/derivatives.hpp"
#include "lang/diff/rules.hpp"
#include "lang/ir/build.hpp"
#include "lang/runtime/library_names.hpp"
#include "lang/support/exception_safe.hpp"

namespace slope::derive {

bool BuiltRules::is_current(Context& ctx, const BuiltRule& built) {
  return valid_code(ctx, *built.holds->target) &&
         std::all_of(built.versions.begin(), built.versions.end(),
                     [](const auto& read) { return read.first->version == read.second; });
}

bool BuiltRules::find(Context& ctx, const DataType* call_types, bool forward, diff::BuiltRule& rule,
                      std::vector<Edge>& edges) {
  const KnownName name = forward ? KnownName::build_frule : KnownName::build_rrule;
  const Key key{call_types, forward};
  const auto give = [&](const BuiltRule& built) {
    rule = {built.rule, !built.versions.empty()};
    edges.push_back({Edge::Kind::callee, nullptr, nullptr, built.holds->target});
    // What is made while another builder runs is part of what that one makes.
    if (RecordedRun* const outer = recorded_run(ctx)) outer->looked_up.edges.push_back(edges.back());
    return true;
  };
  if (const auto known = built_.find(key); known != built_.end() && is_current(ctx, known->second))
    return give(known->second);
  Specialization* builder = runtime_.lookup_specialization(diff::builder_call(runtime_, name, call_types), ctx.world);
  // A builder that needs a derivative for which it is called itself has no end: calling it reports that, too.
  if (builder && std::find(in_inference_.begin(), in_inference_.end(), key) == in_inference_.end()) {
    in_inference_.push_back(key);
    compiler_.typed_code(ctx, *builder);
    in_inference_.pop_back();
    if (ctx.failed()) ctx.take_error();  // it does not lower: calling it reports that
  }
  RecordedRun run(ctx);
  Value types = runtime_.from_type(call_types);
  {
    const Restored recording(ctx.generating, static_cast<GeneratorRun*>(&run));
    if (!runtime_.call(ctx, library_value(runtime_, name), &types, 1, rule.rule)) return false;
  }
  assigned_.insert(run.assigned.begin(), run.assigned.end());
  BuiltRule& made = built_[key];
  made = {rule.rule, nullptr, {}};  // the collector sees it
  const std::vector<Edge> looked = looked_up(ctx, run);
  for (const Edge& edge : looked)
    if (edge.binding && !edge.binding->is_constant) made.versions.push_back({edge.binding, edge.binding->version});
  made.holds = &holds_as_long_as(ctx, call_types, looked);
  return give(made);
}

// The edges of all that the run looked up. Typed code is read for the variables in it and for the code that it calls by
// name. What a builder assigns itself, a counter for example, is its own and no reason to build again.
std::vector<Edge> BuiltRules::looked_up(Context& ctx, const RecordedRun& run) {
  std::vector<Edge> edges = run.looked_up.edges;
  std::vector<std::shared_ptr<ir::Function>> work = run.typed;
  std::unordered_set<const ir::Function*> seen;
  while (!work.empty()) {
    const std::shared_ptr<ir::Function> function = std::move(work.back());
    work.pop_back();
    if (!seen.insert(function.get()).second) continue;
    for (const ir::Block& block : function->blocks)
      for (std::uint32_t id : block.insts) {
        const ir::Inst& inst = function->insts[id];
        if (inst.op == ir::Op::load_global)
          edges.push_back({Edge::Kind::binding, nullptr, inst.aux_as<const Binding>(), nullptr});
        if (inst.op == ir::Op::store_global) assigned_.insert(inst.aux_as<const Binding>());
        if (inst.op != ir::Op::invoke) continue;
        auto* callee = inst.aux_as<Specialization>();
        edges.push_back({Edge::Kind::lookup, callee->types, nullptr, nullptr});
        const CodeInstance* code = valid_code(ctx, *callee);
        if (!code || !code->typed) continue;
        edges.insert(edges.end(), code->edges.begin(), code->edges.end());
        work.push_back(code->typed);
      }
  }
  std::erase_if(edges, [&](const Edge& edge) { return edge.binding && assigned_.contains(edge.binding); });
  watch_variables(edges);
  return edges;
}

// Code that does nothing and ends with these edges.
Synthetic& BuiltRules::holds_as_long_as(Context& ctx, const DataType* call_types, const std::vector<Edge>& edges) {
  const BuiltinTypes& builtin = runtime_.types.builtin();
  infer::InferResult result;
  result.typed = std::make_unique<ir::Function>();
  result.typed->name = "built rule";
  result.typed->typed = true;
  result.typed->return_type = result.return_type = builtin.nothing;
  result.min_world = ctx.world;
  ir::Builder at(*result.typed);
  at.set_block(at.new_block());
  at.add_parameter(0, builtin.nothing);
  // It goes with the types of the call (lang/runtime/unreachable.cpp).
  at.add_parameter(0, runtime_.types.type_of_constant(runtime_.from_type(call_types)));
  at.ret(at.constant(runtime_.nothing()));
  Synthetic& made = compiler_.synthetic("built rule", parameter_types(*result.typed), nullptr);
  compiler_.publish(made, std::move(result), edges);
  return made;
}

void BuiltRules::trace(Tracer& tracer) const {
  for (const auto& [types, built] : built_) tracer.value(built.rule);
}

void BuiltRules::forget(const GoneCode& gone) {
  std::erase_if(built_, [&](const auto& entry) { return gone.emptied.contains(entry.second.holds->target); });
}

}  // namespace slope::derive
