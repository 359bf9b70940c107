// Core.inspect_code: what the compiler really holds, as text.
#include <algorithm>

#include "lang/derive/natives/call.hpp"
#include "lang/explain/kept.hpp"
#include "lang/explain/natives.hpp"
#include "lang/explain/view_text.hpp"
#include "lang/explain/warntype.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/pipeline/pipeline.hpp"
#include "lang/runtime/call_text.hpp"

namespace slope::explain {

namespace {

// What @code_lowered, @code_typed, @code_warntype, @code_grad, @code_llvm, @code_native print.
enum class View { lowered, typed, warntype, gradient, kept, llvm, native };

bool inspect(Context& ctx, Value callee, std::span<const Type* const> argument_types, View view,
             const infer::ViewOptions& options, std::string& text) {
  Runtime& runtime = *ctx.runtime;
  Pipeline& pipeline = pipeline_of(ctx);
  const CollectionPause pause(runtime.heap);
  std::vector<const Type*> types{runtime.is_type_value(callee) ? runtime.types.type_of_constant(callee) : callee.type};
  types.insert(types.end(), argument_types.begin(), argument_types.end());
  const DataType* call_types = runtime.types.tuple(types);
  Specialization* target = runtime.lookup_specialization(call_types, ctx.world);
  if (!target) return ctx.argument_error("no unique method matches the call " + to_string(call_types));
  std::string name = std::string(target->method->name->name);
  if (view == View::lowered) {
    const Source source = runtime.source(ctx, *target, SourceUse::reflection, ctx.world);
    if (!source.code) return false;
    text = infer::with_source_lines(ir::print(*source.code, &runtime.sources), runtime.sources, options);
    return true;
  }
  if (view == View::gradient || view == View::kept) {
    std::vector<char> active(target->method->is_vararg ? target->method->arg_count + 1 : types.size(), 1);
    active[0] = 0;
    const derive::GradientCode* code = pipeline.derivatives().gradient(ctx, *target, active);
    if (!code) return false;
    if (view == View::kept) {
      text = kept_table(runtime, call_text(*target), pipeline.derivatives().cache.saved_of(*code->target));
      return true;
    }
    CodeInstance* made = derive::valid_code(ctx, *code->target);
    text = infer::with_source_lines(
        ir::print(*made->typed, &runtime.sources) + pipeline.derivatives().cache.saved_text(*code->target),
        runtime.sources, options);
    return true;
  }
  if (view == View::warntype) {
    infer::Inference inference(runtime, ctx, ctx.world, pipeline.infer_options(ctx));
    infer::InferResult result = inference.infer(*target);
    if (!result.typed)
      return ctx.failed() ? false : ctx.argument_error("the types of `" + name + "` could not be inferred");
    text = infer::warntype(runtime, *target, result, options);
    return true;
  }
  CodeInstance* code = pipeline.typed_code(ctx, *target);
  if (!code || !code->typed)
    return ctx.failed() ? false : ctx.argument_error("the types of `" + name + "` could not be inferred");
  if (view == View::typed) {
    text = infer::with_source_lines(ir::print(*code->typed, &runtime.sources), runtime.sources, options);
    return true;
  }
  CodeGenerator* generator = pipeline.generator();
  if (!generator) return ctx.argument_error("this build has no code generator");
  text = generator->dump(ctx, *code, view == View::llvm ? CodeGenerator::Dump::llvm : CodeGenerator::Dump::native);
  return true;
}

// inspect_code(view::Symbol, f, types::Tuple, color::Bool, source::Bool, full::Bool, hide_stable::Bool) → String
bool inspect_code(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const BuiltinTypes& builtin = runtime.types.builtin();
  if (count != 7) return ctx.argument_error("inspect_code takes a view, a function, a tuple of types and four Bools");
  for (std::size_t i = 3; i < count; ++i)
    if (args[i].type != builtin.boolean) return ctx.type_error("inspect_code", builtin.boolean, args[i]);
  const infer::ViewOptions options{args[3].bits != 0, args[4].bits != 0, args[5].bits != 0, args[6].bits != 0};
  if (args[0].type != builtin.symbol) return ctx.type_error("inspect_code", builtin.symbol, args[0]);
  static const std::pair<const char*, View> views[] = {
      {"lowered", View::lowered}, {"typed", View::typed}, {"warntype", View::warntype}, {"gradient", View::gradient},
      {"kept", View::kept},       {"llvm", View::llvm},   {"native", View::native}};
  std::vector<const Type*> types;
  if (!derive::append_argument_types(ctx, args[2], types)) return false;
  for (auto [name, view] : views) {
    if (args[0].symbol->name != name) continue;
    std::string text;
    if (!inspect(ctx, args[1], types, view, options, text)) return false;
    result = runtime.from_string(text);
    return result.defined() || ctx.out_of_memory();
  }
  return ctx.argument_error("no such view of code: " + args[0].symbol->name);
}

// seen_calls(f) → ((argument types…)…): with which types it was called until now, the most frequent first
bool seen_calls(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 1) return ctx.argument_error("seen_calls takes a function");
  Runtime& runtime = *ctx.runtime;
  const DataType* type =
      as_data(runtime.is_type_value(args[0]) ? runtime.types.type_of_constant(args[0]) : args[0].type);
  std::vector<const Specialization*> seen;
  if (type && type->name->methods)
    for (const auto& method : type->name->methods->methods) {
      if (method->max_world != newest_world) continue;
      for (const auto& each : method->specializations) {
        const bool is_called =
            each->calls > 0 || std::any_of(each->code.begin(), each->code.end(), [](const auto& code) {
              return code->boxed.load(std::memory_order_acquire) != nullptr;
            });
        if (is_called && !each->types->params.empty() && each->types->params[0] == type) seen.push_back(each.get());
      }
    }
  std::stable_sort(seen.begin(), seen.end(), [](const auto* a, const auto* b) { return a->calls > b->calls; });
  Rooted calls(runtime.heap);
  for (const Specialization* each : seen) {
    Rooted types(runtime.heap);
    for (std::size_t i = 1; i < each->types->params.size(); ++i)
      types.values.push_back(runtime.from_type(each->types->params[i]));
    Value made;
    if (!runtime.new_tuple(ctx, types.values.data(), types.values.size(), made)) return false;
    calls.values.push_back(made);
  }
  return runtime.new_tuple(ctx, calls.values.data(), calls.values.size(), result);
}

const NativeInfo inspect_natives[] = {
    {"seen_calls", seen_calls, effect_all, nullptr},
    {"inspect_code", inspect_code, effect_all, nullptr},
};

}  // namespace

void define_inspect_natives(Runtime& runtime) {
  for (const NativeInfo& native : inspect_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::explain
