// What derivatives need of the compiler that runs above them; lang/pipeline implements it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lang/infer/infer.hpp"
#include "lang/memory/tape.hpp"
#include "lang/opt/opt.hpp"
#include "lang/runtime/backend.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/stage_times.hpp"

namespace slope::derive {

class Derivatives;

// A method that no source stands for: a derivative, the rest of a hot loop. Its one specialisation gets the code that is
// published. The callee value is a fresh singleton, so nothing else ever dispatches to it.
struct Synthetic {
  std::unique_ptr<Method> method;
  Specialization* target = nullptr;
  Value callee;
  std::vector<std::shared_ptr<TapeLayout>> layouts;
  std::uint64_t serial = 0;  // another one each time that it is used
};

class Compiler : public Tiers {
 public:
  // What derivative rules return is checked where they return it. Derivatives that were made before are not.
  bool check_rules = false;

  // Compiles `target` now, whatever the mode; null with `why`.
  virtual CodeInstance* compile(Context& ctx, Specialization& target, std::string& why) = 0;
  // How callees are inferred, optimised and published.
  virtual infer::InferOptions infer_options(Context& ctx) = 0;
  // `self`: whose code is optimised; null for a derivative.
  virtual opt::OptOptions opt_options(Context& ctx, const Specialization* self) = 0;
  // Whether calls of known functions on known types are still dynamic, because their types only came with inlining.
  virtual bool has_decidable_calls(const ir::Function& function) const = 0;

  // `like`: the code that it is made from, whose module and position it gets; may be null.
  virtual Synthetic& synthetic(const std::string& name, std::span<const Type* const> parameter_types,
                               const ir::Function* like) = 0;
  // The specialisation that only this callee value reaches: that of a Synthetic. Null: it is a function like any other.
  virtual Specialization* synthetic_of(Value callee) const = 0;
  virtual CodeInstance* publish(Synthetic& synthetic, infer::InferResult&& result,
                                const std::vector<Edge>& more_edges) = 0;
  // Code of this specialisation is never freed.
  virtual void pin(const Specialization& target) = 0;
  virtual bool is_pinned(const Specialization* target) const = 0;  // also of an address that is none

  virtual Derivatives& derivatives() = 0;

  // Time spent compiling. Of nested compilations the outermost counts.
  struct CompileTime {
    int depth = 0;
    std::uint64_t nanoseconds = 0;
  };
  CompileTime compile_time;
  StageTimes* times = nullptr;  // where somebody wants to know
};

std::uint64_t clock_nanoseconds();  // of a clock that never goes back

// The time of its life counts as compiling.
class CompileClock {
 public:
  explicit CompileClock(Compiler& compiler);
  ~CompileClock();
  CompileClock(const CompileClock&) = delete;

 private:
  Compiler::CompileTime& time_;
  std::uint64_t start_ = 0;
};

// The code of `target` that holds in the world of `ctx`; null: there is none.
CodeInstance* valid_code(Context& ctx, Specialization& target);
// The result holds only where the code holds that the edges name. What became part of it before it was inferred, such as
// the primal of a derivative, is no call any more, so that inference does not find in which worlds that was its code.
void limit_to_worlds_of(Context& ctx, std::span<const Edge> edges, infer::InferResult& result);

// Prints the function when SLOPE_DUMP names the stage.
void dump(const char* stage, const ir::Function& function);

std::vector<const Type*> parameter_types(const ir::Function& function);

inline Compiler& compiler_of(Context& ctx) { return *static_cast<Compiler*>(ctx.runtime->tiers); }

}  // namespace slope::derive
