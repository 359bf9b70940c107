#include "lang/derive/natives/call.hpp"

#include "lang/derive/kept_memory.hpp"

#include "lang/derive/dynamic.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

void append_elements(Context& ctx, Value tuple, Rooted& to) {
  for (const Field& field : as_data(tuple.type)->fields)
    to.values.push_back(load_field(ctx.runtime->heap, tuple.object, field));
}

bool expect_tuple(Context& ctx, const char* where, Value v) {
  const DataType* d = as_data(v.type);
  return (d && d->is_tuple) || ctx.type_error(where, ctx.runtime->types.builtin().tuple_any, v);
}

bool append_argument_types(Context& ctx, Value tuple, std::vector<const Type*>& types) {
  if (!expect_tuple(ctx, "argument types", tuple)) return false;
  Rooted given(ctx.runtime->heap);
  append_elements(ctx, tuple, given);
  for (const Value v : given.values) {
    if (!ctx.runtime->is_type_value(v)) return ctx.type_error("argument types", ctx.runtime->types.builtin().type, v);
    types.push_back(v.as_type);
  }
  return true;
}

Specialization* inferred_call_of(Context& ctx, Value f, Value given_types) {
  Runtime& runtime = *ctx.runtime;
  std::vector<const Type*> types{runtime.is_type_value(f) ? runtime.types.type_of_constant(f) : f.type};
  if (!append_argument_types(ctx, given_types, types)) return nullptr;
  const DataType* call = runtime.types.tuple(types);
  Specialization* target = runtime.lookup_specialization(call, ctx.world);
  if (!target) {
    ctx.argument_error("no unique method matches the call " + to_string(call));
    return nullptr;
  }
  compiler_of(ctx).typed_code(ctx, *target);
  return ctx.failed() ? nullptr : target;
}

bool raise_written_twice(Context& ctx, const Specialization& target) {
  return ctx.raise_message(ctx.runtime->types.builtin().differentiation_error,
                           "cannot differentiate `" + std::string(target.method->name->name) +
                               "`: two arguments share memory that it stores into; give it a copy of one");
}

bool call_derivative_code(Context& ctx, Specialization& code, Value callee, const std::vector<Value>& given,
                          Value& result) {
  Runtime& runtime = *ctx.runtime;
  const auto& parameters = code.types->params;
  if (parameters.size() != given.size() + 1)
    return ctx.argument_error("a derivative takes " + std::to_string(parameters.size() - 1) + " arguments, got " +
                              std::to_string(given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Type* wanted = parameters[i + 1];
    if (given[i].type == wanted) continue;
    if (!given[i].defined()) return ctx.argument_error("a derivative is given an undefined value");
    // A derivative that is differentiated again: its code has `nothing` there, and does not look.
    if (wanted == runtime.types.builtin().nothing && as_data(given[i].type)->storage == Storage::singleton) continue;
    if (!is_instance(runtime.types, given[i], wanted)) return ctx.type_error("a derivative", wanted, given[i]);
  }
  const std::size_t depth = KeptMemory::depth(ctx);
  if (runtime.call_specialized(ctx, code, callee, given.data(), given.size(), result)) return true;
  // A derivative that is differentiated again leaves to what is around it to catch errors: in forward mode nothing does.
  if (KeptMemory::depth(ctx) > depth) kept_memory_of(ctx).put_back_on_exception(static_cast<std::int64_t>(depth) + 1);
  return false;
}

void define_natives(Runtime& runtime) {
  diff::define_tangent_natives(runtime);
  define_gradient_natives(runtime);
  define_checkpoint_natives(runtime);
  define_segment_natives(runtime);
  define_caught_call_natives(runtime);
  define_built_rule_natives(runtime);
  define_place_natives(runtime);
  define_forward_natives(runtime);
  define_dynamic_natives(runtime);
  define_kept_memory_natives(runtime);
  define_rule_memory_natives(runtime);
}

bool DerivedCall::fits(const Specialization& synthetic) const {
  const auto& parameters = synthetic.types->params;
  if (parameters.size() != xs.size() + 1) return false;
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (!is_instance(ctx.runtime->types, xs[i], parameters[i + 1])) return false;
  return true;
}

bool DerivedCall::resolve(Value f, Value xs_tuple) {
  Runtime& runtime = *ctx.runtime;
  if (!expect_tuple(ctx, "gradient", xs_tuple)) return false;
  append_elements(ctx, xs_tuple, values);
  xs = values.values;
  if (f.type == runtime.types.builtin().builtin_function)
    return ctx.argument_error("builtin functions cannot be differentiated directly; wrap the call in a function");
  target = compiler_of(ctx).synthetic_of(f);
  if (target && !fits(*target)) return ctx.argument_error("a derivative is given other arguments than it takes");
  if (!target) target = runtime.dispatch_specialized(ctx, f, xs.data(), xs.size());
  if (!target) return false;
  const Method& method = *target->method;
  arguments.push_back(f);
  std::size_t fixed = method.is_vararg ? method.arg_count - 1 : xs.size();
  for (std::size_t i = 0; i < fixed; ++i) arguments.push_back(xs[i]);
  if (method.is_vararg) {
    Value rest;
    if (!runtime.new_tuple(ctx, xs.data() + fixed, xs.size() - fixed, rest)) return false;
    values.values.push_back(rest);
    arguments.push_back(rest);
  }
  asked.assign(arguments.size(), 1);
  asked[0] = 0;
  return true;
}

namespace {

// Arrays of numbers, and where their memory is: all that most calls have to compare.
class NumberArrays {
 public:
  // False: it may hold other memory.
  bool add(Value v, diff::TangentTypes& tangents) {
    if (!tangents.holds_memory(v)) return true;
    const DataType* d = as_data(v.type);
    if (!d || d->object_kind != DataType::ObjectKind::array || tangents.has_shadow(d->params[0])) return false;
    arrays_.push_back(static_cast<const ArrayObject*>(v.object));
    return true;
  }
  bool lie_apart() const {
    for (std::size_t a = 0; a < arrays_.size(); ++a)
      for (std::size_t b = a + 1; b < arrays_.size(); ++b)
        if (begin(a) < end(b) && begin(b) < end(a)) return false;
    return true;
  }

 private:
  const char* begin(std::size_t i) const { return arrays_[i]->data; }
  const char* end(std::size_t i) const { return arrays_[i]->data + arrays_[i]->length * arrays_[i]->element_size; }

  std::vector<const ArrayObject*> arrays_;
};

}  // namespace

Specialization* DerivedCall::within_gradient() {
  Runtime& runtime = *ctx.runtime;
  const Value gradients = library_value(runtime, KnownName::gradients_type);
  const Value callee = arguments[0];
  if (!gradients.defined() || !is_instance(runtime.types, callee, gradients.as_type)) return nullptr;
  Rooted function(runtime.heap);
  function.values.push_back(load_field(runtime.heap, callee.object, as_data(callee.type)->fields[0]));
  if (function.values[0].type == runtime.types.builtin().builtin_function) return nullptr;
  return runtime.dispatch_specialized(ctx, function.values[0], xs.data(), xs.size());
}

bool DerivedCall::find_shared_memory() {
  Runtime& runtime = *ctx.runtime;
  diff::TangentTypes& tangents = diff::tangent_types(runtime);
  std::vector<std::size_t> holders;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (tangents.has_shadow(arguments[i].type)) holders.push_back(i);
  bool only_callee = holders.empty() || (holders.size() == 1 && holders[0] == 0);
  if (only_callee) return true;
  diff::MemorySummary effects = derivatives_of(ctx).memory(ctx).of(*target);
  diff::MemoryMask mask = 0;
  for (std::size_t i : holders)
    if (i != 0) mask |= diff::parameter_mask(i);
  if (!((effects.writes | effects.unknown) & mask)) return true;
  const diff::MemoryEffects::Globals& looked_at = derivatives_of(ctx).globals_of(ctx, *target);
  if (holders.size() == 1 && looked_at.empty()) return true;
  NumberArrays arrays;
  bool are_numbers = true;
  for (std::size_t i : holders) are_numbers = are_numbers && arrays.add(arguments[i], tangents);
  for (Value v : looked_at.constants) are_numbers = are_numbers && arrays.add(v, tangents);
  for (const Binding* binding : looked_at.bindings) are_numbers = are_numbers && arrays.add(binding->value, tangents);
  if (are_numbers && arrays.lie_apart()) return true;
  std::vector<std::unique_ptr<diff::ShadowMaker>> makers;
  for (std::size_t i : holders) {
    makers.push_back(std::make_unique<diff::ShadowMaker>(ctx));
    Value ignored;
    if (!makers.back()->shadow(arguments[i], ignored)) return false;
  }
  for (std::size_t a = 0; a < holders.size(); ++a)
    for (std::size_t b = a + 1; b < holders.size(); ++b) {
      if (!makers[a]->overlaps(*makers[b])) continue;
      diff::MemoryMask both = diff::parameter_mask(holders[a]) | diff::parameter_mask(holders[b]);
      if (effects.writes & both) {
        shared = true;
        asked[holders[a]] = asked[holders[b]] = 1;
      } else if (effects.unknown & both) {
        stores_forbidden = true;
      }
    }
  diff::ShadowMaker globals(ctx);
  Value ignored;
  for (Value v : looked_at.constants)
    if (tangents.has_shadow(v.type) && !globals.shadow(v, ignored)) return false;
  for (const Binding* binding : looked_at.bindings)
    if (binding->value.defined() && tangents.has_shadow(binding->value.type) &&
        !globals.shadow(binding->value, ignored))
      return false;
  for (std::size_t a = 0; a < holders.size(); ++a) {
    if (!makers[a]->overlaps(globals)) continue;
    diff::MemoryMask bit = diff::parameter_mask(holders[a]);
    if (effects.writes & bit) {
      Specialization* within = within_gradient();
      if (ctx.failed()) return false;
      const diff::MemoryMask arguments_of_it = ~(diff::global_memory | diff::parameter_mask(0));
      if (within) {
        const diff::MemorySummary own = derivatives_of(ctx).memory(ctx).of(*within);
        if (!((own.writes | own.unknown) & arguments_of_it)) continue;
      }
      return ctx.raise_message(runtime.types.builtin().differentiation_error,
                               "cannot differentiate `" + std::string((within ? within : target)->method->name->name) +
                                   "`: it stores into an argument that it also reads as a global; give it a copy of "
                                   "the argument");
    }
    if (effects.unknown & bit) stores_forbidden = true;
  }
  return true;
}

bool DerivedCall::make_shadows(const std::vector<char>& active) {
  Runtime& runtime = *ctx.runtime;
  diff::ShadowMaker common(ctx);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Value made = runtime.nothing();
    diff::ShadowMaker own(ctx);
    diff::ShadowMaker& maker = shared ? common : own;
    if (active[i] && !maker.shadow(arguments[i], made)) return false;
    if (stores_forbidden) maker.forbid_stores();
    values.values.push_back(made);
    shadows.push_back(made);
  }
  return true;
}

bool DerivedCall::finish(Value cotangents, Value& result) {
  Runtime& runtime = *ctx.runtime;
  Rooted parts(runtime.heap);
  append_elements(ctx, cotangents, parts);
  if (parts.values.size() < arguments.size() || shadows.size() < arguments.size())
    return ctx.argument_error("a derivative gave fewer cotangents than there are arguments");
  Rooted finished(runtime.heap);
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    Value made;
    if (!diff::finish_tangent(ctx, arguments[i], shadows[i], parts.values[i], made)) return false;
    if (target->method->is_vararg && i + 1 == arguments.size()) {
      if (as_data(made.type)->is_tuple)
        append_elements(ctx, made, finished);
      else
        finished.values.resize(xs.size(), runtime.nothing());
    } else {
      finished.values.push_back(made);
    }
  }
  return runtime.new_tuple(ctx, finished.values.data(), finished.values.size(), result);
}

std::vector<Value> DerivedCall::shadow_arguments(const std::vector<char>& active) const {
  std::vector<Value> given;
  diff::TangentTypes& tangents = diff::tangent_types(*ctx.runtime);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (active[i] && tangents.has_shadow(arguments[i].type)) given.push_back(shadows[i]);
  return given;
}

}  // namespace slope::derive
