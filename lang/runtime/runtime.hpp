// The Runtime: everything that one engine owns below the tiers (types, symbols, modules, methods, heap, world counter),
// and the dynamic operations that both tiers and natives share: dispatch, calls, field and global access, printing
// hooks.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lang/runtime/backend.hpp"
#include "lang/runtime/capabilities.hpp"
#include "lang/runtime/context.hpp"
#include "lang/runtime/hooks.hpp"
#include "lang/runtime/kept_methods.hpp"
#include "lang/support/source.hpp"
#include "lang/types/module.hpp"
#include "lang/types/subtype.hpp"
#include "lang/types/symbol.hpp"

namespace slope {

struct OutputSink {
  std::function<void(std::string_view)> out;  // standard output of scripts
  std::function<void(std::string_view)> err;
};

class Coroutines;
class LibraryIndex;

// What is done to make machine code fast: Options::optimisation.
enum class CodeEffort : std::uint8_t { none, passes, full };

class Runtime : public LibraryNames {
 public:
  Runtime();
  ~Runtime();
  Runtime(const Runtime&) = delete;

  MemoryCount outside_heap;
  SymbolTable symbols;
  TypeTable types;
  Heap heap;
  SourceMap sources;
  Context context;  // the engine's own
  OutputSink sink;
  Capabilities capabilities;
  CodeEffort code_effort = CodeEffort::full;  // set like the next before any machine code is made
  bool counts_fuel = false;                   // machine code counts Context::fuel; set before any is made
  bool records_frames = false;                // both tiers keep Context::frames; set before anything runs
  // Machine code comes with its lines, and with frame pointers; debuggers and perf are told of it. Set before any is
  // made.
  bool describes_code = false;
  bool shows_code_to_debuggers = false;
  bool shows_code_to_perf = false;
  volatile bool compiles = false;  // inference, optimisation or code generation is under way, for the engine's context
  std::recursive_mutex shared;     // of what all contexts use: see SharedAccess

  Interpreter* interpreter = nullptr;  // set by embed
  LineObserver* observer = nullptr;    // set by embed before anything runs; everything is then interpreted
  Tiers* tiers = nullptr;
  // Connected once (`connect`), before anything runs.
  const RuntimeHooks& hooks() const { return hooks_; }
  void connect(RuntimeHooks hooks);
  bool check_generators = false;  // run each generator twice and compare
  KeptMethods kept_methods;       // of those that were replaced

  std::shared_ptr<void> derivative_state;  // lang/diff's: the tangent types of this runtime's types
  std::shared_ptr<void> lowering_state;    // lang/lower's: definitions by number, literals

  // --- modules and globals ---
  Module* core = nullptr;  // intrinsics, builtin types and natives
  Module* base = nullptr;  // stdlib
  Module* main = nullptr;
  Module* new_module(const Symbol* name, Module* parent);
  Binding* binding(Module* module, const Symbol* name);  // own binding, created when absent
  Binding* resolve(Module* module, const Symbol* name);  // what a use of `name` means; null when nothing (yet)
  void set_constant(Module* module, std::string_view name, Value v);
  const Symbol* symbol(std::string_view name) { return symbols.intern(name); }

  // --- worlds and methods ---
  World world() const { return world_; }
  MethodTable* method_table(const Type* callee_type);  // where methods of calls on this callee type live
  // The generic function `name` of a module: its existing value, or a fresh function bound as a constant. Null if the
  // name is bound to something that is not a function or type.
  Value generic_function(Module* module, const Symbol* name);
  // Adds (or replaces an equal signature), advances the world, ends what depended on the old answer.
  Method* add_method(std::unique_ptr<Method> method);
  // Makes known what the standard library defines in Base; all of it waits until somebody asks (postponed.cpp).
  void open_library(const LibraryIndex& index);
  Binding* enter_library_name(
      const Symbol* name) override;  // into Base; null: no name of the library, or already there
  void enter_all_library_names() override;
  bool library_exports(std::string_view name) const override;
  bool is_library_module(std::string_view name) const;  // also before it is made
  void make_postponed(Binding& binding) override;
  void define_all_postponed();
  void define_native(Module* module,
                     const NativeInfo* info);  // callable as module.name; dispatches on nothing, any arguments
  Lookup lookup(const DataType* call_types, World world);  // call_types: Tuple{typeof(f), args…}, concrete
  // All that may apply, most specific first; for inference. Empty when none can. When nothing useful can be said
  // (callee unknown, or more than `limit` methods) one Lookup with a null method, `exact` and `covered` false.
  std::vector<Lookup> lookup_all(const Type* call_types, World world, int limit);
  const DataType* call_types(Value callee, const Value* args,
                             std::size_t count);  // Tuple{typeof(callee), …}; Type{T} for types
  // Dispatch through the table's cache; null: no method or ambiguous (nothing raised).
  Specialization* lookup_specialization(const DataType* call_types, World world);
  // The same for values, raising MethodError in ctx; the fast way is CallCache (call_cache.hpp).
  Specialization* dispatch(Context& ctx, Value callee, const Value* args, std::size_t count);
  // The same, specialised for every argument, as derivatives want it.
  Specialization* dispatch_specialized(Context& ctx, Value callee, const Value* args, std::size_t count);
  Specialization* specialize(Method* method, const DataType* call_types, std::span<const Type* const> static_params);
  // What a call runs: not specialised for arguments that the method wants as they are declared (Method::as_declared).
  Specialization* specialize_as_declared(Method* method, const DataType* call_types,
                                         std::span<const Type* const> static_params);
  const ir::Function* method_ir(Context& ctx, Method& method);  // null: error raised
  // What a specialisation runs before it is typed: method_ir, or what a generator made for it (generated.cpp).
  Source source(Context& ctx, Specialization& target, SourceUse use, World world);
  void add_dependent(CodeInstance* code);  // registers code->edges
  void binding_changed(Binding* binding);  // a constant or type was redefined
  // The alias in `module` of a name of the library that gives way to the module's own (borrowed.cpp). Null: it does
  // not, or the module is the library's.
  Binding* borrowed(Module& module, const Binding& source);
  void renew_borrowed(Module& module);  // after `using` or `import`: aliases follow what their names mean there now
  // What definitions ended of what was derived before, newest last; the last few thousand.
  struct Invalidation {
    std::string definition;
    std::string ended;
    std::string reason;
  };
  std::vector<Invalidation> invalidations() const;
  void end_code(CodeInstance* code);  // and what was derived from it, from the next world on
  // What was ended and is still there, and its end. Nothing may run it or be about to (Tiers::release_ended).
  std::vector<CodeInstance*>& ended_code();
  void destroy_code(std::span<CodeInstance* const> codes);
  // Frees what closures and modules leave behind that nobody can reach. Nothing may run: unreachable.cpp.
  void free_unreachable_when_due();
  // Frees the texts that no position refers to. Nothing may run: unused_texts.cpp.
  void free_unused_texts_when_due();
  std::atomic<int> other_heaps{0};  // of workspaces: what their objects refer to is not looked at
  // Text for an exception as `showerror` prints it, without calling Slope code ("BoundsError: attempt to access …").
  std::string exception_text(Context& ctx, Value exception);

  // --- dynamic operations; false: error raised in ctx ---
  bool call(Context& ctx, Value callee, const Value* args, std::size_t count, Value& result);  // dispatch + tier
  bool call_caching(Context& ctx, struct CallCache& site, Value callee, const Value* args, std::size_t count,
                    Value& result);  // `call` that remembers the target in `site`
  bool call_specialized(Context& ctx, Specialization& target, Value callee, const Value* args, std::size_t count,
                        Value& result);
  bool get_field(Context& ctx, Value object, Value name_or_index, Value& result);  // 1-based index or Symbol
  bool set_field(Context& ctx, Value object, Value name_or_index, Value v);
  bool new_object(Context& ctx, const DataType* type, const Value* fields, std::size_t count,
                  Value& result);  // no conversion: TypeError on mismatch
  bool new_tuple(Context& ctx, const Value* elements, std::size_t count, Value& result);

  // Lets `ctx` run on the calling thread: where its stack ends, for StackOverflowError and the collector.
  void enter_thread(Context& ctx);

  std::unique_ptr<Coroutines> coroutines;  // of the engine's context

  // --- values from C++ ---
  Value from_int(std::int64_t n) { return Value(types.builtin().int64, n); }
  Value from_float(double x) { return Value(types.builtin().float64, x); }
  Value from_bool(bool b) { return Value(types.builtin().boolean, std::int64_t{b}); }
  Value from_symbol(const Symbol* s) { return Value(types.builtin().symbol, s); }
  Value from_string(std::string_view text);  // undefined Value when out of memory
  Value from_type(const Type* t);            // a type as a value: its type is DataType, UnionAll, Union or TypeofBottom
  Value nothing() const { return types.builtin().nothing->instance; }
  bool is_type_value(Value v) const;

  // Text of a value as `show` / `print` prints it, through Slope's own `show` when the stdlib is loaded; never raises.
  std::string show(Context& ctx, Value v);
  // "ERROR: BoundsError: …" and the Slope frames with lines, as printed for an uncaught error.
  std::string describe_error(Context& ctx, Value exception, const std::vector<TraceEntry>& trace);

 private:
  friend class Unreachable;
  struct Impl;
  std::unique_ptr<Impl> impl_;
  World world_ = 1;
  RuntimeHooks hooks_;
};

}  // namespace slope
