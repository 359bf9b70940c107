// One compilation: the requested function, and the functions it calls that have typed code but no machine code yet.
// Each is a unit of its own, so that its machine code depends on nothing but itself; the linker puts all units into one
// piece of memory (a piece for each would cost pages and mappings), linked to what was compiled before. What debuggers or
// the profiler read is one unit.
#pragma once

#include <llvm/IR/Module.h>

#include <unordered_map>

#include "codegen/debug_info.hpp"
#include "codegen/emit.hpp"
#include "codegen/jit.hpp"

namespace slope::codegen {

// A batch that has been linked. CodeInstance::native_owner of its members, and whoever is linked to it, hold it.
struct NativeBatch {
  NativeBatch() = default;
  ~NativeBatch() {
    if (replaced) replaced->good.store(nullptr, std::memory_order_release);
  }
  NativeBatch(const NativeBatch&) = delete;
  BatchData data;
  std::vector<std::shared_ptr<NativeBatch>> loops;  // good code that its quick code leaps to
  // The quick code that goes on to this, and whose code that is; this is linked to it, so it lives.
  QuickCode* replaced = nullptr;
  const NativeBatch* quick_batch = nullptr;
  std::unique_ptr<Jit::MachineCode> code;
};

// Machine code that hosts hold (DirectCode). Let go by its host while it runs, perhaps, it waits here for its end.
struct HostCode {
  std::vector<std::weak_ptr<NativeBatch>> held;
  std::vector<std::shared_ptr<NativeBatch>> dropped;
};

struct Published {
  Signature signature;
  void* entry = nullptr;
  std::weak_ptr<NativeBatch> owner;
};
// Machine code by what it was made from. An entry counts while its owner lives: addresses of CodeInstances are reused.
using PublishedCode = std::unordered_map<const CodeInstance*, Published>;

// Which callees come along.
struct BatchPolicy {
  World world = 0;
  bool only_executed = false;  // leave out callees that never ran: the caller got hot without them
  std::size_t max_functions = 200;
  std::size_t max_insts = 40000;
  // Not zero: the caller has no use for the batch any more, whatever is in it.
  const std::atomic<std::uint32_t>* cancelled = nullptr;
};

class Batch : public EmitHost {
 public:
  struct Options {
    bool tests_indices = true;  // Layout::tests_indices
    bool keeps_names = false;   // of values, for people who read the LLVM IR
    Ahead* ahead = nullptr;     // code for a program without an engine: all of it one unit
  };
  Batch(Runtime& runtime, PublishedCode& published, const Translator& translator, std::uint64_t first_name,
        Options options);
  bool build(CodeInstance& root, const BatchPolicy& policy, std::string& why);
  // Every function may get quick code that `replacer` replaces.
  void want_quick_code(Replacer& replacer, bool spares_short_loops);
  // `boxed_root`: with the wrapper for dynamic callers of the function that was asked for; others get theirs when they
  // are asked for.
  void emit(bool boxed_root);
  // The wrapper alone, of a function that has been published.
  bool build_wrapper(CodeInstance& code);
  // Good code of a loop of quick code (leaps.hpp).
  bool build_from_loop(const QuickCode& quick, unsigned loop, const std::string& name, std::string& why);
  // The wrapper for hosts, of a function that has been published.
  bool build_direct(CodeInstance& code);
  // Ahead of time: these functions, all that they call, and an entry for C of each, by the names given.
  bool build_ahead(std::span<CodeInstance* const> roots, const BatchPolicy& policy, std::string& why);
  std::vector<llvm::Function*> emit_ahead(std::span<const std::string> symbols);
  // After build_direct, of a derivative: the gradient for hosts, with the derivative inlined where it is short.
  void build_flat_gradient(const BatchPolicy& policy, llvm::ArrayRef<std::uint8_t> steps);

  struct Member {
    CodeInstance* code = nullptr;
    const ir::Function* function = nullptr;
    Signature signature;
    std::string name;      // of its function in the batch
    Unit* unit = nullptr;  // that defines it
    llvm::Function* native = nullptr;
    llvm::Function* boxed = nullptr;
    // Of the method that callers see: a derivative's own, not that of the function which it is derived from.
    bool is_vararg() const { return code->owner && code->owner->method->is_vararg; }
  };
  std::vector<std::unique_ptr<Member>>& members() { return members_; }
  std::vector<std::unique_ptr<Unit>>& units() { return units_; }
  // The names of all that can be entered: of each member its native function, then its wrapper, if there is one; of
  // those for hosts in the order in which they were built.
  const std::vector<std::string>& entries() const { return entries_; }
  std::shared_ptr<NativeBatch> result() { return result_; }
  void drop_result() { result_.reset(); }
  std::uint64_t next_name() const { return next_name_; }

  CallTarget resolve(Specialization& target, Unit& caller) override;

 private:
  void add(CodeInstance& code);
  void add_callees();
  Unit& unit_for_next();  // function: a new one, but where all share one
  std::string unique(const std::string& name) { return name + "#" + std::to_string(next_name_++); }
  void declare_boxed(Member& member);
  llvm::Function* declare_native(Unit& unit, const Signature& signature, const std::string& symbol);
  llvm::Function* declare_entry(const std::string& kind, llvm::Type* result, unsigned parameters);
  llvm::FunctionCallee link_to(const Published& p, Unit& caller);
  CodeInstance* typed_code(const Specialization& target) const;
  const Published* published(const CodeInstance* code) const;
  const Signature* known_signature(Specialization& target);
  bool may_fail(const ir::Function& function);
  bool may_fail(const ir::Function& function, const ir::Inst& inst);
  void find_signature(Member& member);

  Runtime& runtime_;
  PublishedCode& published_;
  const Translator& translator_;
  bool is_one_unit_ = false;
  BatchPolicy policy_;
  llvm::LLVMContext context_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<DebugInfo> debug_;  // where the engine wants its code described
  std::shared_ptr<NativeBatch> result_;
  std::vector<std::unique_ptr<Member>> members_;
  std::unordered_map<const CodeInstance*, Member*> by_code_;
  std::vector<const Member*> deciding_;  // functions whose may_fail is being found
  // Of functions of other units and of earlier batches, where they have been called.
  std::unordered_map<const Unit*, std::unordered_map<const CodeInstance*, llvm::Function*>> declared_;
  std::vector<std::string> entries_;
  std::uint64_t next_name_;
};

}  // namespace slope::codegen
