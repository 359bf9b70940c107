// Type inference: abstract interpretation of untyped IR for concrete argument types, in one world. See infer.cpp's
// head.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/tuning.hpp"

namespace slope::infer {

struct InferResult {
  std::unique_ptr<ir::Function> typed;  // typed, calls resolved to invoke/native/ops where possible, not yet optimised
  const Type* return_type = nullptr;    // bottom: never returns
  Value constant_result;
  std::uint32_t effects = effect_all;
  World min_world = 0;
  World max_world = newest_world;
  std::vector<Edge> edges;
  // A Bool result that says what an argument is; see CodeInstance.
  std::int32_t tested_argument = -1;
  const Type* argument_if_true = nullptr;
  const Type* argument_if_false = nullptr;
};

// Where inference gives something up so that it ends (limits.cpp), for those who explain its results.
enum class Limit : std::uint8_t {
  nesting,             // calls nested in one inference
  bodies,              // bodies inferred in one inference
  stack,               // of the machine
  arguments,           // of one call
  argument_growth,     // a recursion asked for ever larger argument types
  value_growth,        // a variable's type grew with each turn of a loop
  result_growth,       // a recursion's result type grew with each turn
  constant_size,       // instructions of a callee that would be inferred again for the constants of a call
  constant_nesting,    // such inferences nested
  constant_recursion,  // of one method
  constant_bodies,     // such inferences in all
};
struct LimitPassed {
  Limit limit;
  std::int64_t value;  // of the limit
};

struct InferOptions {
  int union_limit = tuning::union_members;
  int recursion_limit = tuning::inference_recursion;
  int constant_call_limit = tuning::constant_call_size;
  // What to do with an inferred callee: optimise it and `publish` it. Called when nothing about it can change any more;
  // its own callees were handed over before, but for those it is mutually recursive with. `target.types` need not be
  // concrete: calls on arguments of abstract type are inferred too, for their result types; such code is never run, so
  // optimising it is a waste (is_runnable). Without it results are published as they are.
  std::function<void(Specialization& target, InferResult&& result)> on_finished;
  // A limit was passed: in the function itself (growth), or at a call of it.
  std::function<void(const Specialization& target, LimitPassed passed)> on_limit;
};

// Makes a CodeInstance of the result, current for `target`, and registers its edges.
CodeInstance* publish(Runtime& runtime, Specialization& target, InferResult&& result);

// Its argument types are such as dispatch meets: concrete, or Type{T}.
bool is_runnable(Runtime& runtime, const Specialization& target);

// One inference and all it needs of callees. Callees that have a CodeInstance for `world` are not inferred again; those
// that have none are, and go to `on_finished`. The target itself is inferred in any case and given back, not published.
// Results hold constants that only this object keeps alive: publish them, or root them, before it dies.
class Inference {
 public:
  Inference(Runtime& runtime, Context& ctx, World world, const InferOptions& options = {});
  ~Inference();
  InferResult infer(Specialization& target);  // null `typed`: lowering failed (the call would raise)
  // Infers a body that is not a method's (a top-level statement, a hot loop's continuation, a derivative) with the
  // given types of the entry block's parameters. `static_params` of the function are the values of its static
  // parameters.
  InferResult infer_function(const ir::Function& untyped, std::span<const Type* const> parameter_types);
  // Typed IR made by the compiler (differentiation) holds `call`s with constant callees and null types: infer those
  // again.
  InferResult reinfer(const ir::Function& partly_typed);

  struct Impl;  // engine.hpp

 private:
  std::unique_ptr<Impl> impl_;
};

// Result type of an op on operand types; bottom when it always raises. The one place that knows (printer and verifier
// too).
const Type* op_result_type(Runtime& runtime, const ir::Inst& inst, std::span<const Type* const> operand_types);

// What is found of a call on arguments of these types, without its code: the type (Any when nothing is known), and what
// that depends on.
InferResult infer_call(Runtime& runtime, Context& ctx, const DataType* call_types, World world,
                       const InferOptions& options = {});
// The type alone: `return_type(f, types)` of the language.
const Type* return_type(Runtime& runtime, Context& ctx, const DataType* call_types, World world,
                        const InferOptions& options = {});

}  // namespace slope::infer
