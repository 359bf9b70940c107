// The inside of Inference, shared by infer.cpp (driver, recursion, results), solve.cpp (fixpoint of one body),
// transfer.cpp (ops), calls.cpp and rewrite.cpp.
#pragma once

#include <unordered_map>

#include "lang/infer/frame.hpp"
#include "lang/infer/op_types.hpp"
#include "lang/runtime/stop_scope.hpp"

namespace slope::infer {

// A computation's value and what doing it may do.
struct Evaluation {
  Known value;
  std::uint32_t effects = effect_none;
};

struct Inference::Impl {
  Impl(Runtime& runtime, Context& ctx, World world, const InferOptions& options);

  Runtime& runtime;
  Context& ctx;
  World world;
  InferOptions options;
  Context scratch;  // for folding and lowering: errors raised there are nobody's
  LatticeTable lattice;
  const BuiltinTypes& builtin;
  std::unordered_map<Specialization*, std::unique_ptr<Outcome>> outcomes;
  std::vector<Frame*> stack;
  std::unordered_map<const Type*, int> type_sizes;  // of arguments of recursions: each is compared with many
  Outcome* requested = nullptr;                     // whose result goes to who asked, instead of being published
  std::uint64_t next_stamp = 1;
  std::uint64_t frames_made = 0;
  std::uint64_t constant_frames_made = 0;  // of those: for the constants of one call

  // --- infer.cpp ---
  std::unique_ptr<Frame> make_frame(Method* method, std::unique_ptr<ir::Function> body, std::vector<Known> arguments,
                                    std::vector<const Type*> static_params);
  // Null: lowering failed, or its generator.
  std::unique_ptr<Frame> method_frame(Specialization& target, std::vector<Known> arguments, SourceUse use);
  std::vector<Known> entry_arguments(const Specialization& target, std::span<const Known> arguments);
  // What is known of `target` now; infers it when it is new. Null: a limit forbids, or lowering failed.
  Outcome* outcome_of(Specialization& target, SourceUse use = SourceUse::inference);
  void run(Frame& frame);         // to the fixpoint of the frame and, when it heads a cycle, of the cycle
  void finish(Outcome& outcome);  // rewrites, publishes
  InferResult result_of(Frame& frame);
  void summarise(Frame& frame);  // effects of the whole body

  // --- solve.cpp ---
  void solve(Frame& frame);
  Known view(Frame& frame, ir::Operand operand, ir::BlockId block);
  // The block whose refinement of `inst` holds in `block`, or no_block.
  ir::BlockId refining_block(const Frame& frame, std::uint32_t inst, ir::BlockId block) const;
  void mark_users(Frame& frame, std::uint32_t inst);
  void mark_calls_in_cycle(Frame& frame);

  void mark(Frame& frame, std::uint32_t inst);  // to be evaluated again

  // --- transfer.cpp ---
  Evaluation evaluate(Frame& frame, std::uint32_t inst);
  // `operands` are what conditionals refer to; empty when the arguments are not the values of operands.
  Evaluation evaluate_op(Frame& frame, const ir::Inst& inst, std::span<const Known> arguments,
                         std::span<const ir::Operand> operands);

  // --- calls.cpp ---
  Evaluation evaluate_call(Frame& frame, std::uint32_t inst, std::vector<Known> arguments,
                           std::span<const ir::Operand> operands);
  Evaluation evaluate_splat(Frame& frame, std::uint32_t inst, std::vector<Known> arguments);
  Evaluation evaluate_return_type(Frame& frame, std::uint32_t inst,
                                  std::span<const Known> arguments);  // Core.return_type
  Evaluation evaluate_invoke(Frame& frame, const ir::Inst& inst);
  void add_edge(Frame& frame, const Edge& edge);
  void use_outcome(Frame& frame, Call& call, Outcome& outcome);  // worlds, edges, cycles

  // --- limits.cpp ---
  // With what forbids to infer `target`; told to who asked for it (InferOptions::on_limit).
  bool limits_reached(const Specialization& target) const;
  bool constant_limits_reached(const Specialization& target) const;
  void tell_limit(const Specialization* target, Limit limit, std::int64_t value) const {
    if (target && options.on_limit) options.on_limit(*target, {limit, value});
  }
  // What to infer instead of `target` when a recursion makes ever larger types; null: give up.
  Specialization* limit_growth(Specialization& target);
  bool descends(const Specialization& target);

  // Answers of dispatch, by call types.
  struct Answer {
    std::vector<Match> matches;
    bool covered = true;
    bool known = true;  // false: too many methods, or the callee is not known
    World min_world = 0;
    World max_world = newest_world;
  };
  std::unordered_map<const DataType*, Answer> answers;
  const Answer& find_methods(const DataType* types);

  // The definite types below an abstract type of a program, when they are few; empty otherwise. Nothing depends on there
  // being no others: a call that is prepared for these finds all others when it runs.
  std::unordered_map<const DataType*, std::vector<const Type*>> leaves;
  const std::vector<const Type*>& leaves_of(const Type* type);

  // Inferences with constants that were made for some call.
  struct ConstantResult {
    Specialization* target = nullptr;
    std::vector<Known> arguments;
    Evaluation evaluation;
    World min_world = 0;
    World max_world = newest_world;
    std::vector<Edge> edges;
  };
  std::unordered_multimap<std::uint64_t, ConstantResult> constant_results;
};

inline bool dispatchable(const BuiltinTypes& builtin, std::span<const Type* const> types) {
  for (const Type* t : types)
    if (!is_dispatch_type(builtin, t)) return false;
  return true;
}

// The field is assigned in every object of the type.
bool field_always_defined(const DataType* type, std::size_t index);

// A type that nests so deeply that it was surely made by repetition; a tuple of itself twice doubles every time.
// limits.cpp
bool is_too_large(const Type* type);

// limits.cpp: the frame is an activation of the method that `target` is for. Of a generated method those for functions
// of one nominal type: a pass over code is one method for every function that it runs.
bool repeats(const Frame& frame, const Specialization& target);

// rewrite.cpp: turns the body of a solved frame into typed IR.
void rewrite(Inference::Impl& impl, Frame& frame);

}  // namespace slope::infer
