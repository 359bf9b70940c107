// Core.why_code: why the type of a call is not exact (lang/explain/why.hpp), for `@why` and the inspector.
#include "lang/derive/natives/call.hpp"
#include "lang/explain/natives.hpp"
#include "lang/explain/why.hpp"
#include "lang/explain/why_costs.hpp"
#include "lang/explain/why_source.hpp"
#include "lang/runtime/call_text.hpp"

namespace slope::explain {

infer::WhySource why_source(Pipeline& pipeline, Context& ctx) {
  infer::WhySource source;
  source.infer = [&pipeline, &ctx](Specialization& target, bool unlimited) {
    infer::InferOptions options;
    constexpr int no_limit = 1'000'000;
    if (unlimited)
      options.constant_call_limit = no_limit;
    else
      options.on_limit = [&pipeline](const Specialization& at, infer::LimitPassed passed) {
        pipeline.note_limit(at, passed);
      };
    infer::Inference inference(*ctx.runtime, ctx, ctx.world, options);
    return inference.infer(target);
  };
  source.limits = [&pipeline](const Specialization& target) { return pipeline.limits_of(target); };
  return source;
}

namespace {

// What is found for f and a tuple of types.
struct Asked {
  Specialization* target = nullptr;
  infer::Why why;
};

bool ask_why(Context& ctx, const char* name, const Value* args, std::size_t count, Asked& asked) {
  Runtime& runtime = *ctx.runtime;
  if (count < 2) return ctx.argument_error(std::string(name) + " takes a function and a tuple of types");
  // With its callees made and kept first, the inferences below make nothing that stays.
  asked.target = derive::inferred_call_of(ctx, args[0], args[1]);
  if (!asked.target) return false;
  const CollectionPause pause(runtime.heap);
  asked.why = infer::why(runtime, ctx, *asked.target, why_source(pipeline_of(ctx), ctx));
  return !ctx.failed();
}

// why_code(f, types::Tuple, color::Bool) → String
bool why_code(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Asked asked;
  if (!ask_why(ctx, "why", args, count, asked)) return false;
  const bool color = count > 2 && args[2].type == ctx.runtime->types.builtin().boolean && args[2].bits != 0;
  result = ctx.runtime->from_string(infer::why_text(*ctx.runtime, *asked.target, asked.why, color));
  return result.defined() || ctx.out_of_memory();
}

// why_parts(f, types::Tuple) → (exact, kind, reason, advice, (file, line, expression, type)…)
bool why_parts(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Asked asked;
  if (!ask_why(ctx, "why", args, count, asked)) return false;
  Runtime& runtime = *ctx.runtime;
  Rooted parts(runtime.heap);
  parts.values.push_back(runtime.from_bool(asked.why.exact));
  for (const std::string* text : {&asked.why.kind, &asked.why.reason, &asked.why.advice})
    parts.values.push_back(runtime.from_string(*text));
  for (const infer::WhyStep& step : asked.why.steps) {
    Rooted fields(runtime.heap);
    fields.values = {runtime.from_string(runtime.sources.file(step.span.file).name()),
                     runtime.from_int(runtime.sources.line_of(step.span)), runtime.from_string(step.what),
                     runtime.from_string(step.type ? to_string(step.type) : "")};
    Value made;
    if (!runtime.new_tuple(ctx, fields.values.data(), fields.values.size(), made)) return false;
    parts.values.push_back(made);
  }
  return runtime.new_tuple(ctx, parts.values.data(), parts.values.size(), result);
}

// What the walks of lang/explain/why_costs.hpp find for f and a tuple of types.
bool find_costs(Context& ctx, const Value* args, std::size_t count, bool dynamic, Specialization*& target,
                std::vector<infer::CostSite>& sites) {
  Runtime& runtime = *ctx.runtime;
  if (count < 2) return ctx.argument_error("expected a function and a tuple of types");
  target = derive::inferred_call_of(ctx, args[0], args[1]);
  if (!target) return false;
  const CollectionPause pause(runtime.heap);
  infer::CostSource source;
  source.optimised = [&](Specialization& callee) -> const ir::Function* {
    const CodeInstance* code = pipeline_of(ctx).typed_code(ctx, callee);
    return code ? code->typed.get() : nullptr;
  };
  if (!source.optimised(*target))
    return ctx.failed() ? false : ctx.argument_error("the types of the call could not be inferred");
  sites = dynamic ? infer::dynamic_calls(runtime, *target, source) : infer::allocations(runtime, *target, source);
  return !ctx.failed();
}

// costs_code(dynamic::Bool, f, types::Tuple, color::Bool) → String
bool costs_code(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 4) return ctx.argument_error("costs_code takes which costs, a function, a tuple of types, and a Bool");
  Specialization* target = nullptr;
  std::vector<infer::CostSite> sites;
  const bool dynamic = args[0].bits != 0;
  if (!find_costs(ctx, args + 1, count - 1, dynamic, target, sites)) return false;
  result = ctx.runtime->from_string(infer::costs_text(*ctx.runtime, *target, sites, dynamic, args[3].bits != 0));
  return result.defined() || ctx.out_of_memory();
}

// call_name(f, types::Tuple) → String: how messages name the specialisation that the call reaches
bool call_name(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("call_name takes a function and a tuple of types");
  const Specialization* target = derive::inferred_call_of(ctx, args[0], args[1]);
  if (!target) return false;
  result = ctx.runtime->from_string(call_text(*target));
  return result.defined() || ctx.out_of_memory();
}

// costs_parts(dynamic::Bool, f, types::Tuple) → ((file, line, expression, reason, advice, in a loop, in each call)…)
bool costs_parts(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 3) return ctx.argument_error("costs_parts takes which costs, a function and a tuple of types");
  Runtime& runtime = *ctx.runtime;
  Specialization* target = nullptr;
  std::vector<infer::CostSite> sites;
  if (!find_costs(ctx, args + 1, count - 1, args[0].bits != 0, target, sites)) return false;
  Rooted parts(runtime.heap);
  for (const infer::CostSite& site : sites) {
    Rooted fields(runtime.heap);
    const Span at = site.way.front();
    fields.values = {runtime.from_string(runtime.sources.file(at.file).name()),
                     runtime.from_int(runtime.sources.line_of(at)),
                     runtime.from_string(site.what),
                     runtime.from_string(site.reason),
                     runtime.from_string(site.advice),
                     runtime.from_bool(site.in_loop),
                     runtime.from_bool(site.always)};
    Value made;
    if (!runtime.new_tuple(ctx, fields.values.data(), fields.values.size(), made)) return false;
    parts.values.push_back(made);
  }
  return runtime.new_tuple(ctx, parts.values.data(), parts.values.size(), result);
}

const NativeInfo why_natives[] = {
    {"costs_code", costs_code, effect_all, nullptr},   {"call_name", call_name, effect_all, nullptr},
    {"costs_parts", costs_parts, effect_all, nullptr}, {"why_code", why_code, effect_all, nullptr},
    {"why_parts", why_parts, effect_all, nullptr},
};

}  // namespace

void define_why_natives(Runtime& runtime) {
  for (const NativeInfo& native : why_natives) runtime.define_native(runtime.core, &native);
}

void define_natives(Runtime& runtime) {
  define_inspect_natives(runtime);
  define_why_natives(runtime);
  define_callees_natives(runtime);
}

}  // namespace slope::explain
