// The rule that a builder made, asked for by code that is older than an assignment of a variable which the builder read.
#include "lang/derive/natives/call.hpp"

namespace slope::derive {

namespace {

// present_rule(types of the call, of forward mode, type of the rule)
bool present_rule(Context& ctx, const Value* args, std::size_t count, Value& result) {
  Runtime& runtime = *ctx.runtime;
  const DataType* call = count == 3 && runtime.is_type_value(args[0]) ? as_data(args[0].as_type) : nullptr;
  if (!call || !call->is_tuple || args[1].type != runtime.types.builtin().boolean || !runtime.is_type_value(args[2]))
    return ctx.argument_error("present_rule takes the types of a call, a Bool and the type of a rule");
  diff::BuiltRule rule;
  std::vector<Edge> edges;
  if (!compiler_of(ctx).derivatives().rules.find(ctx, call, args[1].bits & 1, rule, edges)) return false;
  if (rule.rule.type != args[2].as_type)
    return ctx.argument_error(
        "a variable was assigned that the builder of a rule reads, and the rule has another type now (" +
        to_string(rule.rule.type) + ", before " + to_string(args[2].as_type) +
        "): code that was running at the assignment cannot go on with it; call the derivative again");
  result = rule.rule;
  return true;
}

const NativeInfo built_rule_natives[] = {
    {"present_rule", present_rule, effect_all, gives_any},
};

}  // namespace

void define_built_rule_natives(Runtime& runtime) {
  for (const NativeInfo& native : built_rule_natives) runtime.define_native(runtime.core, &native);
}

}  // namespace slope::derive
