// What lang/pipeline and lang/derive share. No other room includes it.
#pragma once

#include <map>
#include <optional>
#include <unordered_set>

#include "lang/diff/diff.hpp"
#include "lang/diff/memory.hpp"
#include "lang/diff/rules.hpp"
#include "lang/infer/infer.hpp"
#include "lang/opt/opt.hpp"
#include "lang/pipeline/pipeline.hpp"

namespace slope {

std::uint64_t clock_nanoseconds();  // of a clock that never goes back

struct Pipeline::Impl {
  Impl(Pipeline& pipeline, std::function<CodeGenerator*()> code_generator);
  ~Impl();

  static void dump(const char* stage, const ir::Function& function);  // when SLOPE_DUMP names the stage

  static void dump_stages(const Specialization& target, const CodeInstance& code);

  CodeGenerator* generator();  // null: this build or installation has none

  infer::InferOptions infer_options();
  // Limits that inference passed, by function, for `@why`.
  std::unordered_map<const Specialization*, std::vector<infer::LimitPassed>> limits;
  void note_limit(const Specialization& target, infer::LimitPassed passed);
  // Optimises; when inlining has made calls decidable that were not, infers and optimises once more.
  void optimise(Context& ctx, infer::InferResult& result, const opt::OptOptions& options);
  // Calls of known functions on known types that are still dynamic: their types only came with inlining.
  bool has_decidable_calls(const ir::Function& function) const;
  opt::OptOptions opt_options(const Specialization* self);
  CodeInstance* valid_code(Context& ctx, Specialization& target) const;

  // A method that no source stands for: a derivative, the rest of a hot loop. Its one specialisation gets `function`'s
  // code. The callee value is a fresh singleton, so nothing else ever dispatches to it.
  struct Synthetic {
    std::unique_ptr<Method> method;
    Specialization* target = nullptr;
    Value callee;
    std::vector<std::shared_ptr<TapeLayout>> layouts;
    std::uint64_t serial = 0;  // another one each time that it is used
  };
  std::uint64_t next_serial = 1;
  Synthetic& synthetic(const std::string& name, std::span<const Type* const> parameter_types, const ir::Function* like);
  // Those whose code was freed, by name and parameters, to be used again.
  using SyntheticKey = std::pair<std::string, std::vector<const Type*>>;
  std::map<SyntheticKey, std::vector<Synthetic*>> spare;
  std::vector<std::shared_ptr<TapeLayout>> old_layouts;  // of what was freed: open tapes may have them
  void forget(const std::vector<CodeInstance*>& codes);  // that will be destroyed
  std::unordered_set<const Specialization*> pinned;
  std::size_t freed = 0;
  CodeInstance* publish(Synthetic& synthetic, infer::InferResult&& result, const std::vector<Edge>& more_edges);

  bool worth_compiling(Context& ctx, Specialization& target, std::uint32_t calls);
  CodeInstance* typed_loop(Context& ctx, const ir::Function& running, Specialization* target, std::uint32_t header);
  std::unordered_map<const Specialization*, std::uint64_t> interpreted;  // instructions, about, since they got warm

  // --- derivatives (lang/derive/cache.cpp) ---
  // The code of a derivative is made from that of its primal, kept for its range of worlds and ended by its edges, as
  // the sources of cached generators are; and counted as they are.
  enum DerivativeKind : std::size_t { gradient_kind, pullback_kind, forward_kind, derivative_kinds };
  struct DerivativeCounts {
    std::uint64_t calls = 0;        // of the transform
    std::uint64_t hits = 0;         // kept code was used
    std::uint64_t misses = 0;       // there was none for this world
    std::uint64_t invalidated = 0;  // of the misses: a definition had ended the code
    std::uint64_t nanoseconds = 0;  // making it, with what it needed of others
  };
  DerivativeCounts derivative_counts[derivative_kinds];
  // The time of its life counts as compiling; of nested ones that of the outermost.
  class CompileClock {
   public:
    explicit CompileClock(Pipeline& pipeline);
    ~CompileClock();
    CompileClock(const CompileClock&) = delete;

   private:
    Pipeline& pipeline_;
    std::uint64_t start_;
  };
  int compiling = 0;
  // Of one miss, while it lives.
  class Making {
   public:
    Making(Pipeline& pipeline, DerivativeCounts& counts, bool ended);
    ~Making();

   private:
    CompileClock clock_;
    DerivativeCounts& counts_;
    std::uint64_t start_;
  };
  std::size_t derivative_bytes(Context& ctx, DerivativeKind kind) const;  // of what is valid now

  struct Halves {
    diff::Environment::Halves answer;
    Synthetic* forward = nullptr;
    Synthetic* reverse = nullptr;
    bool ready = false;
  };
  struct PrimalCode {
    const CodeInstance* basis = nullptr;  // the ordinary code it stands beside: ends with it
    std::shared_ptr<ir::Function> code;   // null while being made
    std::vector<Edge> edges;              // derivatives that it calls
    // The calls of rules that were looked up for it and for what is inlined in it, and what was found.
    std::map<const DataType*, const Method*> rules;
    std::optional<diff::Refusal> refusal;  // why there is none
  };
  // What rules' builders made, by the types of the call and whether it is for forward mode.
  struct BuiltRule {
    Value rule;
    const Method* builder = nullptr;
  };
  std::map<std::pair<const DataType*, bool>, BuiltRule> built_rules;
  bool built_rule(Context& ctx, const DataType* call_types, bool forward, Value& rule);
  // Adds what a derivative of this code rests on.
  void add_edges(const Specialization& primal, std::vector<Edge>& edges) const;
  void take_refusal(const Specialization& primal, diff::Refusal& refusal) const;
  // The rules that may apply to a call of these types: looked up, and noted.
  diff::RuleKind rule_of(Context& ctx, const DataType* call_types, PrimalCode& noting);
  bool has_forward_rule(Context& ctx, const DataType* call_types, PrimalCode& noting);
  // A pass runs functions that have rules (lang/derive/overlay.cpp).
  Specialization* under_pass(Context& ctx, Specialization& target, PrimalCode& noting, std::string& why);
  bool use_rules_under_pass(Context& ctx, ir::Function& function, PrimalCode& noting);
  using Key = std::pair<const Specialization*, std::vector<char>>;
  std::string saved_text(const Specialization& gradient) const;
  bool usable(Context& ctx, const PrimalCode& primal, const CodeInstance* basis) const;
  std::map<Key, GradientCode> gradients;
  std::vector<Key> gradients_in_work;
  std::map<Key, Halves> halves;
  std::map<const Specialization*, PrimalCode> primals;
  std::map<const Specialization*, PrimalCode> rule_calls;
  const ir::Function* primal(Context& ctx, Specialization& target);
  const ir::Function* primal_or_rule(Context& ctx, Specialization& target);
  const GradientCode* find_gradient(Context& ctx, Specialization& primal, const std::vector<char>& active,
                                    diff::Refusal& refusal);  // null also while it is being made
  bool make_gradient(Context& ctx, Specialization& primal, const std::vector<char>& active, GradientCode& made,
                     diff::Refusal& refusal);
  Halves* make_halves(Context& ctx, Specialization& primal, const std::vector<char>& active, diff::Refusal& refusal);
  // What functions do to memory, for the world that `ctx` sees.
  // Forward derivatives, and the code of synthetic functions before it was optimised, which they may be taken of.
  struct TangentCode {
    diff::Environment::Tangent answer;
    Synthetic* synthetic = nullptr;
    bool ready = false;
  };
  std::map<std::pair<Key, std::size_t>, TangentCode> tangents;  // by width
  std::map<std::pair<Key, std::size_t>, std::pair<World, diff::Refusal>> refused_directions;
  std::map<const Specialization*, std::shared_ptr<ir::Function>> sources;
  std::map<const Specialization*, std::vector<diff::SavedValue>> saved;  // by gradient function
  bool overwrites_arguments(Context& ctx, Specialization& target);
  TangentCode* make_tangent(Context& ctx, Specialization& primal, const std::vector<char>& active, std::size_t width,
                            diff::Refusal& refusal);
  const ir::Function* frule_call(Context& ctx, Specialization& target, const std::vector<char>& active,
                                 std::size_t width, std::unique_ptr<ir::Function>& made);
  // Calls of gradient and jvp, where the types are known, as calls of the derivative itself
  // (lang/derive/operators.cpp), so that they can be differentiated like any other. True: something changed; what it
  // rests on is in `edges`.
  bool calls_known_gradient(const ir::Function& function);
  bool is_of_numbers(const ir::Function& function, const ir::Inst& inst);
  bool expand_operators(Context& ctx, ir::Function& function, std::vector<Edge>& edges, bool known_only = false);
  diff::MemoryEffects& memory(Context& ctx);
  diff::MemoryMask overwritten_by(Context& ctx, const DataType* call_types);  // as a rule with state declares it
  std::unique_ptr<diff::MemoryEffects> memory_effects;
  World memory_world = 0;
  bool valid(Context& ctx, const Specialization* target) const;
  void raise(Context& ctx, const Specialization& primal, const diff::Refusal& refusal);

  Pipeline& pipeline;
  Runtime& runtime;
  std::function<CodeGenerator*()> load_generator;
  bool asked_for_generator = false;
  CodeGenerator* code_generator = nullptr;
  std::vector<std::unique_ptr<Synthetic>> synthetics;
  std::unordered_map<const Type*, Specialization*> by_callee;  // of the synthetics
  std::map<std::pair<const ir::Function*, std::vector<const Type*>>, CodeInstance*>
      loops;  // types end with the header's number
  int root_key = 0;
  int refining = 0;  // how deep inside second inferences of `optimise`
};

// The natives that need the pipeline; those of derivatives in the files of the same names.
void define_pipeline_natives(Runtime& runtime);
void define_gradient_natives(Runtime& runtime);
void define_forward_natives(Runtime& runtime);
void define_dynamic_natives(Runtime& runtime);

}  // namespace slope
