// Derivatives as code, one object an engine: the typed primal with calls of rules kept (PrimalCodes), what builders of
// rules made (BuiltRules), the derivatives made of these (DerivativeCache), and what functions do to memory.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lang/derive/built_rules.hpp"
#include "lang/derive/cache.hpp"
#include "lang/derive/compiler.hpp"
#include "lang/derive/kept_memory.hpp"
#include "lang/derive/primal.hpp"
#include "lang/derive/segments.hpp"
#include "lang/diff/memory.hpp"

namespace slope::derive {

// Code that will be freed, for those who hold something made of it.
struct GoneCode {
  std::unordered_set<const CodeInstance*> codes;
  std::unordered_set<const Specialization*> emptied;  // all of whose code is among them
  std::unordered_set<const Method*> methods;          // that will be destroyed, their specialisations are in `emptied`
  bool destroys = false;                              // what is in `emptied`
};

class Derivatives {
 public:
  Derivatives(Compiler& compiler, Runtime& runtime);
  ~Derivatives();
  Derivatives(const Derivatives&) = delete;

  // Null: an error is raised in ctx (DifferentiationError with the user's line). `active`: by parameter of the primal,
  // callee first.
  const GradientCode* gradient(Context& ctx, Specialization& primal, const std::vector<char>& active);
  const Halves* halves(Context& ctx, Specialization& primal, const std::vector<char>& active);
  const Tangent* tangent(Context& ctx, Specialization& primal, const std::vector<char>& active, std::size_t width);

  // What functions do to memory, for the world that `ctx` sees.
  diff::MemoryEffects& memory(Context& ctx);
  std::unique_ptr<diff::MemoryEffects> memory_effects(Context& ctx, diff::MemoryScope scope);
  const diff::MemoryEffects::Globals& globals_of(Context& ctx, Specialization& target);
  // By a declaration the call carries no derivative.
  bool is_declared_constant(Context& ctx, const Specialization& target);
  // What a function with a rule overwrites, as the rule declares: `overwrites(f, args…)` says it by its type, Val(i) or
  // a tuple of such.
  diff::MemoryMask overwritten_by(Context& ctx, const DataType* call_types);

  // Calls of `gradient` and its kin whose types are known become calls of the derivative itself (operators.cpp), so
  // that they can be differentiated like any other. True: something changed; what it rests on is in `edges`.
  // `known_only`: those alone that ordinary code gains by.
  bool expand_operators(Context& ctx, ir::Function& function, std::vector<Edge>& edges, bool known_only = false);
  bool calls_known_gradient(const ir::Function& function) const;
  // An operator whose function, arguments and directions are of plain types (plain_operators.cpp).
  bool is_plain_operator(const ir::Function& function, const ir::Inst& inst) const;
  bool is_plain_reverse(const ir::Function& function, const ir::Inst& inst) const;
  bool is_plain_type(const Type* type) const;

  // The instance of Base.CallStep with these parameters: asked at each call whose target is found when it runs, in
  // derivatives of derivatives (dynamic.cpp). By what the parameters are made of.
  std::map<std::vector<std::uintptr_t>, Value> call_steps;

  // Where the last DifferentiationError came from, once.
  Span take_refused() { return std::exchange(refused_, Span{}); }
  void forget(const GoneCode& gone);
  void reach(const Specialization& target, Reached& reached) const;  // what was made of it
  void reach_refused(Reached& reached) const;                        // where something cannot be differentiated

  Compiler& compiler;
  Runtime& runtime;
  BuiltRules rules;
  PrimalCodes primals;
  DerivativeCache cache;
  StoresOfFunctions stores;
  Segments segments;

  std::string text_of(const Specialization& primal, const diff::Refusal& refusal) const;  // of the error

 private:
  void raise(Context& ctx, const Specialization& primal, const diff::Refusal& refusal);
  ir::Operand expand_operator(Context& ctx, ir::Function& function, std::uint32_t id, std::vector<Edge>& edges,
                              bool known_only, std::vector<std::uint32_t>& made);

  std::unique_ptr<diff::MemoryEffects> memory_effects_;
  World memory_world_ = 0;
  // Of one world, as memory_effects_.
  std::unordered_map<const Specialization*, std::unique_ptr<diff::MemoryEffects::Globals>> globals_;
  // Of one world too.
  std::unordered_map<const Specialization*, bool> declared_constant_;
  World declared_world_ = 0;
  Span refused_;
  int root_key_ = 0;
};

inline Derivatives& derivatives_of(Context& ctx) { return compiler_of(ctx).derivatives(); }

// Calls the code of a derivative, which tests none of its arguments: they are tested here, because shadows, records and
// cotangents come from objects that a program can make by hand. False: an error is raised.
bool call_derivative_code(Context& ctx, Specialization& code, Value callee, const std::vector<Value>& given,
                          Value& result);

// What Core.pullback_step reports of two halves. False: an error is raised.
bool describe_halves(Context& ctx, const Specialization& target, const Halves& halves, Value (&parts)[6]);

// The natives of `gradient` and its kin.
void define_natives(Runtime& runtime);

}  // namespace slope::derive
