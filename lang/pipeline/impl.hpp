// What the files of lang/pipeline share. Not for anyone else.
#pragma once

#include <atomic>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lang/derive/derivatives.hpp"
#include "lang/pipeline/pipeline.hpp"
#include "lang/pipeline/synthetic.hpp"
#include "lang/runtime/stop_scope.hpp"

namespace slope {

struct Pipeline::Impl {
  Impl(Pipeline& pipeline, std::function<CodeGenerator*()> code_generator);

  CodeGenerator* generator();  // null: this build or installation has none
  // Optimises; when inlining has made calls decidable that were not, or operators became calls of derivatives, infers
  // and optimises again (refine; false: it could not be inferred).
  void optimise(Context& ctx, infer::InferResult& result, const opt::OptOptions& options);
  bool refine(Context& ctx, infer::InferResult& result, const opt::OptOptions& options);
  bool worth_compiling(Context& ctx, Specialization& target, std::uint32_t calls);
  // Machine code of what got hot: at once, or by other threads.
  CodeGenerator::Compiled compile_hot(Context& ctx, CodeInstance& code, std::string& why);
  CodeGenerator::Compiled compile_hot(Context& ctx, Specialization& target, std::string& why);
  CodeInstance* typed_loop(Context& ctx, const ir::Function& running, Specialization* target, std::uint32_t header,
                           bool& later);
  // The code for a loop if it can be entered.
  CodeInstance* enter(Context& ctx, CodeInstance* code, bool& later);
  void forget(const std::vector<CodeInstance*>& codes);  // that will be destroyed

  Pipeline& pipeline;
  Runtime& runtime;
  std::function<CodeGenerator*()> load_generator;
  bool asked_for_generator = false;
  CodeGenerator* code_generator = nullptr;
  std::unordered_set<const Specialization*> optimising;
  // A postponed definition of the library is being made. What it runs, it runs once, and no time limit ends it.
  std::atomic<bool> makes_library = false;
  int refining = 0;  // how deep inside second inferences of `optimise`
  // Limits that inference passed, by function, for `@why`.
  std::unordered_map<const Specialization*, std::vector<infer::LimitPassed>> limits;
  std::unordered_map<const Specialization*, std::uint64_t> interpreted;  // instructions, about, since they got warm
  std::map<std::pair<const ir::Function*, std::vector<const Type*>>, CodeInstance*>
      loops;  // types end with the header's number
  std::unordered_set<const Specialization*> pinned;
  std::size_t freed = 0;
  SyntheticFunctions synthetics;
  derive::Derivatives derivatives;
};

// Tells whoever samples this thread that it compiles.
class Compiling {
 public:
  explicit Compiling(Runtime& runtime) : runtime_(runtime), before_(runtime.compiles) { runtime.compiles = true; }
  ~Compiling() { runtime_.compiles = before_; }
  Compiling(const Compiling&) = delete;

 private:
  Runtime& runtime_;
  bool before_;
};

// The natives that need the pipeline alone; lang/derive and lang/explain define their own.
void define_pipeline_natives(Runtime& runtime);

}  // namespace slope
