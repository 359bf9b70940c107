// What running code carries: error slot, limits, world, tapes. An engine has one context, and each workspace of a
// compiled function has another, so that one compiled function can run on several threads. Compiled code reads the
// first fields at fixed offsets.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lang/memory/heap.hpp"
#include "lang/runtime/frames.hpp"
#include "lang/runtime/method.hpp"
#include "lang/support/source.hpp"

namespace slope {

class CallWatch;
class LoanWatch;
class Runtime;

struct TapePool;  // lang/memory/tape.hpp

// Why running code was ended for good: the error passes every catch block on its way to the host, and until the host
// has it (Context::go_on) whatever else the context runs ends at its first safe point.
enum class Stop : std::uint8_t { none, interrupt, fuel, time, depth, heap, tape, exit };

// What Context::interrupt asks for at the next safe point.
enum : std::uint32_t {
  no_interrupt = 0,
  interrupt_catchable = 1,  // an InterruptException like any other
  interrupt_final = 2,      // Stop::interrupt
  interrupt_timeout = 3,    // Stop::time
  interrupt_memory = 4,     // Stop::heap: names, types and code have become too many
};

struct Context {
  // --- fixed offsets, used by compiled code (codegen/layout.cpp asserts them) ---
  const char* stack_limit = nullptr;  // 0: compiled prologues raise StackOverflowError below this address
  Runtime* runtime = nullptr;         // 8
  Heap* heap = nullptr;               // 16
  std::atomic<std::uint32_t> interrupt{no_interrupt};  // 24: not zero: stop at the next safe point
  Stop stopped = Stop::none;
  World world = 0;            // 32: the world that running code sees
  TapePool* tapes = nullptr;  // 40
  // 48: calls and turns of loops that are left; below zero: stop. Machine code counts when Runtime::counts_fuel says
  // so.
  std::int64_t fuel = std::numeric_limits<std::int64_t>::max();
  FrameRecord* frames = nullptr;  // 56: innermost first; kept when Runtime::records_frames says so
  LoanWatch* loans = nullptr;     // 64: looks at what is stored, while one is there (lang/runtime/loans.hpp)
  // --- errors: pending when `error.defined()`; whoever returns false/status 1 must have set it ---
  Value error;
  std::vector<TraceEntry> trace;  // innermost first, filled while the error travels outwards
  std::string output_error;
  // The generator of a generated method runs: no effects, and interpreted alone, so that each step can be checked.
  GeneratorRun* generating = nullptr;

  // Limits that the host set: running into one is a Stop, not an exception that scripts may catch.
  bool depth_is_limited = false;
  bool heap_is_limited = false;
  // Of a workspace: held while it uses what all contexts of the engine share, the tables of types, methods and names.
  std::recursive_mutex* shared = nullptr;

  CallWatch* calls = nullptr;              // is told of calls, while one is there (lang/runtime/call_watch.hpp)
  std::shared_ptr<CallWatch> kept_memory;  // of derivatives; null: nothing was ever kept

  Context() = default;
  Context(const Context&) = delete;

  // At a safe point: the fuel is used up, or `interrupt` asks to stop. False, with the error.
  bool stop();
  // Ends what runs. False, with `exception` as the error.
  bool stop(Stop why, Value exception);
  // The host has the error: what comes next may run.
  void go_on();

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
  bool out_of_tape();
  bool stack_overflow();
  Value new_string(std::string_view text);  // on this context's heap; undefined when out of memory
  // "The generator of f may not WHAT."
  bool refuse_in_generator(std::string_view what);
};

// Held by helpers that look at or change what all contexts of an engine share; nothing for the engine's own context.
class SharedAccess {
 public:
  explicit SharedAccess(const Context& ctx) : mutex_(ctx.shared) {
    if (mutex_) mutex_->lock();
  }
  ~SharedAccess() {
    if (mutex_) mutex_->unlock();
  }
  SharedAccess(const SharedAccess&) = delete;

 private:
  std::recursive_mutex* mutex_;
};

// Of a generator that runs; false, with an error: the native has effects, or changes what was there before.
bool may_generate(Context& ctx, const NativeInfo& native, const Value* args, std::size_t count);
bool may_change(Context& ctx, Value object);

}  // namespace slope
