// What the natives share: checked access to arguments, results, result types for inference.
//
// A native is called with whatever the program passes: `Call` checks each argument's type and raises TypeError. Every
// accessor returns false with the error pending, so natives read `if (!call.string(0, s) || !call.integer(1, n)) return
// false;`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lang/runtime/coroutines.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/runtime/text_value.hpp"

namespace slope::stdlib {

// What cannot be interrupted asks before it begins whether it ends in the time that is left. False: the script ends.
inline bool ends_in_time(Context& ctx, double seconds) {
  if (ctx.interrupt.load(std::memory_order_relaxed)) return ctx.stop();
  if (seconds <= ctx.runtime->coroutines->seconds_left(ctx)) return true;
  std::uint32_t none = no_interrupt;
  ctx.interrupt.compare_exchange_strong(none, interrupt_timeout);
  return ctx.stop();
}

// As many turns as the loop would take that a native stands for. False: a limit ends the program before the first.
inline bool takes_turns(Context& ctx, std::int64_t turns) {
  ctx.fuel = ctx.fuel < turns ? -1 : ctx.fuel - turns;
  return (ctx.fuel >= 0 && ctx.interrupt.load(std::memory_order_relaxed) == no_interrupt) || ctx.stop();
}

// What cannot be bounded, and memory that an attacker would like, are for engines whose host granted them everything.
inline bool may_do_everything(const Context& ctx) {
  const Capabilities& granted = ctx.runtime->capabilities;
  return granted.input && granted.environment && granted.time && granted.random && !granted.write.empty();
}

class Call {
 public:
  Call(Context& ctx, const char* name, const Value* args, std::size_t count, Value& result)
      : ctx(ctx),
        runtime(*ctx.runtime),
        builtin(runtime.types.builtin()),
        name_(name),
        args_(args),
        count_(count),
        result_(result) {}

  Context& ctx;
  Runtime& runtime;
  const BuiltinTypes& builtin;

  std::size_t count() const { return count_; }
  Value operator[](std::size_t i) const { return args_[i]; }

  bool arity(std::size_t wanted) {
    return count_ == wanted || ctx.argument_error(std::string(name_) + " takes " + std::to_string(wanted) +
                                                  " arguments, got " + std::to_string(count_));
  }
  // The answers of accessors that fail; never true, which the compiler has to see (the result is then not set).
  bool missing(std::size_t i) {
    arity(i + 1);
    return false;
  }
  bool mismatch(const Type* wanted, Value found) {
    ctx.type_error(name_, wanted, found);
    return false;
  }
  // A String, or a substring of one.
  bool string(std::size_t i, std::string_view& out) {
    if (i >= count_) return missing(i);
    return bytes_of_text(runtime, args_[i], out) || mismatch(builtin.string, args_[i]);
  }
  bool symbol(std::size_t i, const Symbol*& out) {
    if (!expect(i, builtin.symbol)) return false;
    out = args_[i].symbol;
    return true;
  }
  bool integer(std::size_t i, std::int64_t& out) {
    if (!expect(i, builtin.int64)) return false;
    out = args_[i].bits;
    return true;
  }
  bool floating(std::size_t i, double& out) {
    if (!expect(i, builtin.float64)) return false;
    out = args_[i].float64;
    return true;
  }
  bool boolean(std::size_t i, bool& out) {
    if (!expect(i, builtin.boolean)) return false;
    out = args_[i].bits != 0;
    return true;
  }
  bool character(std::size_t i, std::uint32_t& out) {
    if (!expect(i, builtin.character)) return false;
    out = static_cast<std::uint32_t>(args_[i].bits);
    return true;
  }
  bool type(std::size_t i, const Type*& out) {
    if (i >= count_) return missing(i);
    if (!runtime.is_type_value(args_[i])) return mismatch(builtin.type, args_[i]);
    out = args_[i].as_type;
    return true;
  }
  // An array of any element type.
  bool array(std::size_t i, ArrayObject*& out) {
    if (i >= count_) return missing(i);
    const DataType* d = as_data(args_[i].type);
    if (d->object_kind != DataType::ObjectKind::array) return mismatch(builtin.array, args_[i]);
    out = static_cast<ArrayObject*>(args_[i].object);
    return true;
  }
  bool array_of(std::size_t i, const Type* element, std::int64_t dims, ArrayObject*& out) {
    if (!array(i, out)) return false;
    if (array_element_type(out) != element || array_ndims(out) != dims)
      return mismatch(runtime.types.array_of(element, dims), args_[i]);
    return true;
  }

  bool give(Value v) {
    if (!v.defined()) return ctx.out_of_memory();
    result_ = v;
    return true;
  }
  bool give(std::string_view text) { return give(ctx.new_string(text)); }
  bool give_int(std::int64_t n) { return give(runtime.from_int(n)); }
  bool give_float(double x) { return give(runtime.from_float(x)); }
  bool give_bool(bool b) { return give(runtime.from_bool(b)); }
  bool give_char(std::uint32_t code) { return give(Value(builtin.character, static_cast<std::int64_t>(code))); }
  bool give_nothing() { return give(runtime.nothing()); }
  bool give_type(const Type* t) { return give(runtime.from_type(t)); }

 private:
  bool expect(std::size_t i, const DataType* wanted) {
    if (i >= count_) return missing(i);
    return args_[i].type == wanted || mismatch(wanted, args_[i]);
  }
  const char* name_;
  const Value* args_;
  std::size_t count_;
  Value& result_;
};

// Result types, for NativeInfo::result_type.
using ArgumentTypes = std::span<const Type* const>;
inline const Type* returns_string(TypeTable& t, ArgumentTypes) { return t.builtin().string; }
inline const Type* returns_int(TypeTable& t, ArgumentTypes) { return t.builtin().int64; }
inline const Type* returns_float(TypeTable& t, ArgumentTypes) { return t.builtin().float64; }
inline const Type* returns_bool(TypeTable& t, ArgumentTypes) { return t.builtin().boolean; }
inline const Type* returns_char(TypeTable& t, ArgumentTypes) { return t.builtin().character; }
inline const Type* returns_symbol(TypeTable& t, ArgumentTypes) { return t.builtin().symbol; }
inline const Type* returns_nothing(TypeTable& t, ArgumentTypes) { return t.builtin().nothing; }
inline const Type* returns_bytes(TypeTable& t, ArgumentTypes) { return t.array_of(t.builtin().uint8, 1); }
inline const Type* returns_bottom(TypeTable& t, ArgumentTypes) { return t.builtin().bottom; }
inline const Type* optional(TypeTable& t, const Type* inner) {
  const Type* members[] = {t.builtin().nothing, inner};
  return t.union_of(members);
}

// Strings are immutable: what only reads them and makes another may be folded and removed.
inline constexpr std::uint32_t effect_makes = effect_allocates | effect_throws;

template <std::size_t N>
void define_all(Runtime& runtime, const NativeInfo (&natives)[N]) {
  for (const NativeInfo& native : natives) runtime.define_native(runtime.core, &native);
}

// Raises SystemError(what, errno).
bool system_error(Call& call, const std::string& what);

}  // namespace slope::stdlib
