#include "codegen/helpers.hpp"

#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "codegen/quick_code.hpp"
#include "lang/ir/execute/execute.hpp"
#include "lang/ir/ir.hpp"
#include "lang/memory/clear.hpp"
#include "lang/memory/outliving.hpp"
#include "lang/memory/tape.hpp"
#include "lang/runtime/call_cache.hpp"
#include "lang/runtime/call_native.hpp"
#include "lang/runtime/library_names.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/tuning.hpp"

namespace slope::codegen {

namespace {

namespace helper {

bool execute(Context* ctx, std::uint32_t op, const Value* operands, std::uint64_t count, std::uint64_t aux,
             Value* result) {
  SharedAccess shared(*ctx);
  *result = Value();
  return ir::execute(*ctx, static_cast<ir::Op>(op), operands, count, aux, *result);
}

// Traces of runaway recursion keep their innermost frames only.
constexpr std::size_t max_trace_entries = tuning::trace_entries;

void trace(Context* ctx, const TraceSite* site) {
  if (!site) return;
  if (ctx->trace.size() >= max_trace_entries) return;
  ctx->trace.insert(ctx->trace.end(), site->entries.begin(), site->entries.end());
}

void throw_value(Context* ctx, const Type* type, std::int64_t payload) { ctx->raise(Value(type, payload)); }

// Below the stack limit, or asked to stop.
void stack_overflow(Context* ctx) {
  if (ctx->interrupt.load(std::memory_order_relaxed)) {
    ctx->stop();
  } else {
    ctx->stack_overflow();
  }
}

void interrupt(Context* ctx) { ctx->stop(); }

void branch_type_error(Context* ctx, const Type* type, std::int64_t payload) {
  SharedAccess shared(*ctx);
  ctx->type_error("if", ctx->runtime->types.builtin().boolean, Value(type, payload));
}

// Inference was wrong somewhere: an error is better than a wrong answer.
void unreachable(Context* ctx, const ir::Function* function) {
  ctx->raise_error("internal error: unreachable code was reached in " + function->name);
}

// Through compiled code when there is any, else through the runtime, which counts, and tells who watches calls.
inline bool call_target(Context& ctx, Specialization& target, const Value* values, std::size_t count, Value& result) {
  if (CodeInstance* code = target.current; code && !ctx.calls && code->valid_in(ctx.world)) {
    if (BoxedEntry entry = code->boxed.load(std::memory_order_acquire)) {
      return entry(&ctx, values[0], values + 1, count - 1, &result);
    }
  }
  return ctx.runtime->call_specialized(ctx, target, values[0], values + 1, count - 1, result);
}

bool call(Context* ctx, CallCache* site, const Value* values, std::uint64_t count, Value* result) {
  SharedAccess shared(*ctx);
  if (Specialization* target = site->find(ctx->world, values[0], values + 1, count - 1)) {
    return call_target(*ctx, *target, values, count, *result);
  }
  return ctx->runtime->call_caching(*ctx, *site, values[0], values + 1, count - 1, *result);
}

bool invoke(Context* ctx, Specialization* target, const Value* values, std::uint64_t count, Value* result) {
  SharedAccess shared(*ctx);
  return call_target(*ctx, *target, values, count, *result);
}

bool native(Context* ctx, const NativeInfo* info, const Value* values, std::uint64_t count, Value* result) {
  SharedAccess shared(*ctx);
  return call_native(*ctx, *info, values, count, *result);
}

// Of what never returns, inference says.
void invoke_error(Context* ctx, Specialization* target, const Value* values, std::uint64_t count) {
  SharedAccess shared(*ctx);
  Value result;
  if (call_target(*ctx, *target, values, count, result)) {
    ctx->raise_error(std::string("internal error: ") + target->method->name->name +
                     " returned, against its inferred type");
  }
}

Object* box(Context* ctx, const DataType* type) {
  Object* object = ctx->heap->allocate(type, type->size);
  if (!object) ctx->out_of_memory();
  return object;
}

void shade(Context* ctx, Object* object) { ctx->heap->shade(object); }

void shade_value(Context* ctx, const Type* type, std::int64_t payload) { ctx->heap->shade(Value(type, payload)); }

CellObject* cell_new(Context* ctx) {
  CellObject* cell = ctx->heap->allocate_cell();
  if (!cell) ctx->out_of_memory();
  return cell;
}

ArrayObject* array_new(Context* ctx, const DataType* type, std::int64_t length) {
  // Huge and negative lengths take the general road, which knows the error.
  if (static_cast<std::uint64_t>(length) <= (std::uint64_t{1} << 32)) {
    std::int64_t dims[] = {length};
    if (ArrayObject* array = ctx->heap->allocate_array(type, dims)) return array;
    ctx->out_of_memory();
    return nullptr;
  }
  SharedAccess shared(*ctx);
  Value operands[] = {ctx->runtime->from_type(type), ctx->runtime->from_int(length)};
  Value result;
  if (!ir::execute(*ctx, ir::Op::array_new, operands, 2, 0, result)) return nullptr;
  return static_cast<ArrayObject*>(result.object);
}

ArrayObject* array_new_shaped(Context* ctx, const DataType* type, const std::int64_t* dims, std::int64_t count) {
  const auto ndims = static_cast<std::size_t>(count);
  bool plain = true;
  std::int64_t length = 1;
  for (std::size_t i = 0; i < ndims; ++i)
    plain = plain && dims[i] >= 0 && !__builtin_mul_overflow(length, dims[i], &length);
  if (plain && length <= std::int64_t{1} << 32) {
    if (ArrayObject* array = ctx->heap->allocate_array(type, {dims, ndims})) return array;
    ctx->out_of_memory();
    return nullptr;
  }
  // Huge and negative lengths take the general road, which knows the error.
  std::vector<Value> operands{ctx->runtime->from_type(type)};
  for (std::size_t i = 0; i < ndims; ++i) operands.push_back(ctx->runtime->from_int(dims[i]));
  Value result;
  if (!ir::execute(*ctx, ir::Op::array_new, operands.data(), operands.size(), 0, result)) return nullptr;
  return static_cast<ArrayObject*>(result.object);
}

// What makes an exception may put the array into it.
ArrayObject* outliving_array(Context* ctx, ArrayObject* array) { return slope::outliving_array(*ctx->heap, array); }

// What does not fit into scratch memory is an array like any other.
ArrayObject* scratch_array(Context* ctx, const DataType* type, const std::int64_t* dims, std::int64_t count,
                           std::uint64_t most) {
  const auto ndims = static_cast<std::size_t>(count);
  const std::uint32_t element = stored_size(type->params[0]);
  bool fits = ctx->tapes != nullptr;
  std::int64_t length = 1;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < ndims; ++i)
    fits = fits && dims[i] >= 0 && !__builtin_mul_overflow(length, dims[i], &length);
  fits = fits && !__builtin_mul_overflow(length, std::int64_t{element}, &bytes);
  if (fits && static_cast<std::uint64_t>(bytes) <= most) {
    const std::size_t header = Heap::array_header_bytes(ndims);
    if (char* memory = ctx->tapes->take_scratch(header + static_cast<std::size_t>(bytes))) {
      auto* array = reinterpret_cast<ArrayObject*>(memory);
      std::memset(memory, 0, header);
      array->type = type;
      array->data = memory + header;
      array->length = length;
      array->flags = array_owns_memory | array_in_scratch;
      array->element_size = element;
      if (ndims == 1) {
        set_room(array, length, 0);
      } else {
        std::copy(dims, dims + ndims, dims_of(array));
      }
      // Numbers may start as anything, but a Bool must be one.
      if (storage_of(type->params[0]) != Storage::bits || element == 1)
        std::memset(array->data, 0, static_cast<std::size_t>(bytes));
      return array;
    }
  }
  return array_new_shaped(ctx, type, dims, count);
}

Object* scratch_object(Context* ctx, const DataType* type) {
  const std::size_t bytes = sizeof(Object) + type->size;
  char* memory = ctx->tapes ? ctx->tapes->take_scratch(bytes) : nullptr;
  if (!memory) return box(ctx, type);
  std::memset(memory, 0, bytes);
  auto* object = reinterpret_cast<Object*>(memory);
  object->type = type;
  return object;
}

std::uint64_t scratch_enter(Context* ctx) { return ctx->tapes ? ctx->tapes->enter_scratch() : 0; }

// No serial: there was no memory to enter by, and what others took is theirs.
void scratch_turn(Context* ctx, std::uint64_t serial) {
  if (!ctx->tapes || serial == 0) return;
  ctx->tapes->scratch.leave(serial);
  ctx->tapes->scratch.enter(serial);
}

void scratch_leave(Context* ctx, std::uint64_t serial) {
  if (ctx->tapes && serial != 0) ctx->tapes->scratch.leave(serial);
}

namespace {

bool resize_in_general(Context* ctx, ir::Op op, ArrayObject* array, std::int64_t length, std::int64_t kind) {
  SharedAccess shared(*ctx);
  Value operands[] = {Value(array->type, array), ctx->runtime->from_int(length)};
  Value result;
  return ir::execute(*ctx, op, operands, 2, static_cast<std::uintptr_t>(kind), result);
}

bool is_plain(const ArrayObject* array, std::int64_t length) {
  return (array->flags & array_owns_memory) && !(array->flags & (array_shared | array_borrowed)) && length >= 0 &&
         array->element_size;
}

}  // namespace

bool array_resize(Context* ctx, ArrayObject* array, std::int64_t length, std::int64_t kind) {
  if (!is_plain(array, length) || length > capacity_of(array))
    return resize_in_general(ctx, ir::Op::array_resize, array, length, kind);
  if (length > array->length) {
    clear_memory(array->data + array->length * array->element_size,
                 static_cast<std::size_t>(length - array->length) * array->element_size);
  }
  array->length = length;
  return true;
}

bool resize_front(Context* ctx, ArrayObject* array, std::int64_t length, std::int64_t kind) {
  const std::int64_t added = length - array->length;
  if (!is_plain(array, length) || added > front_of(array))
    return resize_in_general(ctx, ir::Op::array_resize_front, array, length, kind);
  set_room(array, capacity_of(array) + added, front_of(array) - added);
  array->data -= added * array->element_size;
  if (added > 0) clear_memory(array->data, static_cast<std::size_t>(added) * array->element_size);
  array->length = length;
  return true;
}

bool store_global(Context* ctx, Binding* binding, const Type* type, std::int64_t payload) {
  Value v(type, payload);
  if (!binding->is_constant && !binding->declared && binding->value.defined() && binding->version == 0) {
    binding->value = v;
    return true;
  }
  Value result;
  return ir::execute(*ctx, ir::Op::store_global, &v, 1, reinterpret_cast<std::uintptr_t>(binding), result);
}

void bounds_error(Context* ctx, const Type* type, Object* object, std::int64_t index) {
  SharedAccess shared(*ctx);
  ctx->bounds_error(Value(type, object), ctx->runtime->from_int(index));
}

bool undef_var(Context* ctx, const Symbol* name) {
  SharedAccess shared(*ctx);
  return ctx->undef_var(name);
}

bool may_store(Context* ctx, std::uint32_t op, const Value* operands, std::uint64_t count, std::uint64_t aux,
               const TraceSite* site) {
  return ir::may_store(*ctx, static_cast<ir::Op>(op), operands, count, aux, site->entries);
}

// Splatted tuples are spread here, everything else through Base.splat_values, which makes a tuple of it.
bool call_splat(Context* ctx, const Value* operands, std::uint64_t count, std::uint64_t mask, Value* result) {
  SharedAccess shared(*ctx);
  Runtime& runtime = *ctx->runtime;
  Rooted flat(*ctx->heap);
  for (std::size_t i = 1; i < count; ++i) {
    Value v = operands[i];
    if (i >= 64 || !(mask >> i & 1)) {
      flat.values.push_back(v);
      continue;
    }
    if (!as_data(v.type)->is_tuple) {
      const Value splat = library_value(runtime, KnownName::splat_values);
      if (!splat.defined()) return ctx->undef_var(runtime.symbol("splat_values"));
      if (!runtime.call(*ctx, splat, &v, 1, v)) return false;
      if (!as_data(v.type)->is_tuple) return ctx->type_error("splat", runtime.types.builtin().tuple_any, v);
    }
    for (const Field& field : as_data(v.type)->fields) flat.values.push_back(load_field(*ctx->heap, v.object, field));
  }
  return runtime.call(*ctx, operands[0], flat.values.data(), flat.values.size(), *result);
}

std::uint64_t catch_depth(Context* ctx) { return ctx->caught.size(); }

bool catch_error(Context* ctx, std::uint64_t depth) {
  if (ctx->stopped != Stop::none) return false;
  ctx->caught.resize(depth);
  ctx->caught.push_back(ctx->take_error());
  return true;
}

void caught(Context* ctx, Value* result) { *result = ctx->caught.back(); }

void caught_end(Context* ctx, std::uint64_t depth) {
  if (ctx->caught.size() > depth) ctx->caught.pop_back();
}

void leave_catch(Context* ctx, std::uint64_t depth) { ctx->caught.resize(depth); }

bool egal(const Type* a_type, std::int64_t a, const Type* b_type, std::int64_t b) {
  return slope::egal(Value(a_type, a), Value(b_type, b));
}

bool is_instance(Context* ctx, const Type* type, std::int64_t payload, const Type* of) {
  SharedAccess shared(*ctx);
  return slope::is_instance(ctx->runtime->types, Value(type, payload), of);
}

Tape* tape_open(Context* ctx, const TapeLayout* layout, std::int64_t rows) { return ctx->tapes->open(layout, rows); }

bool tape_reserve(Context* ctx, Tape* tape, std::int64_t rows) { return ctx->tapes->reserve(tape, rows); }

void tape_close(Context* ctx, Tape* tape) { ctx->tapes->close(tape); }

std::uint64_t tape_mark(Context* ctx) { return ctx->tapes ? ctx->tapes->mark() : 0; }

void tape_release(Context* ctx, std::uint64_t mark) {
  if (ctx->tapes) ctx->tapes->release_since(mark);
}

void stop(Context* ctx, const TraceSite* site, std::uint64_t tapes, std::uint64_t depth) {
  interrupt(ctx);
  trace(ctx, site);
  if (depth != ~std::uint64_t{0}) leave_catch(ctx, depth);
  if (tapes != ~std::uint64_t{0}) tape_release(ctx, tapes);
  if (ctx->runtime->records_frames) ctx->frames = ctx->frames->caller;  // the function returns
}

void* replace(Context* ctx, QuickCode* quick, std::int64_t where) {
  SharedAccess shared(*ctx);
  try {
    return quick->replacer->replace(*ctx, *quick, {where});
  } catch (const Stopped&) {  // the next safe point tells
    return nullptr;
  } catch (const std::bad_alloc&) {  // it goes on without
    quick->never();
    return nullptr;
  }
}

}  // namespace helper

// What a helper throws is an error of the script: machine code has no tables to unwind it.
template <auto function>
struct Guarded;
template <class Result, class... Arguments, Result (*function)(Context*, Arguments...)>
struct Guarded<function> {
  static Result call(Context* ctx, Arguments... arguments) {
    if constexpr (std::is_void_v<Result>) {
      without_exceptions(*ctx, "compiled code", [&] {
        function(ctx, arguments...);
        return true;
      });
    } else {
      Result result{};
      without_exceptions(*ctx, "compiled code", [&] {
        result = function(ctx, arguments...);
        return true;
      });
      return result;
    }
  }
};
template <class Result, class First, class... Arguments, Result (*function)(const First*, Arguments...)>
struct Guarded<function> {  // compares values; no memory is needed
  static constexpr auto call = function;
};
namespace helper {

// The usual call of few arguments: of compiled code that the site knows. It catches nothing and keeps nothing, so it is
// a jump.
template <std::size_t count>
bool call_near(Context* ctx, CallCache* site, const Value* values, Value* result) {
  if (!ctx->shared && !ctx->calls) [[likely]] {
    if (const Specialization* target = site->find_near<count>(ctx->world, values[0].type, values + 1)) [[likely]]
      if (const CodeInstance* code = target->current; code && code->valid_in(ctx->world)) [[likely]]
        if (BoxedEntry entry = code->boxed.load(std::memory_order_acquire)) [[likely]]
          return entry(ctx, values[0], values + 1, count, result);
  }
  return Guarded<&call>::call(ctx, site, values, count + 1, result);
}

bool call_1(Context* ctx, CallCache* site, const Value* values, Value* result) {
  return call_near<1>(ctx, site, values, result);
}
bool call_2(Context* ctx, CallCache* site, const Value* values, Value* result) {
  return call_near<2>(ctx, site, values, result);
}
bool call_3(Context* ctx, CallCache* site, const Value* values, Value* result) {
  return call_near<3>(ctx, site, values, result);
}

}  // namespace helper

template <>
struct Guarded<&helper::call_1> {
  static constexpr auto call = &helper::call_1;
};
template <>
struct Guarded<&helper::call_2> {
  static constexpr auto call = &helper::call_2;
};
template <>
struct Guarded<&helper::call_3> {
  static constexpr auto call = &helper::call_3;
};
// A mark that is lost would free what lives.
template <>
struct Guarded<&helper::shade> {
  static constexpr auto call = &helper::shade;
};
template <>
struct Guarded<&helper::shade_value> {
  static constexpr auto call = &helper::shade_value;
};

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

using D1 = double (*)(double);
using F1 = float (*)(float);
using D2 = double (*)(double, double);
using F2 = float (*)(float, float);

template <class Function>
void* overload(Function function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

const HelperInfo& helper_info(Helper which) {
  static const std::array<HelperInfo, static_cast<std::size_t>(Helper::count_)> table = {{
#define H(name, result, arguments) {"slope." #name, #result[0], arguments, address(Guarded<&helper::name>::call)},
      SLOPE_CODEGEN_HELPERS(H)
#undef H
  }};
  return table[static_cast<std::size_t>(which)];
}

std::span<const LibraryFunction> library_functions() {
  static const LibraryFunction table[] = {
#define UNARY(name)                                                                                               \
  {#name, overload<D1>(&::name)}, {#name "f", overload<F1>(&::name##f)}, {"slope." #name, overload<D1>(&::name)}, \
      {"slope." #name "f", overload<F1>(&::name##f)},
#define BINARY(name)                                                                                              \
  {#name, overload<D2>(&::name)}, {#name "f", overload<F2>(&::name##f)}, {"slope." #name, overload<D2>(&::name)}, \
      {"slope." #name "f", overload<F2>(&::name##f)},
      UNARY(exp) UNARY(exp2) UNARY(expm1) UNARY(log) UNARY(log2) UNARY(log10) UNARY(log1p) UNARY(sin) UNARY(cos)
          UNARY(tan) UNARY(asin) UNARY(acos) UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(cbrt) UNARY(floor)
              UNARY(ceil) UNARY(trunc) UNARY(rint) UNARY(sqrt) BINARY(atan2) BINARY(hypot) BINARY(pow) BINARY(fmod)
                  BINARY(fmin) BINARY(fmax)
#undef UNARY
#undef BINARY
                      {"exp10", overload<D1>(&::exp10)},
      {"exp10f", overload<F1>(&::exp10f)},
      {"fma", overload<double (*)(double, double, double)>(&::fma)},
      {"fmaf", overload<float (*)(float, float, float)>(&::fmaf)},
      {"ldexp", overload<double (*)(double, int)>(&::ldexp)},
      {"ldexpf", overload<float (*)(float, int)>(&::ldexpf)},
      {"sincos", overload<void (*)(double, double*, double*)>(&::sincos)},
      {"sincosf", overload<void (*)(float, float*, float*)>(&::sincosf)},
      {"memcpy", address(&std::memcpy)},
      {"memmove", address(&std::memmove)},
      {"memset", address(&std::memset)},
      {"memcmp", address(&std::memcmp)},
      {"bcmp", address(&::bcmp)},
  };
  return table;
}

}  // namespace slope::codegen
