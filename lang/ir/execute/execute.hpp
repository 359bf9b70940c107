// What every op means on dynamic values. Its users: the slow path of the interpreter, the constant folder, calls of a
// builtin through a variable, and compiled code whose operands do not have the expected types.
//
// Operands are checked here and nowhere else: a wrong type is a TypeError, a wrong count an ArgumentError, an index
// outside an array's memory a BoundsError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::ir {

// All ops but calls, slots, static_param, refine, undef, caught, and terminators other than throw. Ops that have no
// result give `nothing`. False: the error is pending in ctx.
bool execute(Context& ctx, Op op, const Value* operands, std::size_t count, std::uintptr_t aux, Value& result);

// Does the op store values where others may reach them: in a global, a cell, an array, a mutable object?
bool stores_value(Op op);
// Asked before such an op is executed while Context::loans is set; `where`: the op, and what it is inlined into. False:
// it would keep what the host lent for a call, and the error is pending.
bool may_store(Context& ctx, Op op, const Value* operands, std::size_t count, std::uintptr_t aux,
               const std::vector<TraceEntry>& where);

// Ops as values of type Core.BuiltinFunction: the op number shifted left, the lowest bit set. A value with that bit
// clear is the address of a NativeInfo.
Value builtin_op(const BuiltinTypes& types, Op op);
std::optional<Op> as_builtin_op(const BuiltinTypes& types, Value v);
const NativeInfo* as_builtin_native(const BuiltinTypes& types, Value v);

// Whether Slope code may call the op by name: it needs no `aux` and does not touch the frame.
bool is_callable_op(Op op);
// Makes the ops known to the runtime, which lies below this layer: `execute` and the tracing of functions' constants,
// and binds the callable ops as constants of Core, under their names and under Julia's (typeof, ===, getfield, …).
void define_op_builtins(Runtime& runtime);
void add_hooks(RuntimeHooks& hooks);

}  // namespace slope::ir
