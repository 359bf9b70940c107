// Natives of Core that need the whole pipeline: inspection, inferred result types; those of derivatives have files of
// their own.
#include "lang/derive/natives/call.hpp"
#include "lang/explain/view_text.hpp"

namespace slope {

namespace {

bool argument_types(Context& ctx, Value tuple, std::vector<const Type*>& types) {
  if (!expect_tuple(ctx, "argument types", tuple)) return false;
  Rooted given(ctx.runtime->heap);
  append_elements(ctx, tuple, given);
  for (Value v : given.values) {
    if (!ctx.runtime->is_type_value(v)) return ctx.type_error("argument types", ctx.runtime->types.builtin().type, v);
    types.push_back(v.as_type);
  }
  return true;
}

// return_type(f, types::Tuple) → type; return_type(Tuple{typeof(f), types…}) where there is no f to be had
bool return_type(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count == 1 && ctx.runtime->is_type_value(args[0])) {
    const DataType* call = as_data(args[0].as_type);
    if (!call || !call->is_tuple || call->params.empty() || call->has_free_vars)
      return ctx.argument_error("return_type takes a type Tuple{typeof(f), types...}, found " +
                                to_string(args[0].as_type));
    result = ctx.runtime->from_type(pipeline_of(ctx).return_type(ctx, call));
    return true;
  }
  if (count != 2) return ctx.argument_error("return_type takes a function and a tuple of types");
  std::vector<const Type*> types{ctx.runtime->types.type_of_constant(args[0])};
  if (!ctx.runtime->is_type_value(args[0])) types[0] = args[0].type;
  if (!argument_types(ctx, args[1], types)) return false;
  result = ctx.runtime->from_type(pipeline_of(ctx).return_type(ctx, ctx.runtime->types.tuple(types)));
  return true;
}

// stack_free(f, types::Tuple) → Bool
bool stack_free(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count != 2) return ctx.argument_error("stack_free takes a function and a tuple of types");
  Runtime& runtime = *ctx.runtime;
  std::vector<const Type*> types{runtime.is_type_value(args[0]) ? runtime.types.type_of_constant(args[0])
                                                                : args[0].type};
  if (!argument_types(ctx, args[1], types)) return false;
  const DataType* call = runtime.types.tuple(types);
  Specialization* target = runtime.lookup_specialization(call, ctx.world);
  if (!target) return ctx.argument_error("no unique method matches the call " + to_string(call));
  std::vector<char> active(target->method->is_vararg ? target->method->arg_count + 1 : types.size(), 1);
  active[0] = 0;
  bool answer = false;
  if (!pipeline_of(ctx).stack_free(ctx, *target, active, answer)) return false;
  result = runtime.from_bool(answer);
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
  static const std::pair<const char*, Pipeline::View> views[] = {
      {"lowered", Pipeline::View::lowered},   {"typed", Pipeline::View::typed}, {"warntype", Pipeline::View::warntype},
      {"gradient", Pipeline::View::gradient}, {"llvm", Pipeline::View::llvm},   {"native", Pipeline::View::native}};
  std::vector<const Type*> types;
  if (!argument_types(ctx, args[2], types)) return false;
  for (auto [name, view] : views) {
    if (args[0].symbol->name != name) continue;
    std::string text;
    if (!pipeline_of(ctx).inspect(ctx, args[1], types, view, options, text)) return false;
    result = runtime.from_string(text);
    return result.defined() || ctx.out_of_memory();
  }
  return ctx.argument_error("no such view of code: " + args[0].symbol->name);
}

// derivative_counts() → Vector{Int64}: calls, hits, misses, invalidated, bytes, nanoseconds of gradients, of pullbacks,
// of forward derivatives.
bool derivative_counts(Context& ctx, const Value*, std::size_t, Value& result) {
  std::vector<std::int64_t> numbers;
  pipeline_of(ctx).derivative_counts(ctx, numbers);
  const std::int64_t dims[] = {static_cast<std::int64_t>(numbers.size())};
  const DataType* type = ctx.runtime->types.array_of(ctx.runtime->types.builtin().int64, 1);
  ArrayObject* made = ctx.runtime->heap.allocate_array(type, dims);
  if (!made) return ctx.out_of_memory();
  std::copy(numbers.begin(), numbers.end(), reinterpret_cast<std::int64_t*>(made->data));
  result = Value(type, static_cast<const void*>(made));
  return true;
}

// open_to_methods(names::Symbol...): definitions of these functions of Base in other modules add methods to them.
bool open_to_methods(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  for (std::size_t i = 0; i < count; ++i) {
    if (args[i].type != runtime.types.builtin().symbol) return ctx.argument_error("open_to_methods takes symbols");
    Binding* binding = runtime.base->find(args[i].symbol);
    if (!binding) return ctx.undef_var(args[i].symbol);
    binding->open_to_methods = true;
  }
  result = runtime.nothing();
  return true;
}

// code_counts() → (ended code that is still there, code freed so far, bytes of machine code)
bool code_counts(Context& ctx, const Value*, std::size_t count, Value& result) {
  if (count != 0) return ctx.argument_error("code_counts takes no arguments");
  const Pipeline::CodeCounts counts = pipeline_of(ctx).code_counts();
  Value parts[3];
  std::size_t at = 0;
  for (const std::size_t n : {counts.ended, counts.freed, counts.machine_bytes})
    parts[at++] = ctx.runtime->from_int(static_cast<std::int64_t>(n));
  return ctx.runtime->new_tuple(ctx, parts, at, result);
}

const NativeInfo pipeline_natives[] = {
    {"open_to_methods", open_to_methods, effect_all, nullptr},
    {"stack_free", stack_free, effect_all, nullptr},
    {"return_type", return_type, effect_throws | effect_allocates, nullptr, true},
    {"inspect_code", inspect_code, effect_all, nullptr},
    {"derivative_counts", derivative_counts, effect_all, nullptr},
    {"code_counts", code_counts, effect_all, nullptr},
};

}  // namespace

void define_why_natives(Runtime& runtime);      // lang/explain/why_native.cpp
void define_callees_natives(Runtime& runtime);  // lang/explain/callees.cpp

void define_pipeline_natives(Runtime& runtime) {
  define_why_natives(runtime);
  define_callees_natives(runtime);
  diff::define_tangent_natives(runtime);
  define_gradient_natives(runtime);
  define_forward_natives(runtime);
  define_dynamic_natives(runtime);
  for (const NativeInfo& native : pipeline_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope
