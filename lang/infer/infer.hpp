// Type inference: abstract interpretation of untyped IR for concrete argument types, in one world. See infer.cpp's head.
#pragma once

#include <memory>
#include <string>

#include "lang/ir/ir.hpp"
#include "lang/runtime/runtime.hpp"

namespace slope::infer {

struct InferResult {
  std::unique_ptr<ir::Function> typed;  // typed, calls resolved to invoke/native/ops where possible, not yet optimised
  const Type* return_type = nullptr;    // bottom: never returns
  Value constant_result;
  std::uint32_t effects = effect_all;
  World min_world = 0;
  World max_world = newest_world;
  std::vector<Edge> edges;
};

struct InferOptions {
  int union_limit = 4;
  int recursion_limit = 64;      // nested specialisations in one inference
  int constant_call_limit = 300; // size (insts) of callees worth inferring again with constant arguments
};

// Infers `target` in `world`. Results of callees are cached in their specialisations' CodeInstances (typed, optimised by
// `optimise`). Null `typed` with `error`: lowering failed (the call would raise).
class Inference {
 public:
  Inference(Runtime& runtime, Context& ctx, World world, const InferOptions& options = {});
  ~Inference();
  InferResult infer(Specialization& target);
  // Infers a body that is not a method's (a top-level statement, a hot loop's continuation, a derivative) with the given
  // parameter types.
  InferResult infer_function(const ir::Function& untyped, std::span<const Type* const> parameter_types);
  // Typed IR made by the compiler (differentiation) holds `call`s with constant callees and null types: infer those again.
  InferResult reinfer(const ir::Function& partly_typed);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Result type of an op on operand types; bottom when it always raises. The one place that knows (printer and verifier too).
const Type* op_result_type(Runtime& runtime, const ir::Inst& inst, std::span<const Type* const> operand_types);

// The inferred type of a call, Any when nothing is known: `return_type(f, types)` of the language.
const Type* return_type(Runtime& runtime, Context& ctx, const DataType* call_types, World world);

}  // namespace slope::infer
