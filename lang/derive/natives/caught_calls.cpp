// What a call that raised in a `try` may have stored before, where its target is found when it runs
// (lang/diff/exceptions.cpp).
#include "lang/derive/natives/call.hpp"
#include "lang/runtime/library_names.hpp"

namespace slope::derive {

namespace {

// Whether a call may store something before it raises. What calls it in a derivative stores where the call does.
bool may_store(Context& ctx, Value callee, std::vector<Value> args) {
  Runtime& runtime = *ctx.runtime;
  Rooted parts(runtime.heap);
  for (;;) {
    const bool is_step = callee.identical(library_value(runtime, KnownName::dynamic_forward_again)) ||
                         callee.identical(library_value(runtime, KnownName::dynamic_tangent_again));
    if (!is_step || args.size() < 2 || !as_data(args[1].type) || !as_data(args[1].type)->is_tuple) break;
    const Value packed = args[1];
    callee = args[0];
    args.clear();
    for (std::size_t i = 0; i < as_data(packed.type)->fields.size(); ++i) {
      args.push_back(field_of(runtime, packed, i));
      parts.values.push_back(args.back());
    }
  }
  if (callee.type == runtime.types.builtin().builtin_function) {  // an operation raises before it stores
    if (callee.bits & 1) return false;
    return (reinterpret_cast<const NativeInfo*>(callee.pointer)->effects & effect_writes) != 0;
  }
  if (compiler_of(ctx).synthetic_of(callee)) return true;
  const auto type_of = [&](Value v) { return runtime.is_type_value(v) ? runtime.types.type_of_constant(v) : v.type; };
  std::vector<const Type*> types{type_of(callee)};
  for (Value v : args) types.push_back(type_of(v));
  Specialization* target = runtime.lookup_specialization(runtime.types.tuple(types), ctx.world);
  if (!target) return false;  // no method: that is what was raised
  const diff::MemorySummary effects = compiler_of(ctx).derivatives().memory(ctx).of(*target);
  return (effects.writes | effects.unknown) != 0;
}

// check_stored_nothing(exception, place::String, callee, args...): raises when what the call stored before it raised is
// not known (lang/diff/exceptions.cpp).
bool check_stored_nothing(Context& ctx, const Value* args, std::size_t count, Value& result) {
  if (count < 3) return ctx.argument_error("check_stored_nothing takes an exception, a place and a call");
  result = ctx.runtime->nothing();
  if (!may_store(ctx, args[2], {args + 3, args + count})) return true;
  return ctx.runtime->call(ctx, library_value(*ctx.runtime, KnownName::throw_caught_in_reverse), args, 2, result);
}

const NativeInfo caught_call_natives[] = {
    {"check_stored_nothing", check_stored_nothing, effect_throws | effect_reads | effect_allocates, gives_nothing},
};

}  // namespace

void define_caught_call_natives(Runtime& runtime) {
  for (const NativeInfo& native : caught_call_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
