// The interfaces of the tiers. The runtime knows neither the interpreter nor code generation, only these interfaces;
// `embed` connects the parts (composition root).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "lang/runtime/context.hpp"
#include "lang/runtime/reached.hpp"
#include "lang/support/tuning.hpp"

namespace slope {

// Runs IR at once. Implemented by interpreter/.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  // Runs a specialisation: its typed code when it is there and valid in ctx.world, else the method's untyped IR.
  // `args` excludes the callee. False: ctx.error is set.
  virtual bool run(Context& ctx, Specialization& target, Value callee, const Value* args, std::size_t count,
                   Value& result) = 0;
  // Runs the body of a top-level statement (no arguments).
  virtual bool run_toplevel(Context& ctx, const ir::Function& body, Value& result) = 0;
  // The functions that its frames are in the middle of, those of suspended coroutines too.
  virtual std::vector<const ir::Function*> running() const = 0;
};

// Told of each step of the interpreter, which then runs methods as they were lowered, without what inference and
// optimisation leave out: line traces and coverage.
class LineObserver {
 public:
  virtual ~LineObserver() = default;
  // `last`: a word of the activation, 0 when it begins, for the observer's use.
  virtual void at(Context& ctx, const ir::Function& function, std::uint32_t inst, std::uint64_t& last) = 0;
};

// Where a machine instruction comes from: innermost first, the functions that were inlined and at last the one itself.
struct CodePlace {
  std::string function;
  std::string file;  // as the source map names it
  std::uint32_t line = 0;
};

// What compiled code offers to a host that knows its types: a word for each leaf of the callee and the arguments
// (codegen/layout.hpp), in order; a bit pattern in the low bits, a pointer for what lies on the heap. The leaves of the
// result are written in the same way. No Value is made. False: an error is pending in the context.
using DirectEntry = bool (*)(Context*, const std::uint64_t* arguments, std::uint64_t* result);

// The gradient of a function of numbers and vectors whole, as hosts ask for it: what is given is looked at, lent and
// cleared, and the derivative runs, in one piece of machine code.
namespace flat {
// An argument, and where its derivative goes.
struct Argument {
  std::uint64_t word;  // a number's bits, or where the vector is
  std::uint64_t size;  // of a vector
};
struct Target {
  double* data;
  std::uint64_t size;  // of a number: 1; `unwanted` where the derivative is not asked for
};
inline constexpr std::uint64_t unwanted = ~std::uint64_t{0};
// What is to be done with an argument; `is_active`: the derivative takes its shadow, `is_number`: it returns its
// derivative.
enum Step : std::uint8_t { is_wanted = 1, is_vector = 2, is_active = 4, is_number = 8 };
enum class Outcome : std::uint8_t {
  otherwise,  // nothing was done: not what the code was made for, or memory that overlaps
  done,
  shared,  // done, and other arrays were made over the memory that was lent
  failed,  // an error is pending in the context
};
// `lent`: headers for the vectors among the arguments, then for those among their shadows, others null.
using Gradient = Outcome (*)(Context*, const Argument* arguments, const Target* targets, ArrayObject* const* lent,
                             double* value);
}  // namespace flat

struct DirectCode {
  DirectEntry entry = nullptr;
  flat::Gradient gradient = nullptr;  // where it was asked for and can be
  std::shared_ptr<void> owner;        // keeps the machine code alive
};

// Makes native code. Implemented by codegen/ in its own shared object.
class CodeGenerator {
 public:
  virtual ~CodeGenerator() = default;
  // Compiles typed code (and whatever it must link to that has typed code but no entry) and publishes entry/boxed.
  // False with `why` when it can't; the specialisation then stays interpreted.
  virtual bool compile(Context& ctx, CodeInstance& code, std::string& why) = 0;
  // The same, on other threads, if the engine has some. What has been made there is published when this, or `compile`,
  // is called again, for any code: `begun` and then `waits` say that the code is not there yet.
  enum class Compiled { failed, done, begun, waits };
  virtual Compiled compile_later(Context& ctx, CodeInstance& code, std::string& why) = 0;
  // The same, and an entry for hosts. Without one, `why` says so. `steps`: of the derivative of a function of numbers
  // and vectors, what is to be done with each of its arguments; else none.
  virtual DirectCode direct(Context& ctx, CodeInstance& code, std::span<const std::uint8_t> steps,
                            std::string& why) = 0;
  enum class Dump { llvm, native };
  virtual std::string dump(Context& ctx, CodeInstance& code, Dump what) = 0;
  // Whose machine code may not go: what a word of this thread's stack returns into, what a DirectCode holds, and what
  // these are linked to.
  virtual void find_in_use(Context& ctx, std::vector<const CodeInstance*>& found) = 0;
  virtual void forget(const CodeInstance& code) = 0;  // it will be destroyed
  virtual std::size_t bytes() const = 0;              // of machine code that is there
  // The machine instruction at `address`; false: no code of this generator. Of engines that keep records of frames:
  // their machine code stays as long as the generator. `function`: as in FrameRecord.
  virtual bool locate(const void* address, std::uintptr_t& function, std::vector<CodePlace>& places) = 0;
};

enum class TierMode : std::uint8_t { interpret, compile, automatic };

// When to do what; implemented in lang/pipeline. The interpreter calls these on its slow paths.
class Tiers {
 public:
  virtual ~Tiers() = default;
  TierMode mode = TierMode::automatic;
  std::uint32_t call_threshold = tuning::compile_calls;
  std::uint32_t loop_threshold = tuning::compile_loop;
  // Called by the dispatcher before running `target` when mode is compile, or when it just got hot. May fill
  // target.current.
  virtual void on_hot(Context& ctx, Specialization& target) = 0;
  // A loop of the running activation is hot: make a function that continues at block `header` with the live registers
  // as arguments. Returns null when it can't, or when it is not there yet (`later`: the caller shall ask again). Cached
  // by (function, header, types of live values).
  virtual CodeInstance* on_hot_loop(Context& ctx, const ir::Function& running, Specialization* target,
                                    std::uint32_t header, const Value* live, std::size_t live_count, bool& later) = 0;
  // The body of a top-level statement has been run, and will be destroyed.
  virtual void toplevel_ended(const ir::Function& body) = 0;
  // Typed code for a specialisation in ctx.world (infers when needed); null when inference is not possible.
  virtual CodeInstance* typed_code(Context& ctx, Specialization& target) = 0;
  // Takes out of `methods` those that running code mentions, or ended code that is still there.
  virtual void leave_used(std::unordered_set<const Method*>& methods) { (void)methods; }
  // These will be destroyed.
  virtual void forget(const std::unordered_set<const Method*>& methods,
                      const std::unordered_set<const Specialization*>& specializations) {
    (void)methods;
    (void)specializations;
  }
  // Of lang/runtime/unreachable.cpp: what is run, or a host holds; what a function refers to; what was made of a
  // specialisation, which lives as long as it; loops of methods that have code of their own.
  virtual void reach_held(Reached& reached) { (void)reached; }
  virtual void reach_function(const ir::Function& function, Reached& reached) {
    (void)function;
    (void)reached;
  }
  virtual void reach_derived(const Specialization& target, Reached& reached) {
    (void)target;
    (void)reached;
  }
  virtual void each_loop(const std::function<void(const Method* method, const CodeInstance& code)>& look) {
    (void)look;
  }
  // Functions that no source stands for: derivatives, loops.
  virtual void each_synthetic(const std::function<void(const Specialization& made)>& look) { (void)look; }
  virtual void end_derived(const Specialization& target) { (void)target; }
  // Frees what definitions ended and nothing runs any more. Asked for after a definition, never inside a compilation.
  virtual void release_ended(Context& ctx) = 0;
};

}  // namespace slope
