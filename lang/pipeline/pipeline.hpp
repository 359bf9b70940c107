// The whole walk on one page: text → syntax → IR → typed IR → optimised → (derivative →) native code; and when to take
// which step (Tiers). One Pipeline an engine.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lang/diff/memory.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/diagnostic.hpp"
#include "lang/syntax/ast.hpp"

namespace slope {

namespace infer {
struct WhySource;
struct ViewOptions;
}  // namespace infer

class Pipeline final : public Tiers {
 public:
  // `code_generator` is asked for on the first compilation; it may answer null (no JIT in this build): then everything
  // stays interpreted.
  Pipeline(Runtime& runtime, std::function<CodeGenerator*()> code_generator);
  ~Pipeline() override;
  void add_hooks(RuntimeHooks& hooks);

  // Parses a text and runs it statement by statement in `module`. False: either `diagnostics` has syntax errors
  // (nothing ran, or what stood before the first bad statement of lowering), or an error is pending in ctx.
  bool run(Context& ctx, Module* module, FileId file, Value& result, std::vector<Diagnostic>& diagnostics);
  // The prompt's question: does the text end inside a form?
  static bool incomplete(const SourceMap& sources, FileId file);
  // The same for a text that was parsed before.
  bool run_parsed(Context& ctx, Module* module, std::shared_ptr<syntax::Ast> ast, Value& result,
                  std::vector<Diagnostic>& diagnostics);
  struct LibraryFile {
    std::string name;
    std::string_view text;
    std::string_view image;  // its tree (lang/syntax/image.hpp); it and the text outlive the engine. Else it is parsed
  };
  // In load order. `index`: what they define (lang/runtime/library_index.hpp), when they are the built-in ones.
  bool load_standard_library(Context& ctx, std::span<const LibraryFile> files, std::string_view index,
                             std::vector<Diagnostic>& diagnostics);

  // What derivative rules return is checked where they return it. Derivatives that were made before are not.
  bool check_rules = false;

  // Tiers
  void on_hot(Context& ctx, Specialization& target) override;
  CodeInstance* on_hot_loop(Context& ctx, const ir::Function& running, Specialization* target, std::uint32_t header,
                            const Value* live, std::size_t live_count) override;
  CodeInstance* typed_code(Context& ctx, Specialization& target) override;
  void release_ended(Context& ctx) override;  // lang/pipeline/release.cpp

  // Compiles `target` now, whatever the mode; null with `why`.
  CodeInstance* compile(Context& ctx, Specialization& target, std::string& why);
  // The entry of compiled code for hosts (backend.hpp). Without one, `why` says so.
  DirectCode direct(Context& ctx, CodeInstance& code, std::string& why, std::span<const std::uint8_t> steps = {});

  // The gradient function of a specialisation (diff.hpp), as a specialisation of its own: (#self#, callee, args…,
  // shadows…, seed) → Tuple{value, cotangents}. Null: an error is raised in ctx (DifferentiationError with the user's
  // line).
  struct GradientCode {
    Specialization* target = nullptr;
    Value callee;
    std::vector<char> active;  // by parameter of the primal
    World min_world = 0;
    World max_world = newest_world;
  };
  const GradientCode* gradient_code(Context& ctx, Specialization& primal, const std::vector<char>& active);

  // Its two halves (diff.hpp), for pullbacks. Null: an error is raised in ctx.
  const diff::Environment::Halves* halves(Context& ctx, Specialization& primal, const std::vector<char>& active);
  // What Core.pullback_step tells of two halves. False: an error is raised.
  static bool describe_halves(Context& ctx, const Specialization& target, const diff::Environment::Halves& halves,
                              Value (&parts)[6]);
  bool has_code(Context& ctx, Specialization& target) const;  // for the world of ctx
  // Code of this specialisation is never freed.
  void pin(const Specialization& target);
  const Type* return_type(Context& ctx, const DataType* call_types);
  // Its forward derivative in `width` directions at once (diff/forward.hpp). Null: an error is raised in ctx.
  const diff::Environment::Tangent* tangent(Context& ctx, Specialization& primal, const std::vector<char>& active,
                                            std::size_t width);
  // The specialisation that only this callee value reaches: a derivative's. Null: it is a function like any other.
  Specialization* derivative_of(Value callee) const;
  diff::MemoryEffects& memory(Context& ctx);
  diff::MemoryEffects::Globals globals_of(Context& ctx, Specialization& target);

  // What @code_lowered, @code_typed, @code_warntype, @code_grad, @code_llvm, @code_native print.
  enum class View { lowered, typed, warntype, gradient, llvm, native };
  bool inspect(Context& ctx, Value callee, std::span<const Type* const> argument_types, View view,
               const infer::ViewOptions& options, std::string& text);

  // What `@why` asks (lang/explain/why.hpp).
  infer::WhySource why_source(Context& ctx);

  // Whether the gradient keeps nothing on a stack that grows as a loop goes. False: an error is raised in ctx.
  bool stack_free(Context& ctx, Specialization& primal, const std::vector<char>& active, bool& result);

  struct Statistics {
    std::uint64_t inferred = 0;
    std::uint64_t compiled = 0;
    std::uint64_t derivatives = 0;
    std::uint64_t compile_nanoseconds = 0;
  };
  const Statistics& statistics() const { return statistics_; }
  // Of code that is there: CodeInstances that ended, bytes of machine code; and how many have been freed.
  struct CodeCounts {
    std::size_t ended = 0;
    std::size_t freed = 0;
    std::size_t machine_bytes = 0;
  };
  CodeCounts code_counts() const;
  // Of gradients, pullbacks and forward derivatives in turn: how often the transform ran, kept code was used, there was
  // none, a definition had ended it; bytes of what is valid now, nanoseconds.
  void derivative_counts(Context& ctx, std::vector<std::int64_t>& numbers) const;
  // Where the last DifferentiationError came from, once.
  Span take_refused() { return std::exchange(refused_, Span{}); }

 private:
  friend class PipelineEnvironment;
  friend class OperatorExpansion;
  struct Impl;
  std::unique_ptr<Impl> impl_;
  Runtime& runtime_;
  Statistics statistics_;
  Span refused_;
};

}  // namespace slope
