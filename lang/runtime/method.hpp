// Methods, their specialisations, and dispatch by world.
//
//   MethodTable      all methods of one callee type, by definition order; lookup caches by argument types
//   Method           one definition: signature, position, body (syntax until first use, then untyped IR)
//   Generator        how the body of a generated method is made from the argument types (generated.cpp)
//   Specialization   a method for concrete argument types: call counts, typed IR, native code. Calls are linked to it
//
// Worlds: a method is visible in worlds [min_world, max_world]. Each definition advances the world. A cached answer is
// valid for a world range, which is truncated when a definition could change the answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lang/support/memory_count.hpp"
#include "lang/support/source.hpp"
#include "lang/types/type.hpp"

namespace slope {

struct Context;
struct Method;
struct Specialization;
namespace ir {
struct Function;
}

using World = std::uint64_t;
inline constexpr World newest_world = ~World{0};

// A function written in C++. False: an error is pending in the context. `args` excludes the callee.
using NativeFunction = bool (*)(Context&, const Value* args, std::size_t count, Value& result);
// What compiled code offers to dynamic callers. `args` excludes the callee value, which comes first on its own.
using BoxedEntry = bool (*)(Context*, Value callee, const Value* args, std::size_t count, Value* result);

enum Effect : std::uint32_t {
  effect_none = 0,
  effect_throws = 1,
  effect_writes = 2,  // memory that existed before the call, globals, IO
  effect_reads = 4,   // mutable memory or non-constant globals
  effect_allocates = 8,
  effect_diverges = 16,  // may not terminate
  effect_all = 31,
};

// A function of the host that machine code calls with words: the bits of a number, an integer, a boolean.
struct WordCode {
  // Null: it went well. `result` is written unless the type of the result is a singleton.
  using Call = void* (*)(void* function, const std::uint64_t* arguments, std::uint64_t* result);
  using Raise = void (*)(Context* ctx, void* function, void* failure);  // makes what `call` gave the pending error
  Call call = nullptr;
  // The same with machine registers, for up to `most_direct` parameters, or null: R (*)(void* function, void** failure,
  // A...) with double, std::int64_t and bool in the order of the parameters. It writes `failure`, which is null before,
  // when it failed.
  void* direct = nullptr;
  bool never_fails = false;  // of `direct`: it leaves `failure` alone
  Raise raise = nullptr;
  void* function = nullptr;
  std::vector<const Type*> parameters;
  const Type* result = nullptr;
};

struct NativeInfo {
  const char* name;
  NativeFunction function;
  std::uint32_t effects = effect_all;
  // Result type for inference given argument types, or null for "Any". Singletons of functions and types come as
  // Type{…}/typeof.
  const Type* (*result_type)(TypeTable&, std::span<const Type* const> args) = nullptr;
  bool asks_return_type = false;  // Core.return_type: inference answers it itself
  // Effects that do not matter to a generator of code, although they are effect_all: it may call this.
  bool generator_may_call = false;
  // Touches its arguments and its context's heap alone, so that several contexts of an engine may be in it at once.
  bool is_context_free = false;
  const WordCode* host = nullptr;  // the first argument of the native is then a number that this stands for
  bool calls_method = false;       // Core.invoke_method: where all types are known inference makes it an ordinary call
};

// What the source of a generated method is wanted for; counted apart, because only some of it is needed again.
enum class SourceUse : std::uint8_t { inference, constant_propagation, recursion_check, interpreter, reflection };
inline constexpr std::size_t source_use_count = 5;

// Of a method defined by `@generated`: a function of the static parameters, the callee's type and the argument types
// that returns the body. `cached` is the opt-in: a source is then kept for its world range, for every use; without it,
// it is made again whenever inference needs it, and only the interpreter keeps what it runs.
struct Generator {
  Value function;
  Value stands_for;  // with keyword arguments a hidden function is the generated one: the function that calls it
  bool cached = false;
  struct Counts {
    std::uint64_t calls = 0;        // the generator ran
    std::uint64_t hits = 0;         // a kept source was used
    std::uint64_t misses = 0;       // none was kept for these types in this world
    std::uint64_t nanoseconds = 0;  // in the generator and in lowering what it returned
  };
  Counts counts[source_use_count];
  std::uint64_t invalidated = 0;  // kept sources that a definition ended
  std::uint64_t bytes = 0;        // of kept sources now, about
};

struct Method {
  const Symbol* name = nullptr;
  Module* module = nullptr;
  Span span;                                  // of the signature
  const Type* signature = nullptr;            // Tuple{typeof(f), args…}, possibly under union_alls
  std::vector<const TypeVar*> static_params;  // outermost first
  std::vector<const Symbol*> arg_names;       // with the callee ("#self#") first; the vararg last
  std::uint32_t arg_count = 0;                // with callee, without counting a trailing vararg
  bool is_vararg = false;
  World min_world = 0;
  World max_world = newest_world;
  int inline_hint = 0;  // 1 @inline, -1 @noinline
  // @nospecializeinfer: a bit for each argument (the callee first, the last for all from there on) that a specialisation
  // takes as it is declared, whatever it is in a call.
  std::uint64_t as_declared = 0;
  const NativeInfo* native = nullptr;                            // a C++ body
  std::shared_ptr<struct MethodBody> body;                       // lowering's: syntax, and IR once needed
  std::vector<std::unique_ptr<Specialization>> specializations;  // of every world
  // untyped; made by Runtime::method_ir on first use. Shared only because this layer doesn't see ir::Function whole: a
  // shared_ptr remembers how to destroy it.
  std::shared_ptr<ir::Function> ir;
  std::string documentation;
  std::unique_ptr<Generator> generator;  // null: an ordinary method
  CountedBytes counted;
};

// What the method declares for argument i (callee: 0), as a type without variables.
const Type* declared_argument(const BuiltinTypes& builtin, const Method& method, std::size_t i);

// Something that was derived from lookups and ends when their answers change.
struct Edge {
  enum class Kind : std::uint8_t { lookup, binding, callee } kind = Kind::lookup;
  const Type* signature =
      nullptr;  // lookup: call types Tuple{typeof(f),…}; any new method that intersects it ends the dependent
  const struct Binding* binding = nullptr;
  Specialization* callee = nullptr;  // callee: what was inferred of it was used; ends when a CodeInstance of it ends
};

// The compiled state of a specialisation for a world range. Immutable once published but for max_world and `native`.
struct CodeInstance {
  Specialization* owner = nullptr;
  World min_world = 0;
  World max_world = newest_world;
  const Type* return_type = nullptr;
  Value constant_result;  // defined: returns nothing else; whether it returns is in the effects
  // A Bool result that says what an argument is (`isnothing(x)`): 0 is the callee; -1 for none.
  std::int32_t tested_argument = -1;
  const Type* argument_if_true = nullptr;
  const Type* argument_if_false = nullptr;
  std::uint32_t effects = effect_all;
  std::shared_ptr<ir::Function> typed;  // inferred and optimised
  std::vector<Edge> edges;              // transitive for inlined callees
  // Native code, when compiled. `entry` has the signature that codegen/layout.hpp derives from the types.
  std::atomic<void*> entry{nullptr};
  std::atomic<BoxedEntry> boxed{nullptr};
  std::shared_ptr<void> native_owner;  // keeps the machine code alive
  CountedBytes counted;
  bool valid_in(World world) const { return min_world <= world && world <= max_world; }
};

// A source that a generator made, in `typed`, though it is untyped; ended by what the generator looked up.
struct KeptSource : CodeInstance {
  std::size_t bytes = 0;
};

inline bool is_kept_source(const CodeInstance& code);

// The untyped IR of a specialisation, for a range of worlds.
struct Source {
  std::shared_ptr<ir::Function> code;  // null: an error is raised
  World min_world = 0;
  World max_world = newest_world;
  std::vector<Edge> edges;  // what a generator looked up
  std::size_t bytes = 0;    // of `code`, about
};

// A generator that is running (Context::generating): in which world it may ask about the program, and what it asked.
struct GeneratorRun {
  const Specialization* target = nullptr;
  World world = 0;  // of who wants the source; the generator itself runs in the world of its definition
  Source* source = nullptr;
  const struct AllocationRecord* made = nullptr;  // what it may change; null: anything (RecordedRun)
  const GeneratorRun* outer = nullptr;
};

struct Specialization {
  Method* method = nullptr;
  const DataType* types = nullptr;         // Tuple{typeof(f), concrete args…}; varargs spelled out
  std::vector<const Type*> static_params;  // values of method->static_params
  std::uint32_t calls = 0;                 // in the interpreter, and its loops' back edges / 16
  bool compile_failed = false;             // stays interpreted; reason in `failure`
  std::string failure;
  std::vector<std::unique_ptr<CodeInstance>> code;   // newest last
  CodeInstance* current = nullptr;                   // the one last found valid; check valid_in
  std::vector<std::unique_ptr<KeptSource>> sources;  // of a generated method
  void* interpreter_data = nullptr;                  // the interpreter's bytecode of typed code (owned by it)
  CountedBytes counted;
};

inline bool is_kept_source(const CodeInstance& code) {
  return code.owner && code.owner->method->generator && !code.return_type;
}

struct Lookup {
  Method* method = nullptr;  // null: no method, or ambiguous
  std::vector<const Type*> static_params;
  std::vector<Method*> ambiguous;  // not empty: these are equally specific
  World min_world = 0;
  World max_world = newest_world;
  bool exact = true;    // false from lookup_all for a method that matches only part of the argument types
  bool covered = true;  // of all results of one lookup_all: together they cover every possible argument tuple
  Specialization* target = nullptr;  // filled by Runtime::lookup_specialization
};

struct MethodTable {
  const Symbol* name = nullptr;
  std::vector<std::unique_ptr<Method>> methods;  // definition order; replaced ones stay with a truncated max_world
  struct Cache;                                  // answers by call types: dispatch.cpp
  std::shared_ptr<Cache> cache;
};

}  // namespace slope
