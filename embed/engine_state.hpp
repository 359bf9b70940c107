// The composition root: one engine's runtime, interpreter, pipeline and code generator, and what the public interface
// keeps beside them. It owns everything that belongs to an engine; there is no process-wide state.
//
// Two kinds of names meet in this folder: `api::Value` is the public handle, `RawValue` is the runtime's own value. The
// public headers are included with SLOPE_IMPLEMENTATION, so that unqualified `Value` never means the handle by
// accident.
//
// Rules for every entry from outside:
//  1. `Entry` comes first. It registers the thread's stack with the runtime, and restores the world at the end.
//  2. Raw values that must outlive a call into the runtime are on the native stack or in `Rooted`.
//  3. An array lent by the host goes through `Loan`, which removes the memory from the array when the call ends.
#pragma once

#ifndef SLOPE_IMPLEMENTATION
#define SLOPE_IMPLEMENTATION
#endif

#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/loader.hpp"
#include "embed/functions/workspace.hpp"
#include "embed/host/host.hpp"
#include "embed/host/host_types.hpp"
#include "embed/values/adopted.hpp"
#include "embed/watch/thread_check.hpp"
#include "embed/watch/watchdog.hpp"
#include "interpreter/interpreter.hpp"
#include "lang/pipeline/pipeline.hpp"
#include "slope/engine.hpp"

namespace slope::api::detail {

using RawValue = slope::Value;

// The values that handles hold, by slot; shared with the handles, so that a handle knows when its engine is gone.
class HandleTable {
 public:
  explicit HandleTable(EngineState& engine);
  std::size_t add(RawValue v);
  void retain(std::size_t slot) { ++counts_[slot]; }
  void release(std::size_t slot);
  RawValue at(std::size_t slot) const { return roots_->values[slot]; }
  void set(std::size_t slot, RawValue v) { roots_->values[slot] = v; }
  EngineState* engine() const { return engine_; }
  void close();  // the engine ends

 private:
  EngineState* engine_;
  std::unique_ptr<Rooted> roots_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::size_t> free_;
};

// Makes and opens handles.
struct Access {
  static api::Value make(EngineState& engine, RawValue v);
  static HandleTable* table(const api::Value& handle) { return handle.table_.get(); }
  // What the C interface calls of the C++ one.
  static Result<void> set(Engine& engine, std::string_view name, const Datum& datum) {
    return engine.set_datum(name, datum);
  }
  static Result<api::Value> adopt(Engine& engine, const Datum& array, std::function<void(double*)> release) {
    return engine.adopt_data(array, std::move(release));
  }
  static Result<api::Value> value(Engine& engine, const Datum& datum);  // made of it
  static Result<api::Value> call(const api::Value& callee, const Datum* arguments, std::size_t count) {
    return callee.call(arguments, count);
  }
  static Result<std::shared_ptr<FunctionState>> find(Engine& engine, std::string_view name,
                                                     std::span<const Kind> parameters, Kind result) {
    return engine.find_function(name, parameters, result, Dispatch::refused);
  }
  static Definition definition(Engine& engine, std::string_view name, std::unique_ptr<HostFunction> function) {
    return engine.define_host(name, std::move(function));
  }
  static const HostFunction& function(const Definition& made) { return made.function(); }
  static void add_jvp(Definition& made, std::unique_ptr<HostFunction> jvp) { made.add_jvp(std::move(jvp)); }
  static void add_vjp(Definition& made, std::unique_ptr<HostFunction> vjp) { made.add_vjp(std::move(vjp)); }
  // Defines a C++ function as a method of a name, which may be qualified.
  static void define(Definition& made, EngineState& engine, const std::string& name,
                     std::unique_ptr<HostFunction> function);
  static void fail(Definition& made, Error error) { made.fail(std::move(error)); }
  static EngineState& state(Engine& engine) { return *engine.state_; }
  static const Error* unusable(const Engine& engine) { return engine.unusable(); }
  static RawValue raw(const api::Value& handle);  // undefined for `nothing` without an engine and for dead handles
};

// How natives find their engine.
struct HostRuntime : Runtime {
  EngineState* engine = nullptr;
};
inline EngineState& engine_of(Context& ctx) { return *static_cast<HostRuntime*>(ctx.runtime)->engine; }

class LineWatch;
class Profiler;

class EngineState {
 public:
  explicit EngineState(Options given);
  ~EngineState();
  // The host lets go of it. One that is in use, for a function of the host that it calls let go, stops what runs, and
  // is its own from here on: gone when the outermost use ends.
  static void keep_if_used(std::unique_ptr<EngineState>& state) noexcept;

  Result<api::Value> run(std::string name, std::string text);
  Result<api::Value> call(RawValue callee, std::span<const Datum> arguments);  // keywords among them
  // The pending error, taken away, for people; of a workspace's context under Runtime::shared.
  Error failure() { return failure(ctx); }
  Error failure(Context& of);
  Position position_of(Span span) const;
  Error syntax_error(const std::vector<Diagnostic>& diagnostics);
  // Calls a function of Base or Core by name; false: none, or an error is pending.
  bool call_library(const char* name, const RawValue* arguments, std::size_t count, RawValue& result);
  RawValue library(const char* name);      // of Base; undefined when there is none
  RawValue global(std::string_view name);  // what Main means by it; undefined when nothing

  // Conversions. `to_raw`: false, an error is pending (out of memory). `from_raw`: false with `error`.
  bool to_raw(const Datum& datum, RawValue& v);
  bool from_raw(RawValue v, Kind kind, Datum& datum, api::Value& holder, Error& error);
  const Type* type_for(Kind kind) const;  // what an argument of that kind becomes; null for `any`
  std::string describe(RawValue v);       // "a String", for messages

  std::unique_ptr<CodeGenerator> generator;  // outlives the runtime, whose methods own machine code
  HostRuntime runtime;
  Context& ctx;
  const BuiltinTypes& types;
  const DataType* const float_vector;             // Vector{Float64}
  std::array<const DataType*, 8> float_arrays{};  // Array{Float64,N}, by N from 1
  Options options;
  std::size_t tape_limit() const { return options.tape_limit != 0 ? options.tape_limit : options.heap_limit; }
  std::unique_ptr<StageTimes> times;  // SLOPE_TIMES
  std::unique_ptr<Interpreter> interpreter;
  std::unique_ptr<Pipeline> pipeline;
  std::shared_ptr<HandleTable> handles;
  HostTypes host_types{*this};
  std::vector<std::unique_ptr<DefinedHost>> host_functions;
  std::vector<class SlopeFunction*> functions;         // the typed handles that live
  std::vector<std::unique_ptr<double[]>> dead_memory;  // what arrays show that a script kept after their loan
  std::size_t dead_length = 0;
  std::exception_ptr host_exception;  // and the Slope exception it became, in the handle slot 0
  std::string no_generator;           // why there is no machine code
  int exit_code = 0;                  // of the last exit(code)
  AdoptedArrays adopted{*this};
  std::unique_ptr<LineWatch> line_watch;  // of Options::coverage and on_line
  std::unique_ptr<Profiler> profiler;     // of a profile that is being taken
  WorkspaceGate gate;
  std::map<std::pair<const Module*, const Symbol*>, std::string> documentation;  // of what is no function
  std::shared_ptr<const void> kept;  // what must outlive objects of the host's types
  std::string request;               // of a script to the prompt that runs it
  bool color = false;                // functions of scripts that print code colour it
  // What a front end does in place of the standard streams (slope/tools.hpp); empty: nothing.
  std::function<void(const std::vector<std::pair<std::string, std::string>>&)> show_forms;
  std::function<std::string()> read_line;
  std::unique_ptr<Error> broken;  // the standard library did not load: every use says so

  // The runtime knows which stack it is on; a frame on the stack known from the last time needs nothing.
  // Gives how many uses from outside are under way, for leave().
  std::size_t enter() {
    const void* here = __builtin_frame_address(0);
    const std::size_t before = uses_;
    if (before == 0) {
      if (limits_each_use_) wait_for_workspaces();
      thread_check_.begin();
    } else {
      thread_check_.inside();
    }
    if (here <= stack_low_ || stack_high_ <= here) enter_stack();
    uses_ = before + 1;
    if (before == 0) {
      ctx.fuel = fuel_;
      if (limits_each_use_) begin_use(here);
    } else if (before + 1 == most_uses) {
      before_most_uses_ = std::exchange(ctx.stack_limit, reinterpret_cast<const char*>(~std::uintptr_t{0}));
    }
    return before;
  }
  void leave(std::size_t before) {
    uses_ = before;
    if (before == 0) {
      if (limits_each_use_ || ctx.stopped != Stop::none) end_use();
      thread_check_.end();
      if (adopted.has_dead()) [[unlikely]]
        adopted.release_dead();
      if (ends_after_use_) [[unlikely]]
        delete this;
    } else if (before + 1 == most_uses) {
      ctx.stack_limit = before_most_uses_;
    }
  }
  // The same for a call of machine code that begins and ends here, where nothing is to be done: no limits, nothing that
  // runs, a known stack. False: enter() it is.
  bool enter_at_once(const void* here) {
    if (uses_ != 0 || reinterpret_cast<std::uintptr_t>(here) - at_once_from_ >= at_once_size_) return false;
    uses_ = 1;
    thread_check_.begin();
    return true;
  }
  void leave_at_once() {
    uses_ = 0;
    thread_check_.end();
  }
  const void* lends_at_once = nullptr;  // the function whose gradient was asked for that way, with its arrays lent
  bool is_unlimited() const { return is_unlimited_; }
  void go_on() {  // after a use that was stopped and left at once
    ctx.go_on();
    if (ends_after_use_) delete this;
  }
  // The compiler is to run on a workspace's thread, under Runtime::shared.
  void borrow_thread() {
    runtime.enter_thread(ctx);
    stack_low_ = stack_high_ = nullptr;  // the next use looks again
    find_at_once();
    if (uses_ == 0) ctx.fuel = fuel_;
  }
  void set_fuel(std::uint64_t fuel);
  std::int64_t fuel_of_use() const { return fuel_; }
  void has_workspaces() {  // while the engine is used
    limits_each_use_ = workspaces_ = true;
    find_at_once();
  }
  double* dead(std::size_t length);

 private:
  void set_up_output();
  void set_up_hooks();
  void load_library();
  void set_arguments();
  void set_texts(const char* name, const std::vector<std::string>& values);
  void grant();
  void connect_hooks();
  void set_limits();
  void name_host_function(std::string& message) const;
  Error limit_error(const Context& of) const;
  static Error ended();  // what end() did
  void enter_stack();
  void wait_for_workspaces() {  // before anything that they look at too
    if (workspaces_) gate.begin_use();
  }
  void begin_use(const void* here);
  void end_use();
  void find_at_once();
  bool told_no_generator_ = false;
  const void* stack_low_ = nullptr;
  const void* stack_high_ = nullptr;
  std::uintptr_t at_once_from_ = 0;  // of that stack, where enter_at_once may be
  std::uintptr_t at_once_size_ = 0;
  const char* thread_limit_ = nullptr;  // of the stack, whatever the options say
  // Uses from outside that are under way, one inside the other. In the last that may be every call is one too many:
  // script and host are calling each other without end.
  std::size_t uses_ = 0;
  static constexpr std::size_t most_uses = 200;
  const char* before_most_uses_ = nullptr;
  std::int64_t fuel_ = std::numeric_limits<std::int64_t>::max();
  ThreadCheck thread_check_;
  bool limits_each_use_ = false;  // begin_use and end_use have something to do
  bool is_unlimited_ = true;      // by fuel too
  bool workspaces_ = false;       // there were some
  bool is_told_allocations_ = false;
  bool ends_after_use_ = false;
  std::optional<CollectionPause> idle_pause_;
  std::unique_ptr<Watchdog> watchdog_;
};

// One use of the engine from outside.
class Entry {
 public:
  explicit Entry(EngineState& engine) : Entry(engine, engine.runtime.world()) {}
  Entry(EngineState& engine, World world) : engine_(engine), before_(engine.enter()), world_(engine.ctx.world) {
    engine.ctx.world = world;
  }
  ~Entry() {
    engine_.ctx.world = world_;
    engine_.leave(before_);
  }
  Entry(const Entry&) = delete;

 private:
  EngineState& engine_;
  std::size_t before_;
  World world_;
};

// The host's memory is its own again: the array, and all that share its memory (Heap::share_array), show what `dead`
// gives for their lengths.
template <class Dead>
void take_back(ArrayObject* array, Dead dead) {
  Object* next = owner_of(array);
  set_owner(array, nullptr);
  while (next && next != array) {
    auto* share = static_cast<ArrayObject*>(next);
    next = owner_of(share);
    set_owner(share, nullptr);
    share->data = reinterpret_cast<char*>(dead(static_cast<std::size_t>(share->length)));
    share->flags = array_shared;  // lent no more
  }
  array->data = reinterpret_cast<char*>(dead(static_cast<std::size_t>(array->length)));
}

// An array over the host's memory for one call. A script that keeps it finds NaN in it afterwards, never freed memory.
class Loan {
 public:
  explicit Loan(EngineState& engine) : engine_(engine) {}
  ~Loan() {
    if (!array_) return;
    take_back(array_, [this](std::size_t length) { return engine_.dead(length); });
    array_->flags = array_shared;
  }
  Loan(const Loan&) = delete;
  bool lend(const Datum& array, RawValue& v);  // false: out of memory, raised
  bool lend(const double* data, std::size_t length, RawValue& v) { return lend(Datum::of_numbers(data, length), v); }

 private:
  EngineState& engine_;
  ArrayObject* array_ = nullptr;
};

bool is_host_text(const SourceMap& sources, Span span);  // not the library's, nor made for a host function
bool build_composite(EngineState& engine, const Datum& datum, RawValue& v);  // false: an error is pending
// The same value with copies of the lent arrays that it is, or consists of as an immutable value: it may outlive the
// loan. False: an error is pending.
bool own_arrays(EngineState& engine, RawValue& v, int depth = 0);
inline constexpr std::size_t most_arguments = 16;  // of a typed handle
void define_engine_natives(EngineState& engine);   // host.cpp: calls of host functions, exit
void define_type_natives(EngineState& engine);     // host_types.cpp
void define_tool_natives(EngineState& engine);     // of the room above, tools/help.cpp
// The methods of a function or a type that are current; none for other values.
std::vector<const Method*> current_methods(EngineState& engine, RawValue callee);
Error not_convertible(const api::Value& value, const std::string& wanted);
std::shared_ptr<FunctionState> make_function(EngineState& engine, std::string name, std::span<const Kind> parameters,
                                             Kind result, Dispatch dispatch, Error& error);

}  // namespace slope::api::detail
