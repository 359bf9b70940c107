// What running code carries: error slot, limits, world, tapes. An engine has one; each workspace of a compiled function
// is another, so one compiled function can run on several threads. Compiled code reads the first fields at fixed
// offsets.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lang/runtime/heap.hpp"
#include "lang/runtime/method.hpp"
#include "lang/support/source.hpp"

namespace slope {

class Runtime;

struct TraceEntry {
  const Method* method = nullptr;  // null: top level
  Span span;                       // of the call or failing operation
};

struct TapePool;  // lang/runtime/tape.hpp

struct Context {
  // --- fixed offsets, used by compiled code (codegen/layout.cpp asserts them) ---
  const char* stack_limit = nullptr;        // 0: compiled prologues raise StackOverflowError below this address
  Runtime* runtime = nullptr;               // 8
  Heap* heap = nullptr;                     // 16
  std::atomic<std::uint32_t> interrupt{0};  // 24: not zero: stop at the next safe point
  std::uint32_t reserved = 0;
  World world = 0;            // 32: the world that running code sees
  TapePool* tapes = nullptr;  // 40
  // --- errors: pending when `error.defined()`; whoever returns false/status 1 must have set it ---
  Value error;
  std::vector<TraceEntry> trace;  // innermost first, filled while the error travels outwards
  std::string output_error;
  // The generator of a generated method runs: no effects, and interpreted alone, so that each step can be checked.
  GeneratorRun* generating = nullptr;

  Context() = default;
  Context(const Context&) = delete;

  bool failed() const { return error.defined(); }
  // Takes the pending error away (a catch block): the trace stays readable through `last_trace`.
  Value take_error();
  std::vector<TraceEntry> last_trace;
  std::vector<Value> caught;  // exceptions of the catch blocks now running, innermost last (a root)

  // Raise Slope exceptions from C++. All return false, so that natives say `return ctx.argument_error("…")`.
  bool raise(Value exception);
  bool raise_error(std::string message);                          // ErrorException
  bool raise_message(const DataType* type, std::string message);  // an exception whose only field is `msg`
  bool argument_error(std::string message);
  bool type_error(std::string where, const Type* expected, Value found);
  bool bounds_error(Value array, Value index);
  bool undef_var(const Symbol* name);
  bool method_error(Value callee, const Value* args, std::size_t count);
  bool out_of_memory();
  bool stack_overflow();
  // "The generator of f may not WHAT."
  bool refuse_in_generator(std::string_view what);
};

// Of a generator that runs; false, with an error: the native has effects, or changes what was there before.
bool may_generate(Context& ctx, const NativeInfo& native, const Value* args, std::size_t count);
bool may_change(Context& ctx, Value object);

}  // namespace slope
