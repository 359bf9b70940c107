// Raising Slope exceptions from C++. The exceptions without fields (OutOfMemoryError, StackOverflowError, DivideError,
// …) are singletons and need no memory; where another can't be made for want of memory, OutOfMemoryError is raised
// instead.
#include "lang/runtime/context.hpp"

#include <initializer_list>

#include "lang/memory/outliving.hpp"
#include "lang/runtime/call_watch.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope {

namespace {

// Fields are given in order and are instances of the declared types. Undefined when out of memory.
Value make_exception(Context& ctx, const DataType* type, std::initializer_list<Value> fields) {
  if (type->storage == Storage::singleton) return type->instance;
  Object* object = ctx.heap->allocate(type, type->size);
  if (!object) return Value();
  std::size_t i = 0;
  for (Value v : fields) {
    const Field& field = type->fields[i++];
    store_value(*ctx.heap, object->payload() + field.offset, field.type, v);
  }
  return Value(type, object);
}

bool raise_made(Context& ctx, const DataType* type, std::initializer_list<Value> fields) {
  for (Value v : fields)
    if (!v.defined()) return ctx.out_of_memory();  // a part could not be made
  Value exception = make_exception(ctx, type, fields);
  return exception.defined() ? ctx.raise(exception) : ctx.out_of_memory();
}

const BuiltinTypes& builtin(const Context& ctx) { return ctx.runtime->types.builtin(); }

// What an exception may keep.
Value outliving(Context& ctx, Value v) {
  const DataType* type = v.defined() ? as_data(v.type) : nullptr;
  if (!type || type->object_kind != DataType::ObjectKind::array) return v;
  ArrayObject* array = outliving_array(*ctx.heap, static_cast<ArrayObject*>(v.object));
  return array ? Value(v.type, static_cast<const void*>(array)) : Value();
}

}  // namespace

Value Context::take_error() {
  Value taken = error;
  error = Value();
  last_trace = std::move(trace);
  trace.clear();
  return taken;
}

bool Context::raise(Value exception) {
  error = exception;
  trace.clear();
  return false;
}

bool Context::stop(Stop why, Value exception) {
  stopped = why;
  // Should somebody on the way drop the error, the next safe point raises it again.
  interrupt.store(interrupt_final, std::memory_order_relaxed);
  return raise(exception);
}

bool Context::stop() {
  const Value exception = builtin(*this).interrupt_exception->instance;
  if (stopped != Stop::none) return raise(exception);
  if (fuel < 0) return stop(Stop::fuel, exception);
  switch (interrupt.load(std::memory_order_relaxed)) {
    case interrupt_timeout:
      return stop(Stop::time, exception);
    case interrupt_memory:
      return stop(Stop::heap, builtin(*this).out_of_memory_error->instance);
    case interrupt_catchable:
      interrupt.store(no_interrupt, std::memory_order_relaxed);
      return raise(exception);
    default:
      return stop(Stop::interrupt, exception);
  }
}

void Context::go_on() {
  stopped = Stop::none;
  interrupt.store(no_interrupt, std::memory_order_relaxed);
  if (kept_memory) kept_memory->abandon();
}

Value Context::new_string(std::string_view text) {
  StringObject* string = heap->allocate_string(text);
  return string ? Value(builtin(*this).string, static_cast<const void*>(string)) : Value();
}

bool Context::raise_error(std::string message) {
  return raise_message(builtin(*this).error_exception, std::move(message));
}

bool Context::raise_message(const DataType* type, std::string message) {
  return raise_made(*this, type, {new_string(message)});
}

bool Context::argument_error(std::string message) {
  return raise_message(builtin(*this).argument_error, std::move(message));
}

bool Context::type_error(std::string where, const Type* expected, Value found) {
  SharedAccess tables(*this);
  // "Array, in T" names a place inside: TypeError(:Array, "T", …) prints "in Array, in T, expected …".
  std::string inside;
  if (std::size_t comma = where.find(", in "); comma != std::string::npos) {
    inside = where.substr(comma + 5);
    where.resize(comma);
  }
  return raise_made(*this, builtin(*this).type_error,
                    {runtime->from_symbol(runtime->symbol(where)), new_string(inside), runtime->from_type(expected),
                     outliving(*this, found)});
}

bool Context::bounds_error(Value array, Value index) {
  return raise_made(*this, builtin(*this).bounds_error, {outliving(*this, array), index});
}

bool Context::undef_var(const Symbol* name) {
  if (!name) name = runtime->symbol("captured variable");
  return raise_made(*this, builtin(*this).undef_var_error, {runtime->from_symbol(name)});
}

bool Context::method_error(Value callee, const Value* args, std::size_t count) {
  SharedAccess tables(*this);
  Value tuple;
  if (!runtime->new_tuple(*this, args, count, tuple)) return false;
  return raise_made(*this, builtin(*this).method_error,
                    {callee, tuple, Value(builtin(*this).uint64, static_cast<std::int64_t>(world))});
}

bool Context::out_of_memory() {
  const Value exception = builtin(*this).out_of_memory_error->instance;
  return heap_is_limited ? stop(Stop::heap, exception) : raise(exception);
}

bool Context::out_of_tape() { return stop(Stop::tape, builtin(*this).out_of_memory_error->instance); }

bool Context::stack_overflow() {
  const Value exception = builtin(*this).stack_overflow_error->instance;
  return depth_is_limited ? stop(Stop::depth, exception) : raise(exception);
}

}  // namespace slope
