// The whole walk on one page (pipeline.cpp): text → syntax → IR → typed IR → optimised → (derivative →) native code; and
// when to take which step (Tiers). One Pipeline an engine.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lang/derive/compiler.hpp"
#include "lang/derive/derivatives.hpp"
#include "lang/runtime/runtime.hpp"
#include "lang/support/diagnostic.hpp"
#include "lang/syntax/ast.hpp"

namespace slope {

class Pipeline final : public derive::Compiler {
 public:
  // `code_generator` is asked for on the first compilation; it may answer null (no JIT in this build): then everything
  // stays interpreted.
  Pipeline(Runtime& runtime, std::function<CodeGenerator*()> code_generator);
  ~Pipeline() override;
  void add_hooks(RuntimeHooks& hooks);

  // --- running text (run.cpp) ---
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
    bool is_loaded = true;   // false: a module of the library includes it
  };
  // In load order. `index`: what they define (lang/runtime/library_index.hpp), when they are the built-in ones.
  bool load_standard_library(Context& ctx, std::span<const LibraryFile> files, std::string_view index,
                             std::vector<Diagnostic>& diagnostics);

  // --- tiers (pipeline.cpp, tiers.cpp, loops.cpp, release.cpp) ---
  void on_hot(Context& ctx, Specialization& target) override;
  CodeInstance* on_hot_loop(Context& ctx, const ir::Function& running, Specialization* target, std::uint32_t header,
                            const Value* live, std::size_t live_count, bool& later) override;
  void toplevel_ended(const ir::Function& body) override;
  CodeInstance* typed_code(Context& ctx, Specialization& target) override;
  CodeInstance* typed_code_unless_stopped(Context& ctx,
                                          Specialization& target);  // null also when its program is to stop
  void release_ended(Context& ctx) override;
  void leave_used(std::unordered_set<const Method*>& methods) override;
  void forget(const std::unordered_set<const Method*>& methods,
              const std::unordered_set<const Specialization*>& specializations) override;
  void reach_held(Reached& reached) override;
  void reach_function(const ir::Function& function, Reached& reached) override;
  void reach_derived(const Specialization& target, Reached& reached) override;
  void each_loop(const std::function<void(const Method* method, const CodeInstance& code)>& look) override;
  void each_synthetic(const std::function<void(const Specialization& made)>& look) override;
  void end_derived(const Specialization& target) override;
  CodeInstance* compile(Context& ctx, Specialization& target, std::string& why) override;
  // The entry of compiled code for hosts (backend.hpp). Without one, `why` says so.
  DirectCode direct(Context& ctx, CodeInstance& code, std::string& why, std::span<const std::uint8_t> steps = {});
  CodeGenerator* generator();  // null: this build or installation has none

  // --- what derivatives are made with (lang/derive/compiler.hpp) ---
  infer::InferOptions infer_options(Context& ctx) override;
  opt::OptOptions opt_options(Context& ctx, const Specialization* self) override;
  bool has_decidable_calls(const ir::Function& function) const override;
  derive::Synthetic& synthetic(const std::string& name, std::span<const Type* const> parameter_types,
                               const ir::Function* like) override;
  Specialization* synthetic_of(Value callee) const override;
  CodeInstance* publish(derive::Synthetic& synthetic, infer::InferResult&& result,
                        const std::vector<Edge>& more_edges) override;
  void pin(const Specialization& target) override;
  bool is_pinned(const Specialization* target) const override;
  derive::Derivatives& derivatives() override;

  // --- questions ---
  const Type* return_type(Context& ctx, const DataType* call_types);
  diff::MemoryEffects& memory(Context& ctx) { return derivatives().memory(ctx); }
  // Limits that inference passed, once each, by function.
  void note_limit(const Specialization& target, infer::LimitPassed passed);
  std::vector<infer::LimitPassed> limits_of(const Specialization& target) const;

  struct Statistics {
    std::uint64_t inferred = 0;
    std::uint64_t compiled = 0;
    std::uint64_t derivatives = 0;
    std::uint64_t compile_nanoseconds = 0;
  };
  Statistics statistics() const;
  // Of code that is there: CodeInstances that ended, bytes of machine code; and how many have been freed.
  struct CodeCounts {
    std::size_t ended = 0;
    std::size_t freed = 0;
    std::size_t machine_bytes = 0;
  };
  CodeCounts code_counts() const;

 private:
  struct Impl;
  static void dump_stages(const Specialization& target, const CodeInstance& code);  // that is compiled

  Runtime& runtime_;
  Statistics statistics_;
  CodeInstance* infer_code(Context& ctx, Specialization& target);

  std::unique_ptr<Impl> impl_;
};

inline Pipeline& pipeline_of(Context& ctx) { return *static_cast<Pipeline*>(ctx.runtime->tiers); }

}  // namespace slope
