// Ops as values and as names in Core.
#include "lang/ir/execute/execute.hpp"

namespace slope::ir {

Value builtin_op(const BuiltinTypes& types, Op op) {
  return Value(types.builtin_function, (std::int64_t{static_cast<std::uint16_t>(op)} << 1) | 1);
}

std::optional<Op> as_builtin_op(const BuiltinTypes& types, Value v) {
  if (v.type != types.builtin_function || !(v.bits & 1)) return std::nullopt;
  return static_cast<Op>(v.bits >> 1);
}

const NativeInfo* as_builtin_native(const BuiltinTypes& types, Value v) {
  if (v.type != types.builtin_function || (v.bits & 1)) return nullptr;
  return static_cast<const NativeInfo*>(v.pointer);
}

bool is_callable_op(Op op) {
  switch (op) {
    case Op::call:
    case Op::call_splat:
    case Op::refine:
    case Op::undef:
    case Op::cell_new:      // cells are lowering's own
    case Op::tape_reserve:  // tapes are differentiation's own
    case Op::tape_close:
    case Op::caught:
    case Op::caught_end:
    case Op::parameter:
      return false;
    case Op::throw_:
    case Op::cell_get:  // after cell_defined: there is no name for an UndefVarError
      return true;
    default:
      return aux_kind(op) == AuxKind::none && !is_terminator(op);
  }
}

void add_hooks(RuntimeHooks& hooks) {
  hooks.execute_op = [](Context& ctx, unsigned op, const Value* operands, std::size_t count, std::uintptr_t aux,
                        Value& result) {
    if (ctx.loans && stores_value(static_cast<Op>(op)) &&
        count >= static_cast<std::size_t>(op_info(static_cast<Op>(op)).min_operands) &&
        !may_store(ctx, static_cast<Op>(op), operands, count, aux, {}))
      return false;
    return execute(ctx, static_cast<Op>(op), operands, count, aux, result);
  };
  hooks.trace_function = [](const Function& function, Tracer& tracer) {
    for (Value v : function.constants.held()) tracer.value(v);
  };
}

void define_op_builtins(Runtime& runtime) {
  const BuiltinTypes& types = runtime.types.builtin();
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(Op::count_); ++i) {
    Op op = static_cast<Op>(i);
    if (is_callable_op(op)) runtime.set_constant(runtime.core, op_name(op), builtin_op(types, op));
  }
  static constexpr struct {
    const char* name;
    Op op;
  } aliases[] = {
      {"typeof", Op::type_of},
      {"===", Op::egal},
      {"<:", Op::subtype},
      {"getfield", Op::get_field},
      {"setfield!", Op::set_field},
      {"isdefined", Op::field_defined},
      {"nfields", Op::field_count},
      {"ifelse", Op::select},
      {"typeassert", Op::type_assert},
  };
  for (const auto& alias : aliases) runtime.set_constant(runtime.core, alias.name, builtin_op(types, alias.op));
}

}  // namespace slope::ir
