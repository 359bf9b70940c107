// What the compiler has for a function, as text.
#include <algorithm>

#include "lang/explain/warntype.hpp"
#include "lang/ir/passes/passes.hpp"
#include "lang/pipeline/impl.hpp"

namespace slope {

// What the reverse sweep uses of the forward sweep, a line each: where it is kept, what it is, why there.
std::string Pipeline::Impl::saved_text(const Specialization& gradient) const {
  auto found = saved.find(&gradient);
  if (found == saved.end() || found->second.empty()) return "";
  std::string text = "kept for the reverse sweep:\n";
  for (const diff::SavedValue& value : found->second)
    text += "  " + std::string(diff::saved_where(value.where)) + ": " + value.what + ", " + value.why + "  ; " +
            runtime.sources.describe(value.span) + "\n";
  return text;
}

bool Pipeline::stack_free(Context& ctx, Specialization& primal, const std::vector<char>& active, bool& result) {
  const GradientCode* code = gradient_code(ctx, primal, active);
  if (!code) return false;
  const std::vector<diff::SavedValue>& saved = impl_->saved[code->target];
  result = std::none_of(saved.begin(), saved.end(),
                        [](const diff::SavedValue& value) { return value.where == diff::SavedValue::Where::stack; });
  return true;
}

bool Pipeline::inspect(Context& ctx, Value callee, std::span<const Type* const> argument_types, View view,
                       const infer::ViewOptions& options, std::string& text) {
  const CollectionPause pause(runtime_.heap);
  std::vector<const Type*> types{runtime_.is_type_value(callee) ? runtime_.types.type_of_constant(callee)
                                                                : callee.type};
  types.insert(types.end(), argument_types.begin(), argument_types.end());
  const DataType* call_types = runtime_.types.tuple(types);
  Specialization* target = runtime_.lookup_specialization(call_types, ctx.world);
  if (!target) return ctx.argument_error("no unique method matches the call " + to_string(call_types));
  std::string name = std::string(target->method->name->name);
  if (view == View::lowered) {
    const Source source = runtime_.source(ctx, *target, SourceUse::reflection, ctx.world);
    if (!source.code) return false;
    text = infer::with_source_lines(ir::print(*source.code, &runtime_.sources), runtime_.sources, options);
    return true;
  }
  if (view == View::gradient) {
    std::vector<char> active(target->method->is_vararg ? target->method->arg_count + 1 : types.size(), 1);
    active[0] = 0;
    const GradientCode* code = gradient_code(ctx, *target, active);
    if (!code) return false;
    CodeInstance* made = impl_->valid_code(ctx, *code->target);
    text = infer::with_source_lines(ir::print(*made->typed, &runtime_.sources) + impl_->saved_text(*code->target),
                                    runtime_.sources, options);
    return true;
  }
  if (view == View::warntype) {
    infer::Inference inference(runtime_, ctx, ctx.world, impl_->infer_options());
    infer::InferResult result = inference.infer(*target);
    if (!result.typed)
      return ctx.failed() ? false : ctx.argument_error("the types of `" + name + "` could not be inferred");
    text = infer::warntype(runtime_, *target, result, options);
    return true;
  }
  CodeInstance* code = typed_code(ctx, *target);
  if (!code || !code->typed)
    return ctx.failed() ? false : ctx.argument_error("the types of `" + name + "` could not be inferred");
  if (view == View::typed) {
    text = infer::with_source_lines(ir::print(*code->typed, &runtime_.sources), runtime_.sources, options);
    return true;
  }
  CodeGenerator* generator = impl_->generator();
  if (!generator) return ctx.argument_error("this build has no code generator");
  text = generator->dump(ctx, *code, view == View::llvm ? CodeGenerator::Dump::llvm : CodeGenerator::Dump::native);
  return true;
}

}  // namespace slope
