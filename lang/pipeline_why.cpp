// Core.why_code: why the type of a call is not exact (lang/infer/why.hpp), for `@why` and the inspector.
#include "lang/infer/why.hpp"
#include "lang/pipeline_call.hpp"

namespace slope {

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
  asked.target = inferred_call_of(ctx, args[0], args[1]);
  if (!asked.target) return false;
  const CollectionPause pause(runtime.heap);
  const auto inferred = [&](Specialization& target) {
    infer::Inference inference(runtime, ctx, ctx.world);
    return inference.infer(target);
  };
  infer::InferResult result = inferred(*asked.target);
  if (ctx.failed()) return false;
  asked.why = infer::why(runtime, *asked.target, result, ctx.world, inferred);
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

const NativeInfo natives[] = {
    {"why_code", why_code, effect_all, nullptr},
    {"why_parts", why_parts, effect_all, nullptr},
};

}  // namespace

void define_why_natives(Runtime& runtime) {
  for (const NativeInfo& native : natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope
